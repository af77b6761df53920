//! LLVM as one backend among others.

use super::{Compiler, Options, Target, TargetOptions};
use crate::backend::{Codegen, CodegenError, Listing, ObjectOptions, OptLevel};
use crate::ir::VerifiedModule;

/// The backend.
pub(crate) struct Llvm;

impl Codegen for Llvm {
    fn object(&self, module: VerifiedModule, options: &ObjectOptions<'_>) -> Result<Vec<u8>, CodegenError> {
        let (cpu, features) = (options.cpu.map(str::to_owned), options.features.to_vec());
        let target_options = TargetOptions { opt_level: options.opt_level, cpu, features };
        let mut compiler = Compiler::new(Target::new(options.target, &target_options)?);
        Ok(compiler.compile_owned(module, Options { for_linker: true, ..Options::default() })?.object)
    }

    fn version(&self) -> String {
        let (major, minor, patch) = inkwell::support::get_llvm_version();
        format!("{major}.{minor}.{patch}")
    }

    fn listings(&self) -> &'static [Listing] {
        &[Listing::Llvm, Listing::Asm]
    }

    fn listing(&self, module: &VerifiedModule, listing: Listing, level: OptLevel) -> Result<String, CodegenError> {
        let target = Target::host(&TargetOptions { opt_level: level, ..TargetOptions::default() })?;
        let options = Options { llvm_ir: true, asm: true, ..Options::default() };
        let compiled = Compiler::new(target).compile(module, options)?;
        Ok(match listing {
            Listing::Asm => compiled.asm.unwrap_or_default(),
            _ => compiled.llvm_ir.map(|(_, optimised)| optimised).unwrap_or_default(),
        })
    }
}
