//! How a kernel is called: its C parameters for a signature.

pub(super) mod c_names;

use std::fmt;
use std::str::FromStr;

use crate::ir::{AbiParam, Extension, FuncSig, Type};
use crate::names::{self, UnknownName};
use crate::spec::{ParamType, ScalarType, Signature, TensorType};
use tvm_ffi_runtime::abi::{DLDataType, kDLBfloat, kDLBool, kDLFloat, kDLInt, kDLUInt};

/// The C result of a native kernel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum KernelReturn {
    /// `void`: it can't fail.
    Nothing,
    /// `int32_t`: 0 for success; anything else fails the call, with the error that the kernel raised. A scalar, dtype or device that the
    /// signature names is written through a pointer, the last parameter.
    Status,
    /// The value that the signature names.
    Value,
}

/// The calling convention of a native kernel (`docs/contract.md`, C11).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum Convention {
    /// Data pointers and scalars in order, then each symbol as `int64_t`.
    #[default]
    Flat,
    /// A `DLTensor*` for each tensor; no symbols.
    DlTensor,
    /// For each tensor what MLIR passes for a ranked memref: two pointers, the offset, the sizes, the strides; no symbols.
    MemRef,
    /// The four arguments of the ABI itself.
    Packed,
}

impl Convention {
    /// Every convention.
    pub const ALL: &'static [Convention] =
        &[Convention::Flat, Convention::DlTensor, Convention::MemRef, Convention::Packed];

    /// The convention's name on command lines.
    pub const fn name(self) -> &'static str {
        match self {
            Convention::Flat => "flat",
            Convention::DlTensor => "dltensor",
            Convention::MemRef => "memref",
            Convention::Packed => "packed",
        }
    }

    /// How it passes a tensor.
    pub(in crate::lower) fn form(self, tensor: &TensorType) -> TensorForm {
        match self {
            Convention::Flat if tensor.is_open() => TensorForm::Descriptor,
            Convention::Flat | Convention::Packed => TensorForm::Data,
            Convention::DlTensor => TensorForm::Descriptor,
            Convention::MemRef => TensorForm::MemRef,
        }
    }
}

impl fmt::Display for Convention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Convention {
    type Err = UnknownName;

    /// Reads [`Convention::name`].
    fn from_str(text: &str) -> Result<Self, UnknownName> {
        names::find(text, Self::ALL, Self::name)
    }
}

/// How a tensor is passed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::lower) enum TensorForm {
    /// The data pointer; with opaque handles the byte offset too.
    Data,
    /// A `DLTensor*`.
    Descriptor,
    /// A ranked memref.
    MemRef,
}

/// What a C parameter is for: a parameter of the signature, or a piece of one. Text only when it is shown.
pub(in crate::lower) enum Name<'a> {
    /// A parameter, a symbol, or the result.
    Whole(&'a str),
    /// An item of a tuple.
    Item(&'a Name<'a>, usize),
    /// One of several C parameters.
    Piece(&'a Name<'a>, &'static str),
    /// One of several for each dimension.
    Dim(&'a Name<'a>, &'static str, u32),
}

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Name::Whole(name) => f.write_str(name),
            Name::Item(of, i) => write!(f, "{of}_{i}"),
            Name::Piece(of, piece) => write!(f, "{of}_{piece}"),
            Name::Dim(of, piece, d) => write!(f, "{of}_{piece}{d}"),
        }
    }
}

/// The type of a C parameter.
#[derive(Clone, Copy)]
pub(in crate::lower) enum CType {
    Value(&'static str),
    PointerTo(&'static str),
}

impl fmt::Display for CType {
    /// As it stands before the name, with a space or `*` at its end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CType::Value(name) => write!(f, "{name} "),
            CType::PointerTo(name) => write!(f, "{name}* "),
        }
    }
}

/// Whether a type's first C parameter is a pointer that is never NULL, so that NULL may stand for None.
pub(in crate::lower) fn has_null(ty: &ParamType) -> bool {
    matches!(
        ty,
        ParamType::Tensor(_)
            | ParamType::Str
            | ParamType::Bytes
            | ParamType::Shape(_)
            | ParamType::Function
            | ParamType::Module
            | ParamType::Object(_)
            | ParamType::Array(_)
            | ParamType::List(_)
            | ParamType::Map(..)
            | ParamType::Dict(..)
    )
}

