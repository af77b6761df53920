//! Access to the [state](crate::lower::protocol::state) of one call, in memory.

use crate::ir::{ConvertOp, MemFlags, Type, Value};
use crate::lower::protocol::state::{PLACE, SIZE};
use crate::lower::protocol::{Field, note, place_size};

use super::emit::Emit;

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
