//! Waiting for another thread's miss.

use std::sync::{Arc, PoisonError};
use std::time::Instant;

use tvm_ffi_runtime::Function;

use super::failure::Failure;
use super::miss::Miss;
use super::process::{ENDED, lock};
use super::{interpreter, signals, thread};

/// Why there is no function.
pub enum NoFunction {
    /// `on_miss` has failed: try again.
    Failed,
    /// The miss waits for this thread.
    Recursion,
    /// A signal has ended the waiting.
    Signal(Failure),
}

/// Waits for the end of a miss. The caller doesn't hold the lock.
pub fn wait(miss: &Arc<Miss>) -> Result<Function, NoFunction> {
    interpreter::released(|| wait_without_interpreter(miss))
}

fn wait_without_interpreter(miss: &Arc<Miss>) -> Result<Function, NoFunction> {
    let this_thread = thread::id();
    let mut state = lock();
    if miss.outcome.get().is_none() && state.waits_for(miss.maker, this_thread) {
        return Err(NoFunction::Recursion);
    }
    state.waiting.push((this_thread, Arc::clone(miss)));
    let mut looked = Instant::now();
    let result = loop {
        if let Some(outcome) = miss.outcome.get() {
            break outcome.clone().ok_or(NoFunction::Failed);
        }
        // A handler of signals may have forked, and the child knows nothing of the miss.
        if !state.making.iter().any(|(_, making)| Arc::ptr_eq(making, miss)) {
            break Err(NoFunction::Failed);
        }
        state = ENDED.wait_timeout(state, signals::INTERVAL).unwrap_or_else(PoisonError::into_inner).0;
        if looked.elapsed() >= signals::INTERVAL && miss.outcome.get().is_none() {
            drop(state);
            let checked = signals::check();
            state = lock();
            if let Err(failure) = checked {
                break Err(NoFunction::Signal(failure));
            }
            looked = Instant::now();
        }
    };
    // A handler of signals may have waited inside of this.
    let own = |(waiting, other): &(u64, Arc<Miss>)| *waiting == this_thread && Arc::ptr_eq(other, miss);
    if let Some(place) = state.waiting.iter().rposition(own) {
        state.waiting.remove(place);
    }
    result
}
