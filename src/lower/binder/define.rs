//! Defines the routines that wrappers share, in a module of their own or in that of the wrappers.

use super::routine::{Binder, Routines};
use super::{check, dims, eval, report, results, run};
use crate::ir::{DataRef, FuncRef, FunctionBuilder, Linkage, Module};
use crate::lower::constants::Messages;
use crate::lower::protocol::helpers::{BIND_SYMBOL, REPORT_SYMBOL, TAKE_RESULT_SYMBOL};
use crate::lower::protocol::{Features, helpers};

/// Defines the routines that a module imports, as far as the features of its programs and messages ask for. All of these are in
/// `table`, which will hold `texts`, and where the routines have their own too.
pub(in crate::lower) fn define(module: &mut Module, linkage: Linkage, table: DataRef, texts: &mut Messages) {
    define_bind(module, linkage, table, texts);
    // last, when it is known which parts messages have
    report::define(module, linkage, table, texts);
}

/// Defines `bind` and `take_result` where they are imported, as far as the features of `texts` ask for; `table` will hold `texts`.
fn define_bind(module: &mut Module, linkage: Linkage, table: DataRef, texts: &mut Messages) {
    let bind = helpers::defined_here(module, BIND_SYMBOL, linkage);
    let take_result = helpers::defined_here(module, TAKE_RESULT_SYMBOL, linkage);
    if bind.is_none() && take_result.is_none() {
        return;
    }
    let features = texts.features;
    texts.shared();
    let report = helpers::report(module);
    let routines = Routines::declare(module, features, report);
    let mut routine = |func: Option<FuncRef>, body: fn(&mut Binder<'_, '_>)| {
        let Some(func) = func else { return };
        let b = FunctionBuilder::new(module, func);
        let state = b.param(0);
        let mut binder = Binder { b, texts, features, own: table, state, routines, fail: None, exit: None };
        body(&mut binder);
        binder.finish();
    };
    routine(routines.copy_place, dims::copy_place);
    routine(routines.eval, eval::eval);
    routine(routines.dim, dims::dim);
    routine(routines.check, check::check);
    routine(bind, run::run);
    routine(take_result, results::take_result);
}

/// The capabilities that wrappers need of the runtime helpers: a set. Helpers that were compiled for a set serve every smaller one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capabilities(Features);

impl Capabilities {
    /// Every capability: for helpers that serve wrappers which nobody has seen yet.
    pub const ALL: Self = Capabilities(Features::ALL);

    /// The capabilities that descriptors and messages make use of.
    pub(in crate::lower) fn used_by(texts: &Messages) -> Self {
        Capabilities(texts.features)
    }

    /// Whether helpers with these capabilities serve wrappers that need the others.
    pub fn covers(self, others: Self) -> bool {
        self.0.contains(others.0)
    }

    /// The capabilities of both sets.
    pub fn union(self, others: Self) -> Self {
        Capabilities(self.0.union(others.0))
    }
}

/// A module that exports runtime helpers, for JITs that share a copy: the helpers with these symbols, which are [`BIND_SYMBOL`], [`TAKE_RESULT_SYMBOL`] and
/// [`REPORT_SYMBOL`], and the helpers that these call.
pub fn helpers_module(symbols: &[&str], capabilities: Capabilities) -> Module {
    let mut module = Module::new();
    let table = module.add_data("__tvm_ffi_codegen_support", Vec::new(), 4);
    let mut texts = Messages::new(module.endianness);
    texts.features = capabilities.0;
    for symbol in symbols {
        match *symbol {
            BIND_SYMBOL => helpers::bind(&mut module),
            TAKE_RESULT_SYMBOL => helpers::take_result(&mut module),
            REPORT_SYMBOL => helpers::report(&mut module),
            _ => continue,
        };
    }
    define(&mut module, Linkage::Export, table, &mut texts);
    module.data[table].bytes = texts.into_bytes();
    module
}
