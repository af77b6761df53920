//! The thread's place for the error that was raised and that nobody has taken yet.
//! Header section: `TVMFFIErrorSetRaised`.

use std::cell::Cell;

use super::reference::ObjectRef;

thread_local! {
    static RAISED: Cell<Option<ObjectRef>> = const { Cell::new(None) };
}

/// Puts an error object into this thread's slot, over any that is there.
pub(crate) fn set(error: ObjectRef) {
    // The old error is dropped out of the slot: its destructor may use the slot again. A thread
    // that is ending has no slot any more; the error is then dropped.
    let _old = RAISED.try_with(|slot| slot.replace(Some(error)));
}

/// Takes the error object out of this thread's slot.
pub(crate) fn take() -> Option<ObjectRef> {
    RAISED.try_with(Cell::take).ok().flatten()
}
