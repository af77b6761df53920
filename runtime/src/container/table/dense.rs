//! The dense form: a hash table whose collision lists run through the slots.
//!
//! Each slot has a metadata byte. The byte says whether the slot is empty and whether its entry is the first of its
//! list (a *head*). Its lower bits select the distance to the next entry of the list out of 126 distances (a *jump*; 0
//! ends the list). The number of slots is a power of two. Each entry is also linked to its predecessor and successor in
//! insertion order.
//! Rules: upstream's `DenseMapBaseObj` in `container/map_base.h`.

use std::ptr::NonNull;

use super::layout::{Body, DenseBody, KeyValue, NONE};
use crate::container::block;

/// An entry with its links.
#[repr(C)]
struct Item {
    entry: KeyValue,
    prev: u64,
    next: u64,
}

const BLOCK_SLOTS: u64 = 16;
const BLOCK_SIZE: usize = BLOCK_SLOTS as usize * (1 + size_of::<Item>());
const _: () = assert!(size_of::<Item>() == 48);

/// The metadata byte of an empty slot.
const EMPTY: u8 = 0xff;
/// The bit of an entry that is not the head of its list.
const BODY: u8 = 0x80;
const JUMP: u8 = 0x7f;

/// The distance to the next entry for each jump: 0 to 15, then the triangular numbers up to 2,628, then those of `FAR`.
const DISTANCES: [u64; 126] = {
    // The last distances are the triangular numbers of these, each about 1.5 times the previous one.
    const FAR: [u64; 43] = [
        130, 195, 292, 438, 657, 986, 1478, 2217, 3326, 4988, 7482, 11223, 16835, 25252, 37877, 56816, 85223, 127835,
        191752, 287627, 431440, 647160, 970740, 1456110, 2184165, 3276247, 4914370, 7371555, 11057333, 16585999,
        24878998, 37318497, 55977745, 83966618, 125949926, 188924889, 283387334, 425081001, 637621501, 956432251,
        1434648376, 2151972564, 3227958845,
    ];
    let mut distances = [0; 126];
    let mut jump = 0;
    while jump < 126 {
        let root = if jump < 83 { jump as u64 - 10 * (jump > 15) as u64 } else { FAR[jump - 83] };
        distances[jump] = if jump < 16 { root } else { root * (root + 1) / 2 };
        jump += 1;
    }
    distances
};

/// The table in an object, or one that is being built for it.
///
/// Its functions are unsafe: the body must be that of a valid table in the dense form. No code may change the table
/// during a read, and a writer needs exclusive access. Slots passed as arguments must hold an entry unless the function
/// states otherwise.
#[derive(Copy, Clone)]
pub(super) struct Dense(NonNull<DenseBody>);

/// The body of an empty table with room for `capacity` entries.
pub(super) fn empty(capacity: u64) -> DenseBody {
    // As upstream's: a power of two, at least twice the capacity.
    let bits = 64 - capacity.leading_zeros();
    let bits = if (1 << bits) < capacity.saturating_mul(2) { bits + 1 } else { bits };
    with_bits(bits.max(1))
}

/// As [`empty`], with `1 << bits` slots.
fn with_bits(bits: u32) -> DenseBody {
    let slots = 1_u64 << bits;
    let blocks = slots.div_ceil(BLOCK_SLOTS) as usize;
    let size = blocks.saturating_mul(BLOCK_SIZE);
    let data = block::allocate(size).unwrap_or_else(|| block::out_of_memory(size));
    for block in 0..blocks {
        // SAFETY: the allocation has room for that many blocks. Each block begins with its slots' metadata bytes.
        unsafe { data.add(block * BLOCK_SIZE).write_bytes(EMPTY, BLOCK_SLOTS as usize) };
    }
    let body = Body { data: data.as_ptr().cast(), size: 0, slots, data_deleter: Some(block::free_block) };
    DenseBody { body, fib_shift: 64 - bits, head: NONE, tail: NONE }
}

