//! Loaded machine code and its lifetime.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

#[cfg(feature = "_engine")]
use super::debug::Told;

/// An owner of what code calls into or refers to, which lives as long as the code.
pub type KeepAlive = Arc<dyn Any + Send + Sync>;

/// Machine code in this process. Dropping it gives the memory back.
///
/// A function's address is good for as long as the `Code` lives, and not a moment longer: whoever hands out the address
/// holds an `Arc<Code>` next to it. Everything here is immutable once loaded, so it is `Send` and `Sync` by itself.
pub struct Code {
    /// Exported functions by name, sorted.
    functions: Box<[(Box<str>, usize)]>,
    code_size: usize,
    data_size: usize,
    // Dropped in this order: first what others know of the code, the code, then what it refers to.
    #[cfg(feature = "_engine")]
    _told: Told,
    memory: Box<dyn Memory>,
    keep_alive: Vec<KeepAlive>,
}

/// Where loaded code lies; dropping it unmaps.
pub(super) trait Memory: Send + Sync {
    /// Whether code or data of the module is at the address, as far as is known.
    fn contains(&self, address: usize) -> bool;
}

impl Code {
    #[cfg(feature = "_engine")] // whoever loads code; without a backend nobody does
    pub(super) fn new(
        mut functions: Vec<(Box<str>, usize)>,
        sizes: (usize, usize),
        memory: Box<dyn Memory>,
        told: Told,
        keep_alive: Vec<KeepAlive>,
    ) -> Self {
        functions.sort_unstable();
        let (code_size, data_size) = sizes;
        Code { functions: functions.into_boxed_slice(), code_size, data_size, _told: told, memory, keep_alive }
    }

    /// The address of an exported function.
    pub fn function(&self, name: &str) -> Option<*const u8> {
        let index = self.functions.binary_search_by(|(known, _)| (**known).cmp(name)).ok()?;
        Some(std::ptr::with_exposed_provenance(self.functions[index].1))
    }

    /// Every exported function with its address, in order of names.
    pub fn functions(&self) -> impl Iterator<Item = (&str, *const u8)> {
        self.functions.iter().map(|(name, address)| (&**name, std::ptr::with_exposed_provenance(*address)))
    }

    /// The size of the machine code in bytes.
    pub fn code_size(&self) -> usize {
        self.code_size
    }

    /// The size of the static data in bytes.
    pub fn data_size(&self) -> usize {
        self.data_size
    }

    /// Whether an address lies in this code or its data; of LLVM's data it is not known.
    pub fn contains(&self, address: *const u8) -> bool {
        self.memory.contains(address.addr())
    }

    /// The owners that this code keeps alive.
    pub fn keep_alive(&self) -> &[KeepAlive] {
        &self.keep_alive
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Code")
            .field("functions", &self.functions.iter().map(|(name, _)| name).collect::<Vec<_>>())
            .field("code_size", &self.code_size)
            .field("data_size", &self.data_size)
            .finish_non_exhaustive()
    }
}
