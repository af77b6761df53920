//! Error messages as rows of bytes.
//!
//! A row is a run of bytes. What it begins with is the error's kind, the rest its message:
//!
//! | byte | stands for |
//! | --- | --- |
//! | `00` | the end |
//! | `01` to `1f`, `80` to `9f` | a value: how it is printed, and the number of its field in the context, plus 1, in the lower four bits |
//! | `20` to `7f` | the text that begins with it and ends with a NUL |
//! | `a0` to `af` | another [`Tag`], whose field is always the same |
//! | from `b0` on | the text that is so many bytes into those that are shared ([`SHARED`]) |
//!
//! So a part is one byte, and a text is where it is printed, as a C string. [`report`](crate::lower::binder::report) reads rows.

use super::state::Field;

/// What a part prints, or does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(in crate::lower) enum Tag {
    /// A number, signed decimal.
    Number,
    /// A C string.
    String,
    /// The address of a [place](super::descriptor::place): what there is, without the dimension.
    Path,
    /// The same with the dimension.
    Place,
    /// A type index; the next field is the argument's payload.
    Type,
    /// A `DLDataType`.
    DType,
    /// A `DLDevice`.
    Device,
    /// A `DLDevice`, always with its number.
    NumberedDevice,
    /// Characters in quotes; the next field is how many bytes they are.
    Quoted,
    /// The symbols of the [expression](super::descriptor::expr) at this address that have a value, with it and where it is from.
    Bindings,
    /// Those that have none.
    Unknown,
    /// The text behind it, which begins with a byte that isn't a text's.
    Text,
    // In the rows of `report` itself.
    /// The row's end, unless field 1 is something.
    Unless,
    /// The steps of the place that the context is.
    Steps,
    /// The key of a registered type, and the row's end; nothing where the type isn't registered.
    TypeKey,
}

/// Tags from this one on have codes of their own.
pub(in crate::lower) const FIRST_FIXED: Tag = Tag::Type;
const FIXED: u8 = 0xa0;
/// Bytes that texts begin with.
pub(in crate::lower) const TEXT: std::ops::RangeInclusive<u8> = 0x20..=0x7f;
/// Shared texts from here on.
pub(in crate::lower) const SHARED_TEXT: u8 = 0xb0;
const _: () = assert!(FIXED + Tag::TypeKey as u8 - (FIRST_FIXED as u8) < SHARED_TEXT);

/// Fields of a context that a part may name.
pub(in crate::lower) const MAX_FIELDS: u32 = 15;

impl Tag {
    /// The byte for a value in a field.
    pub(in crate::lower) const fn code(self, field: u32) -> u8 {
        let base = match self {
            Tag::Number => 0,
            Tag::String => 0x10,
            Tag::Path => 0x80,
            Tag::Place => 0x90,
            _ => return self.own_code(),
        };
        debug_assert!(field < MAX_FIELDS);
        base | (field as u8 + 1)
    }

    /// The byte of a tag whose field is always the same.
    pub(in crate::lower) const fn own_code(self) -> u8 {
        FIXED + self as u8 - FIRST_FIXED as u8
    }

    /// How many C strings it makes at most, but for lists of symbols and steps into containers.
    pub(in crate::lower) const fn strings(self) -> usize {
        match self {
            // `code 99, 8 bits, x4`
            Tag::DType => 8,
            // `device type 99:0`; `x.shape[0]`
            Tag::Device | Tag::NumberedDevice | Tag::Place => 4,
            Tag::Quoted => 3,
            // `type index 99`
            Tag::Type => 2,
            Tag::Unless | Tag::Steps | Tag::Bindings | Tag::Unknown => 0,
            Tag::Number | Tag::String | Tag::Path | Tag::Text | Tag::TypeKey => 1,
        }
    }

    /// The field, where it is always the same.
    pub(in crate::lower) const fn field(self) -> Option<Field> {
        match self {
            Tag::Type | Tag::DType | Tag::Device | Tag::Quoted => Some(Field::Got),
            Tag::NumberedDevice => Some(Field::Expected),
            Tag::Bindings | Tag::Unknown => Some(Field::Expr),
            _ => None,
        }
    }
}

/// A part of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::lower) enum Part<'a> {
    /// A fixed text.
    Text(&'a str),
    /// A value: how it is printed, and which field of the context it is.
    Value(Tag, u32),
}

/// Texts that the rows of the shared routines have in common. The last begins less than 80 bytes behind the first.
pub(in crate::lower) const SHARED: [&str; 6] =
    ["ValueError", "TypeError", "Mismatched ", " on argument #", ", got ", "type of "];

/// The most C strings that a row makes, but for lists of symbols and steps into containers; [`report`](crate::lower::binder::report) has room for them.
pub(in crate::lower) const MAX_STRINGS: usize = 40;
