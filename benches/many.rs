//! Many different wrappers in one object: `cargo bench --bench many`, with `--features llvm22-1` for LLVM too.
//!
//! It prints microseconds per wrapper, for each backend and each number of wrappers. `LibraryBuilder::emit` is measured
//! on one thread and on all threads, and its stages on one thread. The times are CPU time of the calling thread. On an
//! idle machine they equal wall-clock time.
//!
//! An argument, such as `Cranelift/1000`, runs only the measurements with that in their name. `--test` runs each once,
//! with few wrappers.

mod support;

use std::hint::black_box;
use std::num::NonZeroUsize;
use std::time::Instant;

use support::Result;
use tvm_ffi_codegen::artifact::LibraryBuilder;
use tvm_ffi_codegen::{Backend, Kernel, Signature};

/// The numbers of wrappers.
const COUNTS: [usize; 3] = [100, 1_000, 10_000];
/// Minimum number of compiled wrappers per median.
const WRAPPERS: usize = 3_000;
const DTYPES: [&str; 6] = ["float32", "float64", "int32", "int8", "bfloat16", "uint16"];
const SCALARS: [&str; 5] = ["int64", "float64", "bool", "int32", "handle"];

/// A signature with its own names and sizes. Its shape repeats every 100 signatures, so each count has the same mix.
fn signature(i: usize) -> Result<Signature> {
    let kind = i % 100;
    let body = (kind % 4 == 1).then(|| "y: Tensor([n], float32)".to_owned());
    let tensors = (0..1 + kind % 3).map(|t| {
        let mut dims: Vec<String> = (0..(kind / 4 + t) % 5).map(|d| format!("n{d}")).collect();
        // two in three have a size of their own
        if !kind.is_multiple_of(3) {
            dims.push((i + 1).to_string());
        }
        format!("x{t}_{}: Tensor([{}], {})", i % 977, dims.join(", "), DTYPES[(kind + t) % 6])
    });
    let scalars = (0..kind / 20 % 3).map(|s| format!("s{s}: {}", SCALARS[(kind / 5 + s) % 5]));
    let params: Vec<String> = body.into_iter().chain(tensors).chain(scalars).collect();
    Ok(format!("op_{i}({})", params.join(", ")).parse()?)
}

/// Half are native kernels, a quarter empty bodies, a quarter bodies with a loop.
fn kernel(i: usize) -> Kernel {
    match i % 4 {
        0 => Kernel::body(|_| {}),
        1 => Kernel::body(|b| {
            let y = b.tensor("y");
            b.for_range(0, b.dim("n"), |i| y.store([i], y.load([i]) + 1.0));
        }),
        _ => Kernel::symbol(format!("kernel_{i}")),
    }
}

/// The CPU time of this thread so far, in seconds. Falls back to wall-clock time if the system doesn't report it.
fn now(start: Instant) -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split_whitespace().next().and_then(|word| word.parse::<f64>().ok());
    nanoseconds.map_or_else(|| start.elapsed().as_secs_f64(), |nanoseconds| nanoseconds / 1e9)
}

/// Microseconds per wrapper: the mean CPU time of this thread, and the median wall-clock time. Other threads don't
/// disturb the CPU time, but its resolution is the system's clock tick.
fn both<T>(count: usize, mut run: impl FnMut() -> Result<T>) -> Result<(f64, f64)> {
    let origin = Instant::now();
    let runs = if support::is_smoke() { 1 } else { WRAPPERS.div_ceil(count).max(3) };
    let (mut time, mut passed) = (0.0, Vec::with_capacity(runs));
    for _ in 0..runs {
        let (start, wall) = (now(origin), Instant::now());
        let made = run()?;
        time += now(origin) - start;
        passed.push(wall.elapsed().as_secs_f64() * 1e6 / count as f64);
        drop(black_box(made));
    }
    passed.sort_by(f64::total_cmp);
    Ok((time * 1e6 / (runs * count) as f64, passed[runs / 2]))
}

/// The CPU time of [`both`].
fn each<T>(count: usize, run: impl FnMut() -> Result<T>) -> Result<f64> {
    Ok(both(count, run)?.0)
}

