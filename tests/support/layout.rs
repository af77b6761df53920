//! The parameters of a kernel with the convention `flat`, one by one, according to the table in
//! `docs/reference/contract.md`.

use tvm_ffi_codegen::runtime::abi::DLDeviceType;
use tvm_ffi_codegen::{ParamType, ScalarType, Signature, TensorType};

/// One or two words of a kernel's arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Slot {
    /// A number, or the address of a tensor's memory.
    Word,
    /// The address of characters, and their number.
    Str,
    /// The address of bytes, and their number.
    Bytes,
    /// The address of `int64_t` values, and their number.
    Shape,
    /// The address of `TVMFFIAny` values, and their number.
    Array,
    /// `const TVMFFIAny*`
    Any,
    /// `TVMFFIObjectHandle`
    Object,
    /// `DLTensor*`
    Tensor,
    /// The memory of a tensor that the wrapper has allocated.
    Memory,
    /// `TVMFFIAny* result`
    Result,
}

impl Slot {
    pub fn words(self) -> usize {
        match self {
            Slot::Str | Slot::Bytes | Slot::Shape | Slot::Array => 2,
            _ => 1,
        }
    }
}

/// How a kernel returns its result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Gives {
    Nothing,
    Value,
    /// Writes the elements of tensors that the wrapper allocated.
    Tensor,
    /// Writes the value to `result`.
    Written,
}

pub fn gives(signature: &Signature) -> Gives {
    match signature.ret() {
        None => Gives::Nothing,
        Some(ParamType::Scalar(_) | ParamType::DType | ParamType::Device) => Gives::Value,
        Some(ParamType::Tensor(_) | ParamType::Tuple(_)) => Gives::Tensor,
        Some(_) => Gives::Written,
    }
}

/// The parameters of a kernel for the signature.
pub fn layout(signature: &Signature) -> Vec<Slot> {
    let mut slots = Vec::new();
    for param in signature.params() {
        param_slots(&param.ty, &mut slots);
    }
    for tensor in signature.returned_tensors() {
        slots.push(Slot::Memory);
        if tensor.device.kind().is_some_and(is_opaque) {
            slots.push(Slot::Word);
        }
    }
    slots.extend(signature.dim_vars().iter().map(|_| Slot::Word));
    if gives(signature) == Gives::Written {
        slots.push(Slot::Result);
    }
    slots
}

/// The words of one parameter.
pub fn param_slots(ty: &ParamType, slots: &mut Vec<Slot>) {
    match ty {
        ParamType::Scalar(_) | ParamType::DType | ParamType::Device => slots.push(Slot::Word),
        ParamType::EnvStream | ParamType::Stream | ParamType::EnvState(_) => slots.push(Slot::Word),
        ParamType::Tensor(tensor) if is_open(tensor) => slots.push(Slot::Tensor),
        ParamType::Tensor(tensor) => {
            slots.push(Slot::Word);
            if tensor.device.kind().is_some_and(is_opaque) {
                slots.push(Slot::Word);
            }
        }
        ParamType::Str => slots.push(Slot::Str),
        ParamType::Bytes => slots.push(Slot::Bytes),
        ParamType::Shape(_) => slots.push(Slot::Shape),
        ParamType::Any => slots.push(Slot::Any),
        ParamType::None | ParamType::Int(_) | ParamType::Bool(_) => {}
        ParamType::Array(_) => slots.push(Slot::Array),
        ParamType::Tuple(_) | ParamType::Record { .. } => {
            ty.inner().into_iter().for_each(|item| param_slots(item, slots));
        }
        ParamType::Optional(inner) => {
            if says_given(inner) {
                slots.push(Slot::Word);
            }
            param_slots(inner, slots);
        }
        // functions, modules, other objects, lists, maps, dicts
        _ => slots.push(Slot::Object),
    }
}

/// Whether an optional parameter of the type has a preceding `x_given`, because its own words can't represent None.
pub fn says_given(ty: &ParamType) -> bool {
    matches!(
        ty,
        ParamType::Scalar(_)
            | ParamType::DType
            | ParamType::Device
            | ParamType::Int(_)
            | ParamType::Bool(_)
            | ParamType::Tuple(_)
            | ParamType::Record { .. }
    )
}

/// Whether the type leaves the rank, dtype, device or strides open.
pub fn is_open(tensor: &TensorType) -> bool {
    use tvm_ffi_codegen::spec::{DType, Device, Layout, TensorShape};
    matches!(tensor.shape, TensorShape::Any)
        || matches!(tensor.dtype, DType::Any)
        || matches!(tensor.device, Device::Any)
        || matches!(tensor.layout, Layout::Any)
}

/// Whether `data` isn't an address on such devices: all except cpu, cuda, cuda_host, rocm, rocm_host and cuda_managed.
pub fn is_opaque(kind: DLDeviceType) -> bool {
    kind.0 > 3 && !matches!(kind.0, 10 | 11 | 13)
}

/// Whether dimensions may use a parameter of the type as a symbol.
pub fn is_int(ty: &ParamType) -> bool {
    matches!(ty, ParamType::Scalar(ty) if !ty.is_float() && !matches!(ty, ScalarType::Bool | ScalarType::Handle))
}
