//! Defines the helpers that wrappers share, in their own module or in the module of the wrappers.

use std::cell::{Cell, RefCell};

use super::helper::{Binder, LocalHelpers};
use super::{check, dims, eval, report, results, run};
use crate::ir::{DataRef, FuncRef, Linkage, Module};
use crate::lower::constants::ConstantPool;
use crate::lower::device_api;
#[cfg(feature = "_engine")]
use crate::lower::helper_set::HelperSet;
use crate::lower::protocol::Capabilities;
use crate::lower::protocol::helpers::{self, BIND_SYMBOL, REPORT_SYMBOL, TAKE_RESULT_SYMBOL};
use target_lexicon::Endianness;

/// Defines the runtime helpers that a module imports, with the capabilities that the module's constant pool requires.
/// `data` will hold the pool, which also receives the helpers' own strings.
pub(in crate::lower) fn define(module: &mut Module, linkage: Linkage, data: DataRef, pool: &mut ConstantPool) {
    define_bind(module, linkage, data, pool);
    // last, because it needs all templates
    report::define(module, linkage, data, pool);
}

/// Defines `bind` and `take_result` if they are imported, with the capabilities that the pool requires. `data` will
/// hold the pool.
fn define_bind(module: &mut Module, linkage: Linkage, data: DataRef, pool: &mut ConstantPool) {
    let bind = helpers::defined_here(module, BIND_SYMBOL, linkage);
    let take_result = helpers::defined_here(module, TAKE_RESULT_SYMBOL, linkage);
    if bind.is_none() && take_result.is_none() {
        return;
    }
    let capabilities = pool.capabilities();
    pool.shared();
    let report = helpers::report(module);
    let helpers = LocalHelpers::declare(module, capabilities, report);
    let mut body_of = |func: Option<FuncRef>, body: fn(&Binder<'_, '_>)| {
        let Some(func) = func else { return };
        module.define(func, |c| {
            let (pool, state) = (RefCell::new(&mut *pool), Cell::new(c.param(0)));
            let (fail, exit) = Default::default();
            let binder = Binder { c, pool, capabilities, own: data, state, helpers, fail, exit };
            body(&binder);
            binder.finish();
        });
    };
    body_of(helpers.copy_path, dims::copy_path);
    body_of(helpers.eval, eval::eval);
    body_of(helpers.dim, dims::dim);
    body_of(helpers.check, check::check);
    body_of(bind, run::run);
    body_of(take_result, results::take_result);
}

/// Builds a module that exports runtime helpers, for JITs that share one copy. `symbols` are any of [`BIND_SYMBOL`],
/// [`TAKE_RESULT_SYMBOL`], [`REPORT_SYMBOL`] and [`LAUNCH_SYMBOLS`](device_api::LAUNCH_SYMBOLS). The module also has
/// the helpers that these call. `endianness` is the target's.
pub fn helpers_module(symbols: &[&str], capabilities: Capabilities, endianness: Endianness) -> Module {
    let mut module = Module::for_endianness(endianness);
    let data = module.add_data("__tvm_ffi_codegen_support", Vec::new(), 4);
    let mut pool = ConstantPool::new(module.endianness);
    pool.ask(capabilities);
    for symbol in symbols {
        match *symbol {
            BIND_SYMBOL => helpers::bind(&mut module),
            TAKE_RESULT_SYMBOL => helpers::take_result(&mut module),
            REPORT_SYMBOL => helpers::report(&mut module),
            // defines all helpers of the API together
            symbol => {
                device_api::export_helpers(&mut module, symbol, &mut pool, data);
                continue;
            }
        };
    }
    define(&mut module, Linkage::Export, data, &mut pool);
    module.data[data].bytes = pool.into_bytes();
    module
}

/// Like [`helpers_module`], for a set in the same object as the wrappers. Each function is local; its
/// [name](HelperSet::local_name) encodes the set's capabilities.
#[cfg(feature = "_engine")]
pub(crate) fn local_helpers_module(set: HelperSet, capabilities: Capabilities, endianness: Endianness) -> Module {
    let mut module = helpers_module(set.symbols(), capabilities, endianness);
    for function in module.functions.values_mut().filter(|function| function.body.is_some()) {
        function.linkage = Linkage::Local;
        function.name = set.local_name(&function.name, capabilities);
    }
    module
}
