//! The thread's slot of the raised error.
//! Header section: `TVMFFIErrorSetRaised`.

use super::object::Error;
use crate::heap::{AsObject, raised};

/// Puts an error into this thread's slot, replacing the current one.
pub fn set_raised(error: Error) {
    raised::set(error.into_object());
}

/// Takes the error out of this thread's slot.
pub fn take_raised() -> Option<Error> {
    // SAFETY: the slot holds an error that `set_raised` put there.
    raised::take().map(|error| unsafe { Error::from_object_unchecked(error) })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn slot_holds_one_error() {
        assert!(take_raised().is_none());
        set_raised(Error::new("A", "a"));
        set_raised(Error::new("B", "b"));
        assert_eq!(take_raised().unwrap().kind(), "B");
        assert!(take_raised().is_none());
    }
}
