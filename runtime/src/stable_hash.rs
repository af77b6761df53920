//! Hashes that are the same on every machine and in every process, as upstream's headers compute them. Rules:
//! upstream's `base_detail.h`. A type key has the hash of a `std::string_view` in GNU's C++ library.

/// Combines a hash and a value: upstream's `StableHashCombine`.
#[inline]
pub(crate) const fn combine(hash: u64, value: u64) -> u64 {
    hash ^ value.wrapping_add(0x9e37_79b9).wrapping_add(hash << 6).wrapping_add(hash >> 2)
}

/// The hash of bytes: upstream's `StableHashBytes`. Words are read as little-endian numbers.
#[inline]
pub(crate) fn bytes(bytes: &[u8]) -> u64 {
    const MULTIPLIER: u64 = 1_099_511_628_211;
    const MODULUS: u64 = 2_147_483_647;
    let (words, rest) = bytes.as_chunks::<8>();
    let step = |hash: u64, word: u64| hash.wrapping_mul(MULTIPLIER).wrapping_add(word) % MODULUS;
    let hash = words.iter().fold(0, |hash, word| step(hash, u64::from_le_bytes(*word)));
    if rest.is_empty() { hash } else { step(hash, last_word(rest)) }
}

/// The hash of a type key: `std::hash` of GNU's C++ library, a MurmurHash64A with other constants.
pub(crate) fn type_key(key: &[u8]) -> u64 {
    const SEED: u64 = 0xc70f_6907;
    const MULTIPLIER: u64 = 0xc6a4_a793_5bd1_e995;
    let mix = |value: u64| value ^ (value >> 47);
    let step = |hash: u64, word: u64| (hash ^ word).wrapping_mul(MULTIPLIER);
    let (words, rest) = key.as_chunks::<8>();
    let start = SEED ^ (key.len() as u64).wrapping_mul(MULTIPLIER);
    let mut hash = words.iter().fold(start, |hash, word| {
        step(hash, mix(u64::from_le_bytes(*word).wrapping_mul(MULTIPLIER)).wrapping_mul(MULTIPLIER))
    });
    if !rest.is_empty() {
        hash = step(hash, last_word(rest));
    }
    mix(mix(hash).wrapping_mul(MULTIPLIER))
}

/// Fewer than eight bytes as a word, padded with zeros.
#[inline]
fn last_word(rest: &[u8]) -> u64 {
    rest.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program on upstream's headers prints these numbers.
    #[test]
    fn hashes_are_upstreams() {
        assert_eq!(bytes(b""), 0);
        assert_eq!(bytes(b"abc"), 6_513_249);
        assert_eq!(combine(65, bytes(b"abc")), combine(65, 6_513_249));
    }
}
