//! What the lowering of arguments works with.

use super::checks::Checks;
use super::dims::Dims;
use super::state::SeenDevices;
use crate::ir::{MemFlags, Type, Value};
use crate::lower::abi::{PAYLOAD, TYPE_INDEX};
use crate::lower::plan::Plan;

/// The rooms of one function under construction.
pub(in crate::lower) struct Context<'b, 'm, 'p> {
    pub checks: Checks<'b, 'm>,
    pub dims: Dims,
    pub devices: SeenDevices,
    /// Ranks with dtypes as a `DLTensor` has them, each with a value that was loaded and is equal.
    pub headers: Vec<(i64, Value)>,
    pub plan: &'p Plan<'p>,
}

/// The address of a `TVMFFIAny`.
#[derive(Clone, Copy)]
pub(super) struct AnyRef {
    pub base: Value,
    pub offset: i32,
}

impl AnyRef {
    pub(super) fn type_index(self, c: &mut Checks<'_, '_>) -> Value {
        c.b.load(Type::I32, self.base, self.offset + TYPE_INDEX, MemFlags::ALIGNED)
    }

    pub(super) fn payload(self, c: &mut Checks<'_, '_>, ty: Type) -> Value {
        c.b.load(ty, self.base, self.offset + PAYLOAD, MemFlags::ALIGNED)
    }
}
