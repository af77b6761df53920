//! Integers of any width. A number that fits in 64 bits is a plain integer. A larger one is an object: header, number
//! of words, and the words in two's complement, least significant first. The last word has the sign. An object has as
//! few words as its number needs. Header sections: `kTVMFFIBigInt`, `TVMFFIBigIntFromByteArray`; upstream's
//! `big_int.h`.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::slice;
use std::str::FromStr;

use crate::abi::*;
use crate::any::{Any, AnyView, Arg, ToAnyView, TryFromAny, try_from_any};
use crate::error::{Error, Result, type_mismatch, value_error};
use crate::heap::{ObjectLayout, ObjectRef, make_object};
use crate::stable_hash;

#[repr(C)]
struct BigIntObject {
    header: TVMFFIObject,
    /// Number of the words that follow.
    size: usize,
}

// SAFETY: repr(C) with the header first; the number of words follows, as upstream's header has it.
unsafe impl ObjectLayout for BigIntObject {
    const TYPE_INDEX: TypeIndex = TypeIndex::BIG_INT;
}

/// A signed integer of any width, `ffi.BigInt`.
///
/// ```
/// use tvm_ffi_runtime::{Any, BigInt};
///
/// let big: BigInt = "-170141183460469231731687303715884105728".parse()?;
/// assert_eq!(i128::try_from(&big), Ok(i128::MIN));
/// assert_eq!(Any::from(big).cast::<BigInt>()?, BigInt::from(i128::MIN));
/// // A small one is an integer like any other.
/// assert_eq!(Any::from(BigInt::from(7u128)).cast::<i64>()?, 7);
/// # Ok::<(), tvm_ffi_runtime::Error>(())
/// ```
#[derive(Clone)]
pub struct BigInt(Any);

/// The error of a [`BigInt`] that doesn't fit in the requested integer type.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the integer is too large")]
pub struct BigIntRangeError(());

impl BigInt {
    /// The size of the object without its words.
    pub(crate) const OBJECT_SIZE: usize = size_of::<BigIntObject>();

    /// The integer of these words, least significant first. The last word has the sign. An empty slice is zero.
    pub fn from_words(words: &[i64]) -> Self {
        let is_redundant = |pair: &[i64]| pair[1] == pair[0] >> 63;
        let needed = words.windows(2).rposition(|pair| !is_redundant(pair)).map_or(1, |last| last + 2);
        let words = &words[..needed.min(words.len())];
        let [_, _, ..] = words else {
            return Self(words.first().copied().unwrap_or(0).into());
        };
        let object = make_object::<BigIntObject>(size_of_val(words), |header, tail| {
            // SAFETY: the tail is new and has room for the words. It is aligned for them because the object's size is a
            // multiple of 8.
            unsafe { tail.cast::<i64>().copy_from_nonoverlapping(words.as_ptr(), words.len()) };
            BigIntObject { header, size: words.len() }
        });
        // SAFETY: `make_object` returns the object's one strong reference.
        Self(unsafe { ObjectRef::from_non_null(object) }.into())
    }

    /// The words, least significant first. The last word has the sign. There is at least one word, and no more than
    /// needed.
    pub fn as_words(&self) -> &[i64] {
        // SAFETY: the value is an integer or one of these objects, which lives as long as `self`.
        unsafe { words_of(self.0.as_raw()) }
    }

    /// The integer of bytes in two's complement, least significant first.
    pub fn from_le_bytes(bytes: &[u8]) -> Self {
        let sign = bytes.last().map_or(0, |&last| if last < 0x80 { 0 } else { 0xff });
        let word = |chunk: &[u8]| {
            let mut word = [sign; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            i64::from_le_bytes(word)
        };
        Self::from_words(&bytes.chunks(8).map(word).collect::<Vec<_>>())
    }

    /// The bytes in two's complement, least significant first: eight for each word.
    pub fn to_le_bytes(&self) -> Vec<u8> {
        self.as_words().iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// True if the integer is less than zero.
    pub fn is_negative(&self) -> bool {
        self.as_words().last().is_some_and(|&last| last < 0)
    }

    /// The absolute value as words, least significant first.
    fn magnitude(&self) -> Vec<u64> {
        let mut carry = self.is_negative();
        let flip = if carry { u64::MAX } else { 0 };
        let add = |word: &i64| {
            let (sum, overflow) = (word.cast_unsigned() ^ flip).overflowing_add(carry.into());
            carry = overflow;
            sum
        };
        self.as_words().iter().map(add).collect()
    }

    /// The integer of an absolute value and a sign.
    fn from_magnitude(mut words: Vec<u64>, is_negative: bool) -> Self {
        words.push(0);
        if is_negative {
            let mut carry = true;
            for word in &mut words {
                (*word, carry) = (!*word).overflowing_add(carry.into());
            }
        }
        Self::from_words(&words.into_iter().map(u64::cast_signed).collect::<Vec<_>>())
    }

    /// The hash of the value, the same in every process.
    pub(crate) fn stable_hash(&self) -> u64 {
        match self.as_words() {
            [word] => word.cast_unsigned(),
            _ => stable_hash::bytes(&self.to_le_bytes()),
        }
    }
}

/// The words of an integer; empty for a NULL object.
///
/// # Safety
/// The value must be a plain integer, or a big one with an object that is NULL or alive for `'a`.
unsafe fn words_of(value: &TVMFFIAny) -> &[i64] {
    // SAFETY: the type index says which it is: a number in the value, or an object followed by its words.
    unsafe {
        if value.type_index != TypeIndex::BIG_INT.0 {
            return slice::from_ref(&value.v.v_int64);
        }
        let object = value.v.v_obj.cast::<BigIntObject>();
        if object.is_null() {
            return &[];
        }
        slice::from_raw_parts(object.add(1).cast(), (*object).size)
    }
}

/// The bytes of a value's words in memory; empty if the value is not an integer.
///
/// # Safety
/// The value must be valid for `'a`.
pub(crate) unsafe fn content_of(value: &TVMFFIAny) -> &[u8] {
    if !matches!(TypeIndex(value.type_index), TypeIndex::INT | TypeIndex::BIG_INT) {
        return &[];
    }
    // SAFETY: promised by the caller; words are plain bytes.
    unsafe {
        let words = words_of(value);
        slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words))
    }
}

