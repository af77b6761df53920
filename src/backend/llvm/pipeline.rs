//! Pass pipelines: a short one for wrappers, the full one for bodies.

use std::ffi::{CStr, CString};

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::llvm_sys::error::{LLVMDisposeErrorMessage, LLVMErrorRef, LLVMGetErrorMessage};
use inkwell::llvm_sys::transforms::pass_builder::{LLVMRunPasses, LLVMRunPassesOnFunction};
use inkwell::module::Module as LlvmModule;
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::TargetMachine;
use inkwell::values::{AsValueRef, FunctionValue};

use crate::backend::OptLevel;

/// What a wrapper gains from: common subexpressions, also of memory that is read before and behind a way that joins. Not
/// `simplifycfg`: it merges checks into chains of conditions, which takes the code generator longer and gives half as many
/// instructions more.
const SHORT: &str = "function(early-cse<memssa>)";
/// What makes routines smaller that are hardly ever called.
const SMALL: &str = "sroa,early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg";
/// clang's pipeline at `-O3`.
const FULL: &str = "default<O3>";

/// Optimises a module; `brief` are the functions of it that gain nothing from the full pipeline, and get the short one; `cold` are
/// those that had better be small.
pub(super) fn run(
    module: &LlvmModule<'_>,
    machine: &TargetMachine,
    level: OptLevel,
    brief: &[FunctionValue<'_>],
    cold: &[FunctionValue<'_>],
) -> Result<(), String> {
    match level {
        OptLevel::None => Ok(()),
        OptLevel::Speed => {
            passes(module, machine, SHORT)?;
            cold.iter().try_for_each(|function| function_passes(*function, machine, SMALL))
        }
        OptLevel::Full if brief.is_empty() => passes(module, machine, FULL),
        OptLevel::Full => {
            passes(module, machine, SHORT)?;
            // The pass manager leaves out such functions, and the inliner changes nothing in them.
            let [optnone, noinline] = ["optnone", "noinline"].map(Attribute::get_named_enum_kind_id);
            let here = AttributeLoc::Function;
            let context = module.get_context();
            for function in brief {
                function.add_attribute(here, context.create_enum_attribute(optnone, 0));
                function.add_attribute(here, context.create_enum_attribute(noinline, 0));
            }
            let result = passes(module, machine, FULL);
            for function in brief {
                function.remove_enum_attribute(here, optnone);
                function.remove_enum_attribute(here, noinline);
            }
            result
        }
    }
}

fn function_passes(function: FunctionValue<'_>, machine: &TargetMachine, passes: &str) -> Result<(), String> {
    let options = PassBuilderOptions::create();
    let passes = CString::new(passes).map_err(|e| e.to_string())?;
    // SAFETY: function, machine and options are alive; the function's module passed LLVM's verifier.
    let error = unsafe {
        LLVMRunPassesOnFunction(function.as_value_ref(), passes.as_ptr(), machine.as_mut_ptr(), options.as_mut_ptr())
    };
    take_error(error)
}

fn passes(module: &LlvmModule<'_>, machine: &TargetMachine, passes: &str) -> Result<(), String> {
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

/// LLVM's error as text; null is success.
pub(crate) fn take_error(error: LLVMErrorRef) -> Result<(), String> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: the error is ours, and taking its message consumes it; the message is freed as LLVM wants it to be.
    unsafe {
        let text = LLVMGetErrorMessage(error);
        let message = CStr::from_ptr(text).to_string_lossy().into_owned();
        LLVMDisposeErrorMessage(text);
        Err(message)
    }
}
