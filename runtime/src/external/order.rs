//! Serializes the calls that read or change the tables of an external runtime.

use std::cell::Cell;
use std::sync::{Mutex, PoisonError};

static TABLES: Mutex<()> = Mutex::new(());

thread_local! {
    static IS_INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Resets the flag of this thread on drop, including when `call` unwinds.
struct Inside;

impl Drop for Inside {
    fn drop(&mut self) {
        IS_INSIDE.set(false);
    }
}

/// Makes a call that uses the runtime's table of types or functions. Upstream's tables have no locks, and its users
/// must ensure that only one thread registers at a time. A destructor that runs in such a call may make a nested call.
pub(crate) fn in_turn<R>(call: impl FnOnce() -> R) -> R {
    if IS_INSIDE.replace(true) {
        return call();
    }
    let _lock = TABLES.lock().unwrap_or_else(PoisonError::into_inner);
    let _inside = Inside;
    call()
}
