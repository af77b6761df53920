//! What the routines of [`bind`](super::bind) share during one call: values that messages tell, the present place. It is in the scratch
//! memory behind the arguments, with the notes right behind it, so that one address leads to all, in few bytes of code.
//! [`report`](super::report) reads it as a row's context.

use crate::ir::{ConvertOp, MemFlags, Type, Value};
use crate::lower::program::{note, place_size};
use crate::spec::MAX_CONTAINER_DEPTH;

use super::emit::Emit;

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
pub(super) enum Pass {
    /// With its argument: it may wait.
    First,
    /// Later: it may go on waiting.
    Again,
    /// In the end.
    Last,
}

/// Where the present place is.
const PLACE: i32 = 8 * (Field::Memory as i32 + 1);
/// The number of the first field behind it.
const BEHIND_PLACE: isize = 12 + place_size(MAX_CONTAINER_DEPTH) as isize / 8;
const _: () = assert!(8 * BEHIND_PLACE == PLACE as isize + place_size(MAX_CONTAINER_DEPTH) as isize);

/// Bytes of it all.
pub(in crate::lower) const SIZE: i64 = 8 * (Field::Accepted as i64 + 1);

/// Access to the state.
pub(super) trait State<'m>: Emit<'m> {
    /// Its address.
    fn state(&self) -> Value;

    /// Whether programs have containers whose elements are checked. Places have no steps where there are none.
    fn has_containers(&self) -> bool;

    fn set_field(&mut self, field: Field, value: Value) {
        let state = self.state();
        let b = self.builder();
        let value = match b.type_of(value) {
            Type::Ptr => b.convert(ConvertOp::PtrToInt, Type::I64, value),
            _ => value,
        };
        b.store(value, state, 8 * field as i32, MemFlags::ALIGNED);
    }

    fn set_number(&mut self, field: Field, number: i64) {
        let number = self.builder().i64(number);
        self.set_field(field, number);
    }

    fn field(&mut self, field: Field) -> Value {
        let state = self.state();
        self.builder().load(Type::I64, state, 8 * field as i32, MemFlags::ALIGNED)
    }

    fn field_ptr(&mut self, field: Field) -> Value {
        let state = self.state();
        self.builder().load(Type::Ptr, state, 8 * field as i32, MemFlags::ALIGNED)
    }

    /// The address of the present place.
    fn here(&mut self) -> Value {
        let state = self.state();
        self.builder().ptr_add_imm(state, i64::from(PLACE))
    }

    /// Writes a word of the present place.
    fn set_here(&mut self, word: i32, value: Value) {
        let state = self.state();
        self.builder().store(value, state, PLACE + word, MemFlags::ALIGNED);
    }

    /// The text at the offset in 32-bit word `index` behind `base`, in the wrapper's table.
    fn table_text(&mut self, base: Value, index: i32) -> Value {
        let table = self.field_ptr(Field::Table);
        let offset = self.word(base, index);
        self.builder().ptr_add(table, offset)
    }

    /// Symbol `index`'s note.
    fn note(&mut self, index: Value) -> Value {
        let state = self.state();
        let notes = self.builder().ptr_add_imm(state, SIZE);
        let size = self.note_size();
        self.nth_of(notes, index, size)
    }

    /// The size of a note.
    fn note_size(&mut self) -> Value {
        match self.has_containers() {
            true => self.field(Field::NoteSize),
            false => self.builder().i64(i64::from(note::PLACE) + place_size(0)),
        }
    }
}
