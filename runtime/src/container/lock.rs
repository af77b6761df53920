//! The locks of containers that change. They are not in the containers, whose layout is fixed and which C++ code makes too.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::heap::ObjectRef;

/// Locks a container. One lock serves several containers, so a thread must hold one at a time, and run nobody's code meanwhile.
pub(super) fn lock(object: &ObjectRef) -> MutexGuard<'static, ()> {
    static LOCKS: [Mutex<()>; 64] = [const { Mutex::new(()) }; 64];
    let address = object.as_ptr().addr();
    LOCKS[(address >> 6) % LOCKS.len()].lock().unwrap_or_else(PoisonError::into_inner)
}
