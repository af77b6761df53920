//! Wrappers for other machines: under an emulator, the same calls give the same results as on this machine.

use std::fs;

use crate::command::{Tests, cargo, cmd, root};
use crate::difference::first_difference;
use crate::run::Failure;
use crate::tools::{UPSTREAM, python_package};

/// A machine, and how to build and run C for it.
struct Machine {
    /// The machine's name in `tests/byte_order/object.rs`.
    triple: &'static str,
    compiler: &'static str,
    /// The command that runs its programs; none on this machine.
    emulator: &'static [&'static str],
}

const HOST: Machine = Machine { triple: "host", compiler: "cc", emulator: &[] };

const OTHERS: [Machine; 1] = [Machine {
    triple: "s390x-unknown-linux-gnu",
    compiler: "s390x-linux-gnu-gcc",
    emulator: &["qemu-s390x", "-L", "/usr/s390x-linux-gnu"],
}];

/// Makes the calls on this machine and on the others.
pub fn calls() -> Result<Tests, Failure> {
    let expected = outcomes(&HOST)?;
    let mut tests = Tests::default();
    for machine in &OTHERS {
        let found = outcomes(machine)?;
        if let Some((line, expected, found)) = first_difference(&expected, &found) {
            let what = format!("{}, line {line}: expected `{expected}`, found `{found}`", machine.triple);
            tests.failed += 1;
            return Err(Failure { what, tests });
        }
        tests.passed += 1;
        println!("{}: {} lines as on this machine", machine.triple, found.lines().count());
    }
    Ok(tests)
}

/// The output of the calls.
fn outcomes(machine: &Machine) -> Result<String, Failure> {
    let folder = root().join("target/byte-order");
    let failure = |what: String| Failure { what, tests: Tests::default() };
    fs::create_dir_all(&folder).map_err(|e| failure(format!("{}: {e}", folder.display())))?;
    let file = |ending: &str| folder.join(format!("{}{ending}", machine.triple)).to_string_lossy().into_owned();
    let (object, program) = (file(".o"), file(""));
    let write =
        ["run", "--example", "byte_order_object", "--", machine.triple, "tests/byte_order/signatures.txt", &object];
    cargo(&write).run()?;
    let include = python_package(&UPSTREAM).join("tvm_ffi/include");
    let options = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-isystem", &*include.to_string_lossy()];
    let sources = ["calls.c", "kernels.c", "runtime.c"].map(|name| format!("tests/byte_order/{name}"));
    let sources = sources.each_ref().map(String::as_str);
    cmd(machine.compiler, &[&options[..], &sources, &[&object, "-o", &program]].concat()).run()?;
    let words = [machine.emulator, &[&*program]].concat();
    match words.split_first() {
        Some((first, rest)) => cmd(first, rest).read(),
        None => Ok(String::new()),
    }
}
