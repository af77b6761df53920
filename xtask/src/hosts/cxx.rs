//! Our library with the C++ part, `runtime/clib/cxx`: built as docs/runtime.md says.

use std::collections::BTreeSet;

use super::*;

/// The sources of the C++ part, and the list of symbols that the library exports.
const SOURCES: &str = "runtime/clib/cxx";

/// Builds `libtvm_ffi.so` with the C++ part, and returns its directory.
pub fn library(folder: &Path) -> Result<PathBuf> {
    cargo(&["build", "--package", "tvm-ffi-runtime-c", "--features", "cxx"]).run()?;
    let folder = folder.join("with_cxx");
    fs::create_dir_all(&folder).map_err(|e| failure(format!("{}: {e}", folder.display())))?;
    let runtime = text(&target_folder().join("debug/libtvm_ffi_runtime.a"));
    let exports = format!("-Wl,--version-script={SOURCES}/exports.map");
    let sources: Vec<String> =
        files(&root().join(SOURCES), ".cc")?.into_iter().map(|name| format!("{SOURCES}/{name}.cc")).collect();
    let sources: Vec<&str> = sources.iter().map(String::as_str).collect();
    let include = text(&upstream().join("include"));
    let compile = ["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-isystem", &include];
    let link = ["-shared", "-fPIC", "-fvisibility=hidden", "-Wl,-soname,libtvm_ffi.so", &exports, "-Wl,--gc-sections"];
    let runtime = ["-Wl,--whole-archive", &runtime, "-Wl,--no-whole-archive", "-pthread", "-ldl", "-lm"];
    let output = text(&folder.join("libtvm_ffi.so"));
    cmd("g++", &[&compile[..], &link, &sources, &runtime, &["-o", &output]].concat()).run()?;
    Ok(folder)
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
