//! A table as functions, for callers that have no Rust.

use std::sync::Arc;

use tvm_ffi_runtime::abi::TVMFFIAny;
use tvm_ffi_runtime::error::kind;
use tvm_ffi_runtime::function::Callable;
use tvm_ffi_runtime::{Any, AnyView, Array, Function, Map, Result};

use super::failure::{Failure, guarded};
use super::key::Key;
use super::prewarm::prewarm;
use super::table::{DispatchStats, Table};

/// All functions of a table by their names. `call` is the table's own.
pub fn functions(table: &Arc<Table>, call: Function) -> Map<String, Function> {
    let of = |table: &Arc<Table>| Arc::clone(table);
    let (insert, remove, clear, stats, entries) = (of(table), of(table), of(table), of(table), of(table));
    let functions: [(&str, Function); 7] = [
        ("call", call),
        (
            "insert",
            Function::from_typed_named("insert", move |key: Array, function: Function| -> Result<()> {
                insert.insert(key_of(&insert, &key)?, function);
                Ok(())
            }),
        ),
        (
            "remove",
            Function::from_typed_named("remove", move |key: Array| -> Result<bool> {
                Ok(remove.remove(&key_of(&remove, &key)?))
            }),
        ),
        ("clear", Function::from_typed_named("clear", move || clear.clear())),
        ("stats", Function::from_typed_named("stats", move || numbers(&stats.stats()))),
        ("entries", Function::from_typed_named("entries", move || listed(&entries))),
        ("prewarm", Function::from_callable(Prewarm(of(table)))),
    ];
    functions.into_iter().map(|(name, function)| (name.to_owned(), function)).collect()
}

fn key_of(table: &Table, values: &Array) -> Result<Key> {
    let views: Vec<AnyView<'_>> = values.as_slice().iter().map(Any::as_view).collect();
    table.key(&views)
}

/// Statistics by their names; times in nanoseconds.
fn numbers(stats: &DispatchStats) -> Map<String, i64> {
    let time = i64::try_from(stats.on_miss_time.as_nanos()).unwrap_or(i64::MAX);
    let numbers = [
        ("hits", stats.hits as i64),
        ("waits", stats.waits as i64),
        ("misses", stats.misses as i64),
        ("errors", stats.errors as i64),
        ("evictions", stats.evictions as i64),
        ("entries", stats.entries as i64),
        ("on_miss_ns", time),
    ];
    numbers.into_iter().map(|(name, number)| (name.to_owned(), number)).collect()
}

/// Pairs of a key, which is an array, and its function.
fn listed(table: &Table) -> Array {
    let pair =
        |entry: super::table::DispatchEntry| Array::from(vec![Array::from(entry.key).into(), entry.function.into()]);
    table.entries().into_iter().map(pair).collect()
}

/// The function `prewarm`. It passes on the code of a signal.
struct Prewarm(Arc<Table>);

impl Prewarm {
    fn run(&self, args: &[AnyView<'_>]) -> std::result::Result<(), Failure> {
        let [keys] = args else {
            let message = format!("prewarm: expected 1 argument, an array of keys, got {}", args.len());
            return Err(Failure::of_kind(kind::TYPE_ERROR, &message));
        };
        let keys: Array = keys.cast()?;
        let key = |key: &Any| key_of(&self.0, &key.cast()?);
        let keys = keys.as_slice().iter().map(key).collect::<Result<Vec<_>>>()?;
        prewarm(&self.0, keys)
    }
}

// SAFETY: it reads its arguments only, and `guarded` keeps panics.
unsafe impl Callable for Prewarm {
    unsafe fn call(&self, args: *const TVMFFIAny, num_args: i32, _result: *mut TVMFFIAny) -> i32 {
        // SAFETY: promised by the caller.
        let args = unsafe { AnyView::slice_from_raw(args, num_args) };
        guarded(|| self.run(args)).map_or_else(Failure::raise, |()| 0)
    }
}
