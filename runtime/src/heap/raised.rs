//! The thread's slot for the raised error that no code has taken yet.
//! Header section: `TVMFFIErrorSetRaised`.

use std::cell::Cell;

use super::reference::ObjectRef;
use crate::external;

thread_local! {
    static RAISED: Cell<Option<ObjectRef>> = const { Cell::new(None) };
}

/// Puts an error object into this thread's slot, replacing any present one. With an external runtime, this is the
/// external runtime's slot.
pub(crate) fn set(error: ObjectRef) {
    // SAFETY: the object is alive.
    if unsafe { external::set_raised(error.as_ptr().cast()) } {
        return;
    }
    // The old error is dropped after it has left the slot, because its destructor may use the slot again. A terminating
    // thread has no slot any more, so the new error is dropped.
    let _old = RAISED.try_with(|slot| slot.replace(Some(error)));
}

/// Takes the error object out of this thread's slot.
pub(crate) fn take() -> Option<ObjectRef> {
    if let Some(error) = external::take_raised() {
        // SAFETY: NULL, or an object with a reference that this thread owns.
        return unsafe { ObjectRef::from_raw(error.cast()) };
    }
    RAISED.try_with(Cell::take).ok().flatten()
}
