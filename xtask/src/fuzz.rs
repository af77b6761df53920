//! The fuzz targets of `fuzz/`, built with the flags of cargo-fuzz and run by libFuzzer, each on its own processor.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use crate::command::{Cmd, Tests, all, all_at_once, cmd, root, target_folder};
use crate::run::Failure;

/// The flags of cargo-fuzz: they instrument the code with coverage for libFuzzer, and make invalid memory accesses
/// fatal.
const FLAGS: &[&str] = &[
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Zsanitizer=address",
];

/// The packages that are built with [`FLAGS`]. Instrumenting the others would make the build of Cranelift several times
/// slower.
const INSTRUMENTED: &[&str] =
    &["tvm-ffi-codegen", "tvm-ffi-codegen-fuzz", "tvm-ffi-codegen-fuzz-clib", "tvm-ffi-runtime"];

/// The fixed seed of the step, so each run on the same code finds the same errors.
const SEED: u32 = 1;
/// Lets libFuzzer choose a seed.
const ANY_SEED: u32 = 0;

/// The seconds of new inputs of the step, shared by all targets.
const SECONDS_IN_ALL: u64 = 120;

/// Runs all targets on their committed inputs and on some new ones: the step of `cargo xtask test`.
pub fn check() -> Result<Tests, Failure> {
    let targets = targets()?;
    run(&targets, &Run { seconds: SECONDS_IN_ALL / targets.len() as u64, seed: SEED, jobs: 1, optimised: false })
}

/// The duration of a target's run, its seed, its number of processes, and its build.
struct Run {
    seconds: u64,
    seed: u32,
    jobs: u32,
    /// Optimises the packages that are instrumented, which takes three minutes. A short run doesn't gain them back.
    optimised: bool,
}

/// `cargo xtask fuzz`: one target for some minutes, in that many processes.
pub fn task(target: &str, minutes: u64, jobs: u32) -> ExitCode {
    match one(target, &Run { seconds: 60 * minutes, seed: ANY_SEED, jobs, optimised: true }) {
        Ok(_) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{}", failure.what);
            ExitCode::FAILURE
        }
    }
}

fn one(target: &str, how: &Run) -> Result<Tests, Failure> {
    let known = targets()?;
    match known.iter().any(|name| name == target) {
        true => run(&[target.to_owned()], how),
        false => Err(failed(format!("there is no target `{target}`; the targets are {}", known.join(", ")))),
    }
}

fn failed(what: String) -> Failure {
    Failure { what, tests: Tests::default() }
}

/// The names of the targets, which are also those of their programs.
fn targets() -> Result<Vec<String>, Failure> {
    let folder = root().join("fuzz/fuzz_targets");
    let entries = fs::read_dir(&folder).map_err(|e| failed(format!("{}: {e}", folder.display())))?;
    let names = entries.filter_map(|entry| Some(entry.ok()?.path().file_stem()?.to_str()?.to_owned()));
    let mut names: Vec<String> = names.collect();
    names.sort_unstable();
    Ok(names)
}

/// Builds targets, and runs them at the same time.
fn run(targets: &[String], how: &Run) -> Result<Tests, Failure> {
    let triple = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let built = target_folder().join("fuzz");
    let folder = built.to_string_lossy().into_owned();
    let mut build = vec!["run", "nightly", "cargo", "build", "--release", "--manifest-path", "fuzz/Cargo.toml"];
    build.extend(["--target", &triple, "--target-dir", &folder]);
    build.extend(targets.iter().flat_map(|target| ["--bin", target]));
    let level = if how.optimised { 1 } else { 0 };
    let settings = |package| {
        let package = format!("profile.release.package.{package}");
        [format!("{package}.rustflags={FLAGS:?}"), format!("{package}.opt-level={level}")]
    };
    let settings: Vec<String> = INSTRUMENTED.iter().flat_map(settings).collect();
    build.push("-Zprofile-rustflags");
    build.extend(settings.iter().flat_map(|setting| ["--config", setting]));
    let mut tests = all([cmd("rustup", &build)])?;
    let runs: Result<Vec<Cmd>, Failure> = targets.iter().map(|target| fuzzer(&built, &triple, target, how)).collect();
    tests.add(all_at_once(runs?)?);
    tests.passed += targets.len() as u64;
    Ok(tests)
}

/// A target's program. It reads the committed inputs, then generates more, which it keeps in the target directory.
fn fuzzer(built: &Path, triple: &str, target: &str, how: &Run) -> Result<Cmd, Failure> {
    let [inputs, findings] = ["corpus", "findings"].map(|name| built.join(name).join(target));
    for folder in [&inputs, &findings] {
        fs::create_dir_all(folder).map_err(|e| failed(format!("{}: {e}", folder.display())))?;
    }
    let program = built.join(triple).join("release").join(target);
    let time = format!("-max_total_time={}", how.seconds);
    let artifacts = format!("-artifact_prefix={}/", findings.display());
    let (committed, seed) = (format!("fuzz/corpus/{target}"), format!("-seed={}", how.seed));
    // compiled code stays loaded until the process ends, which isn't a leak
    let options =
        [&time, &seed, &artifacts, "-timeout=30", "-rss_limit_mb=4096", "-detect_leaks=0", "-print_final_stats=1"];
    // libFuzzer's processes share what they find
    let fork = (how.jobs > 1).then(|| format!("-fork={}", how.jobs));
    let folders = [&*inputs.to_string_lossy(), &committed];
    // an object has thousands of bytes, but short programs find more
    let of_target: &[&str] = if target == "bodies" { &["-len_control=0", "-max_len=512"] } else { &[] };
    let dictionary = format!("fuzz/dictionaries/{target}.dict");
    let dictionary = root().join(&dictionary).exists().then(|| format!("-dict={dictionary}"));
    Ok(cmd(&program.to_string_lossy(), &options)
        .args(of_target)
        .args(dictionary.as_deref().as_slice())
        .args(&fork.iter().map(String::as_str).collect::<Vec<_>>())
        .args(&folders)
        .env("TVM_FFI_BACKTRACE", "0")
        .env("ASAN_OPTIONS", "allocator_may_return_null=1:detect_odr_violation=0"))
}
