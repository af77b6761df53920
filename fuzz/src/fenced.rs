//! An allocator that puts blocks at the ends of pages where [`crate::support::fence`] says so.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use region::Protection;

use crate::support::fence::is_on;

/// The size of a page, or a multiple of it.
const PAGE: usize = 4096;
/// The maximum size of a block. Larger ones come from the system.
const LARGEST: usize = 24 * PAGE;
/// The distance between the ends of two places.
const STEP: usize = LARGEST + PAGE;
/// The number of places for blocks.
const PLACES: usize = 1024;
/// The byte that fills a freed block.
const FREED: u8 = 0xdd;

/// The address of the memory of all places, which stays until the process ends.
static POOL: OnceLock<Option<usize>> = OnceLock::new();
static TAKEN: [AtomicBool; PLACES] = [const { AtomicBool::new(false) }; PLACES];
/// The place after the last one that was taken. A freed place is taken late, so its content stays as it was freed.
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, but for blocks at the ends of pages.
pub struct Fenced;

/// The memory of all places. Each place is followed by an inaccessible page.
fn pool() -> Option<*mut u8> {
    let reserve = || {
        let mut pool = region::alloc(PLACES * STEP, Protection::NONE).ok()?;
        let start: *mut u8 = pool.as_mut_ptr();
        std::mem::forget(pool);
        for place in 0..PLACES {
            // SAFETY: the pages are in the allocation, which has no content yet.
            unsafe { region::protect(start.wrapping_add(place * STEP), LARGEST, Protection::READ_WRITE) }.ok()?;
        }
        Some(start.expose_provenance())
    };
    POOL.get_or_init(reserve).map(std::ptr::with_exposed_provenance_mut)
}

fn take(layout: Layout) -> Option<*mut u8> {
    if layout.size() > LARGEST || layout.align() > PAGE {
        return None;
    }
    let pool = pool()?;
    let first = NEXT.load(Ordering::Relaxed);
    let place = (first..first + PLACES)
        .map(|place| place % PLACES)
        .find(|&place| !TAKEN[place].swap(true, Ordering::SeqCst))?;
    NEXT.store(place + 1, Ordering::Relaxed);
    let block = (LARGEST - layout.size()) / layout.align() * layout.align();
    Some(pool.wrapping_add(place * STEP + block))
}

/// The place of a block, if it is in one.
fn place_of(block: *mut u8) -> Option<usize> {
    let pool = (*POOL.get()?)?;
    let place = block.addr().checked_sub(pool)? / STEP;
    (place < PLACES).then_some(place)
}

// SAFETY: each block is in a place of its own, or the system's.
unsafe impl GlobalAlloc for Fenced {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let fenced = if is_on() { take(layout) } else { None };
        // SAFETY: promised by the caller.
        fenced.unwrap_or_else(|| unsafe { System.alloc(layout) })
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the block has this size, and no users any more.
        unsafe {
            match place_of(block) {
                Some(place) => {
                    block.write_bytes(FREED, layout.size());
                    TAKEN[place].store(false, Ordering::SeqCst);
                }
                None => System.dealloc(block, layout),
            }
        }
    }
}
