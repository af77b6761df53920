//! What a wrapper calls, and how: the kernel, its convention, what it gives back.

use std::ffi::c_void;
use std::fmt;
use std::sync::Arc;

use super::body::Body;
use super::convention::{self, Convention, KernelReturn, returns_value, writes_result};
use super::error::LowerError;
use super::unit::{self, import_conflict};
use crate::ir::{self, FuncSig};
use crate::spec::{ParamType, Signature, TensorType};
use tvm_ffi_runtime::abi::symbol;

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
pub struct Kernel(pub(super) Kind, Option<NativeOnly>);

/// A method of [`Kernel`] that only a native kernel has a use for, called on another one.
type NativeOnly = &'static str;

#[derive(Clone)]
pub(super) enum Kind {
    CheckOnly,
    Body(BodyFn),
    Symbol { name: String, how: How },
    Address { address: u64, how: How },
}

/// How control gets to a native kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Target<'a> {
    /// By a call of an imported symbol.
    Symbol(&'a str),
    /// By a call of an address of this process.
    Address(u64),
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
        Kernel(Kind::CheckOnly, None)
    }

    /// A body, written by `build` into the module of the wrapper each time that it is lowered.
    pub fn body(build: impl Fn(&Body<'_>) + Send + Sync + 'static) -> Self {
        Kernel(Kind::Body(Arc::new(build)), None)
    }

    /// A C function by its symbol, found when the module is linked or loaded.
    ///
    /// Some symbols are no kernel's: those that begin with `TVMFFI`, `llvm.` or `.L`, and those that a library has for itself, such as
    /// `__tvm_ffi__library_ctx`.
    pub fn symbol(name: impl Into<String>) -> Self {
        Kernel(Kind::Symbol { name: name.into(), how: How::default() }, None)
    }

    /// A C function at an address of this process. Such a wrapper runs only in this process.
    pub fn address(address: *const c_void) -> Self {
        Kernel(Kind::Address { address: address as u64, how: How::default() }, None)
    }

    /// States what a native kernel gives back. Unless stated, it is the signature's value; a status where the kernel writes its result, or
    /// has the packed convention; else nothing. Of a kernel that isn't native this is a mistake, [`LowerError::NotNative`], which is
    /// reported when the wrapper is made.
    pub fn returning(self, what: KernelReturn) -> Self {
        self.state("returning", |how| how.returns = Some(what))
    }

    /// States how a native kernel is called. Of a kernel that isn't native this is a mistake, as for [`returning`](Self::returning).
    pub fn convention(self, convention: Convention) -> Self {
        self.state("convention", |how| how.convention = convention)
    }

    fn state(mut self, method: NativeOnly, set: impl FnOnce(&mut How)) -> Self {
        match &mut self.0 {
            Kind::CheckOnly | Kind::Body(_) => self.1 = Some(method),
            Kind::Symbol { how, .. } | Kind::Address { how, .. } => set(how),
        }
        self
    }

    /// How control gets to a native kernel; `None` for a body or no kernel.
    pub(super) fn target(&self) -> Option<Target<'_>> {
        match &self.0 {
            Kind::CheckOnly | Kind::Body(_) => None,
            Kind::Symbol { name, .. } => Some(Target::Symbol(name)),
            Kind::Address { address, .. } => Some(Target::Address(*address)),
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
            return Err(LowerError::NullAddress { function: function() });
        }
        if let Some(method) = self.1 {
            let kernel = if matches!(self.0, Kind::Body(_)) { "a body" } else { "check-only" };
            return Err(LowerError::NotNative { function: function(), kernel, method });
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
