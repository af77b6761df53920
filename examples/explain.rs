//! Prints the stages from a signature to machine code:
//!
//! ```text
//! explain SIGNATURE [--body none|native|add_one|...] [--convention flat|dltensor|memref|packed] [--emit header|ir|clif|llvm|asm]
//!         [--backend cranelift|llvm] [--opt none|speed|full]
//! ```

use std::error::Error;
use std::io::Write;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use tvm_ffi_codegen::Convention;
use tvm_ffi_codegen::explain::{Stage, explain};
use tvm_ffi_codegen::{Backend, Kernel, OptLevel, Signature};

/// Prints the stages from a signature to machine code
#[derive(Parser)]
#[command(name = "explain")]
struct Cli {
    /// The signature, such as 'add_one(x: Tensor([n], float32), y: Tensor([n], float32))'
    signature: Signature,
    /// The code after the function's checks. The default is none, or a native kernel if a stage needs one
    #[arg(long, value_enum)]
    body: Option<Body>,
    /// How a native kernel is called: flat, dltensor, memref or packed
    #[arg(long)]
    convention: Option<Convention>,
    /// The only stage to show: header, ir, clif, llvm (after its passes) or asm. By default, all stages of the backend
    #[arg(long, value_name = "STAGE")]
    emit: Option<Stage>,
    /// cranelift or llvm. The default is the backend that has the stage
    #[arg(long)]
    backend: Option<Backend>,
    /// How much to optimise: none, speed or full
    #[arg(long, value_name = "LEVEL", default_value = "speed")]
    opt: OptLevel,
}

/// Bodies by name. They determine the names of the parameters that they use, but not their types.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
#[value(rename_all = "snake_case")]
enum Body {
    /// Nothing: the wrapper only checks
    None,
    /// Calls a native function with the signature's name
    Native,
    /// y[i] = x[i] + 1
    AddOne,
    /// y[i] = a * x[i] + b
    Axpb,
    /// The sum of x, a tensor of float64
    Sum,
}

impl Body {
    fn kernel(self, signature: &Signature, convention: Convention) -> Kernel {
        match self {
            Body::None => Kernel::check_only(),
            Body::Native => Kernel::symbol(signature.name()).convention(convention),
            Body::AddOne => Kernel::body(|b| {
                let (x, y) = (b.tensor("x"), b.tensor("y"));
                b.for_range(0, x.size(0), |i| y.store([i], x.load([i]) + 1));
            }),
            Body::Axpb => Kernel::body(|b| {
                let (x, y, p, q) = (b.tensor("x"), b.tensor("y"), b.arg("a"), b.arg("b"));
                b.for_range(0, x.size(0), |i| y.store([i], p * x.load([i]) + q));
            }),
            Body::Sum => Kernel::body(|b| {
                let x = b.tensor("x");
                b.ret(b.fold(0, x.size(0), b.f64(0.0), |i, sum| sum + x.load([i])));
            }),
        }
    }
}

fn main() -> ExitCode {
    match show(&Cli::parse()) {
        Ok(text) => {
            // a pager may close early
            let _ = std::io::stdout().write_all(text.as_bytes());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn show(cli: &Cli) -> Result<String, Box<dyn Error>> {
    let native = cli.signature.ret().is_some() || cli.convention.is_some() || cli.emit == Some(Stage::Header);
    let body = cli.body.unwrap_or(if native { Body::Native } else { Body::None });
    if cli.convention.is_some() && body != Body::Native {
        return Err("--convention is for --body native alone".into());
    }
    let backend = match (cli.backend, cli.emit) {
        (Some(backend), _) => backend,
        (None, Some(Stage::Llvm)) => "llvm".parse()?,
        (None, Some(Stage::Clif)) => "cranelift".parse()?,
        (None, _) => Backend::default(),
    };
    let kernel = body.kernel(&cli.signature, cli.convention.unwrap_or_default());
    let stage_text = |stage| explain(&cli.signature, &kernel, stage, backend, cli.opt);
    if let Some(stage) = cli.emit {
        return Ok(stage_text(stage)?);
    }
    let mut text = String::new();
    for stage in Stage::of(backend) {
        text.push_str(&format!("=== {stage} ===\n\n{}\n", stage_text(stage)?));
    }
    Ok(text)
}
