//! The routines that wrappers share, as wrappers import them.

use crate::ir::{FuncRef, FuncSig, Linkage, Module, Type};

/// The symbol of the routine that checks exactly, where wrappers import it.
pub const BIND_SYMBOL: &str = "__tvm_ffi_codegen_bind";
/// The symbol of the routine that takes what a kernel has written as its result, where wrappers import it.
pub const TAKE_RESULT_SYMBOL: &str = "__tvm_ffi_codegen_take_result";
/// The symbol of the routine that raises, where wrappers import it.
pub const REPORT_SYMBOL: &str = "__tvm_ffi_codegen_report";

/// The routine that checks exactly, imported where it isn't yet.
pub(in crate::lower) fn bind(module: &mut Module) -> FuncRef {
    module.import(BIND_SYMBOL, bind_signature())
}

/// The routine that takes what a kernel has written as its result.
pub(in crate::lower) fn take_result(module: &mut Module) -> FuncRef {
    module.import(TAKE_RESULT_SYMBOL, take_result_signature())
}

/// The routine that raises.
pub(in crate::lower) fn report(module: &mut Module) -> FuncRef {
    module.import(REPORT_SYMBOL, report_signature())
}

/// `int32_t bind(const void* table, uint32_t program, const TVMFFIAny* args, int64_t num_args, void* scratch)`
fn bind_signature() -> FuncSig {
    FuncSig::new([Type::Ptr, Type::I32, Type::Ptr, Type::I64, Type::Ptr], Some(Type::I32))
}

/// `int32_t take_result(const void* table, uint32_t record, TVMFFIAny* from, TVMFFIAny* to)`
fn take_result_signature() -> FuncSig {
    FuncSig::new([Type::Ptr, Type::I32, Type::Ptr, Type::Ptr], Some(Type::I32))
}

/// `int32_t report(const void* table, uint32_t row, const uint64_t* context)`
fn report_signature() -> FuncSig {
    FuncSig::new([Type::Ptr, Type::I32, Type::Ptr], Some(Type::I32))
}

/// The routine of that name that a module imports, to be defined there.
pub(in crate::lower) fn defined_here(module: &mut Module, symbol: &str, linkage: Linkage) -> Option<FuncRef> {
    let (routine, _) = module.function_named(symbol).filter(|(_, decl)| decl.linkage == Linkage::Import)?;
    let decl = &mut module.functions[routine];
    decl.linkage = linkage;
    decl.cold = true;
    Some(routine)
}
