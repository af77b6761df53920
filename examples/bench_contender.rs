//! This library's entry in comparisons with other generators: `bench_contender WORKLOAD OUT.so REPS`, optionally with
//! `--backend cranelift|llvm`. It writes a library with one of four wrappers, and next to it the object from which the
//! library is linked. It prints the compile time as one line of JSON.

#[path = "../benches/support/workloads.rs"]
mod workloads;

use std::error::Error;
use std::hint::black_box;
use std::path::PathBuf;
use std::time::Instant;

use clap::Parser;
use tvm_ffi_codegen::artifact::{LibraryBuilder, Linker, Triple};
use tvm_ffi_codegen::{Backend, Engine, Kernel, Signature};
use workloads::Workload;

/// Writes a library with a wrapper, and prints the time to compile it
#[derive(Parser)]
struct Cli {
    workload: Workload,
    /// The library to write; its object is written next to it, with the ending `.o`
    out: PathBuf,
    /// How many times to measure, after two uncounted runs
    reps: usize,
    /// cranelift or llvm
    #[arg(long, default_value_t)]
    backend: Backend,
    /// The CPU that the library is for, by the backend's name for it, such as LLVM's x86-64-v3
    #[arg(long)]
    cpu: Option<String>,
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

/// Writes the object and the library linked from it.
fn write(cli: &Cli, signature: &Signature, kernel: &Kernel) -> Result<(), Box<dyn Error>> {
    let object = cli.out.with_extension("o");
    // the libraries of other generators carry no metadata
    let library = LibraryBuilder::new().backend(cli.backend).metadata(false).function(signature, kernel);
    let library = cli.cpu.iter().fold(library, |library, cpu| library.cpu(cpu));
    library.emit()?.write(&object)?;
    Ok(Linker::new(Triple::host()).file(object).link(&cli.out)?)
}
