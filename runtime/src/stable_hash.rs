//! Upstream's hash, which is the same in every process and on every platform.
//! Header section: `StableHashCombine` and `StableHashBytes` in base_detail.h.

/// The hash of two values, of which the first is a hash.
pub(crate) const fn combine(key: u64, value: u64) -> u64 {
    key ^ value.wrapping_add(0x9e37_79b9).wrapping_add(key << 6).wrapping_add(key >> 2)
}

/// The hash of bytes: eight at a time as little-endian numbers, the last ones filled up with zeros.
pub(crate) fn bytes(bytes: &[u8]) -> u64 {
    const MULTIPLIER: u64 = 1_099_511_628_211;
    const MODULUS: u64 = 2_147_483_647;
    bytes.chunks(8).fold(0, |hash: u64, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        hash.wrapping_mul(MULTIPLIER).wrapping_add(u64::from_le_bytes(word)) % MODULUS
    })
}
