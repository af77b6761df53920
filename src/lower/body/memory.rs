//! Loads and stores through pointers of a body.

use super::builder::Body;
use super::expr::{Expr, Operand, Ops};
use super::tensor::{load, store};
use super::types::memory_type;
use crate::ir::MemFlags;
use crate::spec::ScalarType;

impl Body<'_> {
    /// Reads a value of that type through a pointer, which must be aligned for the type. A value of `float16` or
    /// `bfloat16` is read as a `float32`.
    pub fn load<'b>(&'b self, ty: ScalarType, ptr: Expr<'b>) -> Expr<'b> {
        let value = load(self, ty, self.pointer("load", ptr), MemFlags::ALIGNED);
        value.recorded(|recorder| recorder.load(ty, ptr))
    }

    /// Writes a value through a pointer. The pointer must be aligned for the value's type.
    pub fn store<'b>(&'b self, ptr: Expr<'b>, value: Expr<'b>) {
        store(self, value.ty(), self.pointer("store", ptr), value.into(), MemFlags::ALIGNED);
        self.record(|recorder| recorder.store(ptr, value));
    }

    /// Writes a value as that type through a pointer, which must be aligned for the type. A value for `float16` or
    /// `bfloat16` is a `float32`, which is rounded.
    pub fn store_as<'b>(&'b self, ty: ScalarType, ptr: Expr<'b>, value: impl Into<Operand<'b>>) {
        let value = value.into();
        store(self, ty, self.pointer("store", ptr), value, MemFlags::ALIGNED);
        self.record(|recorder| recorder.store_as(ty, ptr, value));
    }

    /// A pointer advanced by `count` elements of that type.
    pub fn offset<'b>(&'b self, ptr: Expr<'b>, ty: ScalarType, count: impl Into<Operand<'b>>) -> Expr<'b> {
        let ptr = self.pointer("offset", ptr);
        let given = count.into();
        let count = self.coerce("offset: the count", ScalarType::Int64, given);
        let body: &'b dyn Ops = self;
        let address = body.value(|l| l.b.element(ptr.value, count.value, memory_type(ty)));
        let address = Expr::known_in(body, address, ScalarType::Handle, ptr.life_beside());
        address.recorded(|recorder| recorder.offset(ptr, ty, given))
    }

    fn pointer<'b>(&'b self, operation: &str, ptr: Expr<'b>) -> Expr<'b> {
        if ptr.ty() == ScalarType::Handle {
            return ptr.used(operation);
        }
        if !ptr.is_missing() {
            self.error(operation, format!("expected a pointer, got {}", ptr.ty()));
        }
        self.placeholder(ScalarType::Handle)
    }
}
