//! Libraries for other machines, run with an emulator.

use super::*;

/// A machine to emulate.
struct Machine {
    /// The name in the C compiler's and the emulator's commands.
    name: &'static str,
    triple: &'static str,
}

const MACHINES: [Machine; 2] = [
    Machine { name: "aarch64", triple: "aarch64-unknown-linux-gnu" },
    Machine { name: "riscv64", triple: "riscv64gc-unknown-linux-gnu" },
];

/// Runs the C host with our runtime on each machine, with the library of each backend.
pub fn cross() -> Result<Tests> {
    let mut tests = Tests::default();
    for Machine { name, triple } in MACHINES {
        let folder = folder(name)?;
        let gcc = format!("{name}-linux-gnu-gcc");
        let runtime = library_in(&runtime_library(Some((triple, &gcc)))?, "tvm_ffi_runtime");
        let host = folder.join("host");
        link_program(&gcc, &c_host(&gcc, &folder)?, &runtime.each_ref().map(String::as_str), &host)?;
        let kernels = folder.join("kernels.o");
        compile(&gcc, &[], &source("kernels.c"), &kernels)?;
        for backend in BACKENDS {
            let library = emit_linked(&folder.join(backend), "library.so", backend, &["--target", triple], &kernels)?;
            let system = format!("/usr/{name}-linux-gnu");
            let emulated = cmd(&format!("qemu-{name}"), &["-L", &system, &text(&host), &text(&library)]);
            expect(&mut tests, &format!("{backend} on {name}"), emulated, EXPECTED)?;
        }
    }
    Ok(tests)
}
