//! Tests and an example load libraries that find the bundled runtime's C symbols in their executable: it has to export them. For Windows it
//! does so by itself.
//!
//! `TVM_FFI_CODEGEN_BUILD_ID` is a hash of the sources, by which caches tell the code of one build from that of another.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src");
    if std::env::var_os("CARGO_CFG_UNIX").is_some() {
        println!("cargo::rustc-link-arg-tests=-rdynamic");
        println!("cargo::rustc-link-arg-examples=-rdynamic");
        println!("cargo::rustc-link-arg-benches=-rdynamic");
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
