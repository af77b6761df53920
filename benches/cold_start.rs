//! Cold start: the time from the start of a process to the first call of its first function, stage by stage.
//!
//! `cargo bench --bench cold_start` starts 20 processes for each backend and prints a table of medians and minimums. A
//! process runs each stage once, since everything that a stage creates is created once per process.

mod support;

use std::process::Command;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use support::{Result, add_one_body, add_one_signature};
use tvm_ffi_codegen::runtime::abi::DLDevice;
use tvm_ffi_codegen::runtime::{Function, Tensor};
use tvm_ffi_codegen::{Backend, DLDataType, Engine, Kernel, Signature};

/// The number of processes for a median.
const PROCESSES: usize = 20;
/// Compilations in a process before another one counts as warm.
const WARM: usize = 50;

/// The environment variable that gives a child process its backend and its start time, in nanoseconds since 1970.
const CHILD: &str = "TVM_FFI_CODEGEN_COLD_START";

/// The stages that a child process measures, in order.
const STAGES: [&str; 10] = [
    "process start to `main`",
    "`Engine::new`",
    "first compilation",
    "first call",
    "second compilation, of an equal signature",
    "a warm compilation",
    "first call with a wrong argument",
    "second call with a wrong argument",
    "first compilation of a wrapper that binds in every call",
    "another `Engine::new`",
];
/// The stages up to the first call.
const START: std::ops::Range<usize> = 0..4;
/// The stages of [`START`] that belong to this library, not to the system's loader.
const OURS: std::ops::Range<usize> = 1..4;
const SECOND: usize = 4;
const WARM_COMPILATION: usize = 5;

fn main() -> Result<()> {
    let started = now();
    match std::env::var(CHILD) {
        Ok(order) => child(&order, started),
        Err(_) => parent(),
    }
}

/// The clock that processes share.
fn now() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos())
}

fn child(order: &str, main: u128) -> Result<()> {
    let (backend, spawned) = order.split_once(' ').ok_or("expected a backend and a time")?;
    let (backend, spawned): (Backend, u128) = (backend.parse()?, spawned.parse()?);
    let mut nanoseconds = vec![main.saturating_sub(spawned)];
    let mut start = Instant::now();
    let mut stage = |nanoseconds: &mut Vec<u128>| {
        nanoseconds.push(start.elapsed().as_nanos());
        start = Instant::now();
    };
    let engine = Engine::builder().backend(backend).build()?;
    stage(&mut nanoseconds);
    let compile = || -> Result<Function> {
        // SAFETY: the body stays within `0..n`, the shape that both tensors have.
        Ok(unsafe { engine.compile(&add_one_signature()?, &add_one_body())? })
    };
    let add_one = compile()?;
    stage(&mut nanoseconds);
    let tensor = |n: i64| Tensor::zeros(&[n], DLDataType::FLOAT32, DLDevice::CPU);
    let (x, y) = (tensor(4)?, tensor(4)?);
    add_one.call((&x, &y))?;
    stage(&mut nanoseconds);
    let second = compile()?;
    stage(&mut nanoseconds);
    drop(second);
    for _ in 0..WARM {
        compile()?;
    }
    stage(&mut Vec::new());
    let warm = compile()?;
    stage(&mut nanoseconds);
    drop(warm);
    for _ in 0..2 {
        stage(&mut Vec::new());
        let error = add_one.call((&x, 1)).err().ok_or("an int is no tensor")?;
        stage(&mut nanoseconds);
        if !error.message().ends_with("expected Tensor, got int") {
            return Err(error.to_string().into());
        }
    }
    stage(&mut Vec::new());
    let check: Signature = "check(x: Map[str, int64])".parse()?;
    // SAFETY: there is no kernel.
    let check = unsafe { engine.compile(&check, &Kernel::check_only())? };
    stage(&mut nanoseconds);
    drop(check);
    stage(&mut Vec::new());
    let other = Engine::builder().backend(backend).build()?;
    stage(&mut nanoseconds);
    drop(other);
    if y.to_vec::<f32>()? != [1.0; 4] {
        return Err("add_one doesn't add one".into());
    }
    println!("{}", nanoseconds.iter().map(u128::to_string).collect::<Vec<_>>().join(" "));
    Ok(())
}

