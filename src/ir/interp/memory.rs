//! Memory that the interpreter allocates for static data and frames, and accesses to raw addresses.

use std::alloc::{Layout, alloc, dealloc};
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU64;

use crate::ir::module::Function;
use crate::ir::types::{PointerFacts, Type};

use super::error::TrapReason;

/// The contents of fresh stack slots. Not 0, so code that forgets to write a slot is noticed.
const FRESH: u8 = 0xa5;

/// Aligned memory at a fixed address.
pub(super) struct Region {
    base: NonNull<u8>,
    layout: Layout,
}

impl Region {
    /// Memory filled with `fill`; `None` if none is available.
    fn new(layout: Layout, fill: u8) -> Option<Self> {
        // Zero-size allocations aren't allowed, and every piece needs its own address.
        let layout = Layout::from_size_align(layout.size().max(1), layout.align()).ok()?;
        // SAFETY: the layout's size is not 0.
        let base = NonNull::new(unsafe { alloc(layout) })?;
        // SAFETY: the memory was just allocated with that size.
        unsafe { base.write_bytes(fill, layout.size()) };
        Some(Region { base, layout })
    }

    /// A copy of static data.
    pub(super) fn with_bytes(bytes: &[u8], align: u32) -> Option<Self> {
        let region = Self::new(Layout::from_size_align(bytes.len(), align as usize).ok()?, 0)?;
        // SAFETY: the region is new and has room for the bytes.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), region.base.as_ptr(), bytes.len()) };
        Some(region)
    }

    /// The address. It is exposed permanently, since the IR's loads and stores use it.
    pub(super) fn address(&self) -> u64 {
        self.base.as_ptr().expose_provenance() as u64
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: `new` allocated it with this layout.
        unsafe { dealloc(self.base.as_ptr(), self.layout) };
    }
}

/// The offsets of a function's slots in the memory of a frame.
pub(super) struct FrameLayout {
    /// `None` if the slots are too large to allocate; running the function reports that.
    layout: Option<Layout>,
    offsets: Vec<u64>,
}

impl FrameLayout {
    pub(super) fn new(func: &Function) -> Self {
        let mut layout = Some(Layout::new::<()>());
        let mut offsets = Vec::with_capacity(func.slots.len());
        for slot in func.slots.values() {
            // Every slot takes at least one byte, so no two slots have the same address.
            let piece = Layout::from_size_align(slot.size.max(1) as usize, slot.align as usize).ok();
            let placed = layout.zip(piece).and_then(|(all, piece)| all.extend(piece).ok());
            offsets.push(placed.map_or(0, |(_, offset)| offset as u64));
            layout = placed.map(|(all, _)| all);
        }
        FrameLayout { layout, offsets }
    }

    /// Memory for one frame: none for a function without slots, an error if none is available.
    pub(super) fn allocate(&self) -> Result<Option<Region>, OutOfMemory> {
        if self.offsets.is_empty() {
            return Ok(None);
        }
        match self.layout.and_then(|layout| Region::new(layout, FRESH)) {
            Some(region) => Ok(Some(region)),
            None => Err(OutOfMemory),
        }
    }

    /// The offset of a slot.
    pub(super) fn offset(&self, slot: usize) -> u64 {
        self.offsets[slot]
    }
}

/// There isn't enough memory for a frame or data.
pub(super) struct OutOfMemory;

/// The first page is never mapped: an access there goes through null, and is reported instead of crashing.
const NULL_PAGE: u64 = 4096;

fn check(ty: Type, address: u64, aligned: bool) -> Result<(), TrapReason> {
    if address < NULL_PAGE {
        Err(TrapReason::NullAccess(address))
    } else if aligned && !address.is_multiple_of(u64::from(ty.bytes())) {
        Err(TrapReason::Misaligned(address))
    } else {
        Ok(())
    }
}

/// Whether an address fulfils the facts that can be checked.
pub(super) fn holds(facts: PointerFacts, address: u64) -> bool {
    (!facts.nonnull || address != 0)
        && (facts.dereferenceable == 0 || address >= NULL_PAGE)
        && address.is_multiple_of(u64::from(facts.align))
}

/// Reads a value.
///
/// # Safety
/// If the check succeeds, a value of that type must be readable at the address.
pub(super) unsafe fn load(ty: Type, address: u64, aligned: bool) -> Result<u64, TrapReason> {
    check(ty, address, aligned)?;
    let from = ptr::with_exposed_provenance::<u8>(address as usize);
    // SAFETY: the caller guarantees it; the reads require no alignment.
    let bits = unsafe {
        match ty.bytes() {
            1 => u64::from(from.read()),
            2 => u64::from(from.cast::<u16>().read_unaligned()),
            4 => u64::from(from.cast::<u32>().read_unaligned()),
            _ => from.cast::<u64>().read_unaligned(),
        }
    };
    Ok(bits)
}

/// Writes a value.
///
/// # Safety
/// If the check succeeds, a value of that type must be writable at the address.
pub(super) unsafe fn store(ty: Type, address: u64, aligned: bool, bits: u64) -> Result<(), TrapReason> {
    check(ty, address, aligned)?;
    let to = ptr::with_exposed_provenance_mut::<u8>(address as usize);
    // SAFETY: the caller guarantees it; the writes require no alignment.
    unsafe {
        match ty.bytes() {
            1 => to.write(bits as u8),
            2 => to.cast::<u16>().write_unaligned(bits as u16),
            4 => to.cast::<u32>().write_unaligned(bits as u32),
            _ => to.cast::<u64>().write_unaligned(bits),
        }
    }
    Ok(())
}

/// The 8 bytes at an address, for accesses that other threads may make concurrently.
///
/// # Safety
/// If the check succeeds, 8 bytes must be readable and writable at the address while the result lives.
pub(super) unsafe fn atomic<'m>(address: u64) -> Result<&'m AtomicU64, TrapReason> {
    check(Type::I64, address, true)?;
    // SAFETY: the caller guarantees it, and the check has verified the alignment.
    Ok(unsafe { AtomicU64::from_ptr(ptr::with_exposed_provenance_mut(address as usize)) })
}
