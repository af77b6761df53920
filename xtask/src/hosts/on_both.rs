//! Programs on upstream's Rust crate and Python package, each run with upstream's library and with ours. The outputs
//! must be the same.

use super::*;

/// Each Python program is a file in this directory of [`source`].
const FOLDER: &str = "on_both";

/// Runs the program `rust_values` on upstream's Rust crate, and the Python programs.
pub fn on_both(tests: &mut Tests, rust_values: &str, python_path: &str) -> Result {
    cargo(&["build", "--package", "tvm-ffi-runtime-c-as-upstream"]).run()?;
    let ours = target_folder().join("debug");
    let rust = |library: &Path| cmd(rust_values, &[]).env("LD_LIBRARY_PATH", &text(library));
    compare(tests, "upstream's Rust crate", rust(&upstream().join("lib")), rust(&ours))?;

    let copy = python_package_on(&ours, &folder(FOLDER)?)?;
    for name in files(&root().join(source(FOLDER)), ".py")? {
        let python = |path: &str| cmd("python3", &[&source(&format!("{FOLDER}/{name}.py"))]).env("PYTHONPATH", path);
        let on_ours = python(&format!("{}:{python_path}", text(&copy)));
        compare(tests, &format!("{name} in {}", UPSTREAM.name), python(python_path), on_ours)?;
    }
    Ok(())
}

/// A copy of upstream's Python package with our library from a directory: the package opens the library in its own.
pub(super) fn python_package_on(ours: &Path, folder: &Path) -> Result<PathBuf> {
    let copy = folder.join("packages");
    let _absent = fs::remove_dir_all(&copy);
    fs::create_dir_all(&copy).map_err(|e| failure(format!("{}: {e}", copy.display())))?;
    cmd("cp", &["-r", &text(&upstream()), &text(&copy)]).run()?;
    let replaced = fs::copy(ours.join("libtvm_ffi.so"), copy.join("tvm_ffi/lib/libtvm_ffi.so"));
    replaced.map_err(|e| failure(format!("{}: {e}", copy.display())))?;
    Ok(copy)
}

/// Runs a program on upstream's library and on ours. The outputs must be the same.
pub(super) fn compare(tests: &mut Tests, what: &str, theirs: Cmd, ours: Cmd) -> Result {
    let run = |program: Cmd| {
        program.env("TVM_FFI_BACKTRACE", "0").read().map_err(|Failure { what, .. }| Failure { what, tests: *tests })
    };
    let (theirs, ours) = (run(theirs)?, run(ours)?);
    let differs = match first_difference(&theirs, &ours) {
        _ if theirs.is_empty() => format!("{what} prints nothing"),
        Some((line, theirs, ours)) => format!("{what}:{line}: upstream's library `{theirs}`, ours `{ours}`"),
        None => {
            println!("{what}: {} lines, the same on both libraries", theirs.lines().count());
            tests.passed += 1;
            return Ok(());
        }
    };
    tests.failed += 1;
    Err(Failure { what: differs, tests: *tests })
}
