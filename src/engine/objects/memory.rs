//! Memory for objects: a single region, so all of it is in range of relative addresses.
//!
//! It is writable while objects are copied there. Then its first part, code and constants, becomes executable and is
//! never written again. The rest stays writable and is never executable.

use std::ffi::c_int;
use std::io;
use std::ptr;

use region::{Protection, page, protect};

/// A mapping; dropping it unmaps the memory.
pub(super) struct Region {
    start: *mut u8,
    len: usize,
}

// SAFETY: this value owns the region, as a `Box` of bytes would.
unsafe impl Send for Region {}
// SAFETY: as above; `&Region` exposes only the address.
unsafe impl Sync for Region {}

/// The flag to map memory that 32-bit addresses reach. Only Linux on x86-64 has one.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
const LOW: Option<c_int> = Some(libc::MAP_32BIT);
#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
const LOW: Option<c_int> = None;

impl Region {
    /// Maps at least `len` zeroed bytes. `low`: below 2 GiB.
    pub(super) fn map(len: usize, low: bool) -> io::Result<Self> {
        let len = len.max(1).checked_next_multiple_of(page::size());
        let len = len.ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
        let place = match (low, LOW) {
            (false, _) => 0,
            (true, Some(flag)) => flag,
            (true, None) => {
                return Err(io::Error::new(io::ErrorKind::Unsupported, "this system maps no memory below 2 GiB"));
            }
        };
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANON | place;
        // SAFETY: a new mapping at an address that the system chooses doesn't replace an existing one.
        let start = unsafe { libc::mmap(ptr::null_mut(), len, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            Err(io::Error::last_os_error())
        } else {
            Ok(Region { start: start.cast(), len })
        }
    }

    pub(super) fn address(&self) -> usize {
        self.start.expose_provenance()
    }

    /// The bytes, before a part of them is protected.
    pub(super) fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the mapping has `len` bytes and is borrowed by `&mut`. It is writable until `protect_code`, which
        // consumes the region.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.len) }
    }

    /// Makes the first `code` bytes, rounded up to pages, executable and read-only.
    pub(super) fn protect_code(self, code: usize) -> io::Result<Executable> {
        let other = |error: String| io::Error::other(error);
        // objects of variables alone have no code, and no empty range can be protected
        if code == 0 {
            return Ok(Executable(self));
        }
        // The CPU's instruction cache may hold old contents of these addresses (x86 keeps it coherent itself).
        // SAFETY: the range is in the mapping, which is alive.
        unsafe { wasmtime_internal_jit_icache_coherence::clear_cache(self.start.cast(), code) }
            .map_err(|error| other(error.to_string()))?;
        // SAFETY: the range is whole pages of the mapping. No Rust reference points into it, since `bytes` borrows the
        // region.
        unsafe { protect(self.start, code, Protection::READ_EXECUTE) }.map_err(|error| other(error.to_string()))?;
        wasmtime_internal_jit_icache_coherence::pipeline_flush_mt().map_err(|error| other(error.to_string()))?;
        Ok(Executable(self))
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: this value owns the mapping, and it is no longer used. Unmapping a whole mapping doesn't fail.
        unsafe { libc::munmap(self.start.cast(), self.len) };
    }
}

/// A region whose first part is executable.
pub(super) struct Executable(Region);

impl Executable {
    pub(super) fn address(&self) -> usize {
        self.0.address()
    }
}
