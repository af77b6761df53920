//! The cost of a launch, in instructions, compared with launchers in C.

use std::fs;

use crate::callgrind;
use crate::command::{Tests, cargo, cmd, root, target_folder};
use crate::run::Failure;
use crate::tools::{CUDA_RUNTIME, UPSTREAM, python_package};

/// The table: instructions of one call, counted with callgrind. The driver returns from the launch immediately.
pub fn table() -> Result<Tests, Failure> {
    let package = python_package(&UPSTREAM).join("tvm_ffi");
    let (include, library) = (package.join("include").display().to_string(), package.join("lib").display().to_string());
    let cuda = python_package(&CUDA_RUNTIME).join("nvidia/cuda_runtime/include").display().to_string();
    let folder = root().join("target/launches-cost");
    let failure = |what: String| Failure { what, tests: Tests::default() };
    fs::create_dir_all(&folder).map_err(|e| failure(format!("{}: {e}", folder.display())))?;
    let at = |name: &str| folder.join(name).display().to_string();
    let in_c = ["-std=gnu11", "-O2", "-isystem", &include, "-isystem", &cuda];
    let shared = ["-shared", "-fPIC", "benches/launches/cuda.c", "-o", &at("libcuda.so.1")];
    cmd("clang-22", &[&in_c[..], &shared].concat()).run()?;
    cargo(&["build", "--features", "llvm22-1", "--example", "launches_object"]).run()?;
    let example = target_folder().join("debug/examples/launches_object").display().to_string();
    let count = |driver: &str, which: &str| {
        callgrind::per_call(driver, which, |valgrind| valgrind.env("LD_LIBRARY_PATH", &at("")))
    };
    println!("\n| launcher | instructions | than C with the same checks | more than C without checks |");
    println!("| --- | ---: | ---: | ---: |");
    let mut in_c_with = None;
    for backend in ["cranelift", "llvm"] {
        let (object, driver) = (at(&format!("{backend}.o")), at(backend));
        cmd(&example, &[backend, &object]).run()?;
        let search = format!("-Wl,-rpath,{library}");
        let link = ["benches/launches/driver.c", &object, "-o", &driver, "-L", &library, "-ltvm_ffi", &search];
        cmd("clang-22", &[&in_c[..], &link].concat()).run()?;
        let (checked, unchecked) = match in_c_with {
            Some(known) => known,
            None => {
                let known = (count(&driver, "c-checked")?, count(&driver, "c-unchecked")?);
                println!("| C without checks (clang -O2) | {:.0} | | |", known.1);
                println!("| C with checks (clang -O2) | {:.0} | | {:.0} |", known.0, known.0 - known.1);
                *in_c_with.insert(known)
            }
        };
        let generated = count(&driver, "generated")?;
        println!("| {backend} | {generated:.0} | {:.2} | {:.0} |", generated / checked, generated - unchecked);
    }
    Ok(Tests::default())
}