/// Whether the kernel writes its result through a `TVMFFIAny*`, which it owns.
pub(in crate::lower) fn writes_result(ret: &ParamType) -> bool {
    !returns_value(ret) && !matches!(ret, ParamType::Tensor(_))
}

/// Whether the kernel returns its result as a C value.
pub(in crate::lower) fn returns_value(ret: &ParamType) -> bool {
    matches!(ret, ParamType::Scalar(_) | ParamType::DType | ParamType::Device)
}

/// The C value that a kernel returns for its result.
pub(in crate::lower) fn returned(ret: &ParamType) -> Option<(CType, AbiParam)> {
    let (c_type, abi) = match ret {
        ParamType::Scalar(ty) => (scalar_c(*ty), abi_param(*ty)),
        ParamType::DType => ("DLDataType", DTYPE),
        ParamType::Device => ("DLDevice", DEVICE),
        _ => return None,
    };
    Some((CType::Value(c_type), abi))
}

/// A `DLDataType` by value.
const DTYPE: AbiParam = AbiParam::aggregate(Type::I32);
/// A `DLDevice` by value.
const DEVICE: AbiParam = AbiParam::aggregate(Type::I64);

/// The value that a kernel of a signature writes beside its status; `None` where it returns none, or writes a `TVMFFIAny`.
pub(in crate::lower) fn beside_status(
    signature: &Signature,
    convention: Convention,
    returns: KernelReturn,
) -> Option<(CType, AbiParam)> {
    let beside = returns == KernelReturn::Status && convention != Convention::Packed;
    signature.ret().filter(|_| beside).and_then(returned)
}

/// Calls `each` with the C parameters of a kernel, in order.
pub(in crate::lower) fn for_each_param(
    signature: &Signature,
    convention: Convention,
    returns: KernelReturn,
    each: &mut dyn FnMut(&Name<'_>, CType, AbiParam),
) {
    let mut walk = Walk { convention, each };
    let whole = Name::Whole;
    if convention == Convention::Packed {
        walk.pointer(&whole("handle"), "void");
        walk.pointer(&whole("args"), "const TVMFFIAny");
        walk.value(&whole("num_args"), "int32_t", AbiParam::signed(Type::I32));
        walk.pointer(&whole("result"), "TVMFFIAny");
        return;
    }
    for param in signature.params() {
        walk.of_type(&whole(&param.name), &param.ty);
    }
    if let Some(ParamType::Tensor(tensor)) = signature.ret() {
        walk.tensor(&whole("result"), tensor);
    }
    if convention == Convention::Flat {
        for symbol in signature.symbols() {
            walk.i64(&whole(symbol), "int64_t");
        }
    }
    if signature.ret().is_some_and(writes_result) {
        walk.pointer(&whole("result"), "TVMFFIAny");
    }
    if let Some((CType::Value(c_type), _)) = beside_status(signature, convention, returns) {
        walk.pointer(&whole("result"), c_type);
    }
}

/// The prototype of a kernel.
pub(in crate::lower) fn func_sig(signature: &Signature, convention: Convention, returns: KernelReturn) -> FuncSig {
    let mut params = Vec::new();
    for_each_param(signature, convention, returns, &mut |_, _, abi| params.push(abi));
    let ret = match returns {
        KernelReturn::Nothing => None,
        KernelReturn::Status => Some(AbiParam::signed(Type::I32)),
        KernelReturn::Value => signature.ret().and_then(returned).map(|(_, abi)| abi),
    };
    FuncSig { params, ret }
}

struct Walk<'a> {
    convention: Convention,
    each: &'a mut dyn FnMut(&Name<'_>, CType, AbiParam),
}

