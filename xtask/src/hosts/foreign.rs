//! Import trees and libraries in both directions: upstream's loader reads ours, and our runtime reads those of
//! upstream's tools.

use super::*;
use crate::tools::{APACHE_TVM, ML_DTYPES, NUMPY, TYPING_EXTENSIONS};

/// Loads a nested import tree with upstream's package. Loads an export of apache-tvm, and a C++ library on upstream's
/// headers, with the bundled runtime.
pub fn foreign() -> Result<Tests> {
    let folder = folder("foreign")?;
    let at = |name: &str| text(&folder.join(name));
    let python_path = [&UPSTREAM, &APACHE_TVM, &NUMPY, &ML_DTYPES, &TYPING_EXTENSIONS].map(python_package);
    let python_path = python_path.map(|path| text(&path)).join(":");
    let python = |words: &[&str]| cmd("python3", words).env("PYTHONPATH", &python_path);
    let mut tests = Tests::default();

    // a module at the root imports the library, which imports two modules; one of these imports the other
    let prices = source("prices.txt");
    let imports = ["top:hosts.prices", "a:hosts.prices", "hosts.prices@a,_lib"].map(|kind| format!("{kind}={prices}"));
    let packed = at("nested.o");
    let pack = ["pack", "--root", "top", "-o", &packed].into_iter();
    codegen(&pack.chain(imports.iter().flat_map(|import| ["--import", import])).collect::<Vec<_>>())?;
    let nested = at("nested.so");
    let signature = ["--signature", "check(n: int64)"];
    codegen(&[&["wrap"], &signature[..], &["--object", &packed, "-o", &nested]].concat())?;
    let kind = kind_library(&folder)?;
    let tree = python(&[&source("python/tree.py"), &nested, &kind]);
    expect(&mut tests, "a tree packed here, on upstream's loader", tree, "tree.txt")?;

    let exported = at("exported.so");
    python(&[&source("python/export.py"), &exported]).run()?;
    let include = text(&upstream().join("include"));
    let options = ["-std=c++17", "-O1", "-fPIC", "-shared", "-DTVM_FFI_DLL_EXPORT_INCLUDE_METADATA=1"];
    let (library, compiled) = (source("cpp/library.cc"), at("compiled.so"));
    cmd("g++", &[&options[..], &["-isystem", &include, &library, "-o", &compiled]].concat()).run()?;
    cargo(&["build", "--package", "host-bundled"]).run()?;
    let host = cmd(&text(&target_folder().join("debug/foreign")), &[&exported, &compiled]);
    expect(&mut tests, "libraries of upstream's tools, on the bundled runtime", host, "foreign.txt")?;
    let inspected = with_llvm::command_line(&["inspect", &exported])?.read()?;
    if !inspected.contains("relax.VMExecutable") {
        return Err(Failure { what: format!("inspect doesn't find relax.VMExecutable:\n{inspected}"), tests });
    }
    tests.passed += 1;
    Ok(tests)
}
