//! The runtime helpers that wrappers share, and how wrappers import them.

use crate::ir::{FuncRef, FuncSig, Linkage, Module, Type};

/// The import symbol of the helper that checks a call's arguments exactly.
pub const BIND_SYMBOL: &str = "__tvm_ffi_codegen_bind";
/// The import symbol of the helper that takes the result that a kernel has written.
pub const TAKE_RESULT_SYMBOL: &str = "__tvm_ffi_codegen_take_result";
/// The import symbol of the helper that raises an error.
pub const REPORT_SYMBOL: &str = "__tvm_ffi_codegen_report";

/// The helper that checks a call's arguments exactly; imported on first use.
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

/// The helper with a symbol, if the module imports it; gets `linkage`, to be defined in the module.
pub(in crate::lower) fn defined_here(module: &mut Module, symbol: &str, linkage: Linkage) -> Option<FuncRef> {
    let (helper, _) = module.function_named(symbol).filter(|(_, decl)| decl.linkage == Linkage::Import)?;
    let decl = &mut module.functions[helper];
    decl.linkage = linkage;
    decl.cold = true;
    Some(helper)
}
