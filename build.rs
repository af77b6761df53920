//! Exports the bundled runtime's C symbols from the executables of tests, examples and benchmarks, for the libraries
//! that they load. On Windows this needs no option.
//!
//! `TVM_FFI_CODEGEN_BUILD_ID` is a hash of the sources. With it, a cache distinguishes the code of different builds.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src");
    if std::env::var_os("CARGO_CFG_UNIX").is_some() {
        // A packed crate has neither tests nor benchmarks, and cargo refuses options for them.
        for kind in ["tests", "examples", "benches"].into_iter().filter(|folder| Path::new(folder).is_dir()) {
            println!("cargo::rustc-link-arg-{kind}=-rdynamic");
        }
    }
    let mut files = Vec::new();
    list(Path::new("src"), &mut files);
    files.sort();
    let mut hasher = DefaultHasher::new();
    for file in files {
        (&file, fs::read(&file).unwrap_or_default()).hash(&mut hasher);
    }
    println!("cargo::rustc-env=TVM_FFI_CODEGEN_BUILD_ID={:016x}", hasher.finish());
}

/// All files in a folder and the folders in it.
fn list(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => list(&path, files),
            false => files.push(path),
        }
    }
}
