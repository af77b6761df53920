//! The kernel behind a wrapper: its code, how control gets to it, its convention and its C result.

use std::ffi::c_void;
use std::fmt;
use std::sync::Arc;

use super::body::{Body, BodyFn};
use super::convention::{Convention, KernelReturn, params, returns_value, writes_result};
use super::error::LowerError;
use super::unit::{self, import_conflict};
use crate::ir::{self, FuncSig};
use crate::spec::{ParamType, Signature, TensorType};
use tvm_ffi_runtime::abi::symbol;

/// The code behind a wrapper.
///
/// A native kernel is called by a [`Convention`], `flat` unless stated. For
/// `scale(x: Tensor([n], float32), f: float64)`:
///
/// ```c
/// void scale(float* x, double f, int64_t n);
/// ```
#[derive(Clone)]
pub struct Kernel {
    pub(super) code: KernelCode,
    /// A method that only native kernels have a use for, called on another kernel.
    misused: Option<&'static str>,
}

/// The code of a kernel.
#[derive(Clone)]
pub(super) enum KernelCode {
    CheckOnly,
    Body(BodyFn),
    Native { target: Target, call: CallSpec },
}

/// How control gets to a native kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Target {
    /// By a call of an imported symbol.
    Symbol(String),
    /// By a call of an address of this process.
    Address(u64),
}

/// How a native kernel takes its arguments and gives its result.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CallSpec {
    convention: Convention,
    returns: Option<KernelReturn>,
}

impl Kernel {
    const fn new(code: KernelCode) -> Self {
        Kernel { code, misused: None }
    }

    fn native(target: Target) -> Self {
        Self::new(KernelCode::Native { target, call: CallSpec::default() })
    }

    /// No kernel: the wrapper checks its arguments and returns nothing.
    pub const fn check_only() -> Self {
        Self::new(KernelCode::CheckOnly)
    }

