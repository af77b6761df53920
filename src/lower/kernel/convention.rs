//! How a kernel is called: its C parameters for a signature.

use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;

use super::{KernelReturn, abi_param, names};
use crate::ir::{AbiParam, FuncSig, Type};
use crate::spec::{ParamType, ScalarType, Signature, TensorType};
use tvm_ffi_runtime::abi::{DLDataType, kDLBfloat, kDLBool, kDLFloat, kDLInt, kDLUInt};

/// How a native kernel takes what the wrapper's checks leave. The contract (`docs/contract.md`, "The kernel") says it in full.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
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
    pub const ALL: [Convention; 4] = [Convention::Flat, Convention::DlTensor, Convention::MemRef, Convention::Packed];

    /// Its name on command lines.
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
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Convention::ALL.into_iter().find(|c| c.name() == text);
        found.ok_or_else(|| format!("expected flat, dltensor, memref or packed, got `{text}`"))
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

/// A C parameter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::lower) struct CParam {
    pub name: String,
    /// As it stands before the name, with a space or `*` at its end.
    pub c_type: String,
    pub abi: AbiParam,
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
pub(in crate::lower) fn returned(ret: &ParamType) -> Option<(&'static str, AbiParam)> {
    match ret {
        ParamType::Scalar(ty) => Some((scalar_c(*ty), abi_param(*ty))),
        ParamType::DType => Some(("DLDataType ", DTYPE)),
        ParamType::Device => Some(("DLDevice ", AbiParam::new(Type::I64))),
        _ => None,
    }
}

/// A `DLDataType` by value: 32 bits, whatever is above them.
const DTYPE: AbiParam = AbiParam { ty: Type::I32, ext: crate::ir::Extension::None };

/// The C parameters of a kernel.
pub(in crate::lower) fn params(signature: &Signature, convention: Convention) -> Vec<CParam> {
    let mut list = List { convention, params: Vec::new(), names: HashSet::new() };
    if convention == Convention::Packed {
        list.add("handle", "void* ", AbiParam::new(Type::Ptr));
        list.add("args", "const TVMFFIAny* ", AbiParam::new(Type::Ptr));
        list.add("num_args", "int32_t ", AbiParam::signed(Type::I32));
        list.add("result", "TVMFFIAny* ", AbiParam::new(Type::Ptr));
        return list.params;
    }
    for param in signature.params() {
        list.of_type(&param.name, &param.ty);
    }
    if let Some(ParamType::Tensor(tensor)) = signature.ret() {
        list.tensor("result", tensor);
    }
    if convention == Convention::Flat {
        for symbol in signature.symbols() {
            list.add(symbol, "int64_t ", AbiParam::new(Type::I64));
        }
    }
    if signature.ret().is_some_and(writes_result) {
        list.add("result", "TVMFFIAny* ", AbiParam::new(Type::Ptr));
    }
    list.params
}

/// The prototype of a kernel.
pub(in crate::lower) fn func_sig(signature: &Signature, convention: Convention, returns: KernelReturn) -> FuncSig {
    let params = params(signature, convention).into_iter().map(|param| param.abi).collect();
    let ret = match returns {
        KernelReturn::Nothing => None,
        KernelReturn::Status => Some(AbiParam::signed(Type::I32)),
        KernelReturn::Value => signature.ret().and_then(returned).map(|(_, abi)| abi),
    };
    FuncSig { params, ret }
}

struct List {
    convention: Convention,
    params: Vec<CParam>,
    names: HashSet<String>,
}

impl List {
    /// Adds a parameter, whose name is made one of its own that C has no other meaning for.
    fn add(&mut self, name: &str, c_type: &str, abi: AbiParam) {
        let mut name = match names::is_free_for_parameter(name) {
            true => name.to_owned(),
            false => format!("p_{name}"),
        };
        while !self.names.insert(name.clone()) {
            name.push('_');
        }
        self.params.push(CParam { name, c_type: c_type.to_owned(), abi });
    }

    fn pointer(&mut self, name: &str, c_type: &str) {
        self.add(name, c_type, AbiParam::new(Type::Ptr));
    }

    fn span(&mut self, name: &str, c_type: &str) {
        self.pointer(name, c_type);
        self.add(&format!("{name}_size"), "size_t ", AbiParam::new(Type::I64));
    }

    fn of_type(&mut self, name: &str, ty: &ParamType) {
        match ty {
            ParamType::Scalar(ty) => self.add(name, scalar_c(*ty), abi_param(*ty)),
            ParamType::Tensor(tensor) => self.tensor(name, tensor),
            ParamType::Str | ParamType::Bytes => self.span(name, "const char* "),
            ParamType::DType => self.add(name, "DLDataType ", DTYPE),
            ParamType::Device => self.add(name, "DLDevice ", AbiParam::new(Type::I64)),
            ParamType::Shape(_) => self.span(name, "const int64_t* "),
            ParamType::Any => self.pointer(name, "const TVMFFIAny* "),
            ParamType::None | ParamType::Int(_) | ParamType::Bool(_) => {}
            ParamType::Function
            | ParamType::Module
            | ParamType::Object(_)
            | ParamType::List(_)
            | ParamType::Map(..)
            | ParamType::Dict(..) => self.pointer(name, "TVMFFIObjectHandle "),
            ParamType::Array(_) => self.span(name, "const TVMFFIAny* "),
            ParamType::EnvStream => self.pointer(name, "void* "),
            ParamType::Optional(inner) => {
                if !has_null(inner) {
                    self.add(&format!("{name}_given"), "uint8_t ", abi_param(ScalarType::Bool));
                }
                self.of_type(name, inner);
            }
            ParamType::Tuple(items) => {
                for (i, item) in items.iter().enumerate() {
                    self.of_type(&format!("{name}_{i}"), item);
                }
            }
        }
    }

    fn tensor(&mut self, name: &str, tensor: &TensorType) {
        let element = format!("{}* ", element_c(tensor));
        match self.convention.form(tensor) {
            TensorForm::Descriptor => self.pointer(name, "DLTensor* "),
            TensorForm::Data if tensor.is_opaque() => {
                self.pointer(name, "void* ");
                self.add(&format!("{name}_byte_offset"), "uint64_t ", AbiParam::new(Type::I64));
            }
            TensorForm::Data => self.pointer(name, &element),
            TensorForm::MemRef => {
                self.pointer(&format!("{name}_allocated"), &element);
                self.pointer(&format!("{name}_aligned"), &element);
                self.add(&format!("{name}_offset"), "int64_t ", AbiParam::new(Type::I64));
                for part in ["size", "stride"] {
                    for d in 0..tensor.shape.rank().unwrap_or(0) {
                        self.add(&format!("{name}_{part}{d}"), "int64_t ", AbiParam::new(Type::I64));
                    }
                }
            }
        }
    }
}

fn scalar_c(ty: ScalarType) -> &'static str {
    match ty {
        ScalarType::Int8 => "int8_t ",
        ScalarType::Int16 => "int16_t ",
        ScalarType::Int32 => "int32_t ",
        ScalarType::Int64 => "int64_t ",
        ScalarType::UInt8 | ScalarType::Bool => "uint8_t ",
        ScalarType::UInt16 => "uint16_t ",
        ScalarType::UInt32 => "uint32_t ",
        ScalarType::UInt64 => "uint64_t ",
        ScalarType::Float32 => "float ",
        ScalarType::Float64 => "double ",
        ScalarType::Handle => "void* ",
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