/// The nanoseconds from the start to the end of a program that does nothing. `None` if the system has no such program.
fn nothing() -> Option<f64> {
    let start = Instant::now();
    let status = Command::new("true").status().ok()?;
    status.success().then(|| start.elapsed().as_nanos() as f64)
}

/// The nanoseconds of each stage in a new process.
fn measure(backend: Backend) -> Result<Vec<f64>> {
    let mut command = Command::new(std::env::current_exe()?);
    command.env("TVM_FFI_BACKTRACE", "0").env(CHILD, format!("{} {}", backend.to_string().to_lowercase(), now()));
    let output = command.output()?;
    if !output.status.success() {
        return Err(format!("a process failed: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    let text = String::from_utf8(output.stdout)?;
    let stages = text.split_whitespace().map(str::parse).collect::<std::result::Result<Vec<f64>, _>>()?;
    if stages.len() == STAGES.len() { Ok(stages) } else { Err(format!("expected {STAGES:?}, got {text}").into()) }
}

/// A median and the minimum, in milliseconds.
#[derive(Clone, Copy)]
struct Summary {
    median: f64,
    min: f64,
}

impl Summary {
    fn of(nanoseconds: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = nanoseconds.map(|nanoseconds| nanoseconds / 1e6).collect();
        values.sort_by(f64::total_cmp);
        match values.len() {
            0 => Summary { median: f64::NAN, min: f64::NAN },
            len => Summary { median: (values[(len - 1) / 2] + values[len / 2]) / 2.0, min: values[0] },
        }
    }

    /// Differences of medians and of minimums. Each stage of a process may be disturbed separately.
    fn beyond(self, other: Self) -> Self {
        Summary { median: self.median - other.median, min: self.min - other.min }
    }
}

impl std::fmt::Display for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.3} ({:.3})", self.median, self.min)
    }
}

fn parent() -> Result<()> {
    let processes = if support::is_smoke() { 1 } else { PROCESSES };
    // alternate the backends, since the machine's speed changes
    let mut runs = vec![Vec::new(); Backend::ALL.len()];
    let mut nothings = Vec::new();
    for _ in 0..processes {
        nothings.extend(nothing());
        for (&backend, runs) in Backend::ALL.iter().zip(&mut runs) {
            runs.push(measure(backend)?);
        }
    }
    if support::is_smoke() {
        return Ok(());
    }
    let row = |name: &str, value: &dyn Fn(&[Vec<f64>]) -> Summary| {
        let cells: String = runs.iter().map(|runs| format!(" {} |", value(runs))).collect();
        println!("| {name} |{cells}");
    };
    let sum = |runs: &[Vec<f64>], stages: std::ops::Range<usize>| {
        Summary::of(runs.iter().map(|run| run[stages.clone()].iter().sum()))
    };
    let stage = |runs: &[Vec<f64>], stage: usize| sum(runs, stage..stage + 1);
    println!(
        "\nmedians of {PROCESSES} processes and, in brackets, the least of them; milliseconds, of add_one(x: Tensor([n], float32), y: Tensor([n], float32))\n"
    );
    let backends: String = Backend::ALL.iter().map(|backend| format!(" {backend} |")).collect();
    println!("| stage |{backends}\n|---|{}", "---|".repeat(Backend::ALL.len()));
    for (number, name) in STAGES.iter().enumerate() {
        row(name, &|runs| stage(runs, number));
    }
    row("process start to first call", &|runs| sum(runs, START));
    row("of it beyond the second compilation", &|runs| sum(runs, START).beyond(stage(runs, SECOND)));
    row("of it beyond a warm compilation", &|runs| sum(runs, START).beyond(stage(runs, WARM_COMPILATION)));
    row("`main` to first call, beyond a warm compilation", &|runs| {
        sum(runs, OURS).beyond(stage(runs, WARM_COMPILATION))
    });
    println!("\nthe program `true`, from its start to its end: {}", Summary::of(nothings.into_iter()));
    Ok(())
}
