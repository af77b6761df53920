//! Loaded machine code and its lifetime.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// An owner of what code calls into or refers to, which lives as long as the code.
pub type KeepAlive = Arc<dyn Any + Send + Sync>;

/// Machine code in this process. Dropping it gives the memory back.
///
/// A function's address is good for as long as the `Code` lives, and not a moment longer: whoever hands out the address
/// holds an `Arc<Code>` next to it. Everything here is immutable once loaded, so it is `Send` and `Sync` by itself.
///
/// A module's destructors run when its code is dropped, once somebody has vouched for them
/// ([`run_destructors_on_drop`](Self::run_destructors_on_drop)).
pub struct Code {
    symbols: Symbols,
    /// Whether the destructors run.
    destroys: AtomicBool,
    code_size: usize,
    data_size: usize,
    // Dropped in this order: first the code, then what it refers to.
    memory: Box<dyn Memory>,
    keep_alive: Vec<KeepAlive>,
}

/// Addresses in loaded code.
#[derive(Default)]
pub(super) struct Symbols {
    /// Exported functions by name.
    pub(super) functions: Vec<(Box<str>, usize)>,
    /// Variables by name.
    pub(super) variables: Vec<(Box<str>, usize)>,
    /// Functions `()` that run when the code goes.
    pub(super) destructors: Vec<usize>,
}

fn address_of(symbols: &[(Box<str>, usize)], name: &str) -> Option<*const u8> {
    let index = symbols.binary_search_by(|(known, _)| (**known).cmp(name)).ok()?;
    Some(std::ptr::with_exposed_provenance(symbols[index].1))
}

/// Where loaded code lies; dropping it unmaps.
pub(super) trait Memory: Send + Sync {
    /// Whether code or data of the module is at the address, as far as is known.
    fn contains(&self, address: usize) -> bool;
}

impl Code {
    #[cfg(feature = "_engine")] // whoever loads code; without a backend nobody does
    pub(super) fn new(
        mut symbols: Symbols,
        sizes: (usize, usize),
        memory: Box<dyn Memory>,
        keep_alive: Vec<KeepAlive>,
    ) -> Self {
        symbols.functions.sort_unstable();
        symbols.variables.sort_unstable();
        let (code_size, data_size) = sizes;
        Code { symbols, destroys: AtomicBool::new(false), code_size, data_size, memory, keep_alive }
    }

    /// The address of an exported function.
    pub fn function(&self, name: &str) -> Option<*const u8> {
        address_of(&self.symbols.functions, name)
    }

    /// The address of an exported variable. Code reads and writes it on any thread.
    pub fn variable(&self, name: &str) -> Option<*mut u8> {
        address_of(&self.symbols.variables, name).map(<*const u8>::cast_mut)
    }

    /// Lets the module's destructors run when the code is dropped, before its memory and its owners go. Without this they don't run. An
    /// engine does it for the wrappers that it compiles.
    ///
    /// # Safety
    /// The destructors may be called once on any thread when nothing else of the code runs any more, and what they call is there then.
    pub unsafe fn run_destructors_on_drop(&self) {
        self.destroys.store(true, Ordering::Release);
    }

    /// Every exported function with its address, in order of names.
    pub fn functions(&self) -> impl Iterator<Item = (&str, *const u8)> {
        self.symbols.functions.iter().map(|(name, address)| (&**name, std::ptr::with_exposed_provenance(*address)))
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

impl Drop for Code {
    fn drop(&mut self) {
        if !*self.destroys.get_mut() {
            return;
        }
        // as a library's: the last first
        for &address in self.symbols.destructors.iter().rev() {
            let address: *const () = std::ptr::with_exposed_provenance(address);
            // SAFETY: a destructor has this signature by the verifier's rules, and is code that is alive. Whoever asked for it vouches for the call.
            unsafe { std::mem::transmute::<*const (), extern "C" fn()>(address)() }
        }
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Code")
            .field("functions", &self.symbols.functions.iter().map(|(name, _)| name).collect::<Vec<_>>())
            .field("code_size", &self.code_size)
            .field("data_size", &self.data_size)
            .finish_non_exhaustive()
    }
}