/// The integer that has these bytes as its words.
///
/// # Errors
/// `ValueError` if the bytes end within a word.
pub(crate) fn from_content(bytes: &[u8]) -> Result<BigInt> {
    if !bytes.len().is_multiple_of(8) {
        return Err(value_error("BigInt content must contain whole 64-bit words"));
    }
    Ok(BigInt::from_le_bytes(bytes))
}

macro_rules! small_integers {
    ($($ty:ty),*) => {$(
        impl From<$ty> for BigInt {
            fn from(value: $ty) -> Self {
                Self::from_words(&[i64::from(value)])
            }
        }
    )*};
}
small_integers!(i8, i16, i32, i64, u8, u16, u32);

impl From<u64> for BigInt {
    fn from(value: u64) -> Self {
        Self::from(i128::from(value))
    }
}

impl From<i128> for BigInt {
    fn from(value: i128) -> Self {
        Self::from_words(&[value as i64, (value >> 64) as i64])
    }
}

impl From<u128> for BigInt {
    fn from(value: u128) -> Self {
        Self::from_words(&[value as i64, (value >> 64) as i64, 0])
    }
}

impl TryFrom<&BigInt> for i128 {
    type Error = BigIntRangeError;

    fn try_from(value: &BigInt) -> Result<Self, BigIntRangeError> {
        match value.as_words() {
            [word] => Ok((*word).into()),
            [low, high] => Ok(i128::from(*high) << 64 | i128::from(low.cast_unsigned())),
            _ => Err(BigIntRangeError(())),
        }
    }
}

impl TryFrom<&BigInt> for u128 {
    type Error = BigIntRangeError;

    fn try_from(value: &BigInt) -> Result<Self, BigIntRangeError> {
        match value.as_words() {
            [low, high, 0] => Ok(u128::from(high.cast_unsigned()) << 64 | u128::from(low.cast_unsigned())),
            _ => i128::try_from(value)?.try_into().map_err(|_| BigIntRangeError(())),
        }
    }
}

macro_rules! narrower {
    ($($ty:ty),*) => {$(
        impl TryFrom<&BigInt> for $ty {
            type Error = BigIntRangeError;

            fn try_from(value: &BigInt) -> Result<Self, BigIntRangeError> {
                i128::try_from(value)?.try_into().map_err(|_| BigIntRangeError(()))
            }
        }
    )*};
}
narrower!(i64, u64, usize);

/// Decimal digits that fit in a word, and the power of ten with that many zeros.
const DIGITS: usize = 19;
const POWER: u64 = 10_u64.pow(DIGITS as u32);

impl fmt::Display for BigInt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut words, mut groups) = (self.magnitude(), Vec::new());
        while !words.is_empty() {
            let mut rest = 0;
            for word in words.iter_mut().rev() {
                let dividend = u128::from(rest) << 64 | u128::from(*word);
                (*word, rest) = ((dividend / u128::from(POWER)) as u64, (dividend % u128::from(POWER)) as u64);
            }
            groups.push(rest);
            words.truncate(words.iter().rposition(|&word| word != 0).map_or(0, |last| last + 1));
        }
        let mut text = groups.pop().unwrap_or(0).to_string();
        groups.iter().rev().for_each(|group| text.push_str(&format!("{group:0DIGITS$}")));
        f.pad_integral(!self.is_negative(), "", &text)
    }
}

impl FromStr for BigInt {
    type Err = Error;

    /// Reads a decimal integer with an optional sign.
    fn from_str(text: &str) -> Result<Self> {
        let digits = text.strip_prefix(['+', '-']).unwrap_or(text).as_bytes();
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return Err(value_error("Invalid decimal string for ffi.BigInt"));
        }
        let mut words: Vec<u64> = Vec::new();
        for group in digits.chunks(DIGITS) {
            let mut carry = group.iter().fold(0, |value, digit| value * 10 + u64::from(digit - b'0'));
            let power = u128::from(10_u64.pow(group.len() as u32));
            for word in &mut words {
                let product = u128::from(*word) * power + u128::from(carry);
                (*word, carry) = (product as u64, (product >> 64) as u64);
            }
            if carry != 0 {
                words.push(carry);
            }
        }
        Ok(Self::from_magnitude(words, text.starts_with('-')))
    }
}

