//! What a wrapper calls, and how: the kernel and the `flat` convention.

use std::ffi::c_void;
use std::fmt;
use std::sync::Arc;

use super::body::Body;
use super::error::LowerError;
use crate::ir::{self, AbiParam, Extension, FuncSig, Type};
use crate::spec::{ParamType, ScalarType, Signature};

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
/// Native kernels are called by the convention `flat`: for each parameter in order, a data pointer (`byte_offset`
/// added; on a device with opaque handles the handle and then the offset as `uint64_t`) or a scalar of its C type; then each
/// symbol of the signature as `int64_t`, in order of first appearance. For
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
    Symbol { name: String, returns: Option<KernelReturn> },
    Address { address: u64, returns: Option<KernelReturn> },
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
    pub fn symbol(name: impl Into<String>) -> Self {
        Kernel(Kind::Symbol { name: name.into(), returns: None })
    }

    /// A C function at an address of this process. Such a wrapper runs only in this process.
    pub fn address(address: *const c_void) -> Self {
        Kernel(Kind::Address { address: address as u64, returns: None })
    }

    /// States what a native kernel gives back. Unless stated, it is the signature's value, or nothing.
    pub fn returning(mut self, what: KernelReturn) -> Self {
        if let Kind::Symbol { returns, .. } | Kind::Address { returns, .. } = &mut self.0 {
            *returns = Some(what);
        }
        self
    }

    /// Whether the kernel fits the signature.
    pub(super) fn check(&self, signature: &Signature) -> Result<(), LowerError> {
        let function = || signature.name().to_owned();
        if let Kind::Symbol { name, .. } = &self.0
            && (name.is_empty() || name.contains('\0'))
        {
            return Err(LowerError::KernelName { function: function(), symbol: name.clone() });
        }
        if let Kind::Address { address: 0, .. } = self.0 {
            let problem = "is at address NULL".to_owned();
            return Err(LowerError::KernelReturn { function: function(), problem });
        }
        let problem = match (signature.ret(), self.returns(signature)) {
            (Some(ty), Some(KernelReturn::Nothing | KernelReturn::Status)) => {
                format!("has to return {ty}, as the signature does")
            }
            (None, Some(KernelReturn::Value)) => "returns a value, and the signature returns nothing".to_owned(),
            (Some(ty), None) if matches!(self.0, Kind::CheckOnly) => {
                format!("is missing: the signature returns {ty}, which only a kernel can make")
            }
            _ => return Ok(()),
        };
        Err(LowerError::KernelReturn { function: function(), problem })
    }

    /// Whether the module can import the kernel's symbol as the signature needs it.
    pub(super) fn check_symbol(&self, signature: &Signature, module: &ir::Module) -> Result<(), LowerError> {
        let Kind::Symbol { name, .. } = &self.0 else { return Ok(()) };
        let returns = self.returns(signature).unwrap_or(KernelReturn::Nothing);
        let found = match *name == signature.symbol() {
            true => Some(DEFINED.to_owned()),
            false => import_conflict(module, name, &flat_signature(signature, returns)),
        };
        found.map_or(Ok(()), |found| {
            let function = signature.name().to_owned();
            Err(LowerError::SymbolConflict { function, symbol: name.clone(), found })
        })
    }

    /// What a native kernel returns; `None` for a body or no kernel.
    pub(super) fn returns(&self, signature: &Signature) -> Option<KernelReturn> {
        let default = if signature.ret().is_some() { KernelReturn::Value } else { KernelReturn::Nothing };
        match &self.0 {
            Kind::CheckOnly | Kind::Body(_) => None,
            Kind::Symbol { returns, .. } | Kind::Address { returns, .. } => Some(returns.unwrap_or(default)),
        }
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::CheckOnly => f.write_str("Kernel::CheckOnly"),
            Kind::Body(_) => f.write_str("Kernel::Body"),
            Kind::Symbol { name, returns } => write!(f, "Kernel::Symbol({name:?}, {returns:?})"),
            Kind::Address { address, returns } => write!(f, "Kernel::Address({address:#x}, {returns:?})"),
        }
    }
}

const DEFINED: &str = "a function that it defines";

/// What stands in the way of importing a symbol: something else of that name.
pub(super) fn import_conflict(module: &ir::Module, name: &str, signature: &FuncSig) -> Option<String> {
    if module.data.values().any(|data| data.name == name) {
        return Some("data".to_owned());
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
    AbiParam { ty: ir_type, ext }
}

/// The prototype of a kernel of convention `flat`.
pub fn flat_signature(signature: &Signature, returns: KernelReturn) -> FuncSig {
    let mut params = Vec::new();
    for param in signature.params() {
        match &param.ty {
            ParamType::Scalar(ty) => params.push(abi_param(*ty)),
            ParamType::Tensor(tensor) => {
                params.push(AbiParam::new(Type::Ptr));
                if tensor.is_opaque() {
                    params.push(AbiParam::new(Type::I64));
                }
            }
        }
    }
    params.extend(signature.symbols().iter().map(|_| AbiParam::new(Type::I64)));
    let ret = match returns {
        KernelReturn::Nothing => None,
        KernelReturn::Status => Some(AbiParam::signed(Type::I32)),
        KernelReturn::Value => signature.ret().map(abi_param),
    };
    FuncSig { params, ret }
}
