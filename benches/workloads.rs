//! The four signatures for comparing generators, in process: compilation, a successful call and a failing one.
//!
//! `cargo bench --bench workloads` prints criterion's figures and then a table of medians, for each backend in the
//! build.

mod support;
#[path = "support/workloads.rs"]
mod workloads;

use std::hint::black_box;

use clap::ValueEnum;
use criterion::Criterion;
use support::{Result, Samples};
use tvm_ffi_codegen::runtime::abi::{DLDevice, TVMFFIAny};
use tvm_ffi_codegen::runtime::{AnyView, Function, Tensor, ToAnyView, error::take_raised};
use tvm_ffi_codegen::{Backend, DLDataType, Engine};
use workloads::Workload;

const ROWS: [&str; 3] = ["compile", "call", "failing call, error taken"];

fn main() -> Result<()> {
    let mut criterion = Criterion::default().configure_from_args();
    let samples = Samples::default();
    for &backend in Backend::ALL {
        let engine = Engine::builder().backend(backend).build()?;
        for &workload in Workload::value_variants() {
            measure(&mut criterion, &samples, &engine, backend, workload)?;
        }
    }
    criterion.final_summary();
    if !support::is_smoke() {
        table(&samples);
    }
    Ok(())
}

fn name(row: &str, backend: Backend, workload: Workload) -> String {
    format!("{row}/{backend}/{workload:?}")
}

fn measure(
    criterion: &mut Criterion,
    samples: &Samples,
    engine: &Engine,
    backend: Backend,
    workload: Workload,
) -> Result<()> {
    let (signature, kernel) = (workload.signature()?, workload.kernel());
    // SAFETY: the bodies access no memory.
    let compile = || unsafe { engine.compile(&signature, &kernel) };
    let function = compile()?;
    samples.each(criterion, &name(ROWS[0], backend, workload), compile);

    let tensors = tensors(workload)?;
    let raw = |arg: &dyn ToAnyView| arg.to_arg().as_view().as_raw();
    let mut args: Vec<TVMFFIAny> = tensors.iter().map(|tensor| raw(tensor)).collect();
    match workload {
        Workload::GemmSig => args.extend([raw(&1.5f64), raw(&true)]),
        Workload::Scalars => {
            // SAFETY: the function doesn't follow the pointer.
            let pointer = unsafe { AnyView::from_opaque_ptr(std::ptr::null_mut()) };
            args.extend([raw(&1i64), raw(&2.5f64), raw(&true), raw(&pointer)])
        }
        Workload::AddOne | Workload::Wide => {}
    }
    samples.batch(criterion, &name(ROWS[1], backend, workload), || call(&function, &args));
    // the last tensor has another dtype, or the handle is a number
    let mut wrong = args.clone();
    let other = Tensor::zeros(
        &[2; 4][..tensors.last().map_or(1, |tensor| tensor.shape().len())],
        DLDataType::FLOAT64,
        DLDevice::CPU,
    )?;
    match workload {
        Workload::Scalars => wrong[3] = raw(&0i64),
        _ => wrong[tensors.len() - 1] = raw(&other),
    }
    samples.batch(criterion, &name(ROWS[2], backend, workload), || (call(&function, &wrong), take_raised()));
    Ok(())
}

fn tensors(workload: Workload) -> Result<Vec<Tensor>> {
    let shapes: Vec<&[i64]> = match workload {
        Workload::AddOne => vec![&[2]; 2],
        Workload::GemmSig => vec![&[2, 2]; 3],
        Workload::Scalars => Vec::new(),
        Workload::Wide => vec![&[2, 2, 2, 2]; 16],
    };
    let tensor = |shape| Ok(Tensor::zeros(shape, DLDataType::FLOAT32, DLDevice::CPU)?);
    shapes.into_iter().map(tensor).collect()
}

/// A call as C makes it: the argument array is ready, the result None.
fn call(function: &Function, args: &[TVMFFIAny]) -> i32 {
    let mut result = TVMFFIAny::none();
    // SAFETY: the arguments are views of tensors that live in `measure`; the result owns nothing.
    unsafe { function.call_raw(black_box(args), &mut result) }
}

fn table(samples: &Samples) {
    println!("\nmedians: compile in microseconds, calls in nanoseconds\n");
    println!("| | {} |", ROWS.join(" | "));
    println!("|---|{}", "---|".repeat(ROWS.len()));
    for &backend in Backend::ALL {
        for &workload in Workload::value_variants() {
            print!("| {workload:?}, {backend} |");
            for (row, unit) in ROWS.iter().zip([1e3, 1.0, 1.0]) {
                print!(" {:.1} |", samples.median(&name(row, backend, workload)).unwrap_or_default() / unit);
            }
            println!();
        }
    }
}
