//! The parameters of a kernel: each in a stack slot. The driver receives their addresses.

use super::emitter::LaunchEmitter;
use crate::ir::{MemFlags, StackSlot, Value};
use crate::lower::args::{Laid, Stores};
use crate::spec::KernelArg;

/// The location of a parameter.
enum ParamLocation {
    /// An offset in the block of parameters.
    Offset(u32),
    /// An address outside of it.
    Address(Value),
}

impl LaunchEmitter<'_, '_> {
    /// Writes the parameters to the stack; returns the slot with their addresses.
    pub(super) fn params(&mut self) -> StackSlot {
        let launch = self.prepared.launch;
        let (mut stores, mut size, mut align) = (Stores::new(), 0_u32, 8);
        let mut place = |laid: Laid| {
            // a launch on the CPU passes the addresses of structs
            align = align.max(laid.align);
            let at = size.next_multiple_of(laid.align);
            size = at + laid.bytes;
            stores.extend(laid.stores.into_iter().map(|(offset, value)| (at + offset, value)));
            ParamLocation::Offset(at)
        };
        let mut places = Vec::new();
        match launch.stated_args() {
            None => {
                for (param, value) in self.inputs.args.params.clone() {
                    places.push(place(Laid::one(param.c_type, value)));
                }
            }
            Some(args) => {
                for arg in args {
                    places.push(match arg {
                        KernelArg::TensorMap(map) => ParamLocation::Address(self.tensor_map(map)),
                        _ => {
                            let memory = &mut self.memory;
                            place(
                                self.values
                                    .argument(arg, &mut |values, bytes, align| memory.scratch(values, bytes, align)),
                            )
                        }
                    });
                }
            }
        }
        let block = self.values.b.slot(size.max(8), align);
        let block = self.values.b.stack_addr(block);
        for (at, value) in stores {
            self.values.place(value, block, at);
        }
        let slot = self.values.b.slot(8 * places.len().max(1) as u32, 8);
        let pointers = self.values.b.stack_addr(slot);
        for (i, place) in (0..).zip(places) {
            let address = match place {
                ParamLocation::Offset(0) => block,
                ParamLocation::Offset(at) => self.values.b.ptr_add_imm(block, i64::from(at)),
                ParamLocation::Address(address) => address,
            };
            self.values.b.store(address, pointers, 8 * i, MemFlags::ALIGNED);
        }
        slot
    }
}
