//! What a wrapper calls, and how: the kernel, its convention, what it gives back.

pub(super) mod convention;
mod names;
mod prototype;

use std::ffi::c_void;
use std::fmt;
use std::sync::Arc;

use super::OWN_SYMBOLS;
use super::body::Body;
use super::error::LowerError;
use crate::ir::{self, AbiParam, Extension, FuncSig, Type};
use crate::spec::{ParamType, ScalarType, Signature, TensorType};
use tvm_ffi_runtime::abi::symbol;

pub use convention::Convention;
use convention::{returns_value, writes_result};
pub use prototype::{c_header, c_prototype};

/// What a native kernel gives back.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum KernelReturn {
    /// `void`: it can't fail.
    Nothing,
    /// `int32_t`: 0 for success; anything else is passed up as it is, with whatever error the kernel raised.
    Status,
    /// The value that the signature names.
    Value,
}

type BodyFn = Arc<dyn Fn(&Body<'_>) + Send + Sync>;

/// The code behind a wrapper.
///
/// A native kernel is called by a [`Convention`], `flat` unless stated. For
/// `scale(x: Tensor([n], float32), f: float64)`:
///
/// ```c
/// void scale(float* x, double f, int64_t n);
/// ```
#[derive(Clone)]
pub struct Kernel(pub(super) Kind);

#[derive(Clone)]
pub(super) enum Kind {
    CheckOnly,
    Body(BodyFn),
    Symbol { name: String, how: How },
    Address { address: u64, how: How },
}

/// How a native kernel is called.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct How {
    pub convention: Convention,
    returns: Option<KernelReturn>,
}

impl Kernel {
    /// No kernel: the wrapper checks its arguments and returns nothing.
    pub const fn check_only() -> Self {
        Kernel(Kind::CheckOnly)
    }

