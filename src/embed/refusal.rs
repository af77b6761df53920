//! Checks before a wrapper is added: the module's machine, and whether the kernel is called as its signature says.

use super::error::EmbedError;
use crate::ir::{AbiParam, Extension, FuncSig};
use crate::lower::{Kernel, KernelParam, KernelReturn, LowerError, PrototypeProblem};
use crate::spec::Signature;

/// The error for a module of an unsupported machine.
pub(super) fn machine(target: impl Into<String>, problem: impl Into<String>) -> EmbedError {
    EmbedError::Machine { target: target.into(), problem: problem.into() }
}

pub(super) const NARROW: &str = "its pointers have 32 bits, and wrappers need pointers of 64";

/// The expected prototype of a native kernel that is a function of the caller's module.
pub(super) struct Expected<'a> {
    signature: &'a Signature,
    kernel: Kernel,
    /// The function's name in the module.
    symbol: String,
    params: Vec<KernelParam>,
    pub(super) sig: FuncSig,
}

impl<'a> Expected<'a> {
    pub(super) fn new(signature: &'a Signature, kernel: &Kernel, symbol: &str) -> Result<Self, LowerError> {
        let (params, sig) = (kernel.parameters(signature)?, kernel.prototype(signature)?);
        Ok(Expected { signature, kernel: kernel.clone(), symbol: symbol.to_owned(), params, sig })
    }

    pub(super) fn refuse(&self, problem: PrototypeProblem) -> LowerError {
        let prototype = |symbol: &str| self.kernel.prototype_in_c(self.signature, symbol);
        // the function has no name, or a name that no kernel can have
        let prototype = prototype(&self.symbol).or_else(|_| prototype("kernel")).unwrap_or_default();
        LowerError::Prototype {
            function: self.signature.name().to_owned(),
            kernel: self.symbol.clone(),
            problem: Box::new(problem),
            prototype,
        }
    }

    /// Whether the kernel takes structs by value. The function then has other parameters than the prototype.
    pub(super) fn takes_structs(&self) -> bool {
        takes_structs(&self.sig)
    }

    /// The error for a function that takes structs by value in another way than the target's C ABI.
    pub(super) fn structs(&self, found: &str, expected: &str) -> LowerError {
        self.refuse(PrototypeProblem::Structs { found: found.to_owned(), expected: expected.to_owned() })
    }

    /// A description of a parameter for messages, by its index in the prototype.
    pub(super) fn param(&self, index: usize) -> String {
        match self.params.get(index) {
            Some(param) => format!("parameter `{param}`"),
            None => format!("parameter {}, which the prototype doesn't have,", index + 1),
        }
    }

    /// The error for a wrong number of parameters, with the missing ones and a hint. `fits` returns whether the
    /// function has a given prototype.
    pub(super) fn count(&self, found: usize, fits: impl Fn(&FuncSig) -> bool) -> LowerError {
        let missing = self.params.get(found..).unwrap_or_default().to_vec();
        let (passed, fits) = (self.params.len(), self.fitting(fits));
        self.refuse(PrototypeProblem::ParamCount { found, passed, missing, fits })
    }

    /// The error for a wrong extension of a narrow integer; `wanted` is the one that the function expects.
    pub(super) fn extension(&self, index: usize, wanted: Option<Extension>) -> Option<LowerError> {
        let AbiParam { ext, .. } = self.sig.params.get(index)?;
        let (signed, unsigned) = ("sign-extended", "zero-extended");
        let (found, passed) = match (ext, wanted?) {
            (Extension::Signed, Extension::Unsigned) => (unsigned, signed),
            (Extension::Unsigned, Extension::Signed) => (signed, unsigned),
            _ => return None,
        };
        Some(self.refuse(PrototypeProblem::Extension { param: self.param(index), found, passed }))
    }

    /// The error for a wrong result, with a hint. `fits` returns whether the function has a given prototype.
    pub(super) fn result(&self, found: String, expected: String, fits: impl Fn(&FuncSig) -> bool) -> LowerError {
        let fits = self.fitting(fits);
        self.refuse(PrototypeProblem::Result { found, expected, fits })
    }

    /// The result that the kernel would have to state for the function to fit.
    fn fitting(&self, fits: impl Fn(&FuncSig) -> bool) -> Option<KernelReturn> {
        let all = [KernelReturn::Nothing, KernelReturn::Status, KernelReturn::Value];
        all.into_iter()
            .find(|returns| self.kernel.clone().returns(*returns).prototype(self.signature).is_ok_and(|sig| fits(&sig)))
    }
}

/// The prototype of a kernel that is to be a function of the caller's module.
pub(super) fn prototype(signature: &Signature, kernel: &Kernel) -> Result<FuncSig, LowerError> {
    let sig = kernel.prototype(signature)?;
    if takes_structs(&sig) {
        let expected = Expected::new(signature, kernel, kernel.linked_symbol().unwrap_or(signature.name()))?;
        return Err(expected.refuse(PrototypeProblem::OwnStruct));
    }
    Ok(sig)
}

fn takes_structs(sig: &FuncSig) -> bool {
    sig.params.iter().any(|param| param.by_value.is_some())
}
