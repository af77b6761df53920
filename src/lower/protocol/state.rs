//! What the routines of [`bind`](crate::lower::binder) share during one call: values that messages tell, the present place. It is in the scratch
//! memory behind the arguments, with the notes right behind it, so that one address leads to all, in few bytes of code.
//! [`report`](crate::lower::binder::report) reads it as a row's context.

use super::descriptor::place_size;
use crate::lower::abi::ANY_SIZE;
use crate::spec::MAX_CONTAINER_DEPTH;

/// Words of 8 bytes. Those that each program uses come first, and then the present place.
#[derive(Clone, Copy)]
pub(in crate::lower) enum Field {
    /// What came; for a type the payload follows, for a text its length.
    Got,
    Payload,
    /// What was expected, as a number.
    Expected,
    /// What was expected, as text.
    Text,
    /// The argument's number.
    Arg,
    Calling,
    /// The address of the present place.
    Here,
    /// The address of the place that bound a symbol; for a device, of the tensor's name.
    Origin,
    /// A symbol's name.
    Symbol,
    /// The wrapper's table.
    Table,
    /// Notes on devices, behind those on symbols.
    Devices,
    /// Free scratch memory.
    Memory,
    /// The size of a note, where there are containers.
    NoteSize = BEHIND_PLACE,
    /// An expression that is looked at.
    Expr,
    /// Dimensions that wait: the first, how many, the size of one.
    Waiting,
    WaitingCount,
    WaitingSize,
    /// Not 0 inside a container, where nothing is converted.
    Strict,
    /// Which time a dimension is looked at; see [`Pass`].
    Pass,
    /// Whether the last expression had a value.
    HasValue,
    /// What the good path expects in place of the last dimension.
    Accepted,
}

/// When a dimension is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::lower) enum Pass {
    /// With its argument: it may wait.
    First,
    /// Later: it may go on waiting.
    Again,
    /// In the end.
    Last,
}

/// Where the present place is.
pub(in crate::lower) const PLACE: i32 = 8 * (Field::Memory as i32 + 1);
/// The number of the first field behind it.
const BEHIND_PLACE: isize = 12 + place_size(MAX_CONTAINER_DEPTH) as isize / 8;
const _: () = assert!(8 * BEHIND_PLACE == PLACE as isize + place_size(MAX_CONTAINER_DEPTH) as isize);

/// Bytes of it all.
pub(in crate::lower) const SIZE: i64 = 8 * (Field::Accepted as i64 + 1);

/// Where in the scratch memory the notes on symbols begin: behind the arguments and `bind`'s state.
pub(in crate::lower) const fn notes_offset(params: usize) -> i64 {
    params as i64 * ANY_SIZE as i64 + SIZE
}
