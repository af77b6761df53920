//! The parameters of a kernel: each in a place of the frame, whose addresses the driver gets.

use super::emitter::Emitter;
use super::extents::widen;
use crate::ir::{BinaryOp, ConvertOp, IntCC, MemFlags, StackSlot, Type, Value};
use crate::lower::convention::c_type::{CType, abi_param};
use crate::lower::half;
use crate::lower::protocol::Piece;
use crate::spec::{Dim, LaunchArg, ScalarType, dim};

/// Values of a parameter, each with its offset in bytes.
type Stores = Vec<(u32, Value)>;

/// A parameter, or a field of one, once its values are computed.
struct Laid {
    bytes: u32,
    align: u32,
    stores: Stores,
}

impl Laid {
    /// One value, aligned to its own size.
    fn one(bytes: u32, value: Value) -> Self {
        Laid { bytes, align: bytes, stores: vec![(0, value)] }
    }
}

/// The place of a parameter.
enum Place {
    /// At an offset in the block of parameters.
    Offset(u32),
    /// At an address of its own.
    Address(Value),
}

impl Emitter<'_, '_> {
    /// Writes the parameters into the frame; gives the place of their addresses.
    pub(super) fn params(&mut self) -> StackSlot {
        let launch = self.prepared.launch;
        let (mut stores, mut size) = (Stores::new(), 0_u32);
        let mut place = |laid: Laid| {
            let at = size.next_multiple_of(laid.align);
            size = at + laid.bytes;
            stores.extend(laid.stores.into_iter().map(|(offset, value)| (at + offset, value)));
            Place::Offset(at)
        };
        let mut places = Vec::new();
        match launch.stated_args() {
            None => {
                for (param, value) in self.inputs.params.clone() {
                    places.push(place(Laid::one(bytes_of(param.c_type), value)));
                }
            }
            Some(args) => {
                for arg in args {
                    places.push(match arg {
                        LaunchArg::TensorMap(map) => Place::Address(self.tensor_map(map)),
                        _ => place(self.argument(arg)),
                    });
                }
            }
        }
        let block = self.b.slot(size.max(8), 8);
        let block = self.b.stack_addr(block);
        for (at, value) in stores {
            self.b.store(value, block, at as i32, MemFlags::ALIGNED);
        }
        let slot = self.b.slot(8 * places.len().max(1) as u32, 8);
        let pointers = self.b.stack_addr(slot);
        for (i, place) in (0..).zip(places) {
            let address = match place {
                Place::Offset(0) => block,
                Place::Offset(at) => self.b.ptr_add_imm(block, i64::from(at)),
                Place::Address(address) => address,
            };
            self.b.store(address, pointers, 8 * i, MemFlags::ALIGNED);
        }
        slot
    }

    /// The value of a parameter that is one.
    pub(super) fn value(&mut self, arg: &LaunchArg) -> Option<Value> {
        match self.argument(arg).stores[..] {
            [(0, value)] => Some(value),
            _ => None,
        }
    }

    fn argument(&mut self, arg: &LaunchArg) -> Laid {
        match arg {
            LaunchArg::Param(name) => match self.named(name) {
                Some((param, value)) => Laid::one(bytes_of(param.c_type), value),
                None => self.missing(format!("parameter `{name}` of the kernel"), 8),
            },
            LaunchArg::Cast(name, ty) => match self.named(name) {
                Some((param, value)) => {
                    let value = self.cast(name, param.c_type, value, *ty);
                    Laid::one(ty.bits().div_ceil(8), value)
                }
                None => self.missing(format!("parameter `{name}` of the kernel"), ty.bits() / 8),
            },
            LaunchArg::Int(dim, ty) => {
                let value = self.extent(&format!("{ty}({dim})"), dim);
                let value = self.narrow(value, &format!("{dim}"), dim, *ty);
                Laid::one(ty.bits().div_ceil(8), value)
            }
            LaunchArg::Float(bits, ty) => {
                let value = match ty {
                    ScalarType::Float32 => self.b.f32(bits.value() as f32),
                    ScalarType::Float16 | ScalarType::BFloat16 => {
                        let value = self.b.f64(bits.value());
                        half::narrow(self.b, *ty, value)
                    }
                    _ => self.b.f64(bits.value()),
                };
                Laid::one(ty.bits() / 8, value)
            }
            LaunchArg::Stride(name, number, ty) => match self.stride(name, *number) {
                Some(stride) => {
                    let value = self.extent(&format!("{name}.strides[{number}]"), &stride);
                    let value = self.narrow(value, &format!("{name}.strides[{number}]"), &stride, *ty);
                    Laid::one(ty.bits().div_ceil(8), value)
                }
                None => self.missing(format!("{name}.strides[{number}]"), ty.bits() / 8),
            },
            LaunchArg::DeviceId(name) => {
                let found = self.inputs.device_ids.iter().find(|(known, _)| known == name);
                match found {
                    Some((_, number)) => Laid::one(4, *number),
                    None => self.missing(format!("{name}.device_id"), 4),
                }
            }
            LaunchArg::Null => Laid::one(8, self.b.ptr_const(0)),
            LaunchArg::Struct { size, align, fields } => {
                let mut stores = Stores::new();
                // padding has no leftovers of the frame
                let zero = self.b.iconst(Type::I8, 0);
                let covered =
                    |fields: &[(u32, u32)], at: u32| fields.iter().any(|(from, to)| (*from..*to).contains(&at));
                let mut laid = Vec::new();
                for (offset, field) in fields {
                    let field = self.argument(field);
                    laid.push((*offset, *offset + field.bytes));
                    stores.extend(field.stores.into_iter().map(|(at, value)| (offset + at, value)));
                }
                stores.extend((0..*size).filter(|at| !covered(&laid, *at)).map(|at| (at, zero)));
                Laid { bytes: *size, align: *align, stores }
            }
            LaunchArg::Scratch { bytes, align } => {
                let address = self.scratch(bytes, *align);
                Laid::one(8, address)
            }
            LaunchArg::TensorMap(_) => self.missing("a tensor map inside a struct".to_owned(), 8),
        }
    }

