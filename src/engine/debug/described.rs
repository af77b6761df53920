//! Loaded functions, as described to debuggers and profilers.

use cranelift_entity::PrimaryMap;

use crate::backend::Lines;
use crate::ir::{LocationData, LocationRef};

/// The source locations of a module.
pub(in crate::engine) type Locations = PrimaryMap<LocationRef, LocationData>;

/// A loaded function.
#[derive(Clone, Debug)]
pub(in crate::engine) struct Described {
    /// The symbol's name.
    pub(in crate::engine) name: String,
    pub(in crate::engine) address: usize,
    pub(in crate::engine) size: usize,
    /// The first source location in it.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    pub(in crate::engine) first: Option<LocationRef>,
    /// Its lines, in address order.
    pub(in crate::engine) lines: Vec<Lines>,
}

impl Described {
    #[cfg(target_os = "linux")]
    pub(super) fn pointer(&self) -> *const u8 {
        std::ptr::with_exposed_provenance(self.address)
    }
}
