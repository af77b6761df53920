//! Facts about values that a wrapper under construction knows: variables, shapes, devices.

use super::range::Range;
use crate::ir::{FunctionBuilder, IntCC, MemFlags, StackSlot, Type, Value};
use crate::lower::abi::fields;
use crate::spec::Dim;

/// A value that is used later.
#[derive(Clone, Copy)]
pub(super) enum Saved {
    /// Not spilled: the register allocator decides where it is.
    Value(Value),
    /// In a stack slot at an offset, so register allocation doesn't consider it.
    Spilled(StackSlot, i32, Type),
}

impl Saved {
    /// Spills a value, unless it is a constant.
    pub(super) fn spill(b: &mut FunctionBuilder<'_>, value: Value) -> Self {
        if b.as_int_const(value).is_some() {
            return Saved::Value(value);
        }
        let slot = b.slot(8, 8);
        let address = b.stack_addr(slot);
        b.store(value, address, 0, MemFlags::ALIGNED);
        Saved::Spilled(slot, 0, b.type_of(value))
    }

    /// The value, reloaded if it was spilled.
    pub(super) fn reload(self, b: &mut FunctionBuilder<'_>) -> Value {
        match self {
            Saved::Value(value) => value,
            Saved::Spilled(slot, offset, ty) => {
                let address = b.stack_addr(slot);
                b.load(ty, address, offset, MemFlags::ALIGNED)
            }
        }
    }
}

/// An `I64` and the numbers that it can be if all checks hold.
#[derive(Clone, Copy)]
pub(super) struct Ranged {
    pub value: Value,
    pub range: Range,
}

/// The value of a variable, and the numbers that it can be if all checks hold.
pub(super) struct Binding {
    pub value: Saved,
    pub range: Range,
}

/// The shape of a checked tensor. Other tensors may have the same shape.
pub(super) struct KnownShape {
    pub dims: Vec<Dim>,
    pub sizes: Vec<Value>,
    /// The strides that a contiguous tensor has.
    pub compact: Vec<Value>,
    /// The address of the sizes.
    pub shape: Value,
    /// The address of contiguous strides.
    pub strides: Option<Value>,
}

/// The device of a tensor.
pub(in crate::lower) struct SeenDevice {
    /// The tensor's number in the signature. Optional tensors are checked last.
    pub order: usize,
    /// The tensor's slot, if it shares its device.
    pub slot: Option<usize>,
    /// Whether its stream may be requested.
    pub has_stream: bool,
    /// Whether the device isn't 0: the tensor is present, and on a stated kind of device.
    pub is_certain: bool,
    /// The `DLDevice` as one `I64`; 0 if the tensor is absent.
    pub device: Value,
}

/// The devices of a call's tensors.
#[derive(Default)]
pub(in crate::lower) struct SeenDevices {
    /// The first `DLDevice` of each slot, as one `I64`.
    pub of_slots: Vec<(usize, Value)>,
    /// The devices that a stream or a result needs.
    pub all: Vec<SeenDevice>,
}

impl SeenDevices {
    /// The device of the first tensor that is present among those that `take` selects; `otherwise` if there is none.
    pub(in crate::lower) fn first(
        &self,
        b: &mut FunctionBuilder<'_>,
        otherwise: Value,
        take: impl Fn(&SeenDevice) -> bool,
    ) -> Value {
        let mut candidates: Vec<_> = self.all.iter().filter(|seen| take(seen)).collect();
        candidates.sort_by_key(|seen| seen.order);
        let mut device = otherwise;
        for candidate in candidates.into_iter().rev() {
            device = match candidate.is_certain {
                true => candidate.device,
                false => {
                    // kinds of devices start at 1, so a device of zero bits means none
                    let present = b.icmp_imm(IntCC::Ne, candidate.device, 0);
                    b.select(present, candidate.device, device)
                }
            };
        }
        device
    }
}

/// The kind and number of a device, each an `I32`.
pub(in crate::lower) fn device_parts(b: &mut FunctionBuilder<'_>, device: Value) -> [Value; 2] {
    [fields::first(b, device), fields::second(b, device)]
}