fn main() -> Result<()> {
    let filter = std::env::args().skip(1).find(|arg| !arg.starts_with("--"));
    println!("microseconds of the calling thread for each wrapper, those that pass, and bytes of the object for each:");
    for &backend in Backend::ALL {
        for count in if support::is_smoke() { [20, 100, 200] } else { COUNTS } {
            let name = format!("{backend}/{count}");
            if filter.as_ref().is_none_or(|filter| name.contains(filter)) {
                measure(backend, count)?;
            }
        }
    }
    Ok(())
}

fn measure(backend: Backend, count: usize) -> Result<()> {
    let wrappers = (0..count).map(|i| Ok((signature(i)?, kernel(i)))).collect::<Result<Vec<_>>>()?;
    let library = || {
        let empty = LibraryBuilder::new().backend(backend);
        wrappers.iter().fold(empty, |library, (signature, kernel)| library.function(signature, kernel))
    };
    let library = library();
    let mut size = 0;
    let mut emit = |threads: Option<NonZeroUsize>| {
        let library = threads.into_iter().fold(library.clone(), LibraryBuilder::threads);
        both(count, || {
            let object = library.emit()?;
            size = object.as_bytes().len() / count;
            Ok(object)
        })
    };
    let (alone, alone_passed) = emit(Some(NonZeroUsize::MIN))?;
    print!("{backend}/{count}: emitted on one thread {alone:.1} ({alone_passed:.1} pass)");
    if backend.name() == "cranelift" {
        let (whole, passed) = emit(None)?;
        print!(", on all {whole:.1} ({passed:.1} pass)");
    }
    println!(", {size} bytes");
    stages(backend, &wrappers)
}

/// The stages of `emit`, one by one.
fn stages(backend: Backend, wrappers: &[(Signature, Kernel)]) -> Result<()> {
    use tvm_ffi_codegen::{ir, lower};
    let count = wrappers.len();
    let lowered = || {
        let (purpose, helpers) = (lower::Purpose::Library, lower::RuntimeHelpers::Define);
        let recipe = lower::Recipe { purpose, helpers, ..lower::Recipe::default() };
        let recipe = wrappers.iter().fold(recipe, |recipe, (signature, kernel)| recipe.function(signature, kernel));
        let lowered = recipe.lower().map_err(|mut errors| errors.swap_remove(0))?;
        Ok(lowered.module)
    };
    let metadata =
        each(count, || Ok(wrappers.iter().map(|(signature, _)| lower::metadata(signature).len()).sum::<usize>()))?;
    let lower = each(count, lowered)?;
    let mut modules = Vec::new();
    let both = each(count, || {
        modules.push(ir::verify(lowered()?)?);
        modules.truncate(1);
        Ok(())
    })?;
    println!("  lower {lower:.1} (metadata {metadata:.1}), verify {:.1}", both - lower);
    let Some(module) = modules.pop() else { return Ok(()) };
    match backend {
        #[cfg(feature = "cranelift")]
        Backend::Cranelift => {
            use tvm_ffi_codegen::OptLevel;
            use tvm_ffi_codegen::artifact::Triple;
            use tvm_ffi_codegen::backend::cranelift::{ByLoops, Compiler, IsaOptions, Options, isa_for};
            let options = IsaOptions { pic: true, ..IsaOptions::default() };
            let isas = ByLoops::new(OptLevel::Speed, &options, |options| isa_for(&Triple::host(), options))?;
            let options = Options { unwind: true, threads: Some(NonZeroUsize::MIN), ..Options::default() };
            let mut compiler = Compiler::new();
            let mut compiled = Vec::new();
            let compile = each(count, || {
                compiled.push(compiler.compile_by_loops(&module, &isas, options)?);
                Ok(())
            })?;
            let object =
                each(count, || Ok(compiled.pop().map(|compiled| compiled.into_object(isas.straight.clone()))))?;
            println!("  compile {compile:.1}, object {object:.1}");
        }
        #[cfg(feature = "_llvm")]
        Backend::Llvm => drop(module),
        #[allow(unreachable_patterns)] // all that there are
        _ => {}
    }
    Ok(())
}
