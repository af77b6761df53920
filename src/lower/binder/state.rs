//! Access to the [state](crate::lower::protocol::state) of one call, in memory.

use crate::ir::{ConvertOp, MemFlags, Type, Value};
use crate::lower::protocol::state::{PATH, SIZE, binding_size};
use crate::lower::protocol::{DescriptorField, Field};

use super::structured::StructuredCode;

/// Access to the state.
pub(super) trait BinderState<'m>: StructuredCode<'m> {
    /// Its address.
    fn state(&self) -> Value;

    /// Whether descriptors have containers whose elements are checked. Paths have no steps where there are none.
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

    /// The address of the present path.
    fn path(&mut self) -> Value {
        let state = self.state();
        self.builder().ptr_add_imm(state, i64::from(PATH))
    }

    /// Writes a word of the present path.
    fn set_path(&mut self, word: i32, value: Value) {
        let state = self.state();
        self.builder().store(value, state, PATH + word, MemFlags::ALIGNED);
    }

    /// The address of the text or descriptor whose offset in the wrapper's pool a field tells.
    fn pool_text(&mut self, descriptor: Value, field: DescriptorField) -> Value {
        let pool = self.field_ptr(Field::Pool);
        let offset = self.read(descriptor, field);
        self.builder().ptr_add(pool, offset)
    }

    /// Symbol `index`'s binding.
    fn binding(&mut self, index: Value) -> Value {
        let state = self.state();
        let bindings = self.builder().ptr_add_imm(state, SIZE);
        let size = self.binding_size();
        self.nth_of(bindings, index, size)
    }

    /// The size of a binding.
    fn binding_size(&mut self) -> Value {
        match self.has_containers() {
            true => self.field(Field::BindingSize),
            false => self.builder().i64(binding_size(0)),
        }
    }
}
