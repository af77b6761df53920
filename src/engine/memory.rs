//! Memory for the code of one module: one mapping, so that everything is in reach of everything.
//!
//! The mapping is writable while code is put there, then executable, never both. Read-only data shares the pages of
//! the code: one system call and one page less for each module, and neighbouring mappings of equal protection
//! are one to the kernel, whose number of mappings is limited (65,530 by default on Linux).

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use cranelift_jit::{BranchProtection, JITMemoryKind, JITMemoryProvider};
use cranelift_module::{ModuleError, ModuleResult};
use memmap2::{Mmap, MmapMut};

use super::code::Memory;

impl Memory for Mmap {
    fn contains(&self, address: usize) -> bool {
        let start = self.as_ptr().addr();
        (start..start + self.len()).contains(&address)
    }
}

/// Where the mapping goes once it is executable.
type Slot = Arc<Mutex<Option<Mmap>>>;

/// The memory of one `JITModule`, which owns it until the code is complete.
pub(super) struct Arena {
    mapping: Option<MmapMut>,
    used: usize,
    done: Slot,
}

/// Takes the finished mapping out of an [`Arena`] that a `JITModule` has swallowed.
pub(super) struct Finished(Slot);

impl Arena {
    /// Maps room for `size` bytes, rounded to pages by the system.
    pub(super) fn new(size: usize) -> io::Result<(Self, Finished)> {
        let mapping = MmapMut::map_anon(size.max(1))?;
        let done = Slot::default();
        let finished = Finished(Arc::clone(&done));
        Ok((Arena { mapping: Some(mapping), used: 0, done }, finished))
    }
}

impl Finished {
    /// The mapping, if the module was finalized.
    pub(super) fn take(self) -> Option<Mmap> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl JITMemoryProvider for Arena {
    fn allocate(&mut self, size: usize, align: u64, kind: JITMemoryKind) -> io::Result<*mut u8> {
        if matches!(kind, JITMemoryKind::Writable) {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "modules have no writable data"));
        }
        let full = || io::Error::new(io::ErrorKind::OutOfMemory, "code exceeds the memory reserved for it");
        let mapping = self.mapping.as_mut().ok_or_else(full)?;
        let align = usize::try_from(align).map_err(|_| full())?.max(1);
        let address = mapping.as_ptr().addr();
        let start = (address + self.used).next_multiple_of(align) - address;
        let end = start.checked_add(size).filter(|&end| end <= mapping.len()).ok_or_else(full)?;
        self.used = end;
        Ok(mapping[start..end].as_mut_ptr())
    }

    unsafe fn free_memory(&mut self) {
        // A finished mapping belongs to whoever took it; `Finished` frees it, or `Code`.
        self.mapping = None;
    }

    fn finalize(&mut self, _: BranchProtection) -> ModuleResult<()> {
        let failed = |err| ModuleError::Allocation { err };
        let Some(mapping) = self.mapping.take() else { return Ok(()) };
        // The CPU may have old content of these addresses in its instruction cache (x86 takes care of that itself).
        // SAFETY: the range is the mapping, which is alive.
        unsafe { wasmtime_internal_jit_icache_coherence::clear_cache(mapping.as_ptr().cast(), mapping.len()) }
            .map_err(|e| failed(io::Error::other(e.to_string())))?;
        let mapping = mapping.make_exec().map_err(failed)?;
        wasmtime_internal_jit_icache_coherence::pipeline_flush_mt()
            .map_err(|e| failed(io::Error::other(e.to_string())))?;
        *self.done.lock().unwrap_or_else(PoisonError::into_inner) = Some(mapping);
        Ok(())
    }
}