    /// A scalar at another width.
    fn cast(&mut self, name: &str, from: CType, value: Value, to: ScalarType) -> Value {
        let CType::Scalar(from) = from else { return value };
        match (from.is_float(), to.is_float()) {
            _ if from == to => value,
            (true, true) if from.is_half() => {
                let value = half::widen(self.b, from, value);
                self.cast(name, CType::Scalar(ScalarType::Float64), value, to)
            }
            (_, true) if to.is_half() => {
                let value = self.cast(name, CType::Scalar(from), value, ScalarType::Float64);
                half::narrow(self.b, to, value)
            }
            (true, true) if to.bits() < from.bits() => self.b.convert(ConvertOp::FDemote, Type::F32, value),
            (true, true) => self.b.convert(ConvertOp::FPromote, Type::F64, value),
            (false, true) => {
                let value = widen(self.b, value, from.is_signed_int());
                let op = if from.is_signed_int() { ConvertOp::SIntToFloat } else { ConvertOp::UIntToFloat };
                self.b.convert(op, abi_param(to).ty, value)
            }
            (true, false) => self.missing_value(format!("{to}({name}), as {name} is a {from}"), abi_param(to).ty),
            (false, false) => {
                let value = widen(self.b, value, from.is_signed_int());
                self.narrow(value, name, &dim(name), to)
            }
        }
    }

    /// An `I64` as an integer of a type. A value that the type doesn't have is refused.
    fn narrow(&mut self, value: Value, what: &str, dim: &Dim, ty: ScalarType) -> Value {
        let to = abi_param(ty).ty;
        if ty.bits() == 64 {
            if !ty.is_signed_int() && self.b.as_int_const(value).is_none_or(|value| value < 0) {
                let holds = self.b.icmp_imm(IntCC::SGe, value, 0);
                self.require_type(holds, value, what, dim, ty);
            }
            return value;
        }
        let (least, most) = match ty.is_signed_int() {
            true => (-(1_i64 << (ty.bits() - 1)), (1_i64 << (ty.bits() - 1)) - 1),
            false => (0, (1_i64 << ty.bits()) - 1),
        };
        if self.b.as_int_const(value).is_none_or(|value| !(least..=most).contains(&value)) {
            let above = self.b.binary_imm(BinaryOp::Sub, value, least);
            let holds = self.b.icmp_imm(IntCC::ULe, above, most - least);
            self.require_type(holds, value, what, dim, ty);
        }
        self.b.convert(ConvertOp::Truncate, to, value)
    }

    fn require_type(&mut self, holds: Value, value: Value, what: &str, dim: &Dim, ty: ScalarType) {
        let shown = self.shown(dim);
        let behind = match shown == what {
            true => format!(", which doesn't fit in the kernel's {ty}"),
            false => format!(" ({shown}), which doesn't fit in the kernel's {ty}"),
        };
        self.require(holds, value, &format!(", {what} = "), &[Piece::Text(&behind)], None);
    }

    fn missing(&mut self, what: String, bytes: u32) -> Laid {
        let value = self.missing_value(what, if bytes == 4 { Type::I32 } else { Type::I64 });
        Laid::one(if bytes == 4 { 4 } else { 8 }, value)
    }
}

/// The bytes of a C parameter.
fn bytes_of(c_type: CType) -> u32 {
    c_type.abi().ty.bytes()
}
