//! The state of a walk over a structure, which hooks may continue through the function that they get.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::{Result, runtime_error};

/// A state that one walk has at a time. No lock is held while user code runs, so a hook that keeps the function that
/// it got, and calls it later or elsewhere, gets an error at worst.
pub(super) struct Shared<S>(Mutex<Option<S>>);

impl<S: Default> Shared<S> {
    pub(super) fn new(state: S) -> Self {
        Self(Mutex::new(Some(state)))
    }

    fn slot(&self) -> MutexGuard<'_, Option<S>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Result<S> {
        self.slot().take().ok_or_else(|| runtime_error("the walk of this structure goes on elsewhere"))
    }

    /// Runs a part of the walk with its state.
    ///
    /// # Errors
    /// `RuntimeError` if another part runs; any error of `part`.
    pub(super) fn with<R>(&self, part: impl FnOnce(&mut S) -> Result<R>) -> Result<R> {
        let mut state = self.take()?;
        let outcome = part(&mut state);
        *self.slot() = Some(state);
        outcome
    }

    /// Lends the state to the parts that a hook runs.
    ///
    /// # Errors
    /// As [`Shared::with`].
    pub(super) fn lend<R>(&self, state: &mut S, hook: impl FnOnce() -> Result<R>) -> Result<R> {
        *self.slot() = Some(std::mem::take(state));
        let outcome = hook();
        *state = self.take()?;
        outcome
    }
}
