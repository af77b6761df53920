//! Key values and keys: their identity, their hash, their text.

use std::fmt::{self, Write};
use std::hash::{Hash, Hasher};

use tvm_ffi_runtime::abi::{TVMFFIAny, TVMFFIObject};
use tvm_ffi_runtime::{Any, AnyView, DLDataType, DLDevice, TypeIndex};

/// The types that key values may have, for messages.
pub const TYPES: &str = "None, bool, int, float, dtype, device, str or bytes";

/// The payload bits that decide equality, by type index. A dtype fills half of its payload.
const MASKS: [u64; 7] = {
    let mut masks = [0; 7];
    masks[TypeIndex::INT.0 as usize] = u64::MAX;
    masks[TypeIndex::BOOL.0 as usize] = u64::MAX;
    masks[TypeIndex::FLOAT.0 as usize] = u64::MAX;
    masks[TypeIndex::DATA_TYPE.0 as usize] = u64::from_ne_bytes([255, 255, 255, 255, 0, 0, 0, 0]);
    masks[TypeIndex::DEVICE.0 as usize] = u64::MAX;
    masks
};
/// The longest text that a word holds as a whole.
const SHORT: usize = 7;
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// The identity of a key value. A text longer than [`SHORT`] also needs a comparison of its bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Word {
    /// The kind of value, and a text's length in the upper half.
    tag: u64,
    bits: u64,
}

/// The word of a value, or `None` if the value can't be a part of a key.
#[inline(always)]
fn word(view: &AnyView<'_>) -> Option<Word> {
    let index = view.type_index();
    match MASKS.get(index.0 as usize) {
        Some(&mask) if index != TypeIndex::OPAQUE_PTR => {
            let bits = view.as_raw().bits() & mask;
            let bits = if index == TypeIndex::BOOL { u64::from(bits != 0) } else { bits };
            Some(Word { tag: index.0 as u64, bits })
        }
        _ => text_word(view),
    }
}

#[inline(never)]
fn text_word(view: &AnyView<'_>) -> Option<Word> {
    let text = text(view)?;
    let index = if is_str(view) { TypeIndex::STR } else { TypeIndex::BYTES };
    let tag = index.0 as u64 | (text.len() as u64) << 32;
    let bits = if text.len() <= SHORT { packed(text) } else { digest(text) };
    Some(Word { tag, bits })
}

/// The bytes of a str or bytes value of any form.
fn text<'v>(view: &'v AnyView<'_>) -> Option<&'v [u8]> {
    if is_str(view) { view.str_bytes() } else { view.as_bytes() }
}

fn is_str(view: &AnyView<'_>) -> bool {
    matches!(view.type_index(), TypeIndex::STR | TypeIndex::SMALL_STR | TypeIndex::RAW_STR)
}

