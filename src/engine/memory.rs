//! Memory for the code of one module: a single mapping, so all of it is in range of near calls and relative addresses.
//!
//! The mapping is writable while code is copied there, then executable, never both. Read-only data shares the pages of
//! the code, which saves a system call and a page per module. The kernel also merges neighbouring mappings of equal
//! protection, and it limits their number (65,530 by default on Linux).
//!
//! Variables and state follow in separate pages, which stay writable and are never executable. A module without such
//! data has no such pages.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use cranelift_jit::{BranchProtection, JITMemoryKind, JITMemoryProvider};
use cranelift_module::{ModuleError, ModuleResult};
use memmap2::{Mmap, MmapMut};
use region::{Protection, page, protect};

use super::code::Memory;

/// A finished mapping; dropping it unmaps.
pub(super) enum Mapping {
    /// Code and constants.
    Code(Mmap),
    /// Code and constants, followed by pages that code writes.
    CodeAndState(MmapMut),
}

impl Mapping {
    /// The bytes of the mapping. Running code may change its state, so read them before any code runs.
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Mapping::Code(mapping) => mapping,
            Mapping::CodeAndState(mapping) => mapping,
        }
    }
}

impl Memory for Mapping {
    fn contains(&self, address: usize) -> bool {
        let (start, len) = match self {
            Mapping::Code(mapping) => (mapping.as_ptr().addr(), mapping.len()),
            Mapping::CodeAndState(mapping) => (mapping.as_ptr().addr(), mapping.len()),
        };
        (start..start + len).contains(&address)
    }
}

/// Receives the mapping once it is executable.
type Slot = Arc<Mutex<Option<Mapping>>>;

/// A part of the mapping that is being filled.
struct Part {
    used: usize,
    end: usize,
}

/// The memory of one `JITModule`, which owns it until the code is complete.
pub(super) struct Arena {
    mapping: Option<MmapMut>,
    code: Part,
    /// The part that code writes, after the pages of `code`.
    state: Part,
    done: Slot,
}

/// Takes the finished mapping out of an [`Arena`] that was moved into a `JITModule`.
pub(super) struct Finished(Slot);

impl Arena {
    /// Maps memory for `code` bytes of code and constants, and `state` bytes that code writes, both rounded up
    /// to pages.
    pub(super) fn new(code: usize, state: usize) -> io::Result<(Self, Finished)> {
        let full = || io::Error::from(io::ErrorKind::OutOfMemory);
        let code = code.max(1);
        let (code, end) = match state {
            0 => (code, code),
            _ => {
                let code = code.checked_next_multiple_of(page::size()).ok_or_else(full)?;
                (code, code.checked_add(state).ok_or_else(full)?)
            }
        };
        let mapping = MmapMut::map_anon(end)?;
        let done = Slot::default();
        let finished = Finished(Arc::clone(&done));
        let (code, state) = (Part { used: 0, end: code }, Part { used: code, end });
        Ok((Arena { mapping: Some(mapping), code, state, done }, finished))
    }
}

impl Finished {
    /// The mapping, if the module was finalized.
    pub(super) fn take(self) -> Option<Mapping> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl JITMemoryProvider for Arena {
    fn allocate(&mut self, size: usize, align: u64, kind: JITMemoryKind) -> io::Result<*mut u8> {
        let full = || io::Error::new(io::ErrorKind::OutOfMemory, "code exceeds the memory reserved for it");
        let mapping = self.mapping.as_mut().ok_or_else(full)?;
        let part = match kind {
            JITMemoryKind::Writable => &mut self.state,
            JITMemoryKind::Executable | JITMemoryKind::ReadOnly => &mut self.code,
        };
        let align = usize::try_from(align).map_err(|_| full())?.max(1);
        let address = mapping.as_ptr().addr();
        let start = (address + part.used).next_multiple_of(align) - address;
        let end = start.checked_add(size).filter(|&end| end <= part.end).ok_or_else(full)?;
        part.used = end;
        Ok(mapping[start..end].as_mut_ptr())
    }

    unsafe fn free_memory(&mut self) {
        // A finished mapping now belongs to `Finished` or `Code`, which frees it.
        self.mapping = None;
    }

    fn finalize(&mut self, _: BranchProtection) -> ModuleResult<()> {
        let failed = |err| ModuleError::Allocation { err };
        let other = |e: String| failed(io::Error::other(e));
        let Some(mapping) = self.mapping.take() else { return Ok(()) };
        let (start, code) = (mapping.as_ptr(), self.code.end);
        // The CPU's instruction cache may hold old contents of these addresses (x86 keeps it coherent itself).
        // SAFETY: the range is in the mapping, which is alive.
        unsafe { wasmtime_internal_jit_icache_coherence::clear_cache(start.cast(), code) }
            .map_err(|e| other(e.to_string()))?;
        let mapping = if code == mapping.len() {
            Mapping::Code(mapping.make_exec().map_err(failed)?)
        } else {
            // SAFETY: the range is whole pages of the mapping, and no Rust reference points into it.
            unsafe { protect(start, code, Protection::READ_EXECUTE) }.map_err(|e| other(e.to_string()))?;
            Mapping::CodeAndState(mapping)
        };
        wasmtime_internal_jit_icache_coherence::pipeline_flush_mt().map_err(|e| other(e.to_string()))?;
        *self.done.lock().unwrap_or_else(PoisonError::into_inner) = Some(mapping);
        Ok(())
    }
}
