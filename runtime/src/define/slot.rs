//! The place of a type's index, which is filled once.

use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;

use crate::abi::TypeIndex;
use crate::error::{Result, runtime_error};

/// The index of a type that is defined in Rust, once it is registered.
#[derive(Debug)]
pub struct TypeSlot {
    /// Zero until then.
    index: AtomicI32,
    turn: Mutex<()>,
    registering: Mutex<Option<ThreadId>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Says that nobody registers the type any more, also where that has failed or panicked.
struct Over<'a>(&'a Mutex<Option<ThreadId>>);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        *lock(self.0) = None;
    }
}

impl TypeSlot {
    /// An empty place.
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

    /// The index, from `register` where it is asked for first. A failure is not remembered.
    pub(super) fn get_or_register(&self, register: impl FnOnce() -> Result<TypeIndex>) -> Result<TypeIndex> {
        if let Some(index) = self.get() {
            return Ok(index);
        }
        let this = std::thread::current().id();
        if *lock(&self.registering) == Some(this) {
            // It would wait for itself.
            return Err(runtime_error("a type is used by what registers it, such as the default of one of its fields"));
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
