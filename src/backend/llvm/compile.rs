//! From a verified module to an object file in memory, and no LLVM state left behind.

use std::collections::HashMap;
use std::ffi::{CStr, c_void};
use std::fmt;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use inkwell::attributes::AttributeLoc;
use inkwell::context::{AsContextRef, Context};
use inkwell::llvm_sys::LLVMDiagnosticSeverity;
use inkwell::llvm_sys::core::{
    LLVMContextSetDiagnosticHandler, LLVMDisposeMessage, LLVMGetDiagInfoDescription, LLVMGetDiagInfoSeverity,
};
use inkwell::llvm_sys::prelude::LLVMDiagnosticInfoRef;
use inkwell::module::Module as LlvmModule;
use inkwell::targets::{FileType, TargetMachine, TargetTriple};
use target_lexicon::{BinaryFormat, Endianness};

use super::define::Destructors;
use super::translate::{ModuleTranslator, Surroundings};
use super::{Error, Target};
use super::{pipeline, target};
use crate::backend::OptLevel;
use crate::ir::VerifiedModule;

/// That of every target that [`Target`] takes.
pub(crate) const ENDIANNESS: Endianness = Endianness::Little;

/// Whether constants and data are written for the targets there are.
pub(super) fn check_endianness(ir: &VerifiedModule) -> Result<(), Error> {
    if ir.endianness == ENDIANNESS { Ok(()) } else { Err(Error::Endianness) }
}

/// The further outputs of [`Compiler::compile`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Keep the LLVM IR, as translated and as optimised.
    pub llvm_ir: bool,
    /// Keep the assembly.
    pub asm: bool,
    /// For an object file that is linked: loops don't become calls of the C library (`strlen`, `memset`), and where a linker
    /// has to be told what a library exports, it is told. Code is better by a little, and takes a little longer.
    pub for_linker: bool,
    /// Put all code into one section, where that is not done anyway: whoever knows the address of one function knows them all.
    pub one_section: bool,
}

/// Machine code of a whole module.
#[derive(Debug)]
#[non_exhaustive]
pub struct CompiledModule {
    /// The object file, in the target's format.
    pub object: Vec<u8>,
    /// Unless made [for a linker](Options::for_linker): symbols of functions `()` that whoever loads the object calls when the code goes, the
    /// last first.
    pub destructors: Vec<String>,
    /// LLVM IR before and after the passes, if asked for.
    pub llvm_ir: Option<(String, String)>,
    /// The assembly, if asked for.
    pub asm: Option<String>,
}

/// A compiler of modules for a target, one after the other. One per thread at a time.
pub struct Compiler {
    target: Target,
    machines: [Option<TargetMachine>; 3],
}

// SAFETY: a `TargetMachine` is bound to no thread and to no LLVM context, only not to be used by two at once; nothing
// else refers to those of a compiler, and `compile` takes it by `&mut`.
unsafe impl Send for Compiler {}

/// Compiles a module for a target.
///
/// # Errors
/// As [`Compiler::compile`].
pub fn compile(module: &VerifiedModule, target: &Target) -> Result<CompiledModule, Error> {
    Compiler::new(target.clone()).compile(module, Options::default())
}

impl fmt::Debug for Compiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compiler").field("target", &self.target).finish_non_exhaustive()
    }
}

impl Compiler {
    /// A compiler that has compiled nothing yet.
    pub fn new(target: Target) -> Self {
        Compiler { target, machines: [None, None, None] }
    }

    /// Compiles a module. All that LLVM makes on the way is gone when this returns, the object apart.
    ///
    /// # Errors
    /// LLVM refuses the module, which is a bug of this library; the error shows what it was given.
    pub fn compile(&mut self, module: &VerifiedModule, options: Options) -> Result<CompiledModule, Error> {
        self.guarded(module, options, || module.to_string())
    }

