//! Defines the routines that wrappers share, in a module of their own or in that of the wrappers.

use super::report;
use crate::ir::{DataRef, FuncRef, Linkage, Module};
use crate::lower::constants::Messages;
use crate::lower::protocol::{Features, helpers};

/// Defines the routines that a module imports, as far as the features of its programs and messages ask for. All of these are in
/// `table`, which will hold `texts`, and where the routines have their own too.
pub(in crate::lower) fn define(module: &mut Module, linkage: Linkage, table: DataRef, texts: &mut Messages) {
    super::define_bind(module, linkage, table, texts);
    // last, when it is known which parts messages have
    report::define(module, linkage, table, texts);
}

/// The routine of that name that a module imports, to be defined there.
pub(super) fn defined_here(module: &mut Module, symbol: &str, linkage: Linkage) -> Option<FuncRef> {
    let (routine, _) = module.function_named(symbol).filter(|(_, decl)| decl.linkage == Linkage::Import)?;
    let decl = &mut module.functions[routine];
    decl.linkage = linkage;
    decl.cold = true;
    Some(routine)
}

/// A module that exports the routines, for a JIT that shares one copy.
pub fn support_module() -> Module {
    let mut module = Module::new();
    let table = module.add_data("__tvm_ffi_codegen_support", Vec::new(), 4);
    let mut texts = Messages::new(module.endianness);
    texts.features = Features::ALL;
    for routine in [helpers::bind, helpers::take_result, helpers::report] {
        routine(&mut module);
    }
    define(&mut module, Linkage::Export, table, &mut texts);
    module.data[table].bytes = texts.into_bytes();
    module
}
