//! Large numbers of everything, for `cargo xtask soak --only scale`: time must be linear in them, and memory flat.
//!
//! ```text
//! scale wrappers N        N functions, compiled one by one on one engine and kept
//! scale library N         a library of N functions: emitted, linked, loaded, called
//! scale params N          a function with N parameters
//! scale functions N       a host program of N lines, in functions of 10 lines
//! scale lines N           a host program of one function with N lines
//! scale engines N         N engines, each created, used and dropped
//! scale calls SECONDS     two threads that call, while others compile, drop, unload and dispatch
//! ```
//!
//! Each prints lines `STEP COUNT SECONDS KIB`: the CPU time of the step, and the growth of resident memory.
#![allow(missing_docs, clippy::unwrap_used)]

mod calls;
mod sizes;

type Error = Box<dyn std::error::Error + Send + Sync>;
type Result<T = ()> = std::result::Result<T, Error>;

fn main() -> Result {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [what, count] = &args[..] else { return Err("expected what, and how many".into()) };
    let count: usize = count.parse()?;
    match what.as_str() {
        "wrappers" => sizes::wrappers(count),
        "library" => sizes::library(count),
        "params" => sizes::params(count),
        "functions" => sizes::program(count, 10),
        "lines" => sizes::program(count, count),
        "engines" => sizes::engines(count),
        "calls" => calls::run(count as u64),
        _ => Err(format!("unknown: {what}").into()),
    }
}

/// Runs a step, and prints its cost.
fn measured<T>(step: &str, count: usize, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let (time, memory) = (cpu_seconds()?, resident_kib()?);
    let done = work()?;
    println!("{step} {count} {:.3} {}", cpu_seconds()? - time, resident_kib()? as i64 - memory as i64);
    Ok(done)
}

/// The CPU time of this process and of its children that have ended.
fn cpu_seconds() -> Result<f64> {
    let mut seconds = 0.0;
    for whose in [libc::RUSAGE_SELF, libc::RUSAGE_CHILDREN] {
        // SAFETY: zeros are a valid value, and the pointer is to a live variable.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            if libc::getrusage(whose, &raw mut usage) != 0 {
                return Err(std::io::Error::last_os_error().into());
            }
            usage
        };
        for time in [usage.ru_utime, usage.ru_stime] {
            seconds += time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
        }
    }
    Ok(seconds)
}

/// The resident memory of this process.
fn resident_kib() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.split_whitespace().next().unwrap_or_default().parse()?)
}
