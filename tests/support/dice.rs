//! Random choices that depend on earlier choices, as proptest's strategies can't.

use std::time::{SystemTime, UNIX_EPOCH};

/// SplitMix64.
pub struct Dice(u64);

impl Dice {
    pub const fn new(seed: u64) -> Self {
        Dice(seed)
    }

    pub const fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// A number less than `end`, which must not be 0.
    pub const fn below(&mut self, end: usize) -> usize {
        (self.number() % end as u64) as usize
    }

    pub const fn one_in(&mut self, chances: usize) -> bool {
        self.below(chances) == 0
    }

    pub fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }

    /// Usually a small number, otherwise any number or an edge case.
    pub fn integer(&mut self) -> i64 {
        match self.below(5) {
            0 => self.number() as i64,
            1 => self.pick(&[i64::MIN, -1, 1 << 31, 1 << 32, 1 << 62, i64::MAX]),
            _ => self.below(600) as i64 - 300,
        }
    }
}

/// The seed in `TVM_FFI_CODEGEN_SEED`, or a new one.
pub fn seed() -> u64 {
    match std::env::var("TVM_FFI_CODEGEN_SEED") {
        Ok(seed) => seed.parse().unwrap(),
        Err(_) => SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64,
    }
}
