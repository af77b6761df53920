//! Cranelift as one backend among others.

use std::sync::atomic::{AtomicU64, Ordering};

use target_lexicon::BinaryFormat;

use super::{ByLoops, CompiledFunction, CompiledModule, Compiler, IsaOptions, Options, host_isa, isa_for, lines};
use crate::backend::{Codegen, CodegenError, Listing, ObjectOptions, OptLevel, TextLine};
use crate::ir::VerifiedModule;

/// The backend.
pub(crate) struct Cranelift;

impl Codegen for Cranelift {
    fn object(&self, module: VerifiedModule, options: &ObjectOptions<'_>) -> Result<Vec<u8>, CodegenError> {
        // Windows loads position-dependent code at any address, and its format has no global offset table.
        let pic = options.target.binary_format != BinaryFormat::Coff;
        let features = options.cpu.map(str::to_owned).into_iter().chain(options.features.iter().cloned()).collect();
        let isa_options = IsaOptions { pic, verifier: options.verifier, features, ..IsaOptions::default() };
        let isas = ByLoops::new(options.opt_level, &isa_options, |isa_options| isa_for(options.target, isa_options))?;
        let count = AtomicU64::new(0);
        let total = module.functions.values().filter(|decl| decl.body.is_some()).count() as u64;
        let observed = || (options.compiled)(count.fetch_add(1, Ordering::Relaxed) + 1, total);
        let options = Options { unwind: true, threads: options.threads, ..Options::default() };
        let compiled = Compiler::new().compile_observed(&module, &isas, options, &observed)?;
        drop(module);
        Ok(compiled.into_object(isas.straight)?)
    }

    fn version(&self) -> Result<String, CodegenError> {
        Ok(cranelift_codegen::VERSION.to_owned())
    }

    fn listings(&self) -> &'static [Listing] {
        &[Listing::Clif, Listing::Asm]
    }

    fn listing(&self, module: &VerifiedModule, listing: Listing, level: OptLevel) -> Result<String, CodegenError> {
        let compiled = with_texts(module, level)?;
        let mut out = String::new();
        for function in compiled.functions() {
            let (clif, asm) = texts(function);
            match listing {
                Listing::Asm if asm.is_empty() => {}
                Listing::Asm => out.push_str(&format!("{}:\n{asm}\n", function.name)),
                _ if clif.is_empty() => {}
                _ => out.push_str(&format!("{clif}}}\n\n")),
            }
        }
        Ok(out)
    }

    fn lines(
        &self,
        module: &VerifiedModule,
        located: &VerifiedModule,
        level: OptLevel,
    ) -> Result<Vec<(Listing, Vec<TextLine>)>, CodegenError> {
        let (plain, located) = (with_texts(module, level)?, with_texts(located, level)?);
        let (mut clif, mut asm) = (Vec::new(), Vec::new());
        for (plain, with_lines) in plain.functions().iter().zip(located.functions()) {
            if plain.code.is_empty() {
                continue;
            }
            let empty = || TextLine::plain("");
            clif.extend(lines::clif(&located, texts(with_lines).0));
            clif.extend([TextLine::plain("}"), empty()]);
            asm.extend(lines::machine_code(&located, plain, with_lines));
            asm.push(empty());
        }
        Ok(vec![(Listing::Clif, clif), (Listing::Asm, asm)])
    }
}

/// A module compiled for this machine, with its listings.
fn with_texts(module: &VerifiedModule, level: OptLevel) -> Result<CompiledModule, CodegenError> {
    let isas = ByLoops::new(level, &IsaOptions::default(), host_isa)?;
    Ok(Compiler::new().compile_by_loops(module, &isas, Options { disasm: true, ..Options::default() })?)
}

/// A function's CLIF without the closing brace, and its machine code. An empty line separates them in the listing.
fn texts(function: &CompiledFunction) -> (&str, &str) {
    let text = function.disasm.as_deref().unwrap_or_default();
    text.split_once("}\n\n").unwrap_or((text, ""))
}
