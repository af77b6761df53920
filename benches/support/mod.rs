//! Shared by the benchmarks: criterion measures, and the same samples give a table of medians at the end.

#![allow(dead_code)] // each benchmark uses its part of this

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::Criterion;
use tvm_ffi_codegen::{DLDataType, Kernel, Signature, SignatureError, TensorType};

/// The result of a benchmark, with an error of any type.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// `add_one(x: Tensor([n], float32), y: Tensor([n], float32))`
pub fn add_one_signature() -> std::result::Result<Signature, SignatureError> {
    Signature::builder("add_one")
        .param("x", TensorType::new(["n"], DLDataType::FLOAT32))
        .param("y", TensorType::new(["n"], DLDataType::FLOAT32))
        .build()
}

/// `y[i] = x[i] + 1`
pub fn add_one_body() -> Kernel {
    Kernel::body(|b| {
        let (x, y) = (b.tensor("x"), b.tensor("y"));
        b.for_range(0, b.dim("n"), |i| y.store([i], x.load([i]) + 1.0));
    })
}

/// The numbers of tensors in the signatures that show growth.
pub const COUNTS: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];

/// A signature with `count` tensors of four dimensions. With `shared`, all have the same symbols; otherwise each has
/// its own.
pub fn tensors_signature(count: usize, shared: bool) -> std::result::Result<Signature, SignatureError> {
    (0..count)
        .fold(Signature::builder("tensors"), |builder, i| {
            let own = if shared { String::new() } else { i.to_string() };
            let dims = ["a", "b", "c", "d"].map(|name| format!("{name}{own}"));
            builder.param(format!("x{i}"), TensorType::new(dims, DLDataType::FLOAT32))
        })
        .build()
}

/// A kernel that is never called.
pub fn native_kernel() -> Kernel {
    extern "C" fn never_called() {}
    Kernel::address(never_called as *const u8)
}

/// The heading of a table with a column for each count.
pub fn counts_heading(of: &str) -> String {
    let counts: String = COUNTS.iter().map(|count| format!(" {count} |")).collect();
    format!("| {of} |{counts}\n|---|{}", "---|".repeat(COUNTS.len()))
}

/// Nanoseconds by benchmark.
#[derive(Default)]
pub struct Samples(RefCell<BTreeMap<String, Vec<f64>>>);

impl Samples {
    /// Measures each run alone. The result of `f` is dropped outside of the measured time.
    pub fn each<T>(&self, criterion: &mut Criterion, name: &str, mut f: impl FnMut() -> T) {
        criterion.bench_function(name, |bencher| {
            bencher.iter_custom(|iterations| {
                let mut total = Duration::ZERO;
                for _ in 0..iterations {
                    let start = Instant::now();
                    let result = black_box(f());
                    let time = start.elapsed();
                    drop(result);
                    total += time;
                    self.add(name, time.as_nanos() as f64);
                }
                total
            });
        });
    }

    /// Measures many runs together, if one is too short to measure.
    pub fn batch<T>(&self, criterion: &mut Criterion, name: &str, mut f: impl FnMut() -> T) {
        criterion.bench_function(name, |bencher| {
            bencher.iter_custom(|iterations| {
                let start = Instant::now();
                for _ in 0..iterations {
                    black_box(f());
                }
                let time = start.elapsed();
                // criterion's warm-up begins with single runs, which only measure the clock
                if iterations >= 100 {
                    self.add(name, time.as_nanos() as f64 / iterations as f64);
                }
                time
            });
        });
    }

    fn add(&self, name: &str, nanoseconds: f64) {
        self.0.borrow_mut().entry(name.to_owned()).or_default().push(nanoseconds);
    }

    /// The median in nanoseconds.
    pub fn median(&self, name: &str) -> Option<f64> {
        let mut samples = self.0.borrow().get(name)?.clone();
        samples.sort_by(f64::total_cmp);
        samples.get(samples.len() / 2).copied()
    }
}

/// True if this run only checks that everything runs (`cargo bench -- --test`).
pub fn is_smoke() -> bool {
    std::env::args().any(|arg| arg == "--test" || arg == "--list")
}
