//! The runtime helpers that wrappers share, and how wrappers import them.

use crate::ir::{DataRef, Emitter, FuncRef, FuncSig, Linkage, Module, Type, Val};

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

/// Raises the error of a template, and returns its code. `context` has the values that the template prints; `None` for
/// a template that prints none. `pool` is the data that will hold the templates.
pub(in crate::lower) fn raise<'c>(c: Emitter<'c>, pool: DataRef, template: u32, context: Option<Val<'c>>) -> Val<'c> {
    let (pool, template) = (c.data(pool, 0), c.i32(i64::from(template)));
    raise_computed(c, pool, template, context)
}

/// As [`raise`], with the address of the pool and the template as values.
pub(in crate::lower) fn raise_computed<'c>(
    c: Emitter<'c>,
    pool: Val<'c>,
    template: Val<'c>,
    context: Option<Val<'c>>,
) -> Val<'c> {
    let report = c.func(report);
    // a template that prints no values reads nothing from its context, so any address will do
    c.result(report, &[pool, template, context.unwrap_or(pool)])
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
