//! LLVM as one backend among others.

use super::{CompiledModule, Compiler, LlvmTarget, Options, TargetOptions, lines};
use crate::backend::{Codegen, CodegenError, Listing, ObjectOptions, OptLevel, TextLine};
use crate::ir::VerifiedModule;

/// The backend.
pub(crate) struct Llvm;

/// A module in LLVM IR, as a string.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct LlvmIr {
    /// The IR before LLVM's passes: for a compiler that adds it to its own module and runs the passes over both.
    pub translated: String,
    /// The IR after LLVM's passes.
    pub optimized: String,
}

/// The module that [`Codegen::object`] compiles to an object.
pub(crate) fn ir(module: VerifiedModule, options: &ObjectOptions<'_>) -> Result<LlvmIr, CodegenError> {
    let (translated, optimized) = compile_file(module, options, true)?.llvm_ir.unwrap_or_default();
    Ok(LlvmIr { translated, optimized })
}

fn compile_file(
    module: VerifiedModule,
    options: &ObjectOptions<'_>,
    llvm_ir: bool,
) -> Result<CompiledModule, CodegenError> {
    let (cpu, features) = (options.cpu.map(str::to_owned), options.features.to_vec());
    let target_options = TargetOptions { opt_level: options.opt_level, cpu, features };
    let mut compiler = Compiler::new(LlvmTarget::new(options.target, &target_options)?);
    Ok(compiler.compile_owned(module, Options { for_linker: true, llvm_ir, ..Options::default() })?)
}

impl Codegen for Llvm {
    fn object(&self, module: VerifiedModule, options: &ObjectOptions<'_>) -> Result<Vec<u8>, CodegenError> {
        Ok(compile_file(module, options, false)?.object)
    }

    fn version(&self) -> Result<String, CodegenError> {
        let (major, minor, patch) = super::version()?;
        Ok(format!("{major}.{minor}.{patch}"))
    }

    fn listings(&self) -> &'static [Listing] {
        &[Listing::Llvm, Listing::Asm]
    }

    fn listing(&self, module: &VerifiedModule, listing: Listing, level: OptLevel) -> Result<String, CodegenError> {
        let (optimised, asm) = texts(module, level)?;
        Ok(if listing == Listing::Asm { asm } else { optimised })
    }

    fn lines(
        &self,
        module: &VerifiedModule,
        located: &VerifiedModule,
        level: OptLevel,
    ) -> Result<Vec<(Listing, Vec<TextLine>)>, CodegenError> {
        let ((llvm, asm), (located_llvm, located_asm)) = (texts(module, level)?, texts(located, level)?);
        let llvm = lines::llvm_ir(&llvm, &located_llvm);
        Ok(vec![(Listing::Llvm, llvm), (Listing::Asm, lines::assembly(&asm, &located_asm))])
    }
}

/// The optimised IR and the assembly of a module, for this machine.
fn texts(module: &VerifiedModule, level: OptLevel) -> Result<(String, String), CodegenError> {
    let target = LlvmTarget::host(&TargetOptions { opt_level: level, ..TargetOptions::default() })?;
    let options = Options { llvm_ir: true, asm: true, ..Options::default() };
    let compiled = Compiler::new(target).compile(module, options)?;
    let optimised = compiled.llvm_ir.map(|(_, optimised)| optimised).unwrap_or_default();
    Ok((optimised, compiled.asm.unwrap_or_default()))
}
