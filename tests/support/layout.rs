//! What a kernel of convention `flat` receives, parameter by parameter: the table of `docs/contract.md`.

use tvm_ffi_codegen::runtime::abi::DLDeviceType;
use tvm_ffi_codegen::{ParamType, ScalarType, Signature, TensorType};

/// One or two words of a kernel's arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Slot {
    /// A number, or an address of a tensor's memory.
    Word,
    /// Where characters are, and how many.
    Str,
    /// The same of bytes.
    Bytes,
    /// The same of `int64_t`.
    Shape,
    /// The same of `TVMFFIAny`.
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

/// How a kernel gives its result back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Gives {
    Nothing,
    Value,
    /// Writes the elements of tensors that it is given.
    Tensor,
    /// Writes it to `result`.
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

/// What a kernel of the signature receives.
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
        ParamType::EnvStream | ParamType::EnvState(_) => slots.push(Slot::Word),
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
        ParamType::Tuple(items) => items.iter().for_each(|item| param_slots(item, slots)),
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

/// Whether `x_given` stands before an optional one: its own words don't tell None.
pub fn says_given(ty: &ParamType) -> bool {
    matches!(
        ty,
        ParamType::Scalar(_)
            | ParamType::DType
            | ParamType::Device
            | ParamType::Int(_)
            | ParamType::Bool(_)
            | ParamType::Tuple(_)
    )
}

/// Whether it leaves open rank, dtype, device or strides.
pub fn is_open(tensor: &TensorType) -> bool {
    use tvm_ffi_codegen::spec::{DType, Device, Layout, TensorShape};
    matches!(tensor.shape, TensorShape::Any)
        || matches!(tensor.dtype, DType::Any)
        || matches!(tensor.device, Device::Any)
        || matches!(tensor.layout, Layout::Any)
}

/// Devices whose `data` is no address: all but cpu, cuda, cuda_host, rocm, rocm_host, cuda_managed.
pub fn is_opaque(kind: DLDeviceType) -> bool {
    kind.0 > 3 && !matches!(kind.0, 10 | 11 | 13)
}

/// Whether an argument for it may be a number that dimensions use.
pub fn is_int(ty: &ParamType) -> bool {
    matches!(ty, ParamType::Scalar(ty) if !ty.is_float() && !matches!(ty, ScalarType::Bool | ScalarType::Handle))
}
