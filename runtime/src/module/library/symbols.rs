//! Addresses, and the symbols of a library of either kind.

use std::ffi::c_void;
use std::ptr::NonNull;

use crate::abi::symbol::FUNCTION;

/// The address of code or data.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) struct Address(pub(super) NonNull<c_void>);

// SAFETY: an address is the same on every thread. Code that dereferences it states why that is sound.
unsafe impl Send for Address {}
// SAFETY: as above.
unsafe impl Sync for Address {}

impl Address {
    pub(super) fn new(address: *mut c_void) -> Option<Self> {
        NonNull::new(address).map(Self)
    }

    pub(super) fn as_ptr<T>(self) -> *mut T {
        self.0.as_ptr().cast()
    }
}

/// The symbols of a library. The library stays open while this value lives, and afterwards too unless it may be closed.
pub(super) trait SymbolLookup: Send + Sync {
    /// The address of a symbol.
    fn symbol(&self, name: &str) -> Option<Address>;

    /// Requests closing the library when this value is dropped. Returns whether there is a library to close.
    ///
    /// # Safety
    /// As [`Module::unload_when_unused`](crate::Module::unload_when_unused).
    unsafe fn close_when_unused(&self) -> bool {
        false
    }

    /// The symbol of the function called `name`.
    fn function(&self, name: &str) -> Option<Address> {
        self.symbol(&format!("{FUNCTION}{name}"))
    }

    /// The symbol with prefix `before` that describes the function called `name`.
    fn description(&self, before: &str, name: &str) -> Option<Address> {
        self.symbol(&format!("{before}{name}"))
    }
}
