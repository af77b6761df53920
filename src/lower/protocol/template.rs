//! Message templates: error messages with places for values, as bytes.
//!
//! The first piece of a template is the error's kind, the other pieces are the message. A byte stands for:
//!
//! | byte | stands for |
//! | --- | --- |
//! | `00` | the end |
//! | `01` to `1f`, `80` to `9f` | a [`Directive`] with the number of its field in the context, plus 1, in the lower four bits |
//! | `20` to `7f` | the text that begins with the byte and ends with a NUL |
//! | `a0` to `af` | a [`Directive`] whose field is always the same |
//! | from `b0` on | the text that is so many bytes into the shared texts ([`SHARED`]) |
//!
//! So each piece is one byte, but for a text, which stands in the template as a C string. [`report`](crate::lower::binder::report) reads
//! templates.

use super::state::Field;

/// An instruction of a template: which value is printed, and how.
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
    /// Characters in quotes; the next field is how many bytes they are.
    Quoted,
    /// The symbols of the [expression](super::descriptor::ExprDescriptor) at this address that have a value, with the value and its path.
    Bindings,
    /// The symbols of the expression that have no value.
    Unknown,
    /// The text behind the byte, which begins with a byte that no other text begins with.
    Text,
    // In `report`'s own templates.
    /// The template's end, unless field 1 is something.
    Unless,
    /// The steps of the path that the context is.
    Steps,
    /// The key of a registered type, and the template's end; nothing where the type isn't registered.
    TypeKey,
    /// ` on argument #` and the number of the argument; nothing for a value that isn't an argument, whose number is negative.
    Argument,
    /// The text `` when calling: `...`, expected ``, a C string; of a long signature the template that begins with [`Stated`](Self::Stated).
    Calling,
    /// In the template of a long signature: the text behind the byte, where the subject of the message is that of so many `Stated` before it,
    /// counted from -1, which is the call itself.
    Stated,
}

/// Directives from this one on have codes of their own.
pub(in crate::lower) const FIRST_FIXED: Directive = Directive::Type;
const FIXED: u8 = 0xa0;
/// Bytes that texts begin with.
pub(in crate::lower) const TEXT: std::ops::RangeInclusive<u8> = 0x20..=0x7f;
/// Shared texts from here on.
pub(in crate::lower) const SHARED_TEXT: u8 = 0xb0;
const _: () = assert!(FIXED + Directive::Stated as u8 - (FIRST_FIXED as u8) < SHARED_TEXT);

/// Fields of a context that a directive may name.
pub(in crate::lower) const MAX_FIELDS: u32 = 15;

impl Directive {
    /// All directives, by their numbers.
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

    /// The byte of a directive whose field is always the same.
    pub(in crate::lower) const fn own_code(self) -> u8 {
        FIXED + self as u8 - FIRST_FIXED as u8
    }

    /// The directive that a byte stands for; `None` for the end, a text and a shared text.
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

    /// How many C strings it makes at most, but for lists of symbols and steps into containers.
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
            // of a long signature they are [`CALLING_STRINGS`]
            Directive::Calling | Directive::Stated => 1,
        }
    }

    /// The field, where it is always the same.
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
    /// A fixed text.
    Text(&'a str),
    /// A value: how it is printed, and which field of the context it is.
    Value(Directive, u32),
    /// A text that only messages about its subject show: [`Directive::Stated`].
    Stated(&'a str),
}

/// Texts that the templates of the runtime helpers have in common. The last begins less than 80 bytes behind the first.
pub(in crate::lower) const SHARED: [&str; 6] =
    ["ValueError", "TypeError", "Mismatched ", " on argument #", ", got ", "type of "];

/// The most C strings that a template makes, but for lists of symbols and steps into containers;
/// [`report`](crate::lower::binder::report) has room for them.
pub(in crate::lower) const MAX_STRINGS: usize = 40;

/// The most names of parameters that a message shows of a long signature.
pub(in crate::lower) const MOST_NAMES: usize = 100;
/// The most C strings that the template of a long signature makes: names, and the texts before, between and behind them.
pub(in crate::lower) const CALLING_STRINGS: usize = MOST_NAMES + 6;
