//! The time from a signature to a callable pointer, with a warm engine, split into stages.
//!
//! `cargo bench --bench compile` prints criterion's figures and then a table of medians.

#[path = "../tests/support/compiler.rs"]
#[allow(dead_code)] // there is one for C++, too
mod compiler;
mod support;

use std::sync::Arc;

use criterion::Criterion;
use support::{
    COUNTS, Result, Samples, add_one_body, add_one_signature, counts_heading, native_kernel, tensors_signature,
};
use tvm_ffi_codegen::backend::OptLevel;
use tvm_ffi_codegen::backend::cranelift::{ByLoops, Compiler, IsaOptions, Options, host_isa};
use tvm_ffi_codegen::engine::LoadOptions;
use tvm_ffi_codegen::image::Image;
use tvm_ffi_codegen::lower::{BIND_SYMBOL, REPORT_SYMBOL, RuntimeHelpers, lower};
use tvm_ffi_codegen::spec::LaunchedSignature;
use tvm_ffi_codegen::{Backend, Engine, Kernel, ParamType, Signature, ir};

/// The times of other generators for the same signature with an empty body, in milliseconds. Measured separately on a
/// comparable machine (2 cores of an AMD EPYC, Debian 12), not in this run.
const PEERS: [(&str, f64); 2] = [("CuTe DSL 4.8.1", 17.0), ("TVM 0.27.0", 20.1)];

const WHOLE: [&str; 3] = ["empty body", "check only", "add_one loop"];
const UNOPTIMISED: &str = "empty body, OptLevel::None";
const CALLS: [&str; 2] = ["ten calls", "ten calls with source locations"];
const STAGES: [&str; 4] = ["signature", "lower", "verify", "compile"];

fn main() -> Result<()> {
    let mut criterion = Criterion::default().configure_from_args();
    let samples = Samples::default();
    let kernels = [Kernel::body(|_| {}), Kernel::check_only(), add_one_body()];
    for (name, kernel) in WHOLE.iter().zip(&kernels) {
        whole(&mut criterion, &samples, name, kernel, OptLevel::Speed)?;
        stages(&mut criterion, &samples, name, kernel)?;
    }
    whole(&mut criterion, &samples, UNOPTIMISED, &kernels[0], OptLevel::None)?;
    for (name, located) in CALLS.into_iter().zip([false, true]) {
        whole(&mut criterion, &samples, name, &ten_calls(located), OptLevel::Speed)?;
    }
    for shared in [true, false] {
        growth(&mut criterion, &samples, shared)?;
    }
    native_code(&mut criterion, &samples)?;
    launches(&mut criterion, &samples)?;
    criterion.final_summary();
    if !support::is_smoke() {
        table(&samples);
    }
    Ok(())
}

/// A body that calls ten global functions with both tensors, and owns their results.
fn ten_calls(located: bool) -> Kernel {
    Kernel::body(move |b| {
        for i in 0..10 {
            if located {
                b.set_location("model.py", i + 1, "forward");
            }
            b.call_global(&format!("bench.{i}"), (b.tensor("x"), b.tensor("y"))).returns(ParamType::Any);
        }
    })
}

/// The whole compilation: signature, body, lowering, verifying, compiling, linking, loading, and the function object.
fn whole(criterion: &mut Criterion, samples: &Samples, name: &str, kernel: &Kernel, opt_level: OptLevel) -> Result<()> {
    let engine = Engine::builder().opt_level(opt_level).build()?;
    let compile = || -> Result<_> {
        let signature = add_one_signature()?;
        // SAFETY: the bodies stay within `0..n`, the shape that both tensors have.
        Ok(unsafe { engine.compile(&signature, kernel)? })
    };
    compile()?;
    samples.each(criterion, &format!("{name}/whole"), compile);
    Ok(())
}

/// The kernels, with their code in different forms.
const FORMS: [&str; 3] = ["address", "object", "LLVM IR"];

fn form_name(backend: Backend, form: &str) -> String {
    format!("{backend}/{form}")
}

