//! A body of 100 lines as text, beside the same body built in Rust: `cargo bench --bench text`.
//!
//! It prints the medians of parsing, and of all from the text or the body to a function, in microseconds, and their
//! ratio. `--test` runs each once.

mod support;

use std::hint::black_box;
use std::time::Instant;

use support::Result;
use tvm_ffi_codegen::image::Image;
use tvm_ffi_codegen::{Body, Engine, HostProgram, Kernel, Signature};

const NO_IMAGES: [(&str, Image); 0] = [];
/// The number of measurements of each, in turns.
const TURNS: usize = 400;

/// Writes 100 lines of text, with those of the signature and the brace.
fn write(b: &Body<'_>) {
    let (x, y) = (b.tensor("x"), b.tensor("y"));
    b.check_signals_every(1);
    for part in 0..12 {
        let scale = b.call_global("bench.scale", (b.arg("n"), part)).returns(tvm_ffi_codegen::ScalarType::Float64);
        b.ensure(scale.value().gt(0.0), "ValueError", "scale {}", [b.arg("n")]);
        b.for_range(0, b.dim("m"), |i| {
            let value = x.load([i]) * part + y.load([i]);
            b.if_(value.lt(0), || b.continue_());
            y.store([i], value.sqrt());
        });
    }
    b.ret(b.arg("n"));
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() -> Result<()> {
    let signature: Signature = "f(x: Tensor([m], float32), y: Tensor([m], float32), n: int64) -> int64".parse()?;
    let kernel = Kernel::body(write);
    let text = HostProgram::of([(&signature, &kernel)])?.to_string();
    let block = &text[text.find('{').unwrap_or_default()..];
    let engine = Engine::new()?;
    let turns = if support::is_smoke() { 1 } else { TURNS };
    let [mut parsed, mut of_text, mut of_rust] = [const { Vec::new() }; 3];
    for _ in 0..turns {
        let start = Instant::now();
        let read = Kernel::text(block, NO_IMAGES)?;
        parsed.push(start.elapsed().as_secs_f64() * 1e6);
        // SAFETY: the functions aren't called.
        let function = unsafe { engine.compile(&signature, &read)? };
        of_text.push(start.elapsed().as_secs_f64() * 1e6);
        drop(black_box(function));
        let start = Instant::now();
        let kernel = Kernel::body(write);
        // SAFETY: the functions aren't called.
        let function = unsafe { engine.compile(&signature, &kernel)? };
        of_rust.push(start.elapsed().as_secs_f64() * 1e6);
        drop(black_box(function));
    }
    let [parsed, of_text, of_rust] = [parsed, of_text, of_rust].map(median);
    println!("{} lines: parsed in {parsed:.1} us", text.lines().count());
    println!("to a function: text {of_text:.1} us, Rust {of_rust:.1} us, ratio {:.3}", of_text / of_rust);
    Ok(())
}
