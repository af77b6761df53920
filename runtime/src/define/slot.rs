//! The slot for a type's index. It is set once.

use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;

use crate::abi::TypeIndex;
use crate::error::{Result, runtime_error};

/// The index of a type that is defined in Rust, once it is registered.
#[derive(Debug)]
pub struct TypeSlot {
    /// Zero until the type is registered.
    index: AtomicI32,
    turn: Mutex<()>,
    registering: Mutex<Option<ThreadId>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Clears the registering thread on drop, including when the registration has failed or panicked.
struct Over<'a>(&'a Mutex<Option<ThreadId>>);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        *lock(self.0) = None;
    }
}

impl TypeSlot {
    /// Creates an empty slot.
    #[expect(clippy::new_without_default, reason = "a place of its own is a static variable")]
    pub const fn new() -> Self {
        Self { index: AtomicI32::new(0), turn: Mutex::new(()), registering: Mutex::new(None) }
    }

    /// The index, if the type is registered.
    #[inline]
    pub(super) fn get(&self) -> Option<TypeIndex> {
        match self.index.load(Ordering::Acquire) {
            0 => None,
            index => Some(TypeIndex(index)),
        }
    }

    /// The index. Calls `register` if the type isn't registered yet. A failure is not cached, so a later call tries
    /// again.
    pub(super) fn get_or_register(&self, register: impl FnOnce() -> Result<TypeIndex>) -> Result<TypeIndex> {
        if let Some(index) = self.get() {
            return Ok(index);
        }
        let this = std::thread::current().id();
        if *lock(&self.registering) == Some(this) {
            // Waiting for the turn would deadlock.
            return Err(runtime_error("the registration of a type uses the type itself, maybe in a field's default"));
        }
        let _turn = lock(&self.turn);
        if let Some(index) = self.get() {
            return Ok(index);
        }
        *lock(&self.registering) = Some(this);
        let over = Over(&self.registering);
        let index = register()?;
        drop(over);
        self.index.store(index.0, Ordering::Release);
        Ok(index)
    }
}