    /// A body, written by `build` into the module of the wrapper each time that it is lowered.
    pub fn body(build: impl Fn(&Body<'_>) + Send + Sync + 'static) -> Self {
        Self::new(KernelCode::Body(Arc::new(build)))
    }

    /// A body that is shared.
    pub(super) fn of_body(build: BodyFn) -> Self {
        Self::new(KernelCode::Body(build))
    }

    /// A C function by its symbol, found when the module is linked or loaded.
    ///
    /// Some symbols are no kernel's: those that begin with `TVMFFI`, `llvm.` or `.L`, and those that a library has for itself, such as
    /// `__tvm_ffi__library_ctx`.
    pub fn symbol(name: impl Into<String>) -> Self {
        Self::native(Target::Symbol(name.into()))
    }

    /// A C function at an address of this process. Such a wrapper runs only in this process.
    pub fn address(address: *const c_void) -> Self {
        Self::native(Target::Address(address as u64))
    }

    /// States the C result of a native kernel. Unless stated, it is the signature's value; a status where the kernel writes its result, or
    /// has the packed convention; else nothing. For a kernel that isn't native this is a mistake, [`LowerError::NotNative`], which is
    /// reported when the wrapper is made.
    pub fn returning(self, what: KernelReturn) -> Self {
        self.state("returning", |call| call.returns = Some(what))
    }

    /// States the calling convention of a native kernel. For a kernel that isn't native this is a mistake, as for
    /// [`returning`](Self::returning).
    pub fn convention(self, convention: Convention) -> Self {
        self.state("convention", |call| call.convention = convention)
    }

    fn state(mut self, method: &'static str, set: impl FnOnce(&mut CallSpec)) -> Self {
        match &mut self.code {
            KernelCode::CheckOnly | KernelCode::Body(_) => self.misused = Some(method),
            KernelCode::Native { call, .. } => set(call),
        }
        self
    }

    /// How control gets to a native kernel; `None` for a body or no kernel.
    pub(super) fn target(&self) -> Option<&Target> {
        match &self.code {
            KernelCode::CheckOnly | KernelCode::Body(_) => None,
            KernelCode::Native { target, .. } => Some(target),
        }
    }

    /// The convention that lays the parameters out; `flat` for a body.
    pub(super) fn stated_convention(&self) -> Convention {
        match &self.code {
            KernelCode::CheckOnly | KernelCode::Body(_) => Convention::Flat,
            KernelCode::Native { call, .. } => call.convention,
        }
    }

    /// Whether the kernel fits the signature.
    pub(super) fn check(&self, signature: &Signature) -> Result<(), LowerError> {
        let function = || signature.name().to_owned();
        match self.target() {
            Some(Target::Symbol(name)) if name.is_empty() || name.contains('\0') => {
                return Err(LowerError::KernelName { function: function(), symbol: name.clone() });
            }
            Some(Target::Symbol(name)) if let Some(meaning) = reserved_symbol(name) => {
                let (symbol, meaning) = (name.clone(), meaning.to_owned());
                return Err(LowerError::ReservedSymbol { function: function(), symbol, meaning });
            }
            Some(Target::Address(0)) => return Err(LowerError::NullAddress { function: function() }),
            Some(Target::Symbol(_) | Target::Address(_)) | None => {}
        }
        if let Some(method) = self.misused {
            let kernel = if matches!(self.code, KernelCode::Body(_)) { "a body" } else { "check-only" };
            return Err(LowerError::NotNative { function: function(), kernel, method });
        }
        if let Some(problem) = self.convention_problem(signature) {
            return Err(LowerError::Convention { function: function(), convention: self.stated_convention(), problem });
        }
        match self.return_problem(signature) {
            Some(problem) => Err(LowerError::KernelReturn { function: function(), problem }),
            None => Ok(()),
        }
    }

    /// Why the convention can't pass what the signature has.
    fn convention_problem(&self, signature: &Signature) -> Option<String> {
        match self.stated_convention() {
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
                Some(KernelReturn::Nothing) if self.stated_convention() == Convention::Packed => {
                    Some("has to return a status, as its convention says".to_owned())
                }
                _ => None,
            };
        };
        match (&self.code, returns) {
            (KernelCode::CheckOnly, _) => {
                Some(format!("is missing: the signature returns {ty}, which only a kernel can make"))
            }
            (KernelCode::Body(_), _) if ty.as_scalar().is_none() && returns_value(ty) => {
                Some(format!("is a body, and bodies don't return {ty}"))
            }
            (_, Some(KernelReturn::Value)) if self.stated_convention() == Convention::Packed => {
                Some("has to return a status, as its convention says".to_owned())
            }
            (_, Some(KernelReturn::Nothing)) if self.stated_convention() == Convention::Packed => {
                Some("has to return a status, as its convention says".to_owned())
            }
            (_, Some(KernelReturn::Nothing)) if returns_value(ty) => {
                Some(format!("has to return {ty}, as the signature does, or a status and write it"))
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
        let Some(Target::Symbol(name)) = self.target() else { return Ok(()) };
        let found = match *name == wrapper {
            true => Some(unit::DEFINED.to_owned()),
            false => import_conflict(module, name, &self.func_sig(signature)),
        };
        found.map_or(Ok(()), |found| {
            let function = signature.name().to_owned();
            Err(LowerError::SymbolConflict { function, symbol: name.clone(), found })
        })
    }

    /// What a native kernel returns; `None` for a body or no kernel.
    pub(super) fn returns(&self, signature: &Signature) -> Option<KernelReturn> {
        let KernelCode::Native { call, .. } = &self.code else { return None };
        let default = match signature.ret() {
            _ if call.convention == Convention::Packed => KernelReturn::Status,
            Some(ty) if returns_value(ty) => KernelReturn::Value,
            Some(ty) if writes_result(ty) => KernelReturn::Status,
            _ => KernelReturn::Nothing,
        };
        Some(call.returns.unwrap_or(default))
    }

    /// The prototype of a native kernel.
    pub(super) fn func_sig(&self, signature: &Signature) -> FuncSig {
        let returns = self.returns(signature).unwrap_or(KernelReturn::Nothing);
        params::func_sig(signature, self.stated_convention(), returns)
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
        match &self.code {
            KernelCode::CheckOnly => f.write_str("Kernel::CheckOnly"),
            KernelCode::Body(_) => f.write_str("Kernel::Body"),
            KernelCode::Native { target: Target::Symbol(name), call } => {
                write!(f, "Kernel::Symbol({name:?}, {call:?})")
            }
            KernelCode::Native { target: Target::Address(address), call } => {
                write!(f, "Kernel::Address({address:#x}, {call:?})")
            }
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