/// At most eight bytes as a number.
fn packed(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn digest(text: &[u8]) -> u64 {
    text.chunks(8).fold(FACTOR, |hash, chunk| mixed(hash ^ packed(chunk), FACTOR))
}

/// Multiplies, and folds both halves of the product, so that all bits depend on all bits.
#[inline(always)]
fn mixed(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// The hash of the first words of a key and the next one. The products don't depend on each other, so that a processor
/// computes them at the same time.
#[inline(always)]
fn hash_with(hash: u64, word: Word) -> u64 {
    hash.rotate_left(23) ^ mixed(word.bits ^ FACTOR, FACTOR.wrapping_add(word.tag << 1))
}

/// The hash of a call's key, or `None` if it needs a closer look: if a value can't be a part of a key, or is a truth
/// value other than 0 and 1.
#[inline(always)]
pub fn hash_of_call(values: &[AnyView<'_>]) -> Option<u64> {
    values.iter().try_fold(FACTOR, |hash, value| {
        let (index, bits) = (value.type_index(), value.as_raw().bits());
        let word = match MASKS.get(index.0 as usize) {
            Some(&mask) if index != TypeIndex::OPAQUE_PTR => Word { tag: index.0 as u64, bits: bits & mask },
            _ => text_word(value)?,
        };
        Some(hash_with(hash, word))
    })
}

/// Returns a view of an object for an r-value reference to it, so a callee can't take the object over. Returns any
/// other value unchanged.
///
/// # Safety
/// The value must be valid by its type index for the lifetime of the view.
pub unsafe fn settled<'a>(value: TVMFFIAny) -> AnyView<'a> {
    let settled = if value.type_index == TypeIndex::OBJECT_RVALUE_REF.0 && !value.ptr().is_null() {
        // SAFETY: an r-value reference points at an object pointer, which is NULL once the object is taken over.
        let object = unsafe { *value.ptr().cast::<*mut TVMFFIObject>() };
        // SAFETY: the object is alive for as long as the value.
        let index = unsafe { object.as_ref() }.map(|object| TypeIndex(object.type_index));
        index.map_or(value, |index| TVMFFIAny::from_ptr(index, object.cast()))
    } else {
        value
    };
    // SAFETY: promised by the caller.
    unsafe { AnyView::from_raw(settled) }
}

/// A value of a key that is kept.
struct KeyValue {
    word: Word,
    /// The payload bits of `word`, for values that aren't text.
    mask: u64,
    value: Any,
}

impl KeyValue {
    fn of(view: &AnyView<'_>) -> Option<Self> {
        let mask = MASKS.get(view.type_index().0 as usize).copied().unwrap_or_default();
        Some(Self { word: word(view)?, mask, value: view.to_owned().ok()? })
    }

    /// True if the value is this one, but for truth values other than 0 and 1.
    #[inline(always)]
    fn matches(&self, view: &AnyView<'_>) -> bool {
        let raw = view.as_raw();
        match MASKS.len() as u64 > self.word.tag {
            true => self.word.tag == raw.type_index as u64 && self.word.bits == raw.bits() & self.mask,
            false => self.matches_text(view),
        }
    }

    #[inline(never)]
    fn matches_text(&self, view: &AnyView<'_>) -> bool {
        word(view).is_some_and(|word| self.is(word, view))
    }

    /// True if a value with a word is this one.
    fn is(&self, word: Word, view: &AnyView<'_>) -> bool {
        word == self.word && (word.tag >> 32 <= SHORT as u64 || text(view) == text(&self.value.as_view()))
    }
}

/// The values under which a table keeps a function.
pub struct Key {
    hash: u64,
    values: Box<[KeyValue]>,
}

impl Key {
    /// The key of values that are views of objects rather than r-value references.
    ///
    /// # Errors
    /// The index of the first value that can't be a part of a key.
    pub fn of(values: &[AnyView<'_>]) -> Result<Self, usize> {
        let keep = |(index, view): (usize, &AnyView<'_>)| KeyValue::of(view).ok_or(index);
        let kept = values.iter().enumerate().map(keep).collect::<Result<Box<[_]>, usize>>()?;
        Ok(Self { hash: kept.iter().fold(FACTOR, |hash, kept| hash_with(hash, kept.word)), values: kept })
    }

    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// True if these are the values of a call with as many keys.
    #[inline(always)]
    pub fn matches(&self, values: &[AnyView<'_>]) -> bool {
        self.values.iter().zip(values).all(|(kept, value)| kept.matches(value))
    }

    pub fn views(&self) -> Vec<AnyView<'_>> {
        self.values.iter().map(|kept| kept.value.as_view()).collect()
    }

    pub fn to_values(&self) -> Vec<Any> {
        self.values.iter().map(|kept| kept.value.clone()).collect()
    }

    /// The key as `name=value` pairs, for messages.
    pub fn described(&self, names: &[String]) -> String {
        let mut text = String::new();
        for (name, kept) in names.iter().zip(&self.values) {
            let separator = if text.is_empty() { "" } else { ", " };
            // writing to a string doesn't fail
            let _ = write!(text, "{separator}{name}={}", Shown(&kept.value));
        }
        text
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        let mut values = self.values.iter().zip(&other.values);
        self.hash == other.hash
            && self.values.len() == other.values.len()
            && values.all(|(kept, other)| kept.is(other.word, &other.value.as_view()))
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// A key value as messages show it.
struct Shown<'a>(&'a Any);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MOST: usize = 64;
        let view = self.0.as_view();
        let payload = view.as_raw().v;
        match view.type_index() {
            TypeIndex::NONE => f.write_str("None"),
            TypeIndex::INT => write!(f, "{}", view.as_raw().bits().cast_signed()),
            TypeIndex::BOOL => f.write_str(if view.as_raw().bits() != 0 { "True" } else { "False" }),
            TypeIndex::FLOAT => write!(f, "{:?}", f64::from_bits(view.as_raw().bits())),
            TypeIndex::DATA_TYPE => {
                // SAFETY: the type index says which field is live.
                let dtype: DLDataType = unsafe { payload.v_dtype };
                write!(f, "{dtype}")
            }
            TypeIndex::DEVICE => {
                // SAFETY: as above.
                let device: DLDevice = unsafe { payload.v_device };
                write!(f, "{device}")
            }
            _ => {
                let bytes = text(&view).unwrap_or_default();
                let shown = String::from_utf8_lossy(bytes.get(..MOST).unwrap_or(bytes));
                let (prefix, more) =
                    (if is_str(&view) { "" } else { "b" }, if bytes.len() > MOST { "..." } else { "" });
                write!(f, "{prefix}{shown:?}{more}")
            }
        }
    }
}
