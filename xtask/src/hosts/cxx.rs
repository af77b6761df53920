//! Our library with the C++ part, `runtime/clib/cxx`: built as docs/howto/runtime.md says, and Python programs that
//! need it.

use std::collections::BTreeSet;

use super::headers::{CXX_FOLDER, in_parallel};
use super::on_both::{compare, python_package_on};
use super::*;
use crate::tools::{APACHE_TVM, ML_DTYPES, NUMPY, ORCJIT, TYPING_EXTENSIONS};

/// The sources of the C++ part, and the list of symbols that the library exports.
const SOURCES: &str = "runtime/clib/cxx";

/// Builds `libtvm_ffi.so` with the C++ part, and returns its directory.
pub fn library(folder: &Path) -> Result<PathBuf> {
    cargo(&["build", "--package", "tvm-ffi-runtime-c", "--features", "cxx"]).run()?;
    let folder = folder.join("with_cxx");
    fs::create_dir_all(&folder).map_err(|e| failure(format!("{}: {e}", folder.display())))?;
    let names = files(&root().join(SOURCES), ".cc")?;
    let object = |name: &String| text(&folder.join(format!("{name}.o")));
    in_parallel(&names, |name| {
        let options = ["-std=c++17", "-fvisibility=hidden"];
        compile("g++", &options, &format!("{SOURCES}/{name}.cc"), &folder.join(format!("{name}.o")))
    })?;
    let objects: Vec<String> = names.iter().map(object).collect();
    let runtime = text(&target_folder().join("debug/libtvm_ffi_runtime.a"));
    let exports = format!("-Wl,--version-script={SOURCES}/exports.map");
    let options = ["-shared", "-Wl,-soname,libtvm_ffi.so", &exports, "-Wl,--gc-sections"];
    let runtime = ["-Wl,--whole-archive", &runtime, "-Wl,--no-whole-archive", "-pthread", "-ldl", "-lm"];
    link_program("g++", &objects, &[&options[..], &runtime].concat(), &folder.join("libtvm_ffi.so"))?;
    Ok(folder)
}

/// Runs the Python programs on upstream's package, and on a copy of it with our library.
pub fn python_programs(tests: &mut Tests, folder: &Path, ours: &Path) -> Result {
    let copy = python_package_on(ours, folder)?;
    let code = folder.join("jit_code.o");
    compile("g++", &["-std=c++17"], &source(&format!("{CXX_FOLDER}/jit/code.cc")), &code)?;
    let others = [&ORCJIT, &APACHE_TVM, &NUMPY, &ML_DTYPES, &TYPING_EXTENSIONS];
    let others = others.map(|tool| text(&python_package(tool))).join(":");
    for name in files(&root().join(source(CXX_FOLDER)), ".py")? {
        let python = |package: &Path| {
            let words = [source(&format!("{CXX_FOLDER}/{name}.py")), text(&code)];
            let path = format!("{}:{others}", text(package));
            cmd("python3", &words.each_ref().map(String::as_str)).env("PYTHONPATH", &path)
        };
        compare(tests, &format!("{name} in Python"), python(&python_package(&UPSTREAM)), python(&copy))?;
    }
    Ok(())
}

/// Checks that our library exports all symbols of upstream's namespace `tvm::ffi`.
pub fn expect_symbols(theirs: &Path, ours: &Path) -> Result {
    let symbols = |library: &Path| -> Result<BTreeSet<String>> {
        let library = text(&library.join("libtvm_ffi.so"));
        let symbols = cmd("nm", &["--dynamic", "--defined-only", "--format=just-symbols", &library]).read()?;
        // functions and classes; variables inside functions are each library's own
        let is_cxx = |name: &&str| ["_ZN3tvm3ffi", "_ZTV", "_ZTI"].iter().any(|start| name.starts_with(start));
        Ok(symbols.lines().filter(is_cxx).filter(|name| name.contains("3tvm3ffi")).map(str::to_owned).collect())
    };
    let (theirs, ours) = (symbols(theirs)?, symbols(ours)?);
    let missing: Vec<&String> = theirs.difference(&ours).collect();
    match missing.is_empty() && !theirs.is_empty() {
        true => println!("our library with the C++ part has the {} C++ symbols of upstream's", theirs.len()),
        false => return Err(failure(format!("our library with the C++ part lacks {missing:?}"))),
    }
    Ok(())
}
