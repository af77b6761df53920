//! Keys that no code of a user hashes or compares.

use crate::any::Any;
use crate::string::{Bytes, Str};

mod sealed {
    pub trait Sealed {}
}

/// A Rust value that is compared by its content as a key, so that making a map of such keys cannot
/// fail. Only this crate implements it; other keys go through
/// [`Map::try_from_entries`](super::Map::try_from_entries).
pub trait PlainKey: Into<Any> + sealed::Sealed {}

macro_rules! plain_keys {
    ($($ty:ty),*) => {$(
        impl sealed::Sealed for $ty {}
        impl PlainKey for $ty {}
    )*};
}
plain_keys!(i8, i16, i32, i64, u8, u16, u32, u64, isize, usize, bool, f32, f64, &str, String, Str, &[u8], Bytes);