impl Walk<'_> {
    fn value(&mut self, name: &Name<'_>, c_type: &'static str, abi: AbiParam) {
        (self.each)(name, CType::Value(c_type), abi);
    }

    fn i64(&mut self, name: &Name<'_>, c_type: &'static str) {
        self.value(name, c_type, AbiParam::new(Type::I64));
    }

    fn pointer(&mut self, name: &Name<'_>, to: &'static str) {
        (self.each)(name, CType::PointerTo(to), AbiParam::new(Type::Ptr));
    }

    /// A pointer by C's name for it.
    fn handle(&mut self, name: &Name<'_>) {
        self.value(name, "TVMFFIObjectHandle", AbiParam::new(Type::Ptr));
    }

    fn span(&mut self, name: &Name<'_>, of: &'static str) {
        self.pointer(name, of);
        self.i64(&Name::Piece(name, "size"), "size_t");
    }

    fn of_type(&mut self, name: &Name<'_>, ty: &ParamType) {
        match ty {
            ParamType::Scalar(ty) => self.value(name, scalar_c(*ty), abi_param(*ty)),
            ParamType::Tensor(tensor) => self.tensor(name, tensor),
            ParamType::Str | ParamType::Bytes => self.span(name, "const char"),
            ParamType::DType => self.value(name, "DLDataType", DTYPE),
            ParamType::Device => self.value(name, "DLDevice", DEVICE),
            ParamType::Shape(_) => self.span(name, "const int64_t"),
            ParamType::Any => self.pointer(name, "const TVMFFIAny"),
            ParamType::None | ParamType::Int(_) | ParamType::Bool(_) => {}
            ParamType::Function
            | ParamType::Module
            | ParamType::Object(_)
            | ParamType::List(_)
            | ParamType::Map(..)
            | ParamType::Dict(..) => self.handle(name),
            ParamType::Array(_) => self.span(name, "const TVMFFIAny"),
            ParamType::EnvStream | ParamType::EnvState(_) => self.pointer(name, "void"),
            ParamType::Optional(inner) => {
                if !has_null(inner) {
                    self.value(&Name::Piece(name, "given"), "uint8_t", abi_param(ScalarType::Bool));
                }
                self.of_type(name, inner);
            }
            ParamType::Tuple(items) => {
                for (i, item) in items.iter().enumerate() {
                    self.of_type(&Name::Item(name, i), item);
                }
            }
        }
    }

    fn tensor(&mut self, name: &Name<'_>, tensor: &TensorType) {
        match self.convention.form(tensor) {
            TensorForm::Descriptor => self.pointer(name, "DLTensor"),
            TensorForm::Data if tensor.is_opaque() => {
                self.pointer(name, "void");
                self.i64(&Name::Piece(name, "byte_offset"), "uint64_t");
            }
            TensorForm::Data => self.pointer(name, element_c(tensor)),
            TensorForm::MemRef => {
                for piece in ["allocated", "aligned"] {
                    self.pointer(&Name::Piece(name, piece), element_c(tensor));
                }
                self.i64(&Name::Piece(name, "offset"), "int64_t");
                for piece in ["size", "stride"] {
                    for d in 0..tensor.shape.rank().unwrap_or(0) as u32 {
                        self.i64(&Name::Dim(name, piece, d), "int64_t");
                    }
                }
            }
        }
    }
}

fn scalar_c(ty: ScalarType) -> &'static str {
    match ty {
        ScalarType::Int8 => "int8_t",
        ScalarType::Int16 => "int16_t",
        ScalarType::Int32 => "int32_t",
        ScalarType::Int64 => "int64_t",
        ScalarType::UInt8 | ScalarType::Bool => "uint8_t",
        ScalarType::UInt16 => "uint16_t",
        ScalarType::UInt32 => "uint32_t",
        ScalarType::UInt64 => "uint64_t",
        ScalarType::Float32 => "float",
        ScalarType::Float64 => "double",
        ScalarType::Handle => "void*",
    }
}

/// The C type of an element; `void` where C has none.
#[allow(non_upper_case_globals)] // the header's own names
fn element_c(tensor: &TensorType) -> &'static str {
    let Some(DLDataType { code, bits, lanes: 1 }) = tensor.exact_dtype() else { return "void" };
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
        // the 8-bit floats
        (7..=14, 8) => "uint8_t",
        _ => "void",
    }
}

/// The C type of a scalar, as it is passed.
pub(in crate::lower) fn abi_param(ty: ScalarType) -> AbiParam {
    let ir_type = match ty.bits() {
        _ if ty == ScalarType::Handle => Type::Ptr,
        32 if ty.is_float() => Type::F32,
        64 if ty.is_float() => Type::F64,
        8 => Type::I8,
        16 => Type::I16,
        32 => Type::I32,
        _ => Type::I64,
    };
    let ext = match ir_type {
        Type::I8 | Type::I16 | Type::I32 if ty.is_signed_int() => Extension::Signed,
        Type::I8 | Type::I16 | Type::I32 => Extension::Unsigned,
        _ => Extension::None,
    };
    AbiParam { ty: ir_type, ext, aggregate: false }
}

/// The prototype of a kernel of convention `flat`.
pub fn flat_signature(signature: &Signature, returns: KernelReturn) -> FuncSig {
    func_sig(signature, Convention::Flat, returns)
}