/// A C compiler's object for the signature, with a table and a call of libm.
fn c_object() -> Result<Arc<[u8]>> {
    const SOURCE: &str = "#include <math.h>\n#include <stdint.h>\n\
        static const float table[8] = {1, 2, 3, 4, 5, 6, 7, 8};\n\
        void add_one(const float* x, float* y, int64_t n) { for (int64_t i = 0; i < n; i++) y[i] = expf(x[i]) + table[i & 7]; }";
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("kernel.c"), SOURCE)?;
    let mut cc = compiler::c();
    let done = cc.args(["-O2", "-fPIC", "-c", "kernel.c", "-o", "kernel.o"]).current_dir(folder.path()).status()?;
    if !done.success() {
        return Err("the C compiler failed".into());
    }
    Ok(std::fs::read(folder.path().join("kernel.o"))?.into())
}

/// The whole compilation with a native kernel: at an address, and with code that is loaded along with the wrapper.
fn native_code(criterion: &mut Criterion, samples: &Samples) -> Result<()> {
    let object = c_object()?;
    for &backend in Backend::ALL {
        let engine = Engine::builder().backend(backend).build()?;
        let kernels = [
            native_kernel(),
            Kernel::object(Arc::clone(&object), "add_one"),
            #[cfg(feature = "_llvm")]
            Kernel::llvm_ir("define void @add_one(ptr %x, ptr %y, i64 %n) {\n ret void\n}\n", "add_one"),
        ];
        for (form, kernel) in FORMS.iter().zip(&kernels) {
            let compile = || -> Result<_> {
                let signature = add_one_signature()?;
                // SAFETY: the function is never called.
                Ok(unsafe { engine.compile(&signature, kernel)? })
            };
            compile()?;
            samples.each(criterion, &form_name(backend, form), compile);
        }
    }
    Ok(())
}

/// A wrapper that calls a native kernel, and one that launches a kernel with the same signature.
const LAUNCHES: [&str; 2] = ["address", "launch"];

fn launch_name(backend: Backend, kind: &str) -> String {
    format!("{backend}/on a device/{kind}")
}

/// The whole compilation of a launch, compared with a native kernel of the same signature.
fn launches(criterion: &mut Criterion, samples: &Samples) -> Result<()> {
    const ADD: &str = r#"add(x: Tensor([n], float32, device="cuda"), y: Tensor([n], float32, device="cuda"), z: Tensor([n], float32, device="cuda"))
                         @ launch add grid=ceil_div(n, 128) block=128"#;
    const PTX: &str = ".version 8.0\n.target sm_80\n.address_size 64\n\
        .visible .entry add(.param .u64 x, .param .u64 y, .param .u64 z, .param .u64 n) { ret; }\n";
    let LaunchedSignature { signature, launch } = ADD.parse()?;
    let text = signature.to_string();
    let kernels = [native_kernel(), Kernel::launch(launch, [Image::from_bytes(PTX.as_bytes())?])];
    for &backend in Backend::ALL {
        let engine = Engine::builder().backend(backend).build()?;
        for (kind, kernel) in LAUNCHES.iter().zip(&kernels) {
            let compile = || -> Result<_> {
                let signature: Signature = text.parse()?;
                // SAFETY: the function is never called.
                Ok(unsafe { engine.compile(&signature, kernel)? })
            };
            compile()?;
            samples.each(criterion, &launch_name(backend, kind), compile);
        }
    }
    Ok(())
}

fn growth_name(shared: bool, count: usize) -> String {
    let symbols = if shared { "shared symbols" } else { "different symbols" };
    format!("{symbols}/{count} tensors")
}

/// The whole compilation for many tensors.
fn growth(criterion: &mut Criterion, samples: &Samples, shared: bool) -> Result<()> {
    let engine = Engine::new()?;
    let kernel = native_kernel();
    for count in COUNTS {
        let compile = || -> Result<_> {
            let signature = tensors_signature(count, shared)?;
            // SAFETY: the function is never called.
            Ok(unsafe { engine.compile(&signature, &kernel)? })
        };
        samples.each(criterion, &growth_name(shared, count), compile);
    }
    Ok(())
}

/// Replaces the runtime helpers; nothing calls it here.
extern "C" fn report() -> i32 {
    -1
}

