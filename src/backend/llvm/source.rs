//! Compiles LLVM IR from elsewhere, text or bitcode, to an object file.

use std::ffi::CStr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use inkwell::context::{AsContextRef, Context};
use inkwell::llvm_sys::core::LLVMCreateMemoryBufferWithMemoryRangeCopy;
use inkwell::llvm_sys::ir_reader;
use inkwell::module::Module as LlvmModule;
use inkwell::targets::{FileType, TargetMachine, TargetTriple};
use inkwell::types::FunctionType;
use inkwell::values::FunctionValue;

use super::compile::Compiler;
use super::define::check_type;
use super::diagnostics::{Diagnostics, take_message};
use super::types::Types;
use super::{Error, NotPlain, extension, pipeline};
use crate::ir::{Extension, FuncDecl};

/// The name of the module in LLVM's messages, before line and column.
const NAME: &CStr = c"IR";

impl Compiler {
    /// Compiles a module in LLVM IR, as text or bitcode, to an object. `kernels` are functions that other code calls.
    /// Those that the module defines must have the types that their callers expect.
    ///
    /// # Errors
    /// LLVM can't parse the module (for text with line and column) or finds it malformed, it is for another target, or
    /// a kernel has another type.
    pub(crate) fn compile_source(&mut self, source: &[u8], kernels: &[&FuncDecl]) -> Result<Vec<u8>, Error> {
        // inkwell reports some errors by panicking. No panic may leave this library.
        catch_unwind(AssertUnwindSafe(|| self.run_source(source, kernels)))
            .unwrap_or_else(|_| Err(Error::Source { message: "a panic while LLVM compiled it".to_owned() }))
    }

    fn run_source(&mut self, source: &[u8], kernels: &[&FuncDecl]) -> Result<Vec<u8>, Error> {
        let refused = |message: &str| Error::Source { message: message.trim_end().to_owned() };
        let level = self.target().opt_level();
        let triple = self.target().triple().to_owned();
        let machine = self.machine(level)?;

        let context = Context::create();
        let diagnostics = Diagnostics::of(&context);
        let module = parse(&context, source).map_err(|message| {
            // LLVM's bitcode reader may report details to the context only, and return just that it has done so
            let reported = diagnostics.first_error().unwrap_or_default();
            refused(if message.is_empty() { &reported } else { &message })
        })?;
        if let Some(message) = diagnostics.first_error() {
            return Err(refused(&message));
        }
        adopt(&module, machine, &triple).map_err(|problem| refused(&problem))?;
        // The passes crash on a malformed module.
        module.verify().map_err(|message| refused(&message.to_string_lossy()))?;
        let types = Types::new(module.get_context());
        for kernel in kernels {
            let Some(known) = module.get_function(&kernel.name) else { continue };
            let expected = types.function(&kernel.signature);
            if kernel.signature.params.iter().any(|param| param.by_value.is_some()) {
                // compilers write the parameters for a struct in ways of their own, with the same meaning
                check_result(known, kernel, expected)?;
                continue;
            }
            check_type(known, &kernel.name, expected)?;
            check_passing(known, kernel).map_err(|problem| refused(&format!("`{}` {problem}", kernel.name)))?;
        }
        pipeline::run_full(&module, machine, level).map_err(|message| refused(&message))?;
        let object = machine.write_to_memory_buffer(&module, FileType::Object);
        let object = object.map_err(|message| refused(&message.to_string_lossy()))?;
        match diagnostics.first_error() {
            Some(message) => Err(refused(&message)),
            None => Ok(object.as_slice().to_vec()),
        }
    }
}

/// Parses a module, or returns LLVM's message. inkwell's function leaks the source with LLVM 22.
fn parse<'ctx>(context: &'ctx Context, source: &[u8]) -> Result<LlvmModule<'ctx>, String> {
    let (mut module, mut message) = (ptr::null_mut(), ptr::null_mut());
    // LLVM 19 to 21 lack the function that replaces this one
    #[allow(deprecated)]
    // SAFETY: LLVM copies the source, and the parser frees the copy. The context owns the module, and outlives it. A
    // parser that fails sets the message.
    unsafe {
        let buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(source.as_ptr().cast(), source.len(), NAME.as_ptr());
        match ir_reader::LLVMParseIRInContext(context.as_ctx_ref(), buffer, &raw mut module, &raw mut message) {
            0 => Ok(LlvmModule::new(module)),
            _ => Err(take_message(message)),
        }
    }
}

/// Checks that a function has the result that its callers expect.
fn check_result<'ctx>(
    known: FunctionValue<'ctx>,
    kernel: &FuncDecl,
    expected: FunctionType<'ctx>,
) -> Result<(), Error> {
    match known.get_type().get_return_type() == expected.get_return_type() {
        true => Ok(()),
        false => check_type(known, &kernel.name, expected),
    }
}

/// Rejects a function that doesn't take its parameters as wrappers pass them. The error is worded to follow the
/// function's name.
fn check_passing(function: FunctionValue<'_>, kernel: &FuncDecl) -> Result<(), String> {
    let name = |index: usize| format!("parameter {}", index + 1);
    if let Some(problem) = NotPlain::of(function) {
        return Err(problem.in_words(name));
    }
    for (index, param) in kernel.signature.params.iter().enumerate() {
        let (wanted, passed) = match (extension(function, index), param.ext) {
            (Some(Extension::Signed), Extension::Unsigned) => ("sign", "zero"),
            (Some(Extension::Unsigned), Extension::Signed) => ("zero", "sign"),
            _ => continue,
        };
        return Err(format!("has {} {wanted}-extended, and it is passed {passed}-extended", name(index)));
    }
    Ok(())
}

/// Sets a module's target to the machine, unless the module states another target.
fn adopt(module: &LlvmModule<'_>, machine: &TargetMachine, triple: &str) -> Result<(), String> {
    let stated = module.get_triple();
    let stated = stated.as_str().to_string_lossy();
    let system = |triple: &str| {
        let normal = TargetMachine::normalize_triple(&TargetTriple::create(triple));
        let normal = normal.as_str().to_string_lossy().into_owned();
        let parts: Vec<String> = normal.split('-').map(str::to_owned).collect();
        // ignore the vendor, which doesn't affect code, and the environment, which hardly does
        (
            parts.first().cloned(),
            parts.get(2).map(|system| system.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').to_owned()),
        )
    };
    if !stated.is_empty() && system(&stated) != system(triple) {
        return Err(format!("expected a module for this machine, `{triple}`, got one for `{stated}`"));
    }
    let layout = machine.get_target_data().get_data_layout();
    let (stated, own) = (module.get_data_layout().as_str().to_owned(), layout.as_str().to_owned());
    if !stated.is_empty() && stated != own {
        let (stated, own) = (stated.to_string_lossy(), own.to_string_lossy());
        return Err(format!("expected this machine's data layout, `{own}`, got `{stated}`"));
    }
    module.set_triple(&TargetTriple::create(triple));
    module.set_data_layout(&layout);
    Ok(())
}
