//! Structs that kernels take by value, on other machines: kernels of the machine's C compiler, with wrappers of each
//! backend.

use std::fs;

use crate::command::{Tests, cargo, cmd, root};
use crate::run::Failure;

/// A machine that an emulator runs.
struct Machine {
    triple: &'static str,
    /// As its C compiler and emulator call it.
    name: &'static str,
    backends: &'static [&'static str],
}

const MACHINES: [Machine; 3] = [
    Machine { triple: "aarch64-unknown-linux-gnu", name: "aarch64", backends: &["cranelift", "llvm"] },
    Machine { triple: "riscv64gc-unknown-linux-gnu", name: "riscv64", backends: &["cranelift", "llvm"] },
    Machine { triple: "s390x-unknown-linux-gnu", name: "s390x", backends: &["cranelift"] },
];

/// Builds and runs the program of `tests/native/object.rs` for each machine, with wrappers of each backend.
pub fn calls() -> Result<Tests, Failure> {
    let folder = root().join("target/struct-args");
    let failure = |what: String| Failure { what, tests: Tests::default() };
    fs::create_dir_all(&folder).map_err(|e| failure(format!("{}: {e}", folder.display())))?;
    let mut tests = Tests::default();
    for Machine { triple, name, backends } in &MACHINES {
        for backend in *backends {
            let file = |ending: &str| folder.join(format!("{name}-{backend}{ending}")).to_string_lossy().into_owned();
            let (object, source, program) = (file(".o"), file(".c"), file(""));
            let write = ["run", "--features", "llvm22-1", "--example", "struct_args_object", "--"];
            cargo(&[&write[..], &[triple, backend, &object, &source]].concat()).run()?;
            let options = ["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-static"];
            let files = [&*source, &*object, "-o", &*program];
            cmd(&format!("{name}-linux-gnu-gcc"), &[&options[..], &files].concat()).run()?;
            // it fails where a kernel gets other arguments than were passed
            print!("{name}, {backend}: {}", cmd(&format!("qemu-{name}"), &[&*program]).read()?);
            tests.passed += 1;
        }
    }
    Ok(tests)
}
