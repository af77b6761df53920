//! Dispatch at run time: one function that finds the variant for its first arguments, the *key*, and makes variants
//! when they are first needed.
//!
//! ```
//! use tvm_ffi_codegen::dispatch::DispatchTable;
//! use tvm_ffi_codegen::runtime::Function;
//!
//! // Called once for each key: with the key, and the arguments of the first call.
//! let on_miss = Function::from_typed(|factor: i64, _x: i64| Function::from_typed(move |x: i64| factor * x));
//! let table = DispatchTable::new("scale", ["factor"], on_miss, None)?;
//! assert_eq!(table.function().call_as::<i64>((3, 14))?, 42);
//! assert_eq!(table.function().call_as::<i64>((3, 5))?, 15);
//! assert_eq!((table.stats().misses, table.stats().hits), (1, 1));
//! # Ok::<(), tvm_ffi_codegen::runtime::Error>(())
//! ```
//!
//! [The contract](https://github.com/tvm-ffi-codegen/tvm-ffi-codegen/blob/main/docs/reference/contract.md)
//! (`docs/reference/contract.md`, C20) defines keys, misses, waiting, errors and eviction.

mod barrier;
mod entry;
mod failure;
mod fork;
mod functions;
mod hazard;
mod hits;
mod interpreter;
mod key;
mod miss;
mod prewarm;
mod process;
mod signals;
mod slots;
mod table;
mod thread;
mod waiting;
mod writer;

use std::fmt;
use std::sync::Arc;

use tvm_ffi_runtime::abi::TVMFFIAny;
use tvm_ffi_runtime::error::kind;
use tvm_ffi_runtime::function::Callable;
use tvm_ffi_runtime::{CallArgs, Error, Function, Map, Result};

pub use table::{DispatchEntry, DispatchStats};

/// A growing table of functions by keys. Its [`function`](DispatchTable::function) takes the key's values and then any
/// arguments. It calls the function that the table keeps under the key, with the arguments after the key. If there is
/// none, `on_miss` makes it.
///
/// Clones are the same table. All of its functions may be used on any thread.
///
/// The table owns `on_miss`. If that owns the table, or a function that forwards to it, the table is never freed. Let
/// it hold a weak reference: `table.function().as_object().downgrade()`.
#[derive(Clone)]
pub struct DispatchTable {
    table: Arc<table::Table>,
    function: Function,
}

impl DispatchTable {
    /// An empty table.
    ///
    /// `name` and `key_names` are for messages and listings. `on_miss` gets all arguments of a call that finds no
    /// function, or the key alone from [`prewarm`](DispatchTable::prewarm), and returns a function. With `max_entries`,
    /// the table keeps so many functions at most, and removes the least recently used one.
    ///
    /// # Errors
    /// `ValueError` if `max_entries` is 0, or a key's name is empty or occurs twice.
    pub fn new<N: Into<String>>(
        name: &str,
        key_names: impl IntoIterator<Item = N>,
        on_miss: Function,
        max_entries: Option<usize>,
    ) -> Result<Self> {
        let key_names: Vec<String> = key_names.into_iter().map(Into::into).collect();
        let wrong = |what: String| Err(Error::new(kind::VALUE_ERROR, &format!("table `{name}`: {what}")));
        if max_entries == Some(0) {
            return wrong("max_entries: expected at least 1, got 0".into());
        }
        for (place, key) in key_names.iter().enumerate() {
            if key.is_empty() {
                return wrong(format!("the name of key {place} is empty"));
            }
            if key_names.iter().take(place).any(|other| other == key) {
                return wrong(format!("two keys have the name {key:?}"));
            }
        }
        fork::install();
        let table = table::Table::new(name.to_owned(), key_names, on_miss, max_entries);
        let function = Function::from_callable(Calls(Arc::clone(&table)));
        Ok(Self { table, function })
    }

    /// The function `name(key.., args..)`.
    pub fn function(&self) -> &Function {
        &self.function
    }

    /// The name.
    pub fn name(&self) -> &str {
        self.table.name()
    }

    /// The names of the key's values, in order.
    pub fn key_names(&self) -> &[String] {
        self.table.key_names()
    }

    /// Keeps a function under a key, in place of the one that the table has. An `on_miss` under way for the key is
    /// detached: its callers get its function, and the table doesn't keep it.
    ///
    /// # Errors
    /// `ValueError` for a wrong number of values; `TypeError` for a value that can't be a part of a key.
    pub fn insert(&self, key: impl CallArgs, function: Function) -> Result<()> {
        key.with_views(|values| self.table.key(values)).map(|key| self.table.insert(key, function))
    }

    /// Removes the function of a key, and returns whether there was one. An `on_miss` under way for the key is
    /// detached, as by [`insert`](DispatchTable::insert). A call that runs in the function ends first.
    ///
    /// # Errors
    /// As for [`insert`](DispatchTable::insert).
    pub fn remove(&self, key: impl CallArgs) -> Result<bool> {
        key.with_views(|values| self.table.key(values)).map(|key| self.table.remove(&key))
    }

    /// Removes all functions, and detaches all calls of `on_miss` that are under way. The statistics stay.
    pub fn clear(&self) {
        self.table.clear();
    }

    /// The table's counters.
    pub fn stats(&self) -> DispatchStats {
        self.table.stats()
    }

    /// The functions that the table keeps, in the order in which they came.
    pub fn entries(&self) -> Vec<DispatchEntry> {
        self.table.entries()
    }

    /// Makes the functions of keys ahead of their first calls. Calls `on_miss` with the key alone for each key without
    /// a function, on as many threads as the machine has.
    ///
    /// # Errors
    /// As for [`insert`](DispatchTable::insert), before any function is made. Otherwise all keys are tried, and the
    /// error is that of the first key whose function can't be made.
    pub fn prewarm<K: CallArgs>(&self, keys: impl IntoIterator<Item = K>) -> Result<()> {
        let key = |key: K| key.with_views(|values| self.table.key(values));
        let keys = keys.into_iter().map(key).collect::<Result<Vec<_>>>()?;
        prewarm::prewarm(&self.table, keys).map_err(Error::from)
    }

    /// The table as functions, for callers in other languages:
    ///
    /// | name | parameters | result |
    /// | --- | --- | --- |
    /// | `call` | the key's values, and any arguments | that of the function |
    /// | `insert` | an array of the key's values, a function | None |
    /// | `remove` | an array of the key's values | whether there was a function |
    /// | `clear` | | None |
    /// | `stats` | | a map of names to numbers: `hits`, `waits`, `misses`, `errors`, `evictions`, `entries`, `on_miss_ns` |
    /// | `entries` | | an array of pairs: an array of the key's values, the function |
    /// | `prewarm` | an array of keys, each an array | None |
    pub fn functions(&self) -> Map<String, Function> {
        functions::functions(&self.table, self.function.clone())
    }
}

impl fmt::Debug for DispatchTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, keys) = (self.name(), self.key_names());
        f.debug_struct("DispatchTable").field("name", &name).field("key_names", &keys).finish_non_exhaustive()
    }
}

/// The calls of a table.
struct Calls(Arc<table::Table>);

// SAFETY: the table passes the arguments and the result on to a function, and keeps panics of its own.
unsafe impl Callable for Calls {
    #[inline(always)]
    unsafe fn call(&self, args: *const TVMFFIAny, num_args: i32, result: *mut TVMFFIAny) -> i32 {
        // SAFETY: promised by the caller.
        unsafe { self.0.call(args, num_args, result) }
    }
}
