//! Dtypes and devices as values of a body: stated ones, those of tensors, and those of parameters.

use super::descriptor::device_of;
use super::expr::{Expr, Ops};
use super::function::BodyLowerer;
use super::param::ParamRef;
use super::tensor::TensorRef;
use crate::ir::{BinaryOp, ConvertOp, Type, Value};
use crate::lower::abi::fields::{DTypeField, before_zeros, dtype_word, pair};
use crate::lower::abi::tensor::DTYPE;
use crate::spec::{DType, Device, ParamType, ScalarType};
use tvm_ffi_runtime::abi::{DLDataType, DLDevice};

/// A dtype in a body.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum DTypeValue<'b> {
    /// A stated dtype.
    Stated(DLDataType),
    /// The dtype of a tensor.
    Of(TensorRef<'b>),
    /// The bits of a dtype, as [`Body::arg`](super::Body::arg) returns them for a parameter of type `dtype`.
    Bits(Expr<'b>),
}

/// A device in a body.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum DeviceValue<'b> {
    /// A stated device.
    Stated(DLDevice),
    /// The device of a tensor.
    Of(TensorRef<'b>),
    /// The bits of a device, as [`Body::arg`](super::Body::arg) returns them for a parameter of type `device`.
    Bits(Expr<'b>),
}

impl From<DLDataType> for DTypeValue<'_> {
    fn from(dtype: DLDataType) -> Self {
        DTypeValue::Stated(dtype)
    }
}

impl From<DLDevice> for DeviceValue<'_> {
    fn from(device: DLDevice) -> Self {
        DeviceValue::Stated(device)
    }
}

macro_rules! values_from {
    ($($Value:ident $kind:ident;)*) => {$(
        impl<'b> From<TensorRef<'b>> for $Value<'b> {
            fn from(tensor: TensorRef<'b>) -> Self {
                $Value::Of(tensor)
            }
        }

        impl<'b> From<ParamRef<'b>> for $Value<'b> {
            fn from(param: ParamRef<'b>) -> Self {
                match param.ty() {
                    Some(ParamType::$kind) => $Value::Bits(param.value()),
                    _ => $Value::Of(param.tensor()),
                }
            }
        }
    )*};
}
values_from! {
    DTypeValue DType;
    DeviceValue Device;
}

/// The bits of a dtype, which are computed where they are used.
#[derive(Clone, Copy)]
pub(super) enum DTypeBits {
    Stated(DLDataType),
    /// An `I32` as loaded from a `DLDataType`.
    Computed(Value),
}

impl DTypeBits {
    /// The bits, an `I32` as loaded from a `DLDataType`.
    pub(super) fn word(self, l: &mut BodyLowerer<'_>) -> Value {
        match self {
            DTypeBits::Stated(dtype) => {
                let word = dtype_word(l.b.module().endianness, dtype);
                l.b.iconst(Type::I32, i64::from(word as i32))
            }
            DTypeBits::Computed(word) => word,
        }
    }

    /// The payload of a `TVMFFIAny` that holds the dtype.
    pub(super) fn payload(self, l: &mut BodyLowerer<'_>) -> Value {
        let word = self.word(l);
        before_zeros(&mut l.b, word)
    }

    /// The number of bytes of an element, rounded up, an `I64`.
    pub(super) fn bytes(self, l: &mut BodyLowerer<'_>) -> Value {
        match self {
            DTypeBits::Stated(dtype) => l.b.i64((i64::from(dtype.bits) * i64::from(dtype.lanes) + 7) / 8),
            DTypeBits::Computed(word) => {
                let word = l.b.convert(ConvertOp::ZExt, Type::I64, word);
                let [bits, lanes] = [DTypeField::Bits, DTypeField::Lanes].map(|field| field.of(&mut l.b, word));
                let bits = l.b.binary(BinaryOp::Mul, bits, lanes);
                let bits = l.b.binary_imm(BinaryOp::Add, bits, 7);
                let shift = l.b.i64(3);
                l.b.binary(BinaryOp::LShr, bits, shift)
            }
        }
    }
}

impl<'b> DTypeValue<'b> {
    /// The dtype, if it is known at compile time.
    fn exact(self) -> Option<DLDataType> {
        match self {
            DTypeValue::Stated(dtype) => Some(dtype),
            DTypeValue::Of(tensor) => tensor.known?.vars.ty.exact_dtype(),
            DTypeValue::Bits(_) => None,
        }
    }

    /// The dtype as far as it is known at compile time.
    pub(super) fn stated(self) -> DType {
        self.exact().map_or(DType::Any, DType::Exact)
    }

    /// The bits. Records an error if the value isn't usable here.
    pub(super) fn bits(self, body: &'b dyn Ops, operation: &str) -> Option<DTypeBits> {
        let computed = match self {
            DTypeValue::Stated(dtype) => return Some(DTypeBits::Stated(dtype)),
            DTypeValue::Of(tensor) => {
                let vars = tensor.alive(operation)?.vars;
                match vars.ty.exact_dtype() {
                    Some(dtype) => return Some(DTypeBits::Stated(dtype)),
                    None => body.value(|l| l.field_of(vars, Type::I32, DTYPE)),
                }
            }
            DTypeValue::Bits(bits) => expect_bits(body, operation, bits, ScalarType::UInt32, "dtype")?,
        };
        Some(DTypeBits::Computed(computed))
    }
}

impl<'b> DeviceValue<'b> {
    /// The device as far as it is known at compile time.
    pub(super) fn stated(self) -> Device {
        match self {
            DeviceValue::Stated(device) => Device::numbered(device.device_type, device.device_id),
            DeviceValue::Of(tensor) => match tensor.known.map(|known| &known.vars.ty.device) {
                Some(device @ Device::Kind(..)) => device.clone(),
                _ => Device::Any,
            },
            DeviceValue::Bits(_) => Device::Any,
        }
    }

    /// The bits, an `I64` as loaded from a `DLDevice`. Records an error if the value isn't usable here.
    pub(super) fn bits(self, body: &'b dyn Ops, operation: &str) -> Option<Value> {
        match self {
            DeviceValue::Stated(device) => Some(body.value(|l| {
                let order = l.b.module().endianness;
                l.b.i64(pair(order, device.device_type.0 as u32, device.device_id as u32))
            })),
            DeviceValue::Of(tensor) => device_of(tensor, operation),
            DeviceValue::Bits(bits) => expect_bits(body, operation, bits, ScalarType::UInt64, "device"),
        }
    }
}

/// The bits of a dtype or a device, which have the type of such a parameter.
fn expect_bits(body: &dyn Ops, operation: &str, bits: Expr<'_>, ty: ScalarType, what: &str) -> Option<Value> {
    if bits.ty() == ty {
        return Some(bits.used(operation).value);
    }
    if !bits.is_missing() {
        body.note(operation, format!("expected the bits of a {what}, a {ty}, got {}", bits.ty()));
    }
    None
}
