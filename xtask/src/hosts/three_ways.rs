//! One program in Rust on each of the runtimes that `tvm-ffi-runtime` supports with one API.

use super::*;
use crate::quickstart;
use crate::tools::TYPING_EXTENSIONS;

/// The output of each way.
const REPORT: &str = "rust_three_ways/expected.txt";

/// The features of each way, and whether its files export the C symbols of TVM FFI.
const WAYS: [(&str, &[&str], bool); 3] = [
    ("bundled", &[], true),
    ("hidden", &["--features", "hidden"], false),
    ("external", &["--features", "external"], false),
];

/// Builds the program on each runtime, compares the outputs, checks the symbols, and loads its library in Python.
pub fn three_ways() -> Result<Tests> {
    let folder = folder("three_ways")?;
    let (kernel_object, kernel) = (folder.join("kernel.o"), folder.join("kernel.so"));
    compile("cc", &[], &source("rust_three_ways/kernel.c"), &kernel_object)?;
    link_program("cc", &[text(&kernel_object)], &["-shared"], &kernel)?;
    let kernel = text(&kernel);
    // The same library, bound to upstream's runtime.
    let (bound_object, bound) = (folder.join("bound.o"), folder.join("bound.so"));
    compile("cc", &["-DSIGNALS"], &source("rust_three_ways/kernel.c"), &bound_object)?;
    let library = library_in(&upstream().join("lib"), "tvm_ffi");
    let options = [&["-shared"], &library.each_ref().map(String::as_str)[..]].concat();
    link_program("cc", &[text(&bound_object)], &options, &bound)?;
    let bound = text(&bound);
    let runtimes =
        [text(&upstream().join("lib/libtvm_ffi.so")), text(&runtime_library(None)?.join("libtvm_ffi_runtime.so"))];
    let mut tests = Tests::default();
    for (way, features, exports) in WAYS {
        cargo(&[&["build", "--package", "host-rust-three-ways"], features].concat()).run()?;
        let built = target_folder().join("debug");
        let (program, library) =
            (text(&built.join("rust-three-ways")), text(&built.join("libhost_rust_three_ways.so")));
        match way {
            "external" => {
                for runtime in &runtimes {
                    let command = without_stacks(cmd(&program, &[&kernel])).env("TVM_FFI_LIBRARY", runtime);
                    expect(&mut tests, &format!("{way}, {runtime}"), command, REPORT)?;
                }
                let command = without_stacks(cmd(&program, &[&bound])).env("TVM_FFI_LIBRARY", &runtimes[0]);
                expect(&mut tests, "external, a library that is bound to the runtime", command, REPORT)?;
                refuses(&mut tests, &program, &kernel, "no TVM FFI runtime: *TVM_FFI_LIBRARY")?;
            }
            "hidden" => {
                expect(&mut tests, way, without_stacks(cmd(&program, &[&kernel])), REPORT)?;
                refuses(&mut tests, &program, &bound, "another TVM FFI runtime*is hidden*feature `external`")?;
            }
            _ => expect(&mut tests, way, without_stacks(cmd(&program, &[&kernel])), REPORT)?,
        }
        for file in [&program, &library] {
            symbols(&mut tests, file, exports)?;
        }
        let python = without_stacks(cmd("python3", &[&source("rust_three_ways/main.py"), way, &library, &kernel]))
            .env("PYTHONPATH", &[&UPSTREAM, &TYPING_EXTENSIONS].map(python_package).map(|path| text(&path)).join(":"));
        match way {
            "external" => expect(&mut tests, "external, in Python", python, REPORT)?,
            _ => {
                python.run()?;
                tests.passed += 1;
            }
        }
    }
    // An engine that makes functions of another runtime.
    let run = [quickstart::RUN, &["--features", "external-runtime"]].concat();
    tests.add(quickstart::check(cargo(&run).env("TVM_FFI_LIBRARY", &runtimes[0]))?);
    tests.passed += 1;
    Ok(tests)
}

/// Checks that a file has C symbols or has none, as stated. It must define all that it has.
fn symbols(tests: &mut Tests, file: &str, exports: bool) -> Result {
    let listed = cmd("nm", &["-D", file]).read()?;
    let count = listed.lines().filter(|line| line.contains(" TVMFFI")).count();
    let defined = listed.lines().filter(|line| line.contains(" T TVMFFI")).count();
    if count == defined && exports == (count > 0) {
        println!("{file}: {count} C symbols");
        tests.passed += 1;
        return Ok(());
    }
    tests.failed += 1;
    Err(Failure { what: format!("{file} has {count} of the C symbols, {defined} of them its own"), tests: *tests })
}

/// Checks that the program's message gives advice if the runtime is missing or another one. Its output must have these
/// parts.
fn refuses(tests: &mut Tests, program: &str, kernel: &str, parts: &str) -> Result {
    let patterns: Vec<String> = parts.split('*').map(|part| format!("'{part}'")).collect();
    let script = format!(
        r#"out=$("$0" "$1" 2>&1) && exit 1; case $out in *{}*) ;; *) echo "$out"; exit 1;; esac"#,
        patterns.join("*")
    );
    without_stacks(cmd("sh", &["-c", &script, program, kernel])).env("TVM_FFI_LIBRARY", "/no/such/library").run()?;
    tests.passed += 1;
    Ok(())
}
