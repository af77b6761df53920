//! Message templates: error messages with placeholders for values, as bytes.
//!
//! The first piece of a template is the error's kind; the others form the message. A byte encodes:
//!
//! | byte | meaning |
//! | --- | --- |
//! | `00` | the end |
//! | `01` to `1f`, `80` to `9f` | a [`Directive`]; the lower four bits are its field's number in the context, plus 1 |
//! | `20` to `7f` | the string that begins with the byte and ends with a NUL |
//! | `a0` to `af` | a [`Directive`] with a fixed field |
//! | from `b0` on | a shared string: the byte minus `b0` is its offset in [`SHARED`] |
//!
//! So each piece is one byte, except for a string, which is stored in the template as a C string.
//! [`report`](crate::lower::binder::report) reads templates.

use super::state::Field;

/// An instruction of a template: which value to print, and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(in crate::lower) enum Directive {
    /// A number, signed decimal.
    Number,
    /// A C string.
    String,
    /// The address of a [path](super::state::Path): the value's path without a dimension.
    ValuePath,
    /// The same with the dimension.
    DimPath,
    /// A type index; the next field is the argument's payload.
    Type,
    /// A `DLDataType`.
    DType,
    /// A `DLDevice`.
    Device,
    /// A `DLDevice`, always with its number.
    NumberedDevice,
    /// Characters in quotes; the next field is their number in bytes.
    Quoted,
    /// The variables of the [expression](super::descriptor::ExprDescriptor) at this address that have a value. Each is
    /// printed with its value and path.
    Bindings,
    /// The variables of the expression that have no value.
    Unknown,
    /// The string after the byte. It begins with a byte that no other string begins with.
    Text,
    // In `report`'s own templates.
    /// The template's end, unless field 1 is nonzero.
    Unless,
    /// The steps of the path that is the context.
    Steps,
    /// The key of a registered type, and the template's end; nothing if the type isn't registered.
    TypeKey,
    /// ` on argument #` and the number of the argument. Nothing for a value that isn't an argument; its number is
    /// negative.
    Argument,
    /// The string `` when calling: `...`, expected ``, a C string. For a long signature, the template that begins with
    /// [`Stated`](Self::Stated).
    Calling,
    /// In the template of a long signature: the string after the byte, printed only for one subject. The number of
    /// earlier `Stated` pieces, minus 1, is the subject's number; -1 is the call itself.
    Stated,
}

/// Directives from this one on have their own codes.
pub(in crate::lower) const FIRST_FIXED: Directive = Directive::Type;
const FIXED: u8 = 0xa0;
/// The bytes that begin a string.
pub(in crate::lower) const TEXT: std::ops::RangeInclusive<u8> = 0x20..=0x7f;
/// The first byte for shared strings.
pub(in crate::lower) const SHARED_TEXT: u8 = 0xb0;
const _: () = assert!(FIXED + Directive::Stated as u8 - (FIRST_FIXED as u8) < SHARED_TEXT);

/// The number of fields of a context that directives can refer to.
pub(in crate::lower) const MAX_FIELDS: u32 = 15;

impl Directive {
    /// All directives, in the order of their numbers.
    pub(in crate::lower) const ALL: [Self; 18] = [
        Directive::Number,
        Directive::String,
        Directive::ValuePath,
        Directive::DimPath,
        Directive::Type,
        Directive::DType,
        Directive::Device,
        Directive::NumberedDevice,
        Directive::Quoted,
        Directive::Bindings,
        Directive::Unknown,
        Directive::Text,
        Directive::Unless,
        Directive::Steps,
        Directive::TypeKey,
        Directive::Argument,
        Directive::Calling,
        Directive::Stated,
    ];

    /// The byte for a value in a field.
    pub(in crate::lower) const fn code(self, field: u32) -> u8 {
        let base = match self {
            Directive::Number => 0,
            Directive::String => 0x10,
            Directive::ValuePath => 0x80,
            Directive::DimPath => 0x90,
            _ => return self.own_code(),
        };
        debug_assert!(field < MAX_FIELDS);
        base | (field as u8 + 1)
    }

    /// The byte of a directive with a fixed field.
    pub(in crate::lower) const fn own_code(self) -> u8 {
        FIXED + self as u8 - FIRST_FIXED as u8
    }

    /// The directive that a byte encodes; `None` for the end, a string and a shared string.
    pub(in crate::lower) fn of_code(code: u8) -> Option<Self> {
        match code {
            0x01..=0x0f => Some(Directive::Number),
            0x10..=0x1f => Some(Directive::String),
            0x80..=0x8f => Some(Directive::ValuePath),
            0x90..=0x9f => Some(Directive::DimPath),
            FIXED..SHARED_TEXT => Self::ALL.get(usize::from(code - FIXED) + FIRST_FIXED as usize).copied(),
            _ => None,
        }
    }

    /// The max number of C strings that it prints, not counting lists of variables and steps into containers.
    pub(in crate::lower) const fn strings(self) -> usize {
        match self {
            // `code 99, 8 bits, x4`
            Directive::DType => 8,
            // `device type 99:0`; `x.shape[0]`
            Directive::Device | Directive::NumberedDevice | Directive::DimPath => 4,
            Directive::Quoted => 3,
            // `type index 99`; ` on argument #0`
            Directive::Type | Directive::Argument => 2,
            Directive::Unless | Directive::Steps | Directive::Bindings | Directive::Unknown => 0,
            Directive::Number | Directive::String | Directive::ValuePath | Directive::Text | Directive::TypeKey => 1,
            // a long signature has [`CALLING_STRINGS`]
            Directive::Calling | Directive::Stated => 1,
        }
    }

    /// The field, for a directive with a fixed one.
    pub(in crate::lower) const fn field(self) -> Option<Field> {
        match self {
            Directive::Type | Directive::DType | Directive::Device | Directive::Quoted => Some(Field::Got),
            Directive::NumberedDevice => Some(Field::Expected),
            Directive::Bindings | Directive::Unknown => Some(Field::Expr),
            Directive::Argument => Some(Field::Arg),
            Directive::Calling => Some(Field::Calling),
            _ => None,
        }
    }
}

/// A piece of a template.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::lower) enum Piece<'a> {
    /// A fixed string.
    Text(&'a str),
    /// A value: how to print it, and the number of its field in the context.
    Value(Directive, u32),
    /// A string that is printed only in messages about its subject: [`Directive::Stated`].
    Stated(&'a str),
}

/// Strings that the templates of the runtime helpers share. The last one begins less than 80 bytes after the first.
pub(in crate::lower) const SHARED: [&str; 6] =
    ["ValueError", "TypeError", "Mismatched ", " on argument #", ", got ", "type of "];

/// The max number of C strings that a template prints, not counting lists of variables and steps into containers.
/// [`report`](crate::lower::binder::report) reserves room for them.
pub(in crate::lower) const MAX_STRINGS: usize = 40;

/// The max number of parameter names that a message shows of a long signature.
pub(in crate::lower) const MOST_NAMES: usize = 100;
/// The max number of C strings that the template of a long signature prints: names, and the strings before, between and
/// after them.
pub(in crate::lower) const CALLING_STRINGS: usize = MOST_NAMES + 6;
