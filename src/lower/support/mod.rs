//! Routines that wrappers share, written in IR so that each backend and the interpreter run the same ones.
//!
//! [`bind`] decides exactly on a call's arguments where a wrapper's good path has a doubt; [`report`] makes an error's text
//! and raises it. Both are data-driven, so that a wrapper is little more than its good path. A JIT has one copy of
//! them, an object one of its own, with those parts that its programs and messages make use of ([`Features`]).

pub(super) mod bind;
mod emit;
mod names;
mod places;
pub(super) mod report;
pub(super) mod state;
mod values;

use super::messages::Messages;
use super::program::Features;
use crate::ir::{DataRef, FuncRef, Linkage, Module};

pub(super) use state::Field;

/// The symbol of the routine that checks exactly, where wrappers import it.
pub const BIND_SYMBOL: &str = "__tvm_ffi_codegen_bind";
/// The symbol of the routine that takes what a kernel has written as its result, where wrappers import it.
pub const TAKE_RESULT_SYMBOL: &str = "__tvm_ffi_codegen_take_result";
/// The symbol of the routine that raises, where wrappers import it.
pub const REPORT_SYMBOL: &str = "__tvm_ffi_codegen_report";

/// The routine that checks exactly, imported where it isn't yet.
pub(super) fn bind(module: &mut Module) -> FuncRef {
    module.import(BIND_SYMBOL, bind::signature())
}

/// The routine that takes what a kernel has written as its result.
pub(super) fn take_result(module: &mut Module) -> FuncRef {
    module.import(TAKE_RESULT_SYMBOL, bind::take_result_signature())
}

/// The routine that raises.
pub(super) fn report(module: &mut Module) -> FuncRef {
    module.import(REPORT_SYMBOL, report::signature())
}

/// Defines the routines that a module imports, as far as the features of its programs and messages ask for. All of these are in
/// `table`, which will hold `texts`, and where the routines have their own too.
pub(super) fn define(module: &mut Module, linkage: Linkage, table: DataRef, texts: &mut Messages) {
    bind::define(module, linkage, table, texts);
    // last, when it is known which parts messages have
    report::define(module, linkage, table, texts);
}

/// The routine of that name that a module imports, to be defined there.
fn defined_here(module: &mut Module, symbol: &str, linkage: Linkage) -> Option<FuncRef> {
    let (routine, _) = module.function_named(symbol).filter(|(_, decl)| decl.linkage == Linkage::Import)?;
    let decl = &mut module.functions[routine];
    decl.linkage = linkage;
    decl.cold = true;
    Some(routine)
}

/// What wrappers ask of the runtime helpers: a set. Helpers that were compiled for a set serve every smaller one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capabilities(Features);

impl Capabilities {
    /// Every capability: for helpers that serve wrappers which nobody has seen yet.
    pub const ALL: Self = Capabilities(Features::ALL);

    /// The capabilities that descriptors and messages make use of.
    pub(super) fn used_by(texts: &Messages) -> Self {
        Capabilities(texts.features)
    }

    /// Whether helpers with these capabilities serve wrappers that ask for the others.
    pub fn covers(self, others: Self) -> bool {
        self.0.contains(others.0)
    }

    /// The capabilities of both sets.
    pub fn union(self, others: Self) -> Self {
        Capabilities(self.0.union(others.0))
    }
}

/// A module that exports runtime helpers, for JITs that share a copy: those of these symbols, which are [`BIND_SYMBOL`],
/// [`TAKE_RESULT_SYMBOL`] and [`REPORT_SYMBOL`], and those that these call.
pub fn support_module(helpers: &[&str], capabilities: Capabilities) -> Module {
    let mut module = Module::new();
    let table = module.add_data("__tvm_ffi_codegen_support", Vec::new(), 4);
    let mut texts = Messages::new(module.endianness);
    texts.features = capabilities.0;
    for helper in helpers {
        match *helper {
            BIND_SYMBOL => bind(&mut module),
            TAKE_RESULT_SYMBOL => take_result(&mut module),
            REPORT_SYMBOL => report(&mut module),
            _ => continue,
        };
    }
    define(&mut module, Linkage::Export, table, &mut texts);
    module.data[table].bytes = texts.into_bytes();
    module
}
