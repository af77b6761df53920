//! Pass pipelines: a short one for wrappers, the full one for bodies.

use std::ffi::{CStr, CString};

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::llvm_sys::error::{LLVMDisposeErrorMessage, LLVMErrorRef, LLVMGetErrorMessage};
use inkwell::llvm_sys::transforms::pass_builder::LLVMRunPasses;
use inkwell::module::Module as LlvmModule;
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::TargetMachine;
use inkwell::values::FunctionValue;

use crate::backend::OptLevel;

/// The pass that pays off for wrappers: CSE, including loads repeated before and after a join point. `simplifycfg` is
/// left out: it merges checks into chains of conditions, which slows the code generator down and yields half as many
/// instructions more.
const SHORT: &str = "function(early-cse<memssa>)";
/// Passes for rarely called functions, which reduce code size.
const SMALL: &str = "function(sroa,early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg)";
/// clang's pipeline at `-O3`.
const FULL: &str = "default<O3>";

/// Optimises a module. The functions in `brief` gain nothing from the full pipeline and get the short one; those in
/// `cold` are optimised for size.
pub(super) fn run<'ctx>(
    module: &LlvmModule<'ctx>,
    machine: &TargetMachine,
    level: OptLevel,
    brief: &[FunctionValue<'ctx>],
    cold: &[FunctionValue<'ctx>],
) -> Result<(), String> {
    match level {
        OptLevel::None => Ok(()),
        OptLevel::Speed => {
            passes(module, machine, SHORT)?;
            if cold.is_empty() {
                return Ok(());
            }
            let others = module.get_functions().filter(|function| !cold.contains(function));
            leaving_out(module, others, || passes(module, machine, SMALL))
        }
        OptLevel::Full if brief.is_empty() => passes(module, machine, FULL),
        OptLevel::Full => {
            passes(module, machine, SHORT)?;
            leaving_out(module, brief.iter().copied(), || passes(module, machine, FULL))
        }
    }
}

/// Optimises a caller's module as clang does at `-O2` or `-O3`.
pub(super) fn run_full(module: &LlvmModule<'_>, machine: &TargetMachine, level: OptLevel) -> Result<(), String> {
    match level {
        OptLevel::None => Ok(()),
        OptLevel::Speed => passes(module, machine, "default<O2>"),
        OptLevel::Full => passes(module, machine, FULL),
    }
}

/// Runs passes over all functions except these. The pass manager skips functions marked `optnone`, and the inliner
/// doesn't change them. (LLVM's C API can run passes on a single function only from version 20 on.)
fn leaving_out<'ctx, T>(
    module: &LlvmModule<'ctx>,
    functions: impl Iterator<Item = FunctionValue<'ctx>>,
    run: impl FnOnce() -> T,
) -> T {
    let here = AttributeLoc::Function;
    let context = module.get_context();
    let kinds = ["optnone", "noinline"].map(Attribute::get_named_enum_kind_id);
    let mut added = Vec::new();
    for function in functions.filter(|function| function.count_basic_blocks() > 0) {
        for kind in kinds {
            if function.get_enum_attribute(here, kind).is_none() {
                function.add_attribute(here, context.create_enum_attribute(kind, 0));
                added.push((function, kind));
            }
        }
    }
    let result = run();
    for (function, kind) in added {
        function.remove_enum_attribute(here, kind);
    }
    result
}

pub(super) fn passes(module: &LlvmModule<'_>, machine: &TargetMachine, passes: &str) -> Result<(), String> {
    let options = PassBuilderOptions::create();
    options.set_loop_vectorization(true);
    options.set_loop_slp_vectorization(true);
    options.set_loop_interleaving(true);
    options.set_loop_unrolling(true);
    let passes = CString::new(passes).map_err(|e| e.to_string())?;
    // SAFETY: module, machine and options are alive; the module passed LLVM's verifier.
    let error =
        unsafe { LLVMRunPasses(module.as_mut_ptr(), passes.as_ptr(), machine.as_mut_ptr(), options.as_mut_ptr()) };
    take_error(error)
}

/// LLVM's error message; null means success.
pub(crate) fn take_error(error: LLVMErrorRef) -> Result<(), String> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: this code owns the error, taking its message consumes it, and the message is freed with LLVM's function.
    unsafe {
        let text = LLVMGetErrorMessage(error);
        let message = CStr::from_ptr(text).to_string_lossy().into_owned();
        LLVMDisposeErrorMessage(text);
        Err(message)
    }
}