/// A table of these entries, which are copied as plain bytes, with room for at least `capacity` entries. The caller
/// must forget the originals.
///
/// # Safety
/// The entries must be valid and their keys distinct.
pub(super) unsafe fn build(capacity: u64, entries: &[(u64, *const KeyValue)]) -> DenseBody {
    let mut body = empty(capacity);
    'larger: loop {
        let table = Dense(NonNull::from_mut(&mut body));
        for (hash, entry) in entries {
            // SAFETY: the body and the entry are valid. An entry that doesn't fit is forgotten, so the original stays
            // the only owner.
            if let Err(entry) = unsafe { table.insert(*hash, entry.read()) } {
                std::mem::forget(entry);
                let bits = 64 - body.fib_shift + 1;
                // SAFETY: the block belongs to the body, and its entries are only copies.
                unsafe { block::free_block(body.body.data) };
                body = with_bits(bits);
                continue 'larger;
            }
        }
        return body;
    }
}

impl Dense {
    pub(super) fn new(body: NonNull<Body>) -> Self {
        Self(body.cast())
    }

    fn body(self) -> *mut DenseBody {
        self.0.as_ptr()
    }

    unsafe fn mask(self) -> u64 {
        // SAFETY: promised by the caller.
        unsafe { (*self.body()).body.slots.wrapping_sub(1) }
    }

    /// The start of a slot's block, and the slot's index in the block.
    #[inline]
    unsafe fn block(self, slot: u64) -> (*mut u8, usize) {
        // SAFETY: promised by the caller.
        let data: *mut u8 = unsafe { (*self.body()).body.data.cast() };
        (data.wrapping_add((slot / BLOCK_SLOTS) as usize * BLOCK_SIZE), (slot % BLOCK_SLOTS) as usize)
    }

    /// The metadata byte of a slot.
    #[inline]
    unsafe fn meta(self, slot: u64) -> *mut u8 {
        // SAFETY: promised by the caller.
        let (block, place) = unsafe { self.block(slot) };
        block.wrapping_add(place)
    }

    #[inline]
    unsafe fn item(self, slot: u64) -> *mut Item {
        // SAFETY: promised by the caller.
        let (block, place) = unsafe { self.block(slot) };
        block.wrapping_add(BLOCK_SLOTS as usize).cast::<Item>().wrapping_add(place)
    }

    /// The slot where the list of a hash begins, if that list exists.
    #[inline]
    unsafe fn place_of(self, hash: u64) -> u64 {
        // SAFETY: promised by the caller.
        let shift = unsafe { (*self.body()).fib_shift };
        hash.wrapping_mul(11_400_714_819_323_198_485).wrapping_shr(shift)
    }

    /// The next slot in this slot's list.
    #[inline]
    unsafe fn following(self, slot: u64) -> Option<u64> {
        // SAFETY: promised by the caller.
        unsafe {
            match *self.meta(slot) & JUMP {
                0 => None,
                jump => Some(slot.wrapping_add(DISTANCES[usize::from(jump)]) & self.mask()),
            }
        }
    }

    pub(super) unsafe fn find<E>(
        self,
        hash: u64,
        mut is_match: impl FnMut(&crate::any::Any) -> Result<bool, E>,
    ) -> Result<Option<u64>, E> {
        // SAFETY: promised by the caller.
        unsafe {
            let place = self.place_of(hash);
            let mut slot = if *self.meta(place) & BODY == 0 { Some(place) } else { None };
            while let Some(found) = slot {
                if is_match(&(*self.entry(found)).key)? {
                    return Ok(Some(found));
                }
                slot = self.following(found);
            }
        }
        Ok(None)
    }

    pub(super) unsafe fn entry(self, slot: u64) -> *mut KeyValue {
        // SAFETY: promised by the caller.
        unsafe { &raw mut (*self.item(slot)).entry }
    }

    /// True if a slot, which must be one of the table's, has an entry.
    pub(super) unsafe fn holds(self, slot: u64) -> bool {
        // SAFETY: promised by the caller.
        unsafe { *self.meta(slot) != EMPTY }
    }

    /// The first or last slot in the order of insertion; [`NONE`] in a table without entries.
    pub(super) unsafe fn ends(self) -> (u64, u64) {
        // SAFETY: promised by the caller.
        unsafe { ((*self.body()).head, (*self.body()).tail) }
    }

