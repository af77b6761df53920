//! Enters the comparison with other generators: `bench_contender WORKLOAD OUT.so REPS [--backend cranelift|llvm]` writes a library with
//! one of four wrappers, and the object that it is linked of beside it; it prints how long compiling takes, as one line of JSON.

use std::error::Error;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{Parser, ValueEnum};
use tvm_ffi_codegen::{Backend, Engine, Kernel, ScalarType, Signature};

/// Writes a library with a wrapper, and prints the time to compile it
#[derive(Parser)]
struct Cli {
    workload: Workload,
    /// The library to write; the object goes beside it, under the ending `.o`
    out: PathBuf,
    /// How many times to measure, after two runs that don't count
    reps: usize,
    /// cranelift or llvm
    #[arg(long, default_value_t)]
    backend: Backend,
}

#[derive(Clone, Copy, ValueEnum)]
#[value(rename_all = "snake_case")]
enum Workload {
    AddOne,
    GemmSig,
    Scalars,
    Wide,
}

impl Workload {
    fn signature(self) -> Result<Signature, Box<dyn Error>> {
        let tensors: Vec<String> = (0..16).map(|i| format!("t{i}: Tensor([a, b, c, d], float32)")).collect();
        Ok(match self {
            Workload::AddOne => "add_one(x: Tensor([n], float32), y: Tensor([n], float32))".parse()?,
            Workload::GemmSig => {
                "gemm_sig(A: Tensor([m, k], float32), B: Tensor([k, n], float32), C: Tensor([m, n], float32), \
                 alpha: float64, flag: bool)"
                    .parse()?
            }
            Workload::Scalars => "scalars(a: int64, b: float64, c: bool, h: handle) -> int64".parse()?,
            Workload::Wide => format!("wide({})", tensors.join(", ")).parse()?,
        })
    }

    fn kernel(self) -> Kernel {
        match self {
            Workload::Scalars => Kernel::body(|b| {
                let int = |name: &str| b.arg(name).cast(ScalarType::Int64);
                b.ret(int("a") + int("b") + int("c"));
            }),
            _ => Kernel::body(|_| {}),
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let cli = Cli::parse();
    let (signature, kernel) = (cli.workload.signature()?, cli.workload.kernel());
    write(&cli, &signature, &kernel)?;
    let engine = Engine::builder().backend(cli.backend).build()?;
    let mut times = Vec::with_capacity(cli.reps);
    for _ in 0..cli.reps + 2 {
        let start = Instant::now();
        // SAFETY: the bodies touch no memory.
        let function = unsafe { engine.compile(&signature, &kernel)? };
        times.push(start.elapsed().as_secs_f64() * 1e3);
        drop(black_box(function));
    }
    let mut times = times.split_off(2);
    times.sort_by(f64::total_cmp);
    println!(
        "{{\"total_ms\": {:.4}, \"min_total_ms\": {:.4}, \"reps\": {}}}",
        times[times.len() / 2],
        times[0],
        times.len()
    );
    Ok(())
}

fn write(cli: &Cli, signature: &Signature, kernel: &Kernel) -> Result<(), Box<dyn Error>> {
    use tvm_ffi_codegen::{backend, ir, lower};
    let module = ir::verify(lower::lower(signature, kernel, lower::Routines::Define)?)?;
    let bytes = match cli.backend {
        Backend::Cranelift => {
            use cranelift_codegen::settings::{self, Configurable};
            let mut f = settings::builder();
            f.set("is_pic", "true")?;
            f.set("opt_level", "speed")?;
            f.set("use_colocated_libcalls", "false")?;
            let isa = cranelift_native::builder()?.finish(settings::Flags::new(f))?;
            let mut m = cranelift_object::ObjectModule::new(cranelift_object::ObjectBuilder::new(
                isa,
                "x",
                cranelift_module::default_libcall_names(),
            )?);
            use cranelift_module::Module as _;
            backend::cranelift::compile(&module, m.isa())?.add_to(&mut m, &Default::default())?;
            m.finish().emit()?
        }
        #[cfg(feature = "_llvm")]
        Backend::Llvm => {
            let target = backend::llvm::Target::host(&Default::default())?;
            let options = backend::llvm::Options { for_linker: true, ..Default::default() };
            backend::llvm::Compiler::new(target).compile(&module, options)?.object
        }
        _ => unreachable!(),
    };
    let o = cli.out.with_extension("o");
    std::fs::write(&o, bytes)?;
    let st = std::process::Command::new("cc").args(["-shared", "-o"]).arg(&cli.out as &Path).arg(&o).status()?;
    assert!(st.success());
    Ok(())
}
