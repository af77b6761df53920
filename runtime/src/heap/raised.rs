//! The thread's place for the error that was raised and that nobody has taken yet.
//! Header section: `TVMFFIErrorSetRaised`.

use std::cell::Cell;

use super::reference::ObjectRef;
#[cfg(feature = "external")]
use crate::external;

thread_local! {
    static RAISED: Cell<Option<ObjectRef>> = const { Cell::new(None) };
}

/// Puts an error object into this thread's slot, over any that is there: the external runtime's slot, where there is one.
pub(crate) fn set(error: ObjectRef) {
    #[cfg(feature = "external")]
    if let Ok(api) = external::api() {
        // SAFETY: the object is alive, and the runtime takes a reference of its own.
        unsafe { (api.TVMFFIErrorSetRaised)(error.as_ptr().cast()) };
        return;
    }
    // The old error is dropped out of the slot: its destructor may use the slot again. A thread
    // that is ending has no slot any more; the error is then dropped.
    let _old = RAISED.try_with(|slot| slot.replace(Some(error)));
}

/// Takes the error object out of this thread's slot.
pub(crate) fn take() -> Option<ObjectRef> {
    #[cfg(feature = "external")]
    if let Ok(api) = external::api() {
        let mut error = std::ptr::null_mut();
        // SAFETY: the place is writable; the reference that the runtime puts there is this thread's.
        unsafe {
            (api.TVMFFIErrorMoveFromRaised)(&raw mut error);
            return ObjectRef::from_raw(error.cast());
        }
    }
    RAISED.try_with(Cell::take).ok().flatten()
}