    /// A body, written by `build` into the module of the wrapper each time that it is lowered.
    pub fn body(build: impl Fn(&Body<'_>) + Send + Sync + 'static) -> Self {
        Kernel(Kind::Body(Arc::new(build)))
    }

    /// A C function by its symbol, found when the module is linked or loaded.
    ///
    /// Some symbols are no kernel's: those that begin with `TVMFFI`, `llvm.` or `.L`, and those that a library has for itself, such as
    /// `__tvm_ffi__library_ctx`.
    pub fn symbol(name: impl Into<String>) -> Self {
        Kernel(Kind::Symbol { name: name.into(), how: How::default() })
    }

    /// A C function at an address of this process. Such a wrapper runs only in this process.
    pub fn address(address: *const c_void) -> Self {
        Kernel(Kind::Address { address: address as u64, how: How::default() })
    }

    /// States what a native kernel gives back. Unless stated, it is the signature's value; a status where the kernel writes its result, or
    /// has the packed convention; else nothing.
    pub fn returning(mut self, what: KernelReturn) -> Self {
        if let Some(how) = self.how_mut() {
            how.returns = Some(what);
        }
        self
    }

    /// States how a native kernel is called.
    pub fn convention(mut self, convention: Convention) -> Self {
        if let Some(how) = self.how_mut() {
            how.convention = convention;
        }
        self
    }

    fn how_mut(&mut self) -> Option<&mut How> {
        match &mut self.0 {
            Kind::CheckOnly | Kind::Body(_) => None,
            Kind::Symbol { how, .. } | Kind::Address { how, .. } => Some(how),
        }
    }

    /// How it takes its arguments; a body as by `flat`.
    pub(super) fn called_by(&self) -> Convention {
        match &self.0 {
            Kind::CheckOnly | Kind::Body(_) => Convention::Flat,
            Kind::Symbol { how, .. } | Kind::Address { how, .. } => how.convention,
        }
    }

    /// Whether the kernel fits the signature.
    pub(super) fn check(&self, signature: &Signature) -> Result<(), LowerError> {
        let function = || signature.name().to_owned();
        if let Kind::Symbol { name, .. } = &self.0
            && (name.is_empty() || name.contains('\0'))
        {
            return Err(LowerError::KernelName { function: function(), symbol: name.clone() });
        }
        if let Kind::Symbol { name, .. } = &self.0
            && let Some(meaning) = reserved_symbol(name)
        {
            let (symbol, meaning) = (name.clone(), meaning.to_owned());
            return Err(LowerError::ReservedSymbol { function: function(), symbol, meaning });
        }
        if let Kind::Address { address: 0, .. } = self.0 {
            let problem = "is at address NULL".to_owned();
            return Err(LowerError::KernelReturn { function: function(), problem });
        }
        if let Some(problem) = self.convention_problem(signature) {
            return Err(LowerError::Convention { function: function(), convention: self.called_by(), problem });
        }
        match self.return_problem(signature) {
            Some(problem) => Err(LowerError::KernelReturn { function: function(), problem }),
            None => Ok(()),
        }
    }

    /// Why the convention can't pass what the signature has.
    fn convention_problem(&self, signature: &Signature) -> Option<String> {
        match self.called_by() {
            Convention::Flat | Convention::DlTensor => None,
            Convention::MemRef => {
                let mut problem = None;
                let mut look = |tensor: &TensorType| {
                    if tensor.shape.rank().is_none() {
                        problem = Some(format!("{tensor} has any rank"));
                    } else if tensor.is_opaque() {
                        problem = Some(format!("{tensor} has an opaque handle for data"));
                    } else if tensor.device.kind().is_none() {
                        problem = Some(format!("{tensor} may have an opaque handle for data"));
                    }
                };
                signature.params().iter().for_each(|param| passed_tensors(&param.ty, &mut look));
                match signature.ret() {
                    Some(ParamType::Tensor(tensor)) if tensor.is_opaque() => look(tensor),
                    _ => {}
                }
                problem
            }
            Convention::Packed => match signature.ret() {
                Some(ParamType::Tensor(_)) => {
                    Some("a tensor that the wrapper allocates has no place among the arguments".to_owned())
                }
                _ => None,
            },
        }
    }

    fn return_problem(&self, signature: &Signature) -> Option<String> {
        let returns = self.returns(signature);
        let Some(ty) = signature.ret() else {
            return match returns {
                Some(KernelReturn::Value) => Some("returns a value, and the signature returns nothing".to_owned()),
                Some(KernelReturn::Nothing) if self.called_by() == Convention::Packed => {
                    Some("has to return a status, as its convention says".to_owned())
                }
                _ => None,
            };
        };
        match (&self.0, returns) {
            (Kind::CheckOnly, _) => {
                Some(format!("is missing: the signature returns {ty}, which only a kernel can make"))
            }
            (Kind::Body(_), _) if writes_result(ty) || ty.as_scalar().is_none() && returns_value(ty) => {
                Some(format!("is a body, and bodies don't return {ty}"))
            }
            (_, Some(KernelReturn::Value)) if self.called_by() == Convention::Packed => {
                Some("has to return a status, as its convention says".to_owned())
            }
            (_, Some(KernelReturn::Nothing)) if self.called_by() == Convention::Packed => {
                Some("has to return a status, as its convention says".to_owned())
            }
            (_, Some(KernelReturn::Nothing | KernelReturn::Status))
                if returns_value(ty) && self.called_by() != Convention::Packed =>
            {
                Some(format!("has to return {ty}, as the signature does"))
            }
            (_, Some(KernelReturn::Nothing | KernelReturn::Value)) if writes_result(ty) => {
                Some(format!("has to return a status, as it writes its {ty}"))
            }
            (_, Some(KernelReturn::Value)) if !returns_value(ty) => {
                Some(format!("returns a value, and its {ty} is passed to it"))
            }
            _ => None,
        }
    }

    /// Whether the module can import the kernel's symbol as the signature needs it; `wrapper` is the wrapper's own.
    pub(super) fn check_symbol(
        &self,
        signature: &Signature,
        wrapper: &str,
        module: &ir::Module,
    ) -> Result<(), LowerError> {
        let Kind::Symbol { name, .. } = &self.0 else { return Ok(()) };
        let found = match *name == wrapper {
            true => Some(DEFINED.to_owned()),
            false => import_conflict(module, name, &self.func_sig(signature)),
        };
        found.map_or(Ok(()), |found| {
            let function = signature.name().to_owned();
            Err(LowerError::SymbolConflict { function, symbol: name.clone(), found })
        })
    }

    /// What a native kernel returns; `None` for a body or no kernel.
    pub(super) fn returns(&self, signature: &Signature) -> Option<KernelReturn> {
        let how = match &self.0 {
            Kind::CheckOnly | Kind::Body(_) => return None,
            Kind::Symbol { how, .. } | Kind::Address { how, .. } => how,
        };
        let default = match signature.ret() {
            _ if how.convention == Convention::Packed => KernelReturn::Status,
            Some(ty) if returns_value(ty) => KernelReturn::Value,
            Some(ty) if writes_result(ty) => KernelReturn::Status,
            _ => KernelReturn::Nothing,
        };
        Some(how.returns.unwrap_or(default))
    }

    /// The prototype of a native kernel.
    pub(super) fn func_sig(&self, signature: &Signature) -> FuncSig {
        let returns = self.returns(signature).unwrap_or(KernelReturn::Nothing);
        convention::func_sig(signature, self.called_by(), returns)
    }
}

/// Tensors that are passed one by one: not those in containers.
fn passed_tensors(ty: &ParamType, f: &mut dyn FnMut(&TensorType)) {
    match ty {
        ParamType::Tensor(tensor) => f(tensor),
        ParamType::Optional(_) | ParamType::Tuple(_) => {
            ty.inner().into_iter().for_each(|inner| passed_tensors(inner, f));
        }
        _ => {}
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::CheckOnly => f.write_str("Kernel::CheckOnly"),
            Kind::Body(_) => f.write_str("Kernel::Body"),
            Kind::Symbol { name, how } => write!(f, "Kernel::Symbol({name:?}, {how:?})"),
            Kind::Address { address, how } => write!(f, "Kernel::Address({address:#x}, {how:?})"),
        }
    }
}

