//! A signature as data: the program that [`crate::lower::binder`] runs when the good path has a doubt.
//!
//! A program is a run of 32-bit words in the module's message table: a header, then a name and the offset of a record for each
//! parameter that is passed. Equal runs of words are stored once. Numbers of 64 bits take two words, low half first; [small ones](Number)
//! share one. Texts are offsets in the table.

use crate::ir::Type;

/// A number of less than a word in a program: where it is, in bytes, and how many bytes it has.
#[derive(Clone, Copy, Debug)]
pub(in crate::lower) struct Number {
    pub offset: i32,
    pub ty: Type,
    pub signed: bool,
}

impl Number {
    const fn u8(offset: i32) -> Self {
        Number { offset, ty: Type::I8, signed: false }
    }

    const fn i8(offset: i32) -> Self {
        Number { offset, ty: Type::I8, signed: true }
    }

    const fn u16(offset: i32) -> Self {
        Number { offset, ty: Type::I16, signed: false }
    }
}

/// The header: numbers in three words, then words. What few programs have is before it ([`rest`]).
pub(in crate::lower) mod header {
    use super::Number;

    /// Number of parameters.
    pub const PARAMS: Number = Number::u16(0);
    /// How many of the arguments a call can't leave out.
    pub const LEAST: Number = Number::u16(2);
    /// Number of symbols.
    pub const SYMBOLS: Number = Number::u16(4);
    /// How many dimensions may wait for symbols.
    pub const WAITING: Number = Number::u16(6);
    /// Number of device slots.
    pub const DEVICES: Number = Number::u8(8);
    /// Bytes of a note.
    pub const NOTE_SIZE: Number = Number::u8(9);
    /// Not 0 where the caller's own arguments are passed on.
    pub const VERBATIM: Number = Number::u8(10);
    /// Not 0 where there is a [`rest`](super::rest).
    pub const HAS_REST: Number = Number::u8(11);
    /// The text `` when calling: `...`, expected ``.
    pub const CALLING: i32 = 3;
    /// How many arguments there may be, as text.
    pub const ARITY: i32 = 4;
    /// Where the first [`super::named`] is.
    pub const SIZE: i32 = 5;
}

/// Words before the header, of programs that have any of this.
pub(in crate::lower) mod rest {
    /// Offset of the [`super::default`]s, one for each parameter from number `LEAST` on.
    pub const DEFAULTS: i32 = -5;
    /// Number of [`super::constraint`]s, and the offset of the first.
    pub const CONSTRAINTS: i32 = -4;
    pub const FIRST_CONSTRAINT: i32 = -3;
    /// Number of dimensions of a returned tensor, and the offset of a word for each: that of its [`super::expr`].
    pub const RESULT_DIMS: i32 = -2;
    pub const FIRST_RESULT_DIM: i32 = -1;
    pub const SIZE: i32 = 5;
}

/// Words of a parameter, or of what is inside of one.
pub(in crate::lower) mod named {
    /// Its name; of an item what comes after the container's place, such as `[1]`.
    pub const NAME: i32 = 0;
    /// The offset of its type's record, which others may share.
    pub const TYPE: i32 = 1;
    pub const SIZE: i32 = 2;
}

/// What every record of a type begins with: a word of numbers, of which all but the first are the kind's own, and a word.
pub(in crate::lower) mod record {
    use super::Number;

    /// What follows; see [`super::Kind`].
    pub const KIND: Number = Number::u8(0);
    /// What is expected, as text.
    pub const TEXT: i32 = 1;
    /// Where the kind's own words begin.
    pub const OWN: i32 = 2;
}

/// A number's own; words only where they are needed.
pub(in crate::lower) mod scalar {
    use super::Number;

    /// 64 less its width in bits.
    pub const UNUSED_BITS: Number = Number::u8(1);
    /// Not 0 for an integer that is a symbol.
    pub const HAS_SYMBOL: Number = Number::u8(2);
    /// For a narrow integer, its type and range as text.
    pub const RANGE: i32 = 2;
    /// The entry that says which symbol it is.
    pub const SYMBOL: i32 = 3;
}

/// Words of a constant integer.
pub(in crate::lower) mod constant {
    pub const VALUE: i32 = 2;
    pub const SIZE: i32 = 4;
}

