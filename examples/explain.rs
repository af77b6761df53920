//! Shows what becomes of a signature at each stage:
//! `cargo run --example explain -- --emit ir|clif|llvm|asm [--backend cranelift|llvm] [--opt none|speed|full] [NAME]`.

use std::error::Error;

use tvm_ffi_codegen::explain::{Stage, explain};
use tvm_ffi_codegen::{Backend, DLDataType, Kernel, OptLevel, ScalarType, Signature, TensorType};

fn main() -> Result<(), Box<dyn Error>> {
    let (mut stage, mut backend, mut level, mut name) =
        (Stage::Ir, None, OptLevel::default(), "two_tensors".to_owned());
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} takes a value"));
        match arg.as_str() {
            "--emit" => stage = value()?.parse()?,
            "--backend" => backend = Some(named_backend(&value()?)?),
            "--opt" => {
                level = match value()?.as_str() {
                    "none" => OptLevel::None,
                    "speed" => OptLevel::Speed,
                    "full" => OptLevel::Full,
                    other => return Err(format!("expected none, speed or full, got `{other}`").into()),
                }
            }
            other => name = other.to_owned(),
        }
    }
    let backend = match (backend, stage) {
        (Some(backend), _) => backend,
        (None, Stage::Llvm) => named_backend("llvm")?,
        (None, Stage::Clif) => named_backend("cranelift")?,
        (None, _) => Backend::default(),
    };
    let (signature, kernel) = example(&name)?;
    print!("{}", explain(&signature, &kernel, stage, backend, level)?);
    Ok(())
}

fn named_backend(name: &str) -> Result<Backend, String> {
    let found = Backend::ALL.iter().find(|b| b.to_string().to_lowercase() == name);
    found.copied().ok_or(format!("no backend `{name}` among this build's features"))
}

/// Signatures by name.
fn example(name: &str) -> Result<(Signature, Kernel), Box<dyn Error>> {
    let vector = || TensorType::new(["n"], DLDataType::FLOAT32);
    Ok(match name {
        "two_tensors" => {
            (Signature::builder(name).param("x", vector()).param("y", vector()).build()?, Kernel::symbol("kernel"))
        }
        "axpb" => {
            let signature = Signature::builder(name)
                .param("a", ScalarType::Float32)
                .param("b", ScalarType::Float32)
                .param("x", vector())
                .param("y", vector())
                .build()?;
            let kernel = Kernel::body(|body| {
                let (x, y, a, b) = (body.tensor("x"), body.tensor("y"), body.arg("a"), body.arg("b"));
                body.for_range(0, body.dim("n"), |i| y.store([i], a * x.load([i]) + b));
            });
            (signature, kernel)
        }
        other => return Err(format!("expected two_tensors or axpb, got `{other}`").into()),
    })
}
