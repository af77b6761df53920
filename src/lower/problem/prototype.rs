//! Problems of a kernel in the caller's module, compared with the prototype that is called.

use super::parts::{Mismatch, mismatch};
use crate::lower::convention::KernelReturn;
use crate::lower::convention::param::KernelParam;

/// How a kernel in the caller's module differs from the prototype. Types are written as the module's backend does.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PrototypeProblem {
    /// The kernel has another number of parameters.
    #[error("takes {found} parameters, and {passed} are passed{}{}", missing_params(.missing), hint(.fits))]
    ParamCount {
        /// The kernel's number of parameters.
        found: usize,
        /// The prototype's number of parameters.
        passed: usize,
        /// The prototype's last parameters, which the kernel doesn't have.
        missing: Vec<KernelParam>,
        /// The C result with which the prototype would be the kernel's, if there is one.
        fits: Option<KernelReturn>,
    },
    /// A parameter has another type.
    #[error("has {param} as `{found}`, and it is passed as `{passed}`{advice}")]
    ParamType {
        /// The parameter, in words.
        param: String,
        /// The kernel's type.
        found: String,
        /// The prototype's type.
        passed: String,
        /// The remedy, or an empty string.
        advice: &'static str,
    },
    /// A narrow integer is extended otherwise.
    #[error("has {param} {found}, and it is passed {passed}")]
    Extension {
        /// The parameter, in words.
        param: String,
        /// How the kernel expects it: `zero-extended` or `sign-extended`.
        found: &'static str,
        /// How it is passed.
        passed: &'static str,
    },
    /// A parameter isn't a plain value.
    #[error(
        "has {param} for a special purpose, `{purpose}`, and wrappers pass plain values: declare an `AbiParam::new`"
    )]
    SpecialParam {
        /// The parameter, in words.
        param: String,
        /// Its purpose.
        purpose: String,
    },
    /// The kernel has another result.
    #[error("returns {found} in place of {expected}{}", hint(.fits))]
    Result {
        /// The kernel's result.
        found: String,
        /// The prototype's result.
        expected: String,
        /// The C result with which the prototype would be the kernel's, if there is one.
        fits: Option<KernelReturn>,
    },
    /// The kernel has another calling convention than C functions.
    #[error(
        "has the calling convention `{found}`, and wrappers call by C's, which is `{expected}` here \
         (`Module::make_signature` begins with it)"
    )]
    CallingConvention {
        /// The kernel's calling convention.
        found: String,
        /// The calling convention of C functions.
        expected: String,
    },
    /// The kernel takes structs by value in another way than the target's C ABI.
    #[error("is `{found}`, and its structs are passed by value as to `{expected}`; link the kernel from an object")]
    Structs {
        /// The kernel's type.
        found: String,
        /// The type with which structs are passed.
        expected: String,
    },
    /// A function of the caller's module takes a struct by value.
    #[error("takes a struct by value, but only functions outside of your module can")]
    OwnStruct,
    /// LLVM passes something of the kernel otherwise than C does.
    #[error("{reason}")]
    NotPlain {
        /// The reason.
        reason: String,
    },
}

fn missing_params(missing: &[KernelParam]) -> String {
    let missing: Vec<String> = missing.iter().map(|param| format!("`{param}` ({})", param.source)).collect();
    if missing.is_empty() { String::new() } else { format!(": {} is missing", missing.join(", ")) }
}

fn hint(fits: &Option<KernelReturn>) -> String {
    fits.map_or_else(String::new, |returns| format!("; it fits if you state `KernelReturn::{returns:?}`"))
}

impl PrototypeProblem {
    pub(in crate::lower) fn mismatch(&self) -> Option<Mismatch> {
        Some(match self {
            PrototypeProblem::ParamCount { found, passed, .. } => mismatch(passed, found),
            PrototypeProblem::ParamType { found, passed, .. } => mismatch(passed, found),
            PrototypeProblem::Extension { found, passed, .. } => mismatch(passed, found),
            PrototypeProblem::Result { found, expected, .. }
            | PrototypeProblem::Structs { found, expected }
            | PrototypeProblem::CallingConvention { found, expected } => mismatch(expected, found),
            PrototypeProblem::SpecialParam { .. } | PrototypeProblem::OwnStruct | PrototypeProblem::NotPlain { .. } => {
                return None;
            }
        })
    }
}
