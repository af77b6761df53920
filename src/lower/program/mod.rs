//! A signature as data: the program that [`super::support::bind`] runs when the good path has a doubt.
//!
//! A program is a run of 32-bit words in the module's message table: a header, then a name and the offset of a record for each
//! parameter that is passed. Equal runs of words are stored once. Numbers of 64 bits take two words, low half first. Texts are offsets in the table.

mod devices;
mod encode;
mod encode_rest;
mod features;
mod rpn;

pub(super) use devices::{Devices, SharedId};
pub(super) use encode::{Encoded, Options, encode};
pub(super) use encode_rest::encode_result;
pub(super) use features::{Aspect, Feature, Features};
pub(super) use rpn::{Rpn, TARGET};

use crate::lower::wrapper::ANY_SIZE;

/// Words of the header.
pub(super) mod header {
    /// Number of parameters.
    pub const PARAMS: i32 = 0;
    /// How many of the arguments a call can't leave out.
    pub const LEAST: i32 = 1;
    /// How many there may be, as text.
    pub const ARITY: i32 = 2;
    /// The text `` when calling: `...`, expected ``.
    pub const CALLING: i32 = 3;
    /// Number of symbols.
    pub const SYMBOLS: i32 = 4;
    /// Number of device slots.
    pub const DEVICES: i32 = 5;
    /// How many dimensions may wait for symbols.
    pub const WAITING: i32 = 6;
    /// Bytes of a note.
    pub const NOTE_SIZE: i32 = 7;
    /// Offset of the [`super::default`]s, one for each parameter from number `LEAST` on.
    pub const DEFAULTS: i32 = 8;
    /// Number of [`super::constraint`]s, and the offset of the first.
    pub const CONSTRAINTS: i32 = 9;
    pub const FIRST_CONSTRAINT: i32 = 10;
    /// Number of dimensions of a returned tensor, and the offset of a word for each: that of its [`super::expr`].
    pub const RESULT_DIMS: i32 = 11;
    pub const FIRST_RESULT_DIM: i32 = 12;
    /// Not 0 where the caller's own arguments are passed on.
    pub const VERBATIM: i32 = 13;
    /// Where the first [`super::named`] is.
    pub const SIZE: i32 = 14;
}

/// Words of a parameter, or of what is inside of one.
pub(super) mod named {
    /// Its name; of an item what comes after the container's place, such as `[1]`.
    pub const NAME: i32 = 0;
    /// The offset of its type's record, which others may share.
    pub const TYPE: i32 = 1;
    pub const SIZE: i32 = 2;
}

/// Words that every record of a type begins with.
pub(super) mod record {
    /// What follows; see [`super::Kind`].
    pub const KIND: i32 = 0;
    /// What is expected, as text.
    pub const TEXT: i32 = 1;
    /// Where the kind's own words begin.
    pub const OWN: i32 = 2;
}

/// Words of a number, after the common ones.
pub(super) mod scalar {
    /// For a number, 64 less its width in bits.
    pub const UNUSED_BITS: i32 = 2;
    /// For a narrow integer, its type and range as text.
    pub const RANGE: i32 = 3;
    /// Not 0 for an integer that is a symbol; the entry that says which follows.
    pub const HAS_SYMBOL: i32 = 4;
    pub const SYMBOL: i32 = 5;
}

/// Words of a constant integer.
pub(super) mod constant {
    pub const VALUE: i32 = 2;
    pub const SIZE: i32 = 4;
}

/// Words of an `ffi.Shape`, then an entry for each size.
pub(super) mod shape {
    /// The number of entries, or -1 for any.
    pub const RANK: i32 = 2;
    pub const SIZE: i32 = 3;
}

/// Words of an object.
pub(super) mod object {
    /// The type index, or -1 where only the key is known.
    pub const TYPE_INDEX: i32 = 2;
    /// The key, and its length in bytes.
    pub const KEY: i32 = 3;
    pub const KEY_LEN: i32 = 4;
    pub const SIZE: i32 = 5;
}

/// Words of a tuple, then a [`named`] for each item.
pub(super) mod tuple {
    pub const COUNT: i32 = 2;
    pub const SIZE: i32 = 3;
}

/// Words of an Array or List, then a [`named`] for the elements.
pub(super) mod sequence {
    /// Not 0 where a List will do for an Array.
    pub const OR_LIST: i32 = 2;
    pub const TYPE_INDEX: i32 = 3;
    pub const SIZE: i32 = 4;
}

/// Words of a Map or Dict, then the record of keys and that of values.
pub(super) mod map {
    pub const TYPE_INDEX: i32 = 2;
    /// Names of the runtime's global functions that tell the size and make an iterator, each with its length.
    pub const SIZE_FUNCTION: i32 = 3;
    pub const ITER_FUNCTION: i32 = 5;
    pub const SIZE: i32 = 7;
}

