//! The runtime helpers, which wrappers share, as wrappers import them.

#[cfg(feature = "_engine")]
use super::Capabilities;
use crate::ir::{FuncRef, FuncSig, Linkage, Module, Type};

/// The symbol of the helper that checks a call's arguments exactly, where wrappers import it.
pub const BIND_SYMBOL: &str = "__tvm_ffi_codegen_bind";
/// The symbol of the helper that takes the result that a kernel has written, where wrappers import it.
pub const TAKE_RESULT_SYMBOL: &str = "__tvm_ffi_codegen_take_result";
/// The symbol of the helper that raises an error, where wrappers import it.
pub const REPORT_SYMBOL: &str = "__tvm_ffi_codegen_report";

/// The symbols of the helpers that launches on the devices of one API call, where wrappers import them.
#[derive(Debug)]
pub(in crate::lower) struct LaunchHelpers {
    pub first_use: &'static str,
    pub report: &'static str,
}

pub(in crate::lower) const CUDA_HELPERS: LaunchHelpers =
    LaunchHelpers { first_use: "__tvm_ffi_codegen_cuda_first_use", report: "__tvm_ffi_codegen_cuda_report" };
pub(in crate::lower) const HIP_HELPERS: LaunchHelpers =
    LaunchHelpers { first_use: "__tvm_ffi_codegen_hip_first_use", report: "__tvm_ffi_codegen_hip_report" };

/// The symbols of the helpers of launches, where wrappers import them: for each API the one that does first uses, and the one that raises errors.
pub const LAUNCH_SYMBOLS: [[&str; 2]; 2] =
    [[CUDA_HELPERS.first_use, CUDA_HELPERS.report], [HIP_HELPERS.first_use, HIP_HELPERS.report]];

/// Helpers that are compiled together.
#[cfg(feature = "_engine")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum HelperSet {
    /// `bind` and `report`.
    Bind,
    /// `take_result`. A wrapper that imports it calls it in every call.
    TakeResult,
    /// The helpers of launches on CUDA: all that is done with its driver beside launching kernels.
    Cuda,
    /// The helpers of launches on HIP.
    Hip,
}

#[cfg(feature = "_engine")]
impl HelperSet {
    pub(crate) const ALL: [HelperSet; 4] = [HelperSet::Bind, HelperSet::TakeResult, HelperSet::Cuda, HelperSet::Hip];

    /// The symbols by which wrappers import the set.
    pub(crate) fn symbols(self) -> &'static [&'static str] {
        match self {
            HelperSet::Bind => &[BIND_SYMBOL, REPORT_SYMBOL],
            HelperSet::TakeResult => &[TAKE_RESULT_SYMBOL],
            HelperSet::Cuda => &LAUNCH_SYMBOLS[0],
            HelperSet::Hip => &LAUNCH_SYMBOLS[1],
        }
    }

    /// The name of a function of the set where it lies beside wrappers, seen by nobody else. It tells the set's capabilities.
    pub(crate) fn local_name(self, symbol: &str, capabilities: Capabilities) -> String {
        format!("{symbol}.{}{:x}", self.mark(), capabilities.bits())
    }

    /// The capabilities of a set, which the [name](Self::local_name) of its first function tells; `None` for any other name.
    pub(crate) fn of_local_name(self, name: &str) -> Option<Capabilities> {
        let bits = name.strip_prefix(self.symbols()[0])?.strip_prefix('.')?.strip_prefix(self.mark())?;
        u128::from_str_radix(bits, 16).ok().map(Capabilities::from_bits)
    }

    /// Whether wrappers may ask for more or less of the set.
    pub(crate) fn has_capabilities(self) -> bool {
        matches!(self, HelperSet::Bind | HelperSet::TakeResult)
    }

    /// Tells functions of the sets apart: each set has a `report`.
    fn mark(self) -> &'static str {
        match self {
            HelperSet::Bind => "",
            HelperSet::TakeResult => "r",
            HelperSet::Cuda => "c",
            HelperSet::Hip => "h",
        }
    }
}

/// The helper that checks a call's arguments exactly, imported where it isn't yet.
pub(in crate::lower) fn bind(module: &mut Module) -> FuncRef {
    module.import(BIND_SYMBOL, bind_signature())
}

/// The helper that takes the result that a kernel has written.
pub(in crate::lower) fn take_result(module: &mut Module) -> FuncRef {
    module.import(TAKE_RESULT_SYMBOL, take_result_signature())
}

/// The helper that raises an error.
pub(in crate::lower) fn report(module: &mut Module) -> FuncRef {
    module.import(REPORT_SYMBOL, report_signature())
}

/// `int32_t bind(const void* pool, uint32_t signature, const TVMFFIAny* args, int64_t num_args, void* scratch)`
fn bind_signature() -> FuncSig {
    FuncSig::new([Type::Ptr, Type::I32, Type::Ptr, Type::I64, Type::Ptr], Some(Type::I32))
}

/// `int32_t take_result(const void* pool, uint32_t result, TVMFFIAny* from, TVMFFIAny* to)`
fn take_result_signature() -> FuncSig {
    FuncSig::new([Type::Ptr, Type::I32, Type::Ptr, Type::Ptr], Some(Type::I32))
}

/// `int32_t report(const void* pool, uint32_t template, const uint64_t* context)`
fn report_signature() -> FuncSig {
    FuncSig::new([Type::Ptr, Type::I32, Type::Ptr], Some(Type::I32))
}

/// The helper of a name that a module imports, to be defined there.
pub(in crate::lower) fn defined_here(module: &mut Module, symbol: &str, linkage: Linkage) -> Option<FuncRef> {
    let (helper, _) = module.function_named(symbol).filter(|(_, decl)| decl.linkage == Linkage::Import)?;
    let decl = &mut module.functions[helper];
    decl.linkage = linkage;
    decl.cold = true;
    Some(helper)
}