    /// The slots before and after this one in the order of insertion.
    pub(super) unsafe fn neighbours(self, slot: u64) -> (u64, u64) {
        // SAFETY: promised by the caller.
        unsafe { ((*self.item(slot)).prev, (*self.item(slot)).next) }
    }

    /// Adds an entry whose key is not in the table. Returns the entry if it doesn't fit in a table of this size.
    pub(super) unsafe fn insert(self, hash: u64, entry: KeyValue) -> Result<(), KeyValue> {
        // SAFETY: promised by the caller; each slot is written only if it is empty or its entry has been moved out.
        unsafe {
            let body = self.body();
            if (*body).body.slots == 0 {
                return Err(entry);
            }
            let place = self.place_of(hash);
            // At least 1 % of the slots stay empty, unless the new entry is a head.
            let is_full = ((*body).body.size + 1) as u128 * 100 > (*body).body.slots as u128 * 99;
            let (slot, meta) = match *self.meta(place) {
                EMPTY => (place, 0),
                _ if is_full => return Err(entry),
                meta if meta & BODY != 0 => match self.make_room(place) {
                    true => (place, 0),
                    false => return Err(entry),
                },
                _ => {
                    let mut last = place;
                    while let Some(next) = self.following(last) {
                        last = next;
                    }
                    let Some((slot, jump)) = self.empty_after(last, &[]) else { return Err(entry) };
                    self.set_jump(last, jump);
                    (slot, BODY)
                }
            };
            *self.meta(slot) = meta;
            self.item(slot).write(Item { entry, prev: NONE, next: NONE });
            (*body).body.size += 1;
            self.push_back(slot);
        }
        Ok(())
    }

    /// Moves the list that runs through a slot to other slots, from that slot on. Returns false if they don't fit.
    unsafe fn make_room(self, place: u64) -> bool {
        // SAFETY: promised by the caller. All moves are planned before the first one is made, so a failure changes
        // nothing.
        unsafe {
            let before = self.before(place);
            let (mut moves, mut last, mut from) = (Vec::new(), before, Some(place));
            while let Some(slot) = from {
                let Some((to, jump)) = self.empty_after(last, &moves) else { return false };
                moves.push((slot, to, jump));
                (last, from) = (to, self.following(slot));
            }
            let mut last = before;
            for (slot, to, jump) in moves {
                self.item(to).copy_from_nonoverlapping(self.item(slot), 1);
                *self.meta(to) = BODY;
                self.link_neighbours_to(to);
                self.set_jump(last, jump);
                *self.meta(slot) = EMPTY;
                last = to;
            }
        }
        true
    }

    /// The first empty slot within reach that is not already the destination of a planned move, and the jump to it.
    unsafe fn empty_after(self, slot: u64, moves: &[(u64, u64, u8)]) -> Option<(u64, u8)> {
        (1..DISTANCES.len()).find_map(|jump| {
            // SAFETY: promised by the caller.
            unsafe {
                let candidate = slot.wrapping_add(DISTANCES[jump]) & self.mask();
                let is_free = *self.meta(candidate) == EMPTY && moves.iter().all(|&(_, to, _)| to != candidate);
                is_free.then_some((candidate, jump as u8))
            }
        })
    }

    /// The predecessor of a non-head slot in its list. The slot's hash would lead to the list's head, but computing it
    /// may need user code. Exactly one slot jumps to this one, so search for that slot instead.
    unsafe fn before(self, slot: u64) -> u64 {
        let jumps_here = |jump: usize| {
            // SAFETY: promised by the caller.
            unsafe {
                let candidate = slot.wrapping_sub(DISTANCES[jump]) & self.mask();
                (usize::from(*self.meta(candidate) & JUMP) == jump).then_some(candidate)
            }
        };
        // A valid table always has such a slot.
        (1..DISTANCES.len()).find_map(jumps_here).unwrap_or(slot)
    }

    unsafe fn set_jump(self, slot: u64, jump: u8) {
        // SAFETY: promised by the caller.
        unsafe { *self.meta(slot) = *self.meta(slot) & BODY | jump };
    }

