//! Cranelift as one backend among others.

use target_lexicon::BinaryFormat;

use super::{ByLoops, Compiler, IsaOptions, Options, host_isa, isa_for};
use crate::backend::{Codegen, CodegenError, Listing, ObjectOptions, OptLevel};
use crate::ir::VerifiedModule;

/// The backend.
pub(crate) struct Cranelift;

impl Codegen for Cranelift {
    fn object(&self, module: VerifiedModule, options: &ObjectOptions<'_>) -> Result<Vec<u8>, CodegenError> {
        // Windows loads code anywhere without a table of addresses, which its format doesn't have.
        let pic = options.target.binary_format != BinaryFormat::Coff;
        let features = options.cpu.map(str::to_owned).into_iter().chain(options.features.iter().cloned()).collect();
        let isa_options = IsaOptions { pic, verifier: options.verifier, features, ..IsaOptions::default() };
        let isas = ByLoops::new(options.opt_level, &isa_options, |isa_options| isa_for(options.target, isa_options))?;
        let options = Options { unwind: true, threads: options.threads, ..Options::default() };
        let compiled = Compiler::new().compile_by_loops(&module, &isas, options)?;
        drop(module);
        Ok(compiled.into_object(isas.straight)?)
    }

    fn version(&self) -> String {
        cranelift_codegen::VERSION.to_owned()
    }

    fn listings(&self) -> &'static [Listing] {
        &[Listing::Clif, Listing::Asm]
    }

    fn listing(&self, module: &VerifiedModule, listing: Listing, level: OptLevel) -> Result<String, CodegenError> {
        let isas = ByLoops::new(level, &IsaOptions::default(), host_isa)?;
        let compiled =
            Compiler::new().compile_by_loops(module, &isas, Options { disasm: true, ..Options::default() })?;
        let mut out = String::new();
        for function in compiled.functions() {
            // CLIF, an empty line, and the machine code
            let text = function.disasm.as_deref().unwrap_or_default();
            let (clif, asm) = text.split_once("}\n\n").unwrap_or((text, ""));
            match listing {
                Listing::Asm if asm.is_empty() => {}
                Listing::Asm => out.push_str(&format!("{}:\n{asm}\n", function.name)),
                _ if clif.is_empty() => {}
                _ => out.push_str(&format!("{clif}}}\n\n")),
            }
        }
        Ok(out)
    }
}
