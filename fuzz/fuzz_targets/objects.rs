//! See `objects` of the library.
#![no_main]

use tvm_ffi_codegen_fuzz::objects;

libfuzzer_sys::fuzz_target!(|input: &[u8]| objects::run(input));

// Random changes are nearly always refused at once. So this changes the most used bytes of the loader's input more
// often.
libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    if seed.is_multiple_of(4) || !mutate(&mut data[..size], seed) {
        return libfuzzer_sys::fuzzer_mutate(data, size, max_size);
    }
    size
});

/// Changes a number, a bit or a copied part in one of an object's tables. Returns `false` if the bytes aren't an
/// object.
fn mutate(object: &mut [u8], seed: u32) -> bool {
    let mut state = u64::from(seed) << 1 | 1;
    // xorshift
    let mut below = |limit: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as usize % limit.max(1)
    };
    let Some((start, len)) = pick(object, &mut below) else { return false };
    for _ in 0..=below(3) {
        let at = start + below(len);
        match below(4) {
            0 => object[at] ^= 1 << below(8),
            1 => object[at] = below(256) as u8,
            2 => {
                const NUMBERS: [u64; 10] = [0, 1, 4, 8, 0xffff_ffff, 0x7fff_ffff, 1 << 32, 1 << 63, u64::MAX, 0x1000];
                let width = [1, 2, 4, 8][below(4)];
                let at = at & !(width - 1);
                let number = NUMBERS[below(NUMBERS.len())].to_le_bytes();
                if let Some(place) = object.get_mut(at..at + width) {
                    place.copy_from_slice(&number[..width]);
                }
            }
            _ => {
                let (from, count) = (start + below(len), below(24));
                if from + count <= object.len() && at + count <= object.len() {
                    object.copy_within(from..from + count, at);
                }
            }
        }
    }
    true
}

/// The position of a table in an object: the section headers, or a section that is a table.
fn pick(object: &[u8], below: &mut impl FnMut(usize) -> usize) -> Option<(usize, usize)> {
    let word = |at: usize, width: usize| {
        let bytes = object.get(at..at.checked_add(width)?)?;
        usize::try_from(bytes.iter().rev().fold(0u64, |word, byte| word << 8 | u64::from(*byte))).ok()
    };
    if !object.starts_with(b"\x7fELF") {
        return None;
    }
    // offsets and sizes are those of elf.h
    let (headers, count, names) = (word(0x28, 8)?, word(0x3c, 2)?, word(0x3e, 2)?);
    let names = word(headers.checked_add(64 * names)?.checked_add(0x18)?, 8)?;
    let mut tables = vec![(headers, 64 * count)];
    for header in (0..count).filter_map(|number| headers.checked_add(64 * number)) {
        let (name, kind) = (names.checked_add(word(header, 4)?)?, word(header.checked_add(4)?, 4)?);
        let place = (word(header.checked_add(0x18)?, 8)?, word(header.checked_add(0x20)?, 8)?);
        let is_frames = object.get(name..).is_some_and(|name| name.starts_with(b".eh_frame\0"));
        // SHT_SYMTAB, SHT_RELA, SHT_INIT_ARRAY
        if is_frames || matches!(kind, 2 | 4 | 14) {
            // unwind tables are the most fragile
            tables.extend(std::iter::repeat_n(place, if is_frames { 4 } else { 1 }));
        }
    }
    let (start, len) = tables[below(tables.len())];
    let end = start.checked_add(len)?;
    (len > 0 && end <= object.len()).then_some((start, len))
}
