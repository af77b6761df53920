//! Compares the LLVM functions that the feature `llvm22-1-loaded` defines with those of `llvm-sys`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::command::{Tests, cargo, root};
use crate::run::Failure;

const LIST: &str = "src/backend/llvm/loaded/functions.s";
const STUBS: &str = "src/backend/llvm/loaded/stubs.rs";

/// The prefix of the directory of the crate that declares them.
const CRATE: &str = "llvm-sys-221.";

/// Declared functions that LLVM 22.1 doesn't have: removed ones, and one of a separate library.
const ABSENT: [&str; 4] = ["LLVMConstMul", "LLVMConstNSWMul", "LLVMConstNUWMul", "LLVMRemarkVersion"];

/// Compares the list with the declarations. Loading checks that LLVM has all of them.
pub fn check() -> Result<(), Failure> {
    let read = |path: &Path| fs::read_to_string(path).map_err(|e| failure(format!("{}: {e}", path.display())));
    let mut declared = BTreeSet::new();
    for file in sources(&folder()?.join("src")).map_err(|e| failure(format!("the sources of llvm-sys: {e}")))? {
        let text = read(&file)?;
        let names = text.split("pub fn ").skip(1).filter_map(|rest| rest.split(|c: char| !is_of_name(c)).next());
        // other libraries' functions have other prefixes
        let names = names.filter(|name| name.starts_with("LLVM") && !ABSENT.contains(name));
        declared.extend(names.map(str::to_owned));
    }
    let (text, stubs) = (read(&root().join(LIST))?, read(&root().join(STUBS))?);
    let listed: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("llvm_function ")).collect();
    if listed.len() != text.lines().count() || !listed.is_sorted() {
        return Err(failure(format!("{LIST}: expected a line `llvm_function NAME` for each function, sorted")));
    }
    // functions in C are listed on other lines, with their replacements
    let in_c = stubs
        .split("\"llvm_function ")
        .skip(1)
        .filter_map(|rest| rest.split(',').next())
        .filter(|name| name.starts_with("LLVM_"));
    let defined: BTreeSet<String> = listed.into_iter().chain(in_c).map(str::to_owned).collect();
    let differences: Vec<_> = declared.symmetric_difference(&defined).map(String::as_str).collect();
    match &differences[..] {
        [] => Ok(()),
        names => Err(failure(format!("{LIST} and {STUBS} don't have what llvm-sys declares: {}", names.join(", ")))),
    }
}

/// The directory in which cargo stores the crate.
fn folder() -> Result<PathBuf, Failure> {
    let metadata = cargo(&["metadata", "--format-version", "1", "--locked", "--features", "llvm22-1-loaded"]).read()?;
    let manifest = metadata.split('"').find(|text| text.contains(CRATE) && text.ends_with("Cargo.toml"));
    let folder = manifest.and_then(|path| Path::new(path).parent());
    folder.map(Path::to_owned).ok_or_else(|| failure(format!("cargo knows no {CRATE}")))
}

fn sources(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        match path.is_dir() {
            true => files.extend(sources(&path)?),
            false => files.push(path),
        }
    }
    Ok(files)
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn failure(what: String) -> Failure {
    Failure { what, tests: Tests::default() }
}
