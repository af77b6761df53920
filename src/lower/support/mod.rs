//! Routines that wrappers share, written in IR so that each backend and the interpreter run the same ones.
//!
//! [`bind`] decides exactly on a call's arguments where a wrapper's good path has a doubt; [`report`] makes an error's text
//! and raises it. Both are data-driven, so that a wrapper is little more than its good path. A JIT has one copy of
//! them, an object one of its own.

pub(super) mod bind;
mod emit;
mod names;
mod places;
pub(super) mod report;
mod state;

use super::messages::Messages;
use crate::ir::{DataRef, FuncRef, Linkage, Module};

/// The symbol of the routine that checks exactly, where wrappers import it.
pub const BIND_SYMBOL: &str = "__tvm_ffi_codegen_bind";
/// The symbol of the routine that takes what a kernel has written as its result, where wrappers import it.
pub const TAKE_RESULT_SYMBOL: &str = "__tvm_ffi_codegen_take_result";
/// The symbol of the routine that raises, where wrappers import it.
pub const REPORT_SYMBOL: &str = "__tvm_ffi_codegen_report";

/// The routines in a module.
#[derive(Clone, Copy, Debug)]
pub(super) struct Support {
    pub bind: FuncRef,
    pub take_result: FuncRef,
    pub report: FuncRef,
}

impl Support {
    /// Imports them.
    pub(super) fn import(module: &mut Module) -> Self {
        Support {
            bind: module.import(BIND_SYMBOL, bind::signature()),
            take_result: module.import(TAKE_RESULT_SYMBOL, bind::take_result_signature()),
            report: module.import(REPORT_SYMBOL, report::signature()),
        }
    }

    /// Defines them.
    pub(super) fn define(module: &mut Module, linkage: Linkage) -> Self {
        let table = module.add_data("__tvm_ffi_codegen_support", Vec::new(), 4);
        let mut texts = Messages::new(module.endianness);
        let report = report::define(module, linkage, table, &mut texts);
        let (bind, take_result) = bind::define(module, linkage, table, &mut texts, report);
        module.data[table].bytes = texts.into_bytes();
        Support { bind, take_result, report }
    }
}

/// A module that exports the routines, for a JIT that shares one copy.
pub fn support_module() -> Module {
    let mut module = Module::new();
    Support::define(&mut module, Linkage::Export);
    module
}

/// The support routines' own table of texts.
type Table = DataRef;
