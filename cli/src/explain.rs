//! `tvm-ffi-codegen explain`

use std::path::PathBuf;

use clap::Args;
use tvm_ffi_codegen::explain::{Stage, explain};
use tvm_ffi_codegen::{Backend, Convention, Kernel, OptLevel};

use crate::error::{CliError, failure};
use crate::images::Images;
use crate::io::write_text;
use crate::signatures::{launched, read_launched};

/// Shows a signature at each stage of its compilation for this machine
#[derive(Args)]
pub struct Explain {
    /// The signature, optionally followed by its kernel's launch: `SIGNATURE @ launch ENTRY ...`; `-` reads it from
    /// stdin
    #[arg(long, value_name = "TEXT")]
    signature: String,
    /// The symbol of the C function to call; by default the wrapper only checks, or calls the function's own name for a
    /// stage that needs a kernel
    #[arg(long, value_name = "SYMBOL")]
    kernel: Option<String>,
    /// How the kernel is called: flat, dltensor, memref or packed
    #[arg(long)]
    convention: Option<Convention>,
    /// The only stage to show: body (the function as text of host functions), ir, clif, llvm (after its passes), asm,
    /// header or launch; html is a page with all of them side by side. By default, all stages of the backend, and the
    /// launch if there is one
    #[arg(long, value_name = "STAGE")]
    emit: Option<Stage>,
    /// cranelift or llvm; by default the one that has the stage
    #[arg(long)]
    backend: Option<Backend>,
    /// The optimisation level: none, speed or full
    #[arg(long, value_name = "LEVEL", default_value = "speed")]
    opt_level: OptLevel,
    #[command(flatten)]
    images: Images,
    /// The file to write; by default, or for `-`, stdout
    #[arg(short, long, value_name = "FILE", default_value = "-", hide_default_value = true)]
    output: PathBuf,
}

impl Explain {
    pub fn run(&self) -> Result<(), CliError> {
        let (signature, launch) = read_launched(&self.signature)?;
        let backend = match (self.backend, self.emit) {
            (Some(backend), _) => backend,
            (None, Some(Stage::Llvm)) => "llvm".parse().map_err(failure)?,
            (None, Some(Stage::Clif)) => "cranelift".parse().map_err(failure)?,
            (None, _) => Backend::default(),
        };
        let native = signature.ret().is_some() || self.convention.is_some() || self.emit == Some(Stage::Header);
        let is_launched = launch.is_some();
        let mut kernel = match (launch, &self.kernel) {
            (Some(launch), _) => launched(&signature, launch, &self.images.read()?),
            (None, Some(symbol)) => Kernel::symbol(symbol),
            (None, None) if native => Kernel::symbol(signature.name()),
            (None, None) => Kernel::check_only(),
        };
        if let Some(convention) = self.convention {
            kernel = kernel.convention(convention);
        }
        let stage_text = |stage| explain(&signature, &kernel, stage, backend, self.opt_level).map_err(failure);
        if let Some(stage) = self.emit {
            return write_text(&self.output, &stage_text(stage)?);
        }
        let mut text = String::new();
        for stage in is_launched.then_some(Stage::Launch).into_iter().chain(Stage::of(backend)) {
            text.push_str(&format!("=== {stage} ===\n\n{}\n", stage_text(stage)?));
        }
        write_text(&self.output, &text)
    }
}