impl fmt::Debug for BigInt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Default for BigInt {
    fn default() -> Self {
        Self(0.into())
    }
}

impl PartialEq for BigInt {
    fn eq(&self, other: &Self) -> bool {
        self.as_words() == other.as_words()
    }
}

impl Eq for BigInt {}

impl Hash for BigInt {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_words().hash(state);
    }
}

impl Ord for BigInt {
    fn cmp(&self, other: &Self) -> Ordering {
        let (one, two) = (self.as_words(), other.as_words());
        // With more words the absolute value is larger.
        let by_len = if self.is_negative() { two.len().cmp(&one.len()) } else { one.len().cmp(&two.len()) };
        let by_words = || {
            let (last_one, last_two) = (one.last(), two.last());
            let rest = || {
                one.iter().rev().map(|word| word.cast_unsigned()).cmp(two.iter().rev().map(|word| word.cast_unsigned()))
            };
            last_one.cmp(&last_two).then_with(rest)
        };
        other.is_negative().cmp(&self.is_negative()).then(by_len).then_with(by_words)
    }
}

impl PartialOrd for BigInt {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl From<BigInt> for Any {
    fn from(value: BigInt) -> Self {
        value.0
    }
}

impl ToAnyView for BigInt {
    fn to_arg(&self) -> Arg<'_> {
        self.0.to_arg()
    }
}

impl TryFromAny for BigInt {
    #[track_caller]
    fn try_from_view(view: AnyView<'_>) -> Result<Self> {
        match view.type_index() {
            TypeIndex::BIG_INT if view.as_raw().ptr().is_null() => Err(type_mismatch("ffi.BigInt", TypeIndex::BIG_INT)),
            TypeIndex::INT | TypeIndex::BIG_INT => view.to_owned().map(Self),
            TypeIndex::BOOL => Ok(Self::from(view.cast::<i64>()?)),
            other => Err(type_mismatch("BigInt", other)),
        }
    }
}

macro_rules! wide_integers {
    ($($ty:ty),*) => {$(
        impl ToAnyView for $ty {
            fn to_arg(&self) -> Arg<'_> {
                Arg::owned(BigInt::from(*self).into())
            }
        }

        impl From<$ty> for Any {
            fn from(value: $ty) -> Self {
                BigInt::from(value).into()
            }
        }

        impl TryFromAny for $ty {
            #[track_caller]
            fn try_from_view(view: AnyView<'_>) -> Result<Self> {
                let value: BigInt = view.cast()?;
                <$ty>::try_from(&value).map_err(|_| out_of_range(&value, stringify!($ty)))
            }
        }
    )*};
}
wide_integers!(i128, u128);

/// Numbers up to `i64::MAX` are plain integers, and larger ones big integers. Upstream's C++ refuses the larger ones,
/// and its Rust crate makes negative numbers of them.
macro_rules! unsigned_integers {
    ($($ty:ty),*) => {$(
        impl ToAnyView for $ty {
            #[inline]
            fn to_arg(&self) -> Arg<'_> {
                match i64::try_from(*self) {
                    Ok(value) => Arg::plain(TypeIndex::INT, value.cast_unsigned()),
                    Err(_) => Arg::owned(big(*self as u64)),
                }
            }
        }

        impl From<$ty> for Any {
            #[inline]
            fn from(value: $ty) -> Self {
                i64::try_from(value).map_or_else(|_| big(value as u64), Any::from)
            }
        }

        impl TryFromAny for $ty {
            #[inline]
            #[track_caller]
            fn try_from_view(view: AnyView<'_>) -> Result<Self> {
                if view.type_index() == TypeIndex::BIG_INT {
                    let value: BigInt = view.cast()?;
                    return <$ty>::try_from(&value).map_err(|_| out_of_range(&value, stringify!($ty)));
                }
                let value: i64 = view.cast()?;
                <$ty>::try_from(value).map_err(|_| out_of_range(&value, stringify!($ty)))
            }
        }
    )*};
}
unsigned_integers!(u64, usize);

#[cold]
fn big(value: u64) -> Any {
    BigInt::from(value).into()
}

#[cold]
#[track_caller]
fn out_of_range(value: &dyn fmt::Display, ty: &str) -> Error {
    value_error(&format!("{value} is out of range for {ty}"))
}

try_from_any!(BigInt, i128, u128, u64, usize);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_no_more_than_needed() {
        for (words, expected) in [
            (&[][..], &[0][..]),
            (&[-1, -1, -1], &[-1]),
            (&[-1, 0], &[-1, 0]),
            (&[5, 0, 0], &[5]),
            (&[0, i64::MIN, -1], &[0, i64::MIN]),
            (&[0, 1, 0], &[0, 1]),
        ] {
            assert_eq!(BigInt::from_words(words).as_words(), expected);
        }
    }
}