/// An `ffi.Shape`'s own: an entry for each size.
pub(in crate::lower) mod shape {
    use super::Number;

    /// The number of entries, or -1 for any.
    pub const RANK: Number = Number::i8(1);
    /// Where the entries begin.
    pub const SIZE: i32 = 2;
}

/// An object's own.
pub(in crate::lower) mod object {
    use super::Number;

    /// The type index, or -1 where only the key is known.
    pub const TYPE_INDEX: Number = Number::i8(1);
    /// The key, and its length in bytes; only there.
    pub const KEY: i32 = 2;
    pub const KEY_LEN: i32 = 3;
}

/// Words of a tuple, then a [`named`] for each item.
pub(in crate::lower) mod tuple {
    pub const COUNT: i32 = 2;
    pub const SIZE: i32 = 3;
}

/// An Array's or List's own, then a [`named`] for the elements.
pub(in crate::lower) mod sequence {
    use super::Number;

    /// Not 0 where a List will do for an Array.
    pub const OR_LIST: Number = Number::u8(1);
    pub const TYPE_INDEX: Number = Number::u8(2);
    pub const SIZE: i32 = 2;
}

/// A Map's or Dict's own, then the record of keys and that of values.
pub(in crate::lower) mod map {
    use super::Number;

    pub const TYPE_INDEX: Number = Number::u8(1);
    /// Names of the runtime's global functions that tell the size and make an iterator, each with its length.
    pub const SIZE_FUNCTION: i32 = 2;
    pub const ITER_FUNCTION: i32 = 4;
    pub const SIZE: i32 = 6;
}

/// A tensor's own; then an entry for each dimension, then one for each stated stride.
pub(in crate::lower) mod tensor {
    use super::Number;

    /// See [`super::flag`].
    pub const FLAGS: Number = Number::u8(1);
    /// The number of dimensions, or -1 for any.
    pub const RANK: Number = Number::i8(2);
    /// The kind of device, or -1 for any.
    pub const DEVICE_TYPE: Number = Number::i8(3);
    /// The `DLDataType`, as a load gives it.
    pub const DTYPE: i32 = 2;
    pub const DTYPE_TEXT: i32 = 3;
    /// A bit for each other code that will do.
    pub const DTYPE_CODES: i32 = 4;
    /// The device's id, [`ANY_ID`], or, less than that by the slot's number and 1, that of the first tensor in the same device slot.
    pub const DEVICE_ID: i32 = 5;
    pub const ANY_ID: i32 = -1;
    pub const DEVICE_TEXT: i32 = 6;
    pub const ALIGN: i32 = 7;
    pub const SIZE: i32 = 8;
}

/// What [`tensor::FLAGS`] say.
pub(in crate::lower) mod flag {
    /// The data pointer is a handle that no byte offset can be added to.
    pub const OPAQUE: u8 = 1;
    /// Strides are stated.
    pub const STRIDED: u8 = 2;
    /// Any strides will do.
    pub const ANY_STRIDES: u8 = 4;
    /// Any dtype will do.
    pub const ANY_DTYPE: u8 = 8;
    /// Any dtype of as many bits will do.
    pub const SAME_STORAGE: u8 = 16;
    /// The kernel gets the `DLTensor`, so that its `byte_offset` has to be 0.
    pub const FOLD: u8 = 32;
}

/// Words of an entry for a dimension or stride.
pub(in crate::lower) mod entry {
    /// [`super::Entry`].
    pub const KIND: i32 = 0;
    /// The constant's low half, the symbol's number, or the offset of the [`super::expr`].
    pub const VALUE: i32 = 1;
    /// The constant's high half, or the symbol's name.
    pub const HIGH_OR_NAME: i32 = 2;
    pub const SIZE: i32 = 3;
}

/// Kinds of entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(in crate::lower) enum Entry {
    Const,
    Symbol,
    Expr,
}

/// Words of an expression; then a [`term`] for each symbol in it.
pub(in crate::lower) mod expr {
    pub const TEXT: i32 = 0;
    /// Offset of the code that computes it.
    pub const CODE: i32 = 1;
    pub const TERMS: i32 = 2;
    pub const SIZE: i32 = 3;
}

