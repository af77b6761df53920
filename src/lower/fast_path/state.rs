//! What a wrapper under construction knows of values: symbols, shapes, devices.

use crate::ir::{FunctionBuilder, IntCC, MemFlags, StackSlot, Type, Value};
use crate::lower::abi::fields;
use crate::spec::Dim;

/// A value that is used later.
#[derive(Clone, Copy)]
pub(super) enum Saved {
    /// In a register, as far as the register allocator likes.
    Value(Value),
    /// In the frame, at an offset, so that the register allocator has nothing to do with it.
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

    /// The value, loaded again where it was spilled.
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

/// The value of a symbol.
pub(super) struct Binding {
    pub value: Saved,
    /// A size has bound the symbol, so that it is not negative; a stride may be.
    pub is_size: bool,
}

/// The shape of a tensor that has been checked, which other tensors may have too.
pub(super) struct KnownShape {
    pub dims: Vec<Dim>,
    pub sizes: Vec<Value>,
    /// The strides of a compact tensor.
    pub compact: Vec<Value>,
    /// The address of the sizes.
    pub shape: Value,
    /// The address of compact strides.
    pub strides: Option<Value>,
}

/// The device of a tensor.
pub(in crate::lower) struct SeenDevice {
    /// The tensor's number in the signature. Optional tensors are checked last.
    pub order: usize,
    /// The tensor's slot, if it shares its device.
    pub slot: Option<usize>,
    /// Its stream may be asked for.
    pub has_stream: bool,
    /// The device isn't 0: the tensor is there, and on a stated kind of device.
    pub is_certain: bool,
    /// The `DLDevice` as one `I64`; 0 where the tensor is absent.
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
    /// The device of the first tensor that is present, among those that `take` picks; else `otherwise`.
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
                    // kinds of devices count from 1, so that a device of zero bits is none
                    let present = b.icmp_imm(IntCC::Ne, candidate.device, 0);
                    b.select(present, candidate.device, device)
                }
            };
        }
        device
    }
}

/// The kind and the number of a device, each an `I32`.
pub(in crate::lower) fn device_parts(b: &mut FunctionBuilder<'_>, device: Value) -> [Value; 2] {
    [fields::first(b, device), fields::second(b, device)]
}
