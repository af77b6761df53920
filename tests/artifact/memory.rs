//! The peak memory of making an object with many functions.
#![cfg(target_os = "linux")]

use std::process::Command;

use tvm_ffi_codegen::artifact::LibraryBuilder;
use tvm_ffi_codegen::{Backend, Kernel};

use crate::support::sig;

/// The number of functions in the object. `MEASURED_FUNCTIONS` overrides it: 1,000 take a minute in a debug build.
fn functions() -> usize {
    std::env::var("MEASURED_FUNCTIONS").map_or(120, |count| count.parse().unwrap())
}

/// The peak memory of this process so far, in KB.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn library(backend: Backend, count: usize) -> LibraryBuilder {
    let kernel = Kernel::body(|b| {
        let y = b.tensor("y");
        b.for_range(0, b.dim("n"), |i| y.store([i], y.load([i]) + 1.0f32));
    });
    (0..count).fold(LibraryBuilder::new().backend(backend), |library, i| {
        let text = format!("f{i}(x: Tensor([m, n], float32), y: Tensor([n], float32), a: float64 = 1.5)");
        library.function(&sig(&text), &kernel)
    })
}

/// Other tests would be counted too, so the test below measures in its own process.
#[test]
fn a_function_takes_less_than_100_kb() {
    for backend in Backend::ALL {
        let out = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "artifact::memory::measure", "--nocapture", "--test-threads=1"])
            .env("MEASURED_BACKEND", backend.to_string().to_lowercase())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&out.stdout);
        let figure = text.lines().find_map(|line| line.split_once("KB at peak: ")).map(|(_, figure)| figure);
        let kb: usize = figure.unwrap_or_else(|| panic!("{text}")).trim().parse().unwrap();
        let each = kb as f64 / functions() as f64;
        println!("{backend}: {each} KB for each function");
        assert!((1.0..100.0).contains(&each), "{backend}: {each} KB for each function");
    }
}

/// The process that the test above runs. Run on its own, it measures nothing.
#[test]
fn measure() {
    let Ok(backend) = std::env::var("MEASURED_BACKEND") else { return };
    let backend: Backend = backend.parse().unwrap();
    // first allocate everything that is created only once, such as the backend's own tables
    library(backend, 1).emit().unwrap();
    let before = peak();
    library(backend, functions()).emit().unwrap();
    println!("KB at peak: {}", peak() - before);
}