/// Words of a symbol in an expression.
pub(in crate::lower) mod term {
    pub const SYMBOL: i32 = 0;
    pub const NAME: i32 = 1;
    /// Offset of the code that computes the symbol from the expression's value; 0 where there is none.
    pub const SOLVE: i32 = 2;
    pub const SIZE: i32 = 3;
}

/// Words of a constraint. Behind them is the address of what follows.
pub(in crate::lower) mod constraint {
    /// An [`super::expr`] with the text and the symbols of both sides, and the code of the left side.
    pub const EXPR: i32 = 0;
    /// Offset of the code of the right side.
    pub const RIGHT: i32 = 1;
    /// Bits: 1 where less will do, 2 where equal, 4 where greater.
    pub const ACCEPTS: i32 = 2;
    pub const SIZE: i32 = 3;
}

/// Words of a default: an argument in parts.
pub(in crate::lower) mod default {
    pub const TYPE_INDEX: i32 = 0;
    /// The payload; of a text its offset and its length.
    pub const PAYLOAD: i32 = 1;
    pub const SIZE: i32 = 3;
}

/// Words of what a kernel writes as its result, not behind a header: [`crate::lower::binder`]'s `take_result` reads it.
pub(in crate::lower) mod result {
    /// [`super::ResultKind`].
    pub const KIND: i32 = 0;
    pub const TEXT: i32 = 1;
    pub const CALLING: i32 = 2;
    /// The type indices that it may have.
    pub const INDEX: i32 = 3;
    pub const OTHER_INDEX: i32 = 4;
    /// The type key, and its length in bytes.
    pub const KEY: i32 = 5;
    pub const KEY_LEN: i32 = 6;
    pub const SIZE: i32 = 7;
}

/// How a result's type is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(in crate::lower) enum ResultKind {
    Any,
    OneOf,
    Key,
}

/// Kinds of records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(in crate::lower) enum Kind {
    Signed,
    Unsigned,
    Float,
    Bool,
    Handle,
    Tensor,
    Str,
    Bytes,
    DType,
    Device,
    Shape,
    Any,
    None,
    Int,
    True,
    False,
    Object,
    Optional,
    Tuple,
    Sequence,
    Map,
}

/// A place that messages tell: `xs[3].shape[0]`. In the binder's state there is the present one, in a note that which bound a symbol.
pub(in crate::lower) mod place {
    /// The record's name.
    pub const NAME: i32 = 0;
    /// What is between the name and the number: `.shape[`, or NULL where there is neither.
    pub const PART: i32 = 8;
    /// The number of the dimension.
    pub const DIM: i32 = 16;
    /// How many containers there are around.
    pub const DEPTH: i32 = 24;
    /// The [`super::step`]s into these.
    pub const STEPS: i32 = 32;
}

/// A step into a container: the name of what it is in it, and the element's place.
pub(in crate::lower) mod step {
    pub const NAME: i32 = 0;
    /// [`super::StepKind`].
    pub const KIND: i32 = 8;
    /// The number, or the address of the `TVMFFIAny` that is a str.
    pub const VALUE: i32 = 16;
    pub const SIZE: i32 = 24;
}

/// How a [`step`] is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(in crate::lower) enum StepKind {
    /// `[3]`
    Index,
    /// `["key"]`
    Text,
    /// `[...]`
    Other,
    /// `.keys()[3]`
    Key,
}

/// A symbol's or device slot's note: its value, and where it comes from; the place's name is NULL where it has no value.
pub(in crate::lower) mod note {
    pub const VALUE: i32 = 0;
    pub const PLACE: i32 = 8;
}

/// A dimension that waits: its entry (NULL once it is done), what came, the argument's number, whether it is a size, its place.
pub(in crate::lower) mod waiting {
    pub const ENTRY: i32 = 0;
    pub const GOT: i32 = 8;
    pub const ARG: i32 = 16;
    pub const IS_SIZE: i32 = 24;
    pub const PLACE: i32 = 32;
}

/// Bytes of a place with steps into `depth` containers.
pub(in crate::lower) const fn place_size(depth: usize) -> i64 {
    place::STEPS as i64 + step::SIZE as i64 * depth as i64
}
