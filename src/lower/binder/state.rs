//! Access to the [state](crate::lower::protocol::state) of one call, in memory.

use super::structured::Behind;
use crate::ir::{Emitter, Type, Val};
use crate::lower::protocol::state::{PATH, SIZE, binding_size};
use crate::lower::protocol::{DescriptorField, Field};

/// Access to the state.
pub(super) trait BinderState<'c> {
    fn code(&self) -> Emitter<'c>;

    /// The address of the state.
    fn state(&self) -> Val<'c>;

    /// Whether descriptors have containers with checked elements. Otherwise paths have no steps.
    fn has_containers(&self) -> bool;

    fn set_field(&self, field: Field, value: Val<'c>) {
        let value = if value.ty() == Type::Ptr { value.address() } else { value };
        self.state().store(8 * field as i32, value);
    }

    fn set_number(&self, field: Field, number: i64) {
        self.set_field(field, self.code().i64(number));
    }

    fn field(&self, field: Field) -> Val<'c> {
        self.state().load(Type::I64, 8 * field as i32)
    }

    fn field_ptr(&self, field: Field) -> Val<'c> {
        self.state().load(Type::Ptr, 8 * field as i32)
    }

    /// The address of the present path.
    fn path(&self) -> Val<'c> {
        self.state() + PATH
    }

    /// Writes a word of the present path.
    fn set_path(&self, word: i32, value: Val<'c>) {
        self.state().store(PATH + word, value);
    }

    /// The address of the string or descriptor at the offset that a field contains, in the wrapper's pool.
    fn pool_text(&self, descriptor: Val<'c>, field: DescriptorField) -> Val<'c> {
        self.field_ptr(Field::Pool) + descriptor.read(field)
    }

    /// The binding of variable `index`.
    fn binding(&self, index: Val<'c>) -> Val<'c> {
        let bindings = self.state() + SIZE;
        bindings.nth(index, self.binding_size())
    }

    /// The size of a binding.
    fn binding_size(&self) -> Val<'c> {
        match self.has_containers() {
            true => self.field(Field::BindingSize),
            false => self.code().i64(binding_size(0)),
        }
    }
}
