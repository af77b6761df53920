//! Compiles a verified module to an object file in memory, without leaving LLVM state behind.

use std::collections::HashMap;
use std::fmt;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};

use inkwell::attributes::AttributeLoc;
use inkwell::context::Context;
use inkwell::module::Module as LlvmModule;
use inkwell::targets::{FileType, TargetMachine, TargetTriple};
use target_lexicon::BinaryFormat;

use super::diagnostics::{Diagnostics, refused};
use super::error::Error;
use super::module::{Destructors, ModuleTranslator, Surroundings};
use super::target::{self, LlvmTarget, check_endianness};
use super::{pipeline, translate};
use crate::backend::OptLevel;
use crate::ir::VerifiedModule;

/// Optional outputs of [`Compiler::compile`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Keep the LLVM IR, as translated and as optimised.
    pub llvm_ir: bool,
    /// Keep the assembly.
    pub asm: bool,
    /// For an object file that is linked. Loops aren't turned into C library calls (`strlen`, `memset`), and the object
    /// states what a library exports where the linker needs that. The code is slightly better, and compiling takes
    /// slightly longer.
    pub for_linker: bool,
    /// Put all code into one section, even where that isn't the default. The address of one function then determines
    /// those of all others.
    pub one_section: bool,
}

/// Machine code of a whole module.
#[derive(Debug)]
#[non_exhaustive]
pub struct CompiledModule {
    /// The object file, in the target's format.
    pub object: Vec<u8>,
    /// Symbols of destructors, which are functions `()`. The loader must call them when the code is unloaded, in
    /// reverse order. Empty if the object was made [for a linker](Options::for_linker).
    pub destructors: Vec<String>,
    /// LLVM IR before and after the passes, if asked for.
    pub llvm_ir: Option<(String, String)>,
    /// The assembly, if asked for.
    pub asm: Option<String>,
}

/// A reusable compiler of modules for one target. Use it on one thread at a time.
pub struct Compiler {
    target: LlvmTarget,
    machines: [Option<TargetMachine>; 3],
}

// SAFETY: a `TargetMachine` is bound to no thread and to no LLVM context; it only must not be used by two threads at
// the same time. Nothing else refers to a compiler's machines, and `compile` takes `&mut self`.
unsafe impl Send for Compiler {}

/// Compiles a module for a target.
///
/// # Errors
/// The errors of [`Compiler::compile`].
pub fn compile(module: &VerifiedModule, target: &LlvmTarget) -> Result<CompiledModule, Error> {
    Compiler::new(target.clone()).compile(module, Options::default())
}

impl fmt::Debug for Compiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compiler").field("target", &self.target).finish_non_exhaustive()
    }
}

impl Compiler {
    /// A compiler that has compiled nothing yet.
    pub fn new(target: LlvmTarget) -> Self {
        Compiler { target, machines: [None, None, None] }
    }

    pub(super) fn target(&self) -> &LlvmTarget {
        &self.target
    }

    /// The target machine of a level.
    pub(super) fn machine(&mut self, level: OptLevel) -> Result<&TargetMachine, Error> {
        machine(&self.target, &mut self.machines, level)
    }

    /// Compiles a module. All LLVM objects except for the returned object file are freed on return.
    ///
    /// # Errors
    /// LLVM rejects the module, which is a bug of this library; the error includes LLVM's input.
    pub fn compile(&mut self, module: &VerifiedModule, options: Options) -> Result<CompiledModule, Error> {
        self.guarded(module, options, || module.to_string())
    }

    /// Like [`compile`](Self::compile), but frees the module once LLVM's copy exists: a module of many functions is
    /// large.
    ///
    /// # Errors
    /// The errors of [`compile`](Self::compile).
    pub fn compile_owned(&mut self, module: VerifiedModule, options: Options) -> Result<CompiledModule, Error> {
        self.guarded(Box::new(module), options, String::new)
    }

    fn guarded(
        &mut self,
        module: impl Deref<Target = VerifiedModule>,
        options: Options,
        listing: impl FnOnce() -> String,
    ) -> Result<CompiledModule, Error> {
        // inkwell reports some errors by panicking. No panic may leave this library.
        catch_unwind(AssertUnwindSafe(|| self.run(module, options))).unwrap_or_else(|payload| {
            let text = payload.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("unknown");
            Err(Error::Codegen { message: format!("panic: {text}"), listing: listing() })
        })
    }

