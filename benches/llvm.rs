//! The LLVM backend compared with clang and Cranelift: `cargo bench --bench llvm --features llvm22-1`.
//!
//! An argument, such as `LLVM/Speed/two`, runs only the measurements with that in their name.
//!
//! 1. The latency from a signature to a callable function, for a wrapper and for a body.
//! 2. The same for 1 to 64 tensors, per tensor.
//! 3. A body `y[i] = a * x[i] + b` compared with the same loop in C, compiled with `clang -O3` of the same version.
//!    Both are called through a wrapper, so only the loop differs. `CLANG` names the compiler.

mod support;

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use tvm_ffi_codegen::runtime::{Function, Tensor};
use tvm_ffi_codegen::{Backend, DLDataType, Engine, Kernel, OptLevel, ScalarType, Signature, TensorType};

/// True if the arguments select this measurement.
fn wanted(name: &str) -> bool {
    std::env::args().skip(1).find(|arg| !arg.starts_with("--")).is_none_or(|filter| name.contains(&filter))
}

fn main() -> Result<(), Box<dyn Error>> {
    latency()?;
    growth()?;
    #[cfg(feature = "_llvm")]
    against_clang()?;
    Ok(())
}

fn vector() -> TensorType {
    TensorType::new(["n"], DLDataType::FLOAT32)
}

fn two_tensors() -> Result<Signature, Box<dyn Error>> {
    Ok(Signature::builder("two").param("x", vector()).param("y", vector()).build()?)
}

fn axpb() -> Result<Signature, Box<dyn Error>> {
    Ok(Signature::builder("axpb")
        .param("a", ScalarType::Float32)
        .param("b", ScalarType::Float32)
        .param("x", vector())
        .param("y", vector())
        .build()?)
}

fn axpb_body() -> Kernel {
    Kernel::body(|body| {
        let (x, y, a, b) = (body.tensor("x"), body.tensor("y"), body.arg("a"), body.arg("b"));
        body.for_range(0, body.dim("n"), |i| y.store([i], a * x.load([i]) + b));
    })
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

extern "C" fn kernel(_: *const f32, _: *const f32, _: i64) {}

fn latency() -> Result<(), Box<dyn Error>> {
    println!("signature to callable function, median and least of 200, in microseconds:");
    let native = Kernel::address(kernel as *const u8);
    for &backend in Backend::ALL {
        for level in [OptLevel::None, OptLevel::Speed, OptLevel::Full] {
            let engine = Engine::builder().backend(backend).opt_level(level).build()?;
            for (what, signature, kernel) in [("two tensors", two_tensors()?, &native), ("body", axpb()?, &axpb_body())]
            {
                let name = format!("{backend}/{level:?}/{what}");
                if !wanted(&name) {
                    continue;
                }
                let mut times = Vec::new();
                for _ in 0..220 {
                    let start = Instant::now();
                    // SAFETY: the kernel has this prototype and accesses no memory; the body stays within `0..n`.
                    let function = unsafe { engine.compile(&signature, kernel)? };
                    times.push(start.elapsed().as_secs_f64() * 1e6);
                    drop(black_box(function));
                }
                let times = times.split_off(20);
                let min = times.iter().copied().fold(f64::INFINITY, f64::min);
                println!("  {name:<28} median {:>7.0}, least {min:>7.0}", median(times));
            }
        }
    }
    Ok(())
}

fn growth() -> Result<(), Box<dyn Error>> {
    if !wanted("growth") {
        return Ok(());
    }
    println!("microseconds for each of several tensors of four dimensions, least of 5:");
    println!("{}", support::counts_heading("backend and symbols"));
    let kernel = support::native_kernel();
    for &backend in Backend::ALL {
        let engine = Engine::builder().backend(backend).build()?;
        for shared in [true, false] {
            print!("| {backend}, {} |", if shared { "shared" } else { "different" });
            for count in support::COUNTS {
                let mut min = f64::INFINITY;
                for _ in 0..5 {
                    let start = Instant::now();
                    let signature = support::tensors_signature(count, shared)?;
                    // SAFETY: the function is never called.
                    let function = unsafe { engine.compile(&signature, &kernel)? };
                    min = min.min(start.elapsed().as_secs_f64() * 1e6 / count as f64);
                    drop(black_box(function));
                }
                print!(" {min:.0} |");
            }
            println!();
        }
    }
    Ok(())
}

#[cfg(feature = "_llvm")]
fn against_clang() -> Result<(), Box<dyn Error>> {
    if !wanted("clang") {
        return Ok(());
    }
    let clang = std::env::var("CLANG").unwrap_or_else(|_| "clang-22".to_owned());
    let library = std::env::temp_dir().join(format!("axpb-{}.so", std::process::id()));
    let flags = ["-O3", "-march=native", "-ffp-contract=off", "-fPIC", "-shared"];
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/axpb.c");
    let status = std::process::Command::new(&clang).args(flags).arg(source).arg("-o").arg(&library).status();
    if !status.as_ref().is_ok_and(std::process::ExitStatus::success) {
        println!("{clang}: {status:?}; the loop in C is left out");
        return Ok(());
    }
    // SAFETY: a library without initialisers, kept until the end.
    let loaded = unsafe { libloading::Library::new(&library)? };
    std::fs::remove_file(&library)?;
    // SAFETY: nothing is read through the symbol.
    let address = unsafe { *loaded.get::<*const u8>(b"axpb")? };

    let signature = axpb()?;
    // Several copies of each, in alternation: the address of code and the state of the branch predictor can be worth a
    // few nanoseconds.
    let mut copies = Vec::new();
    for _ in 0..6 {
        let engine = Engine::builder().backend(Backend::Llvm).build()?;
        for kernel in [axpb_body(), Kernel::address(address)] {
            // SAFETY: both stay within `0..n`, and the C function has the prototype of the convention `flat`.
            copies.push(unsafe { engine.compile(&signature, &kernel)? });
        }
    }
    println!("y[i] = a * x[i] + b over float32, LLVM's body against {clang} {flags:?}:");
    for n in [1_000usize, 4_000, 100_000, 1_000_000] {
        let x = Tensor::from_slice(&vec![1.5f32; n], &[n as i64])?;
        let y = Tensor::from_slice(&vec![0f32; n], &[n as i64])?;
        let repeat = (1_000_000 / n).max(1);
        let time = |f: &Function| -> Result<f64, Box<dyn Error>> {
            let start = Instant::now();
            for _ in 0..repeat {
                f.call((2.0, 0.5, &x, &y))?;
            }
            Ok(start.elapsed().as_secs_f64() / repeat as f64 * 1e9)
        };
        let (mut a, mut b) = (Vec::new(), Vec::new());
        for _ in 0..51 {
            for pair in copies.chunks_exact(2) {
                a.push(time(&pair[0])?);
                b.push(time(&pair[1])?);
            }
        }
        let (a, b) = (median(a), median(b));
        println!("  n = {n:>8}: ours {a:>9.1} ns, clang's {b:>9.1} ns, ratio {:.3}", b / a);
    }
    Ok(())
}
