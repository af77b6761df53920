//! Computes the value of each argument.

use super::expr::widen;
use super::parts::{stride_of, tensor_of};
use super::shape::type_of;
use super::values::Values;
use crate::ir::{BinaryOp, ConvertOp, IntCC, MemFlags, Type, Value};
use crate::lower::convention::c_type::{CType, abi_param};
use crate::lower::half;
use crate::lower::protocol::Piece;
use crate::spec::{Dim, KernelArg, ScalarKind, ScalarType, dim};

/// Allocates scratch memory with a size in bytes and an alignment; only launches support it.
pub(in crate::lower) type Scratch<'s> = &'s mut dyn FnMut(&mut Values<'_, '_>, &Dim, u32) -> Value;

/// Values of a parameter, each with its offset in bytes.
pub(in crate::lower) type Stores = Vec<(u32, Value)>;

/// A parameter, or a field of one, with its computed values.
pub(in crate::lower) struct Laid {
    pub bytes: u32,
    pub align: u32,
    pub stores: Stores,
}

impl Laid {
    /// A single value, aligned to its own size.
    pub(in crate::lower) fn one(c_type: CType, value: Value) -> Self {
        let bytes = c_type.abi().ty.bytes();
        Laid { bytes, align: bytes, stores: vec![(0, value)] }
    }
}

impl Values<'_, '_> {
    /// The value of an argument. If it consists of several values, they are laid out in memory.
    pub(in crate::lower) fn argument(&mut self, arg: &KernelArg, scratch: Scratch<'_>) -> Laid {
        let value = match arg {
            KernelArg::Struct { size, align, fields } => return self.of_struct((*size, *align), fields, scratch),
            KernelArg::Param(name) => self.named(name).map(|(_, value)| value),
            KernelArg::Cast(name, ty) => self.named(name).map(|(c_type, value)| self.cast(name, c_type, value, *ty)),
            KernelArg::Int(dim, ty) => {
                let value = self.extent(&format!("{ty}({dim})"), dim);
                Some(self.narrow(value, &format!("{dim}"), dim, *ty))
            }
            KernelArg::Float(bits, ty) => match ty.kind() {
                ScalarKind::Half(half) => {
                    let value = self.b.f64(bits.value());
                    Some(half::narrow(self.b, half, value))
                }
                ScalarKind::Float32 => Some(self.b.f32(bits.value() as f32)),
                ScalarKind::Float64 => Some(self.b.f64(bits.value())),
                // the checks refuse them
                ScalarKind::Signed | ScalarKind::Unsigned | ScalarKind::Bool | ScalarKind::Handle => None,
            },
            KernelArg::Stride(name, number, ty) => {
                tensor_of(self.signature, name).and_then(|tensor| stride_of(tensor, *number)).map(|stride| {
                    let what = format!("{name}.strides[{number}]");
                    let value = self.extent(&what, &stride);
                    self.narrow(value, &what, &stride, *ty)
                })
            }
            KernelArg::DeviceId(name) => {
                self.inputs.device_ids.iter().find(|(known, _)| known == name).map(|(_, number)| *number)
            }
            KernelArg::Null => Some(self.b.ptr_const(0)),
            KernelArg::Scratch { bytes, align } => Some(scratch(self, bytes, *align)),
            KernelArg::TensorMap(_) => None,
        };
        let c_type = self.c_type(arg);
        let value = value.unwrap_or_else(|| self.missing_value(format!("{arg} of the kernel"), c_type.abi().ty));
        Laid::one(c_type, value)
    }

    fn of_struct(&mut self, (size, align): (u32, u32), fields: &[(u32, KernelArg)], scratch: Scratch<'_>) -> Laid {
        let mut stores = Stores::new();
        // clear the padding, so it doesn't expose old stack contents
        let zero = self.b.iconst(Type::I8, 0);
        let mut covered = Vec::new();
        for (offset, field) in fields {
            let field = self.argument(field, scratch);
            covered.push(*offset..*offset + field.bytes);
            stores.extend(field.stores.into_iter().map(|(at, value)| (offset + at, value)));
        }
        stores.extend((0..size).filter(|at| !covered.iter().any(|field| field.contains(at))).map(|at| (at, zero)));
        Laid { bytes: size, align, stores }
    }

    /// Stores a value at an offset from an aligned address.
    pub(in crate::lower) fn place(&mut self, value: Value, address: Value, at: u32) {
        // a `DLDevice` is aligned to 4
        let flags = match at.is_multiple_of(self.b.type_of(value).bytes()) {
            true => MemFlags::ALIGNED,
            false => MemFlags::UNALIGNED,
        };
        self.b.store(value, address, at as i32, flags);
    }

    /// The C type of an argument.
    pub(super) fn c_type(&self, arg: &KernelArg) -> CType {
        type_of(arg, &|name| self.named(name).map(|(c_type, _)| c_type))
    }

    /// Converts a scalar to another width.
    fn cast(&mut self, name: &str, from: CType, value: Value, to: ScalarType) -> Value {
        use ScalarKind::{Bool, Float32, Float64, Half, Handle, Signed, Unsigned};
        let CType::Scalar(from) = from else { return value };
        if from == to {
            return value;
        }
        match (from.kind(), to.kind()) {
            (Half(half), Half(_) | Float32 | Float64) => {
                let value = half::widen(self.b, half, value);
                self.cast(name, CType::Scalar(ScalarType::Float64), value, to)
            }
            (_, Half(half)) => {
                let value = self.cast(name, CType::Scalar(from), value, ScalarType::Float64);
                half::narrow(self.b, half, value)
            }
            (Float32 | Float64, Float32) => self.b.convert(ConvertOp::FDemote, Type::F32, value),
            (Float32 | Float64, Float64) => self.b.convert(ConvertOp::FPromote, Type::F64, value),
            (Signed | Unsigned | Bool | Handle, Float32 | Float64) => {
                let value = widen(self.b, value, from.is_signed_int());
                let op = if from.is_signed_int() { ConvertOp::SIntToFloat } else { ConvertOp::UIntToFloat };
                self.b.convert(op, abi_param(to).ty, value)
            }
            (Half(_) | Float32 | Float64, Signed | Unsigned | Bool | Handle) => {
                self.missing_value(format!("{to}({name}), as {name} is a {from}"), abi_param(to).ty)
            }
            (Signed | Unsigned | Bool | Handle, Signed | Unsigned | Bool | Handle) => {
                let value = widen(self.b, value, from.is_signed_int());
                self.narrow(value, name, &dim(name), to)
            }
        }
    }

    /// Converts an `I64` to an integer type. Raises an error if the value doesn't fit in the type.
    fn narrow(&mut self, value: Value, what: &str, dim: &Dim, ty: ScalarType) -> Value {
        let to = abi_param(ty).ty;
        if ty.bits() == 64 {
            if !ty.is_signed_int() && self.b.as_int_const(value).is_none_or(|value| value < 0) {
                let holds = self.b.icmp_imm(IntCC::SGe, value, 0);
                self.require_type(holds, value, what, dim, ty);
            }
            return value;
        }
        let (min, max) = match ty.is_signed_int() {
            true => (-(1_i64 << (ty.bits() - 1)), (1_i64 << (ty.bits() - 1)) - 1),
            false => (0, (1_i64 << ty.bits()) - 1),
        };
        if self.b.as_int_const(value).is_none_or(|value| !(min..=max).contains(&value)) {
            let above = self.b.binary_imm(BinaryOp::Sub, value, min);
            let holds = self.b.icmp_imm(IntCC::ULe, above, max - min);
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
}
