//! Types of C parameters, and how they map to C and to IR.

use std::fmt;

use crate::ir::{AbiParam, Extension, StructLayout, Type};
use crate::spec::{ScalarKind, ScalarType};
use tvm_ffi_runtime::abi::{DLDataType, kDLBfloat, kDLBool, kDLComplex, kDLFloat, kDLInt, kDLUInt};

/// The C type of a kernel's parameter or result. `Display` prints it in C syntax: `float*`, `int64_t`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum CType {
    /// A scalar. A `bool` is a `uint8_t` of 0 or 1, a `handle` a `void*`. A `float16` or `bfloat16` is a `uint16_t`
    /// with its bits.
    Scalar(ScalarType),
    /// A `size_t`, of 64 bits.
    Size,
    /// A `DLDataType` by value: a struct of 4 bytes, which every target passes as an integer.
    DType,
    /// A `DLDevice` by value: a struct of 8 bytes, which every target passes as an integer.
    Device,
    /// A struct by value ([`KernelArg::Struct`](crate::spec::KernelArg::Struct)) with a size of 4 or 8 bytes and
    /// without floating-point fields. Every target passes it as an integer.
    Struct(u32),
    /// Any other struct by value ([`KernelArg::Struct`](crate::spec::KernelArg::Struct)), passed as the target's C ABI
    /// says. A [header](crate::Kernel::header) defines the type.
    StructOf(CStruct),
    /// A `TVMFFIObjectHandle`: a pointer to an object, borrowed.
    Object,
    /// A pointer to elements of this dtype; a `void*` if C has no type for them.
    Elements(DLDataType),
    /// A pointer to the named C type: `DLTensor`, `const char`, `void`.
    Pointer(&'static str),
}

impl CType {
    /// Whether it is an address; IR passes it as a pointer.
    pub const fn is_pointer(self) -> bool {
        matches!(self, CType::Scalar(ScalarType::Handle) | CType::Object | CType::Elements(_) | CType::Pointer(_))
    }

    /// A pointer to a value of the type; `None` if kernels never write one.
    pub(in crate::lower) const fn pointer(self) -> Option<CType> {
        match self {
            CType::Scalar(ty) => Some(CType::Pointer(scalar_c(ty))),
            CType::DType => Some(CType::Pointer(DTYPE)),
            CType::Device => Some(CType::Pointer(DEVICE)),
            CType::Size
            | CType::Struct(_)
            | CType::StructOf(_)
            | CType::Object
            | CType::Elements(_)
            | CType::Pointer(_) => None,
        }
    }

    /// The IR type of the parameter.
    pub(in crate::lower) fn abi(self) -> AbiParam {
        match self {
            CType::Scalar(ty) => abi_param(ty),
            CType::Size => AbiParam::new(Type::I64),
            CType::DType => AbiParam::aggregate(Type::I32),
            CType::Struct(4) => AbiParam::aggregate(Type::I32),
            CType::Device | CType::Struct(_) => AbiParam::aggregate(Type::I64),
            CType::StructOf(of) => AbiParam::by_value(of.layout),
            CType::Object | CType::Elements(_) | CType::Pointer(_) => AbiParam::new(Type::Ptr),
        }
    }
}

impl fmt::Display for CType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CType::Scalar(ty) => f.write_str(scalar_c(*ty)),
            CType::Size => f.write_str("size_t"),
            CType::DType => f.write_str(DTYPE),
            CType::Device => f.write_str(DEVICE),
            CType::Struct(bytes) => write!(f, "tvm_ffi_codegen_struct{bytes}"),
            CType::StructOf(of) => of.fmt(f),
            CType::Object => f.write_str("TVMFFIObjectHandle"),
            CType::Elements(dtype) => write!(f, "{}*", element_c(*dtype)),
            CType::Pointer(to) => write!(f, "{to}*"),
        }
    }
}

/// The type of a struct by value. Structs whose fields have the same C types and offsets have the same type. `Display`
/// prints its name in C.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CStruct {
    layout: StructLayout,
    /// A hash of the definition.
    definition: u64,
}

impl CStruct {
    /// The type with a layout and with the definition of its fields in C.
    pub(in crate::lower) fn new(layout: StructLayout, definition: &str) -> Self {
        // FNV-1a, so names don't depend on the version of this crate
        let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        CStruct { layout, definition: definition.bytes().fold(0xcbf2_9ce4_8422_2325, step) }
    }

    /// The size, the alignment, and the scalars that it consists of.
    pub const fn layout(&self) -> StructLayout {
        self.layout
    }
}

impl fmt::Display for CStruct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tvm_ffi_codegen_struct{}_{:016x}", self.layout.size(), self.definition)
    }
}

const DTYPE: &str = "DLDataType";
const DEVICE: &str = "DLDevice";

const fn scalar_c(ty: ScalarType) -> &'static str {
    match ty {
        ScalarType::Int8 => "int8_t",
        ScalarType::Int16 => "int16_t",
        ScalarType::Int32 => "int32_t",
        ScalarType::Int64 => "int64_t",
        ScalarType::UInt8 | ScalarType::Bool => "uint8_t",
        // C has no type for them that all compilers pass in the same way
        ScalarType::UInt16 | ScalarType::Float16 | ScalarType::BFloat16 => "uint16_t",
        ScalarType::UInt32 => "uint32_t",
        ScalarType::UInt64 => "uint64_t",
        ScalarType::Float32 => "float",
        ScalarType::Float64 => "double",
        ScalarType::Handle => "void*",
    }
}

/// The C type of an element; `void` if C has none.
#[allow(non_upper_case_globals)] // the header's own names
const fn element_c(dtype: DLDataType) -> &'static str {
    let DLDataType { code, bits, lanes: 1 } = dtype else { return "void" };
    match (code, bits) {
        (kDLInt, 8) => "int8_t",
        (kDLInt, 16) => "int16_t",
        (kDLInt, 32) => "int32_t",
        (kDLInt, 64) => "int64_t",
        (kDLUInt | kDLBool, 8) => "uint8_t",
        (kDLUInt, 16) | (kDLFloat | kDLBfloat, 16) => "uint16_t",
        (kDLUInt, 32) => "uint32_t",
        (kDLUInt, 64) => "uint64_t",
        (kDLFloat, 32) => "float",
        (kDLFloat, 64) => "double",
        // two of them for each element: C++ has no `_Complex`, and its `std::complex` has the same layout
        (kDLComplex, 64) => "float",
        (kDLComplex, 128) => "double",
        // the 8-bit floats
        (7..=14, 8) => "uint8_t",
        _ => "void",
    }
}

/// The IR type of a scalar parameter.
pub(in crate::lower) fn abi_param(ty: ScalarType) -> AbiParam {
    let ir_type = match ty.kind() {
        ScalarKind::Handle => Type::Ptr,
        ScalarKind::Float32 => Type::F32,
        ScalarKind::Float64 => Type::F64,
        ScalarKind::Signed | ScalarKind::Unsigned | ScalarKind::Bool | ScalarKind::Half(_) => match ty.bits() {
            8 => Type::I8,
            16 => Type::I16,
            32 => Type::I32,
            _ => Type::I64,
        },
    };
    let ext = match ir_type {
        Type::I8 | Type::I16 | Type::I32 if ty.is_signed_int() => Extension::Signed,
        Type::I8 | Type::I16 | Type::I32 => Extension::Unsigned,
        _ => Extension::None,
    };
    AbiParam { ext, ..AbiParam::new(ir_type) }
}
