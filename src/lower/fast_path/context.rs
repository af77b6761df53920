//! The context that the lowering of arguments uses.

use super::checks::Checks;
use super::dims::Dims;
use super::state::SeenDevices;
use crate::ir::{MemFlags, Type, Value};
use crate::lower::abi::{PAYLOAD, TYPE_INDEX};
use crate::lower::plan::Plan;

/// The shared state of one function under construction.
pub(in crate::lower) struct Context<'b, 'm, 'p> {
    pub checks: Checks<'b, 'm>,
    pub dims: Dims,
    pub devices: SeenDevices,
    /// Each rank and dtype, as one word of a `DLTensor`, with a loaded value that equals it.
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
