//! The uses of a module.

use std::ops::BitOr;

/// The uses of a module: `Module::ModulePropertyMask` of `extra/module.h`.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct PropertyMask(pub i32);

impl PropertyMask {
    /// No use.
    pub const NONE: Self = Self(0);
    /// [`Module::save_to_bytes`](super::Module::save_to_bytes) returns bytes, and `ffi.Module.load_from_bytes.<kind>`
    /// turns them into a module.
    pub const BINARY_SERIALIZABLE: Self = Self(0b001);
    /// [`Module::get_function`](super::Module::get_function) returns functions that can be called.
    pub const RUNNABLE: Self = Self(0b010);
    /// [`Module::write_to_file`](super::Module::write_to_file) writes objects or sources, to be compiled further.
    pub const COMPILATION_EXPORTABLE: Self = Self(0b100);

    /// True if `self` includes all uses in `other`.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for PropertyMask {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}