    /// As [`compile`](Self::compile), and frees the module as soon as LLVM has its own of it: one of many functions is large.
    ///
    /// # Errors
    /// As [`compile`](Self::compile).
    pub fn compile_owned(&mut self, module: VerifiedModule, options: Options) -> Result<CompiledModule, Error> {
        self.guarded(Box::new(module), options, String::new)
    }

    fn guarded(
        &mut self,
        module: impl Deref<Target = VerifiedModule>,
        options: Options,
        listing: impl FnOnce() -> String,
    ) -> Result<CompiledModule, Error> {
        // inkwell checks some things by panicking. None of that may leave this library.
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
        let machine = match &mut self.machines[level as usize] {
            Some(machine) => &*machine,
            none => none.insert(self.target.machine(level)?),
        };
        // what goes to a file is compiled once
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
        translator.translate(&surroundings).map_err(|e| refused(&e.to_string(), &module))?;
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
        // The passes take a malformed module for granted and crash on it.
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
        let llvm_ir = before.map(|before| (before, module.print_to_string().to_string()));
        // Generating code changes the module, so that the text comes from a copy.
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

/// The object file of a module of somebody else's.
pub(crate) fn object_of(module: &LlvmModule<'_>, machine: &TargetMachine) -> Result<Vec<u8>, Error> {
    // The code generator takes a malformed module for granted and crashes on it.
    module.verify().map_err(|e| Error::Caller { message: e.to_string() })?;
    catch_unwind(AssertUnwindSafe(|| emit(machine, module, FileType::Object)))
        .unwrap_or_else(|_| Err(Error::Caller { message: "a panic while code was generated".to_owned() }))
}

fn emit(machine: &TargetMachine, module: &LlvmModule<'_>, kind: FileType) -> Result<Vec<u8>, Error> {
    let buffer = machine.write_to_memory_buffer(module, kind).map_err(|e| refused(&e.to_string(), module))?;
    // inkwell counts a NUL behind the contents for text, and none for what was emitted.
    Ok(buffer.as_slice().to_vec())
}

pub(super) fn refused(message: &str, module: &LlvmModule<'_>) -> Error {
    Error::Codegen { message: message.to_owned(), listing: module.print_to_string().to_string() }
}

/// Errors that LLVM reports beside its return values. Without a handler it prints them and ends the process.
struct Diagnostics {
    errors: Box<std::cell::RefCell<Vec<String>>>,
}

impl Diagnostics {
    /// Collects what is reported in `context`, for as long as that lives: declare it later, and it is dropped before.
    fn of(context: &Context) -> Self {
        let errors = Box::<std::cell::RefCell<Vec<String>>>::default();
        // SAFETY: the handler gets the address of the cell, which stays where it is, on the thread that compiles. Nothing
        // is compiled in the context after this is dropped: both are locals of one function.
        unsafe {
            LLVMContextSetDiagnosticHandler(
                context.as_ctx_ref(),
                Some(note),
                ptr::from_ref(&*errors).cast_mut().cast(),
            );
        }
        Diagnostics { errors }
    }

    fn first_error(&self) -> Option<String> {
        self.errors.borrow().first().cloned()
    }
}

extern "C" fn note(info: LLVMDiagnosticInfoRef, errors: *mut c_void) {
    // SAFETY: LLVM calls this with a diagnostic that is alive and with what `Diagnostics::of` gave.
    unsafe {
        if !matches!(LLVMGetDiagInfoSeverity(info), LLVMDiagnosticSeverity::LLVMDSError) {
            return;
        }
        let text = LLVMGetDiagInfoDescription(info);
        let errors = &*errors.cast::<std::cell::RefCell<Vec<String>>>();
        errors.borrow_mut().push(CStr::from_ptr(text).to_string_lossy().into_owned());
        LLVMDisposeMessage(text);
    }
}

/// How many levels there are: the places in [`Compiler::machines`].
const _: () = assert!(OptLevel::Full as usize == 2);
