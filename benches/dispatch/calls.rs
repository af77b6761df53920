//! Calls of functions with variants, for `cargo xtask bench --only dispatch`.

mod whole;

use std::env;

use whole::{Found, Result, call, whole};

/// `dispatch_calls FOUND-KEYS-VARIANTS-WHERE CALLS`, such as `table-3-16-jit 1000`
fn main() -> Result<()> {
    let args: Vec<String> = env::args().skip(1).collect();
    let [which, calls] = &args[..] else { return Err("expected what to call, and how often".into()) };
    let parts: Vec<&str> = which.split('-').collect();
    let [found, keys, variants, place] = parts[..] else { return Err(which.clone().into()) };
    let found = Found::ALL.into_iter().find(|known| known.name() == found).ok_or(found)?;
    let whole = whole(found, keys.parse()?, variants.parse()?, place == "library")?;
    for index in 0..calls.parse()? {
        let args = &whole.calls[index % whole.calls.len()];
        if call(&whole.function, args) != 0 {
            return Err("a call failed".into());
        }
    }
    Ok(())
}
