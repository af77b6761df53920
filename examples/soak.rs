//! Runs the engine for a long time, to check that memory stays flat and that threads agree.
//!
//! ```text
//! soak --compile-cycles N         compile, call and drop N wrappers on one engine; memory must not grow
//! soak --threads T --loop N       T threads at once compile, call (rightly and wrongly) and drop, N times each
//! ```
//!
//! `--backend llvm` uses LLVM, if this build has it.

use std::error::Error;

use tvm_ffi_codegen::runtime::{Function, Tensor};
use tvm_ffi_codegen::{Backend, DLDataType, Engine, Kernel, Signature, TensorType};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// The number of cycles before resident memory is first read: by then every pool and cache is filled.
const WARM_CYCLES: usize = 1_000;
/// The maximum growth after that, in KiB. It is less than a page for each of the smallest number of cycles that CI
/// runs.
const MAX_GROWTH_KIB: u64 = 1024;

fn main() -> Result<()> {
    let mut cycles = None;
    let mut threads = 2;
    let mut rounds = None;
    let mut backend = Backend::default();
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut number = || args.next().and_then(|n| n.parse::<usize>().ok()).ok_or(format!("{arg} needs a number"));
        match arg.as_str() {
            "--compile-cycles" => cycles = Some(number()?),
            "--threads" => threads = number()?,
            "--loop" => rounds = Some(number()?),
            "--backend" => backend = args.next().ok_or("--backend needs a name")?.parse()?,
            _ => return Err(format!("unknown argument {arg}").into()),
        }
    }
    if cycles.is_none() && rounds.is_none() {
        return Err("give --compile-cycles N, or --threads T --loop N".into());
    }
    if let Some(cycles) = cycles {
        compile_cycles(backend, cycles)?;
    }
    if let Some(rounds) = rounds {
        run_threads(backend, threads, rounds)?;
    }
    Ok(())
}

fn signature() -> Result<Signature> {
    let tensor = || TensorType::new(["n"], DLDataType::FLOAT32);
    Ok(Signature::builder("add_one").param("x", tensor()).param("y", tensor()).build()?)
}

/// Compiles `y = x + add`, so a call that runs another function's code gives a wrong result.
fn compile(engine: &Engine, signature: &Signature, add: f32) -> Result<Function> {
    let kernel = Kernel::body(move |b| {
        let (x, y) = (b.tensor("x"), b.tensor("y"));
        b.for_range(0, b.dim("n"), |i| y.store([i], x.load([i]) + add));
    });
    // SAFETY: the body stays within `0..n`, the shape that both tensors have once the wrapper has checked them.
    Ok(unsafe { engine.compile(signature, &kernel)? })
}

/// Tensors for a correct call and some wrong ones.
struct Data {
    x: Tensor,
    y: Tensor,
    short: Tensor,
}

impl Data {
    fn new() -> Result<Self> {
        let x: Vec<f32> = (0..16).map(|i| i as f32).collect();
        Ok(Data {
            x: Tensor::from_slice(&x, &[16])?,
            y: Tensor::from_slice(&[0.0f32; 16], &[16])?,
            short: Tensor::from_slice(&[0.0f32; 15], &[15])?,
        })
    }

    /// Makes a correct call and three wrong ones; each must behave as expected.
    fn check(&self, function: &Function, add: f32) -> Result<()> {
        function.call((&self.x, &self.y))?;
        let (x, y) = (self.x.to_vec::<f32>()?, self.y.to_vec::<f32>()?);
        if let Some(i) = (0..x.len()).find(|&i| x[i] + add != y[i]) {
            return Err(format!("y[{i}] is {}, not {} + {add}", y[i], x[i]).into());
        }
        let wrong = [
            (function.call((&self.x,)), "expected 2, got 1"),
            (function.call((&self.x, 1)), "expected Tensor, got int"),
            (function.call((&self.x, &self.short)), "expected 16 (n, from x.shape[0]), got 15"),
        ];
        for (result, text) in wrong {
            match result {
                Err(error) if error.message().ends_with(text) => {}
                Err(error) => return Err(format!("expected an error that ends with {text:?}, got {error}").into()),
                Ok(_) => return Err(format!("accepted a call that should fail with {text:?}").into()),
            }
        }
        Ok(())
    }
}

fn compile_cycles(backend: Backend, cycles: usize) -> Result<()> {
    let engine = Engine::builder().backend(backend).build()?;
    let signature = signature()?;
    let data = Data::new()?;
    let warm = WARM_CYCLES.min(cycles / 2);
    let mut before = None;
    let start = std::time::Instant::now();
    for cycle in 0..cycles {
        if cycle == warm {
            before = resident_kib();
        }
        let add = (cycle % 1024) as f32;
        let function = compile(&engine, &signature, add)?;
        data.check(&function, add)?;
    }
    let time = start.elapsed();
    println!("{cycles} cycles of compile, call and drop on one {backend} engine in {:.1} s", time.as_secs_f64());
    match (before, resident_kib()) {
        (Some(before), Some(after)) => {
            println!("resident memory: {before} KiB after {warm} cycles, {after} KiB at the end");
            match after.saturating_sub(before) {
                growth if growth > MAX_GROWTH_KIB => Err(format!("memory grew by {growth} KiB").into()),
                _ => Ok(()),
            }
        }
        _ => {
            println!("resident memory was not measured: it is read from /proc, which this system lacks");
            Ok(())
        }
    }
}

/// The resident memory of this process (Linux).
fn resident_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next()?.parse().ok())
}

fn run_threads(backend: Backend, threads: usize, rounds: usize) -> Result<()> {
    let engine = Engine::builder().backend(backend).build()?;
    let signature = signature()?;
    // one function that all threads share, in addition to those that each thread compiles
    let shared = compile(&engine, &signature, 0.5)?;
    // create all per-process data before any thread starts: helgrind doesn't see the order that a `OnceLock` guarantees
    Data::new()?.check(&shared, 0.5)?;
    let work = |thread: usize| -> Result<()> {
        let data = Data::new()?;
        for round in 0..rounds {
            let add = (thread * 10_000 + round % 10_000) as f32;
            let function = compile(&engine, &signature, add)?;
            data.check(&function, add)?;
            data.check(&shared.clone(), 0.5)?;
            // sometimes two threads race to drop the last reference, and the code with it
            if round % 8 == 0 {
                let moved = function.clone();
                let other = std::thread::spawn(move || drop(moved));
                drop(function);
                other.join().map_err(|_| "a thread panicked")?;
            }
        }
        Ok(())
    };
    let work = &work;
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|thread| scope.spawn(move || work(thread))).collect();
        for handle in running {
            handle.join().map_err(|_| "a thread panicked")??;
        }
        Ok::<(), Box<dyn Error + Send + Sync>>(())
    })?;
    println!("{backend}, {threads} threads, {rounds} rounds each: every result and every error is right");
    Ok(())
}
