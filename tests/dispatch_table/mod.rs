//! Tables of functions by keys: clause C20 of the contract.

pub mod expected;
mod keys;
mod misses;
mod model;
mod reclamation;
mod replacement;
mod stress;

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tvm_ffi_codegen::dispatch::DispatchTable;
use tvm_ffi_codegen::runtime::{Any, AnyView, Error, Function, Result};

/// An `on_miss` that counts its calls: the function that it makes returns the call's number, beginning with 1.
pub fn counting() -> (Function, Arc<AtomicI64>) {
    let calls = Arc::new(AtomicI64::new(0));
    let counted = Arc::clone(&calls);
    let on_miss = Function::from_packed(move |_| Ok(constant(counted.fetch_add(1, Ordering::SeqCst) + 1).into()));
    (on_miss, calls)
}

/// A function that returns a number, whatever its arguments are.
pub fn constant(number: i64) -> Function {
    Function::from_packed(move |_| Ok(number.into()))
}

/// A table with a key of one value.
pub fn table(on_miss: Function, max_entries: Option<usize>) -> DispatchTable {
    DispatchTable::new("grow", ["n"], on_miss, max_entries).unwrap()
}

/// Calls a table, which returns a number.
pub fn call(table: &DispatchTable, key: i64) -> Result<i64> {
    table.function().call_as((key,))
}

/// The keys of a table with a key of one number, in the order of its entries.
pub fn kept(table: &DispatchTable) -> Vec<i64> {
    table.entries().iter().map(|entry| entry.key[0].cast().unwrap()).collect()
}

/// A table that its own functions use. The test clears it at its end: a table that its `on_miss` keeps is never freed.
#[derive(Clone, Default)]
pub struct Slot(Arc<Mutex<Option<DispatchTable>>>);

impl Slot {
    pub fn set(&self, table: &DispatchTable) {
        *self.0.lock().unwrap() = Some(table.clone());
    }

    pub fn get(&self) -> DispatchTable {
        self.0.lock().unwrap().clone().unwrap()
    }

    pub fn clear(&self) {
        let table = self.0.lock().unwrap().take();
        drop(table);
    }
}

/// An event that threads wait for.
#[derive(Default)]
pub struct Event(Mutex<bool>, Condvar);

impl Event {
    pub fn set(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.1.notify_all();
    }

    /// Waits for the event. A test that would wait forever fails.
    pub fn wait(&self) {
        let has_happened = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.1.wait_timeout_while(has_happened, Duration::from_secs(60), |set| !*set).unwrap();
        assert!(*waited.0);
    }
}

/// Waits until something holds.
pub fn until(holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A closure of a function's arguments as a function.
pub fn packed(closure: impl Fn(&[AnyView<'_>]) -> Result<Any> + Send + Sync + 'static) -> Function {
    Function::from_packed(closure)
}

/// The kind and the message of an error.
pub fn text(error: &Error) -> String {
    format!("{}: {}", error.kind(), error.message())
}