    fn run(&mut self, ir: impl Deref<Target = VerifiedModule>, options: Options) -> Result<CompiledModule, Error> {
        check_endianness(&ir)?;
        let level = self.target.opt_level().for_module(&ir);
        let triple = TargetTriple::create(self.target.triple());
        let machine = machine(&self.target, &mut self.machines, level)?;
        // code for a file is compiled once, so it doesn't use the fast selector
        target::select_fast(machine, level == OptLevel::Speed && !options.for_linker);

        let context = Context::create();
        let diagnostics = Diagnostics::of(&context);
        let module = context.create_module("tvm_ffi");
        module.set_triple(&triple);
        module.set_data_layout(&machine.get_target_data().get_data_layout());

        let mut translator = ModuleTranslator::new(&ir, &module).for_format(self.target.format(), options.for_linker);
        translator.widest_piece = self.target.widest_piece();
        translator.x86_64 = self.target.is_x86_64();
        let destructors = match options.for_linker {
            true => Destructors::Listed(self.target.format()),
            false => Destructors::Exported,
        };
        let surroundings = Surroundings { bindings: &HashMap::new(), alone: true, destructors };
        translate::translate(&mut translator, &surroundings).map_err(|e| refused(&e.to_string(), &module))?;
        if options.for_linker {
            let no_builtins = context.create_string_attribute("no-builtins", "");
            for function in translator.added.iter().filter(|f| f.count_basic_blocks() > 0) {
                function.add_attribute(AttributeLoc::Function, no_builtins);
            }
        }
        if options.one_section && self.target.format() == BinaryFormat::Elf {
            for function in translator.added.iter().filter(|f| f.count_basic_blocks() > 0) {
                function.as_global_value().set_section(Some(".text"));
            }
        }
        // The passes crash on a malformed module.
        module.verify().map_err(|e| refused(&e.to_string(), &module))?;

        let before = options.llvm_ir.then(|| module.print_to_string().to_string());
        let brief = match self.target.opt_level() {
            OptLevel::Full => Vec::new(),
            _ => translator.without_loops(),
        };
        let small = translator.cold_with_loops();
        let destructors = std::mem::take(&mut translator.destructors);
        drop(translator);
        drop(ir);
        pipeline::run(&module, machine, level, &brief, &small).map_err(|message| refused(&message, &module))?;
        // a file may be linked into a program without the sanitizer's runtime
        #[cfg(generated_code_asan)]
        if !options.for_linker {
            super::asan::instrument(&module, machine).map_err(|message| refused(&message, &module))?;
        }
        let llvm_ir = before.map(|before| (before, module.print_to_string().to_string()));
        // Code generation changes the module, so the assembly comes from a copy.
        let asm = match options.asm {
            true => Some(emit(machine, &module.clone(), FileType::Assembly)?),
            false => None,
        };
        let object = emit(machine, &module, FileType::Object)?;
        if let Some(message) = diagnostics.first_error() {
            return Err(refused(&message, &module));
        }
        let asm = asm.map(|text| String::from_utf8_lossy(&text).into_owned());
        Ok(CompiledModule { object, destructors, llvm_ir, asm })
    }
}

/// The target machine of a level, created when first needed.
fn machine<'m>(
    target: &LlvmTarget,
    machines: &'m mut [Option<TargetMachine>; 3],
    level: OptLevel,
) -> Result<&'m TargetMachine, Error> {
    match &mut machines[level as usize] {
        Some(machine) => Ok(machine),
        none => Ok(none.insert(target.machine(level)?)),
    }
}

/// Compiles a caller's module to an object file.
pub(crate) fn object_of(module: &LlvmModule<'_>, machine: &TargetMachine) -> Result<Vec<u8>, Error> {
    // The code generator crashes on a malformed module.
    module.verify().map_err(|e| Error::Caller { message: e.to_string() })?;
    catch_unwind(AssertUnwindSafe(|| emit(machine, module, FileType::Object)))
        .unwrap_or_else(|_| Err(Error::Caller { message: "a panic while code was generated".to_owned() }))
}

fn emit(machine: &TargetMachine, module: &LlvmModule<'_>, kind: FileType) -> Result<Vec<u8>, Error> {
    let buffer = machine.write_to_memory_buffer(module, kind).map_err(|e| refused(&e.to_string(), module))?;
    // For text, inkwell's length includes a NUL after the contents; emitted objects have none.
    Ok(buffer.as_slice().to_vec())
}

/// The number of levels, which is the length of [`Compiler::machines`].
const _: () = assert!(OptLevel::Full as usize == 2);
