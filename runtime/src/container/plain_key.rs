//! Keys that are hashed and compared without user code.

use crate::any::Any;
use crate::string::{Bytes, Str};

mod sealed {
    pub trait Sealed {}
}

/// A Rust value that is compared by content as a key, so making a map of such keys can't fail. Only this crate
/// implements the trait. For other keys, use [`Map::try_from_entries`](super::Map::try_from_entries).
pub trait PlainKey: Into<Any> + sealed::Sealed {}

macro_rules! plain_keys {
    ($($ty:ty),*) => {$(
        impl sealed::Sealed for $ty {}
        impl PlainKey for $ty {}
    )*};
}
plain_keys!(i8, i16, i32, i64, u8, u16, u32, u64, isize, usize, bool, f32, f64, &str, String, Str, &[u8], Bytes);