/// Words of a tensor's record, after the common ones; then an entry for each dimension, then one for each stated stride.
pub(super) mod tensor {
    /// See [`super::flag`].
    pub const FLAGS: i32 = 2;
    /// The number of dimensions, or -1 for any.
    pub const RANK: i32 = 3;
    /// The `DLDataType`, as a load gives it.
    pub const DTYPE: i32 = 4;
    pub const DTYPE_TEXT: i32 = 5;
    /// A bit for each other code that will do.
    pub const DTYPE_CODES: i32 = 6;
    /// The kind of device, or -1 for any.
    pub const DEVICE_TYPE: i32 = 7;
    /// The device's id; -1 for that of the first tensor in the same device slot, -2 for any.
    pub const DEVICE_ID: i32 = 8;
    pub const DEVICE_TEXT: i32 = 9;
    pub const DEVICE_SLOT: i32 = 10;
    pub const ALIGN: i32 = 11;
    pub const SIZE: i32 = 12;
}

/// What [`tensor::FLAGS`] say.
pub(super) mod flag {
    /// The data pointer is a handle that no byte offset can be added to.
    pub const OPAQUE: u32 = 1;
    /// Strides are stated.
    pub const STRIDED: u32 = 2;
    /// Any strides will do.
    pub const ANY_STRIDES: u32 = 4;
    /// Any dtype will do.
    pub const ANY_DTYPE: u32 = 8;
    /// Any dtype of as many bits will do.
    pub const SAME_STORAGE: u32 = 16;
    /// The kernel gets the `DLTensor`, so that its `byte_offset` has to be 0.
    pub const FOLD: u32 = 32;
}

/// Words of an entry for a dimension or stride.
pub(super) mod entry {
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
pub(super) enum Entry {
    Const,
    Symbol,
    Expr,
}

/// Words of an expression; then a [`term`] for each symbol in it.
pub(super) mod expr {
    pub const TEXT: i32 = 0;
    /// Offset of the code that computes it.
    pub const CODE: i32 = 1;
    pub const TERMS: i32 = 2;
    pub const SIZE: i32 = 3;
}

/// Words of a symbol in an expression.
pub(super) mod term {
    pub const SYMBOL: i32 = 0;
    pub const NAME: i32 = 1;
    /// Offset of the code that computes the symbol from the expression's value; 0 where there is none.
    pub const SOLVE: i32 = 2;
    pub const SIZE: i32 = 3;
}

/// Words of a constraint. Behind them is the address of what follows.
pub(super) mod constraint {
    /// An [`super::expr`] with the text and the symbols of both sides, and the code of the left side.
    pub const EXPR: i32 = 0;
    /// Offset of the code of the right side.
    pub const RIGHT: i32 = 1;
    /// Bits: 1 where less will do, 2 where equal, 4 where greater.
    pub const ACCEPTS: i32 = 2;
    pub const SIZE: i32 = 3;
}

/// Words of a default: an argument in parts.
pub(super) mod default {
    pub const TYPE_INDEX: i32 = 0;
    /// The payload; of a text its offset and its length.
    pub const PAYLOAD: i32 = 1;
    pub const SIZE: i32 = 3;
}

/// Words of what a kernel writes as its result, not behind a header: [`super::support::bind`]'s `take_result` reads it.
pub(super) mod result {
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
pub(super) enum ResultKind {
    Any,
    OneOf,
    Key,
}

/// Kinds of records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(super) enum Kind {
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
pub(super) mod place {
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
pub(super) mod step {
    pub const NAME: i32 = 0;
    /// [`super::StepKind`].
    pub const KIND: i32 = 8;
    /// The number, or the address of a C string.
    pub const VALUE: i32 = 16;
    pub const SIZE: i32 = 24;
}

/// How a [`step`] is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(super) enum StepKind {
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
pub(super) mod note {
    pub const VALUE: i32 = 0;
    pub const PLACE: i32 = 8;
}

/// A dimension that waits: its entry (NULL once it is done), what came, the argument's number, whether it is a size, its place.
pub(super) mod waiting {
    pub const ENTRY: i32 = 0;
    pub const GOT: i32 = 8;
    pub const ARG: i32 = 16;
    pub const IS_SIZE: i32 = 24;
    pub const PLACE: i32 = 32;
}

/// Bytes of a place with steps into `depth` containers.
pub(super) const fn place_size(depth: usize) -> i64 {
    place::STEPS as i64 + step::SIZE as i64 * depth as i64
}

/// Where in the scratch memory the notes on symbols begin: behind the arguments and `bind`'s state.
pub(super) const fn notes_offset(params: usize) -> i64 {
    params as i64 * ANY_SIZE as i64 + super::support::state::SIZE
}