    /// Updates the links of an entry's predecessor and successor in insertion order (or the ends) to its slot.
    unsafe fn link_neighbours_to(self, slot: u64) {
        // SAFETY: promised by the caller.
        unsafe {
            let (prev, next) = self.neighbours(slot);
            match prev {
                NONE => (*self.body()).head = slot,
                _ => (*self.item(prev)).next = slot,
            }
            match next {
                NONE => (*self.body()).tail = slot,
                _ => (*self.item(next)).prev = slot,
            }
        }
    }

    /// Removes an entry from the insertion order.
    unsafe fn unlink(self, slot: u64) {
        // SAFETY: promised by the caller.
        unsafe {
            let (prev, next) = self.neighbours(slot);
            match prev {
                NONE => (*self.body()).head = next,
                _ => (*self.item(prev)).next = next,
            }
            match next {
                NONE => (*self.body()).tail = prev,
                _ => (*self.item(next)).prev = prev,
            }
        }
    }

    /// Appends an entry to the insertion order; it must not be in it.
    unsafe fn push_back(self, slot: u64) {
        // SAFETY: promised by the caller.
        unsafe {
            let item = self.item(slot);
            ((*item).prev, (*item).next) = ((*self.body()).tail, NONE);
            self.link_neighbours_to(slot);
        }
    }

    /// Moves an entry to the end of the insertion order.
    pub(super) unsafe fn move_back(self, slot: u64) {
        // SAFETY: promised by the caller.
        unsafe {
            self.unlink(slot);
            self.push_back(slot);
        }
    }

    /// Removes and returns an entry.
    pub(super) unsafe fn remove(self, slot: u64) -> KeyValue {
        // SAFETY: promised by the caller; the entry is moved out once, and its slot then becomes empty or takes another
        // entry.
        unsafe {
            self.unlink(slot);
            let entry = self.entry(slot).read();
            let (mut before, mut last) = (None, slot);
            while let Some(next) = self.following(last) {
                (before, last) = (Some(last), next);
            }
            match before {
                // The last entry of the list moves into this slot.
                Some(before) => {
                    self.item(slot).copy_from_nonoverlapping(self.item(last), 1);
                    self.link_neighbours_to(slot);
                    self.set_jump(before, 0);
                }
                None if *self.meta(slot) & BODY != 0 => self.set_jump(self.before(slot), 0),
                None => {}
            }
            *self.meta(last) = EMPTY;
            (*self.body()).body.size -= 1;
            entry
        }
    }

    /// Marks all slots as empty without dropping their entries.
    pub(super) unsafe fn forget_all(self) {
        // SAFETY: promised by the caller.
        unsafe {
            let body = self.body();
            for block in 0..(*body).body.slots.div_ceil(BLOCK_SLOTS) {
                self.meta(block * BLOCK_SLOTS).write_bytes(EMPTY, BLOCK_SLOTS as usize);
            }
            (*body).body.size = 0;
            ((*body).head, (*body).tail) = (NONE, NONE);
        }
    }

    /// A copy whose values own their own references.
    pub(super) unsafe fn copy(self) -> DenseBody {
        // SAFETY: promised by the caller. The copy has the same number of blocks and uses the same slots.
        unsafe {
            let own = self.body();
            let mut copy = with_bits(64 - (*own).fib_shift);
            let to = Dense(NonNull::from_mut(&mut copy));
            let (mut slot, count) = ((*own).head, (*own).body.size);
            for _ in 0..count {
                let Item { entry: KeyValue { key, value }, prev, next } = &*self.item(slot);
                let entry = KeyValue { key: key.clone(), value: value.clone() };
                to.item(slot).write(Item { entry, prev: *prev, next: *next });
                *to.meta(slot) = *self.meta(slot);
                slot = *next;
            }
            (copy.body.size, copy.head, copy.tail) = (count, (*own).head, (*own).tail);
            copy
        }
    }
}

#[cfg(test)]
mod tests {
    use super::DISTANCES;

    #[test]
    fn distances_are_upstreams() {
        assert_eq!(DISTANCES[..19], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 21, 28, 36]);
        assert_eq!(DISTANCES[80..86], [2485, 2556, 2628, 8515, 19110, 42778]);
        assert_eq!(DISTANCES[125], 5_209_859_154_120_846_435);
    }
}
