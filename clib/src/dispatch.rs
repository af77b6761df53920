//! Tables of functions by keys.

use codegen::dispatch::DispatchTable;
use codegen::runtime as tvm_ffi;
use codegen::runtime::{Array, Function, Map, Result};

use crate::error::bad_value;

/// A growing table of functions by keys, as functions by name: `call`, `insert`, `remove`, `clear`, `stats`, `entries`
/// and `prewarm`.
///
/// `call` takes the values of the key, as many as `key_names` names, and then any arguments. It calls the function that
/// the table keeps under the key, with the arguments after the key. If there is none, `on_miss` gets all arguments of
/// the call, and returns it. The table keeps at most `max_entries` functions, the most recently used; None keeps all.
/// `name` is for messages.
///
/// `insert(key, function)` and `remove(key)` take a key as an array; `remove` returns whether there was a function.
/// `clear()` removes all. `prewarm(keys)` takes an array of keys, and calls `on_miss` on several threads with each key
/// alone that has no function. `stats()` returns a map of numbers: `hits`, `waits`, `misses`, `errors`, `evictions`,
/// `entries`, `on_miss_ns`. `entries()` returns an array of pairs of a key and its function.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_dispatch_table(
    on_miss: Function,
    key_names: Array<String>,
    max_entries: Option<i64>,
    name: &str,
) -> Result<Map<String, Function>> {
    let most = max_entries.map(|most| usize::try_from(most).map_err(|_| bad_value("max_entries", wrong(most))));
    let table = DispatchTable::new(name, key_names.iter(), on_miss, most.transpose()?)?;
    Ok(table.functions())
}

fn wrong(most: i64) -> String {
    format!("expected at least 1, got {most}")
}
