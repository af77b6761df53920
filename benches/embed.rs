//! Wrappers in the caller's modules, compared with the engine: `cargo bench --bench embed --features llvm22-1`.
//!
//! The kernel is an address, so only the wrapper is compiled. Times run from the signature to a function of the
//! runtime: the module, the wrapper in it, the caller's passes (LLVM's `default<O2>`), code generation, linking.
//! One-time preparation is not included. In the *before* rows each `add_wrapper` adds its own copy of the runtime
//! helpers to the module, as it once did. The caller's passes and code generator then process all of them.

#[cfg(all(feature = "cranelift", not(feature = "external-runtime")))]
#[path = "embed/cranelift.rs"]
mod with_cranelift;
#[cfg(all(feature = "_llvm", not(feature = "external-runtime")))]
#[path = "embed/llvm.rs"]
mod with_llvm;

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use tvm_ffi_codegen::{Backend, Engine, Kernel, Signature};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The signatures: plain tensors, and one that needs more of `bind`.
const SIGNATURES: [(&str, &str); 2] = [
    ("two vectors", "NAME(x: Tensor([n], float32), y: Tensor([n], float32))"),
    ("many kinds", "NAME(x: Tensor([m, n + 1], float16), xs: Array[str], d: Map[str, int64], o: Optional[device])"),
];

fn is_smoke() -> bool {
    std::env::args().any(|arg| arg == "--test" || arg == "--list")
}

/// The number of kernels in one module.
fn many() -> usize {
    if is_smoke() { 3 } else { 1000 }
}

fn signature(text: &str, name: &str) -> Result<Signature> {
    Ok(text.replace("NAME", name).parse()?)
}

fn kernel() -> Kernel {
    extern "C" fn never_called() {}
    Kernel::address(never_called as *const u8)
}

/// The median of this many runs in microseconds, after some warm-up runs.
fn median<T>(runs: usize, mut run: impl FnMut() -> Result<T>) -> Result<f64> {
    let (runs, warm) = if is_smoke() { (1, 0) } else { (runs, runs / 10 + 1) };
    let mut times = Vec::new();
    for _ in 0..runs + warm {
        let start = Instant::now();
        let made = black_box(run()?);
        times.push(start.elapsed().as_secs_f64() * 1e6);
        drop(made);
    }
    let mut times = times.split_off(warm);
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}

/// The engine's times for a signature: for a single kernel, and for each of many kernels compiled one after the other.
fn engine(backend: Backend, text: &str, runs: usize) -> Result<(f64, f64)> {
    let engine = Engine::builder().backend(backend).build()?;
    let (signature, kernel) = (signature(text, "f")?, kernel());
    // SAFETY: the function is never called.
    let compile = || Ok(unsafe { engine.compile(&signature, &kernel)? });
    let one = median(runs, compile)?;
    let start = Instant::now();
    let all = (0..many()).map(|_| compile()).collect::<Result<Vec<_>>>()?;
    let each = start.elapsed().as_secs_f64() * 1e6 / all.len() as f64;
    Ok((one, each))
}

/// A row of the table: microseconds, and the ratio to the engine's time.
fn row(name: &str, one: f64, each: Option<f64>, engine: f64) {
    let each = each.map_or("-".to_owned(), |each| format!("{each:.0}"));
    println!("| {name} | {one:.0} | {:.2} | {each} |", one / engine);
}

fn heading(backend: Backend, what: &str) {
    println!("\n{backend}, {what}: microseconds\n");
    println!("| way | one kernel | times the engine's | each of {} in one module |\n|---|---|---|---|", many());
}

fn main() -> Result<()> {
    #[cfg(all(feature = "cranelift", not(feature = "external-runtime")))]
    with_cranelift::table()?;
    #[cfg(all(feature = "_llvm", not(feature = "external-runtime")))]
    with_llvm::table()?;
    Ok(())
}
