//! Defines the helpers that wrappers share, in a module of their own or in that of the wrappers.

use super::routine::{Binder, LocalHelpers};
use super::{check, dims, eval, report, results, run};
use crate::ir::{DataRef, FuncRef, FunctionBuilder, Linkage, Module};
use crate::lower::constants::ConstantPool;
use crate::lower::protocol::helpers::{self, BIND_SYMBOL, TAKE_RESULT_SYMBOL};

/// Defines the helpers that a module imports, as far as the capabilities of its programs and messages ask for. All of these are in
/// `table`, which will hold `pool`, and where the helpers have their own too.
pub(in crate::lower) fn define(module: &mut Module, linkage: Linkage, table: DataRef, pool: &mut ConstantPool) {
    define_bind(module, linkage, table, pool);
    // last, when it is known which parts messages have
    report::define(module, linkage, table, pool);
}

/// Defines `bind` and `take_result` where they are imported, as far as the capabilities of `pool` ask for; `table` will hold `pool`.
fn define_bind(module: &mut Module, linkage: Linkage, table: DataRef, pool: &mut ConstantPool) {
    let bind = helpers::defined_here(module, BIND_SYMBOL, linkage);
    let take_result = helpers::defined_here(module, TAKE_RESULT_SYMBOL, linkage);
    if bind.is_none() && take_result.is_none() {
        return;
    }
    let capabilities = pool.capabilities();
    pool.shared();
    let report = helpers::report(module);
    let helpers = LocalHelpers::declare(module, capabilities, report);
    let mut routine = |func: Option<FuncRef>, body: fn(&mut Binder<'_, '_>)| {
        let Some(func) = func else { return };
        let b = FunctionBuilder::new(module, func);
        let state = b.param(0);
        let mut binder = Binder { b, pool, capabilities, own: table, state, helpers, fail: None, exit: None };
        body(&mut binder);
        binder.finish();
    };
    routine(helpers.copy_path, dims::copy_path);
    routine(helpers.eval, eval::eval);
    routine(helpers.dim, dims::dim);
    routine(helpers.check, check::check);
    routine(bind, run::run);
    routine(take_result, results::take_result);
}

/// A module that exports the helpers, for a JIT that shares one copy.
pub fn support_module() -> Module {
    let mut module = Module::new();
    let table = module.add_data("__tvm_ffi_codegen_support", Vec::new(), 4);
    let mut pool = ConstantPool::with_all_capabilities(module.endianness);
    for routine in [helpers::bind, helpers::take_result, helpers::report] {
        routine(&mut module);
    }
    define(&mut module, Linkage::Export, table, &mut pool);
    module.data[table].bytes = pool.into_bytes();
    module
}