/// What a symbol is that can't be a kernel's, whatever the module has.
fn reserved_symbol(name: &str) -> Option<&'static str> {
    // that of a system library has a prefix before it
    let of_libraries = [symbol::LIBRARY_CTX, symbol::LIBRARY_BIN, symbol::METADATA, symbol::DOC];
    match name {
        // generated code calls these by prototypes of their own
        _ if name.starts_with("TVMFFI") => Some("reserved for the C API"),
        _ if of_libraries.iter().any(|of_library| name.contains(of_library)) => {
            Some("reserved for what a library carries")
        }
        // no function has such a name: it is a part of the wrapper
        _ if name.starts_with(symbol::FUNCTION) && name.contains('-') => Some("reserved for parts of wrappers"),
        _ if name.starts_with(".L") => Some("a label that assemblers keep to themselves"),
        _ if name.starts_with("llvm.") => Some("reserved for the intrinsics of LLVM"),
        _ if name.starts_with('\u{1}') => Some("taken by LLVM for the name behind the first character"),
        _ => None,
    }
}

const DEFINED: &str = "a function that it defines";

/// What stands in the way of importing a symbol: something else of that name.
pub(super) fn import_conflict(module: &ir::Module, name: &str, signature: &FuncSig) -> Option<String> {
    if module.data.values().any(|data| data.name == name) {
        return Some("data".to_owned());
    }
    // the routines that wrappers share are defined once all that uses them is there
    if name.starts_with(OWN_SYMBOLS) {
        return Some(DEFINED.to_owned());
    }
    let (_, known) = module.function_named(name)?;
    match known.linkage {
        ir::Linkage::Import if known.signature == *signature => None,
        ir::Linkage::Import => Some(format!("an import of another prototype, {}", known.signature)),
        _ => Some(DEFINED.to_owned()),
    }
}

/// The C type of a scalar, as it is passed.
pub(super) fn abi_param(ty: ScalarType) -> AbiParam {
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
    convention::func_sig(signature, Convention::Flat, returns)
}