fn stages(criterion: &mut Criterion, samples: &Samples, name: &str, kernel: &Kernel) -> Result<()> {
    let engine = Engine::new()?;
    let jit = engine.jit();
    let signature = add_one_signature()?;
    let lowered = || lower(&signature, kernel, RuntimeHelpers::Import);
    let module = lowered()?;
    let verified = ir::verify(module.clone())?;
    let symbols = [BIND_SYMBOL, REPORT_SYMBOL].map(|name| (name, report as *const u8));
    let load = || jit.load_with(&verified, LoadOptions { symbols: &symbols, keep_alive: Vec::new() });
    load()?;
    // as the engine does
    let options = IsaOptions { single_pass: true, ..IsaOptions::default() };
    let isas = ByLoops::new(OptLevel::Speed, &options, host_isa)?;
    let mut compiler = Compiler::new();

    samples.each(criterion, &format!("{name}/signature"), add_one_signature);
    samples.each(criterion, &format!("{name}/lower"), lowered);
    let mut modules = Vec::new();
    samples.each(criterion, &format!("{name}/verify"), || {
        // copies are made in bulk, and so hardly ever within the measured time
        if modules.is_empty() {
            modules = vec![module.clone(); 4096];
        }
        modules.pop().map(ir::verify)
    });
    samples.each(criterion, &format!("{name}/compile"), || {
        compiler.compile_by_loops(&verified, &isas, Options::default())
    });
    samples.each(criterion, &format!("{name}/compile and load"), load);
    Ok(())
}

fn table(samples: &Samples) {
    println!("\nmedians, microseconds, of add_one(x: Tensor([n], float32), y: Tensor([n], float32)), engine warm\n");
    print!("| kernel | whole |");
    STAGES.iter().for_each(|stage| print!(" {stage} |"));
    println!(" link, load, function |\n|---|---|{}", "---|".repeat(STAGES.len() + 1));
    for name in WHOLE {
        let Some(whole) = samples.median(&format!("{name}/whole")) else { continue };
        print!("| {name} | {:.1} |", whole / 1e3);
        let stages: Vec<_> = STAGES.iter().map(|stage| samples.median(&format!("{name}/{stage}"))).collect();
        for stage in &stages {
            match stage {
                Some(time) => print!(" {:.1} |", time / 1e3),
                None => print!(" not run |"),
            }
        }
        let rest = whole - stages.into_iter().flatten().sum::<f64>();
        println!(" {:.1} |", rest / 1e3);
    }
    if let Some(whole) = samples.median(&format!("{UNOPTIMISED}/whole")) {
        println!("\n{UNOPTIMISED}: {:.1} microseconds", whole / 1e3);
    }
    for name in CALLS {
        if let Some(whole) = samples.median(&format!("{name}/whole")) {
            println!("\nthe same signature, a body of {name}: {:.1} microseconds", whole / 1e3);
        }
    }
    println!("\nthe same signature, a native kernel, microseconds beside the wrapper's own compilation:");
    for &backend in Backend::ALL {
        let Some(own) = samples.median(&form_name(backend, FORMS[0])) else { continue };
        for form in &FORMS[1..] {
            if let Some(whole) = samples.median(&form_name(backend, form)) {
                println!("{backend}, {form}: {:.0} beside {:.0}", (whole - own) / 1e3, own / 1e3);
            }
        }
    }
    println!("\nthree tensors on a device, microseconds:");
    for &backend in Backend::ALL {
        let [plain, launch] = LAUNCHES.map(|kind| samples.median(&launch_name(backend, kind)));
        if let (Some(plain), Some(launch)) = (plain, launch) {
            println!(
                "{backend}: {:.0} for a launch, {:.0} for a native kernel: {:.2} times",
                launch / 1e3,
                plain / 1e3,
                launch / plain
            );
        }
    }
    println!("\nthe same for each of several tensors of four dimensions, with a native kernel\n");
    println!("{}", counts_heading("tensors"));
    for shared in [true, false] {
        print!("| {} symbols |", if shared { "shared" } else { "different" });
        for count in COUNTS {
            match samples.median(&growth_name(shared, count)) {
                Some(time) => print!(" {:.0} |", time / 1e3 / count as f64),
                None => print!(" not run |"),
            }
        }
        println!();
    }
    if let Some(own) = samples.median("empty body/whole") {
        println!("\npeers, measured elsewhere on a comparable machine and not in this run:");
        for (peer, milliseconds) in PEERS {
            println!("{peer}: {milliseconds} ms, {:.0} times the {:.3} ms here", milliseconds * 1e6 / own, own / 1e6);
        }
    }
}
