//! Memory: what the interpreter allocates for static data and frames, and accesses at raw addresses.

use std::alloc::{Layout, alloc, dealloc};
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU64;

use crate::ir::module::Function;
use crate::ir::types::{PointerFacts, Type};

use super::TrapReason;

/// What fresh stack slots hold: not 0, so that code which forgets to write a slot is seen.
const FRESH: u8 = 0xa5;

/// Aligned memory at a fixed address.
pub(super) struct Region {
    base: NonNull<u8>,
    layout: Layout,
}

impl Region {
    /// Memory whose every byte is `fill`; `None` if there is none left.
    fn new(layout: Layout, fill: u8) -> Option<Self> {
        // An allocation of no bytes isn't allowed, and every piece should have an address of its own.
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

    /// The address. The IR's loads and stores take it for good.
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

/// Where a function's slots are in the memory of a frame.
pub(super) struct FrameLayout {
    /// `None` if the slots are too large for any memory, which is found out when the function runs.
    layout: Option<Layout>,
    offsets: Vec<u64>,
}

impl FrameLayout {
    pub(super) fn new(func: &Function) -> Self {
        let mut layout = Some(Layout::new::<()>());
        let mut offsets = Vec::with_capacity(func.slots.len());
        for slot in func.slots.values() {
            // As if at least one byte, so that no two slots have one address.
            let piece = Layout::from_size_align(slot.size.max(1) as usize, slot.align as usize).ok();
            let placed = layout.zip(piece).and_then(|(all, piece)| all.extend(piece).ok());
            offsets.push(placed.map_or(0, |(_, offset)| offset as u64));
            layout = placed.map(|(all, _)| all);
        }
        FrameLayout { layout, offsets }
    }

    /// Memory for one frame: nothing for a function without slots, an error if there is none left.
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

/// There is no memory for a frame or data.
pub(super) struct OutOfMemory;

/// Nothing is ever in the first page: an access there is through null, and better reported than died of.
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

/// Whether an address is what is known of it, as far as it shows.
pub(super) fn holds(facts: PointerFacts, address: u64) -> bool {
    (!facts.nonnull || address != 0)
        && (facts.dereferenceable == 0 || address >= NULL_PAGE)
        && address.is_multiple_of(u64::from(facts.align))
}

/// Reads a value.
///
/// # Safety
/// Unless the check fails, a value of that type may be read at the address.
pub(super) unsafe fn load(ty: Type, address: u64, aligned: bool) -> Result<u64, TrapReason> {
    check(ty, address, aligned)?;
    let from = ptr::with_exposed_provenance::<u8>(address as usize);
    // SAFETY: the caller's promise; the reads ask for no alignment.
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
/// Unless the check fails, a value of that type may be written at the address.
pub(super) unsafe fn store(ty: Type, address: u64, aligned: bool, bits: u64) -> Result<(), TrapReason> {
    check(ty, address, aligned)?;
    let to = ptr::with_exposed_provenance_mut::<u8>(address as usize);
    // SAFETY: the caller's promise; the writes ask for no alignment.
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

/// The 8 bytes at an address, for accesses that other threads may make too.
///
/// # Safety
/// Unless the check fails, 8 bytes may be read and written at the address for as long as the result lives.
pub(super) unsafe fn atomic<'m>(address: u64) -> Result<&'m AtomicU64, TrapReason> {
    check(Type::I64, address, true)?;
    // SAFETY: the caller's promise; the check has seen the alignment.
    Ok(unsafe { AtomicU64::from_ptr(ptr::with_exposed_provenance_mut(address as usize)) })
}
