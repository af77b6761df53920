//! The list of LLVM's functions that the feature `llvm22-1-loaded` defines, compared with `llvm-sys`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::command::{Tests, cargo, root};
use crate::run::Failure;

const LIST: &str = "src/backend/llvm/loaded/functions.s";
const STUBS: &str = "src/backend/llvm/loaded/stubs.rs";

/// The crate whose declarations they are, as its folder begins.
const CRATE: &str = "llvm-sys-221.";

/// Functions that are declared, and that LLVM 22.1 doesn't have: those that were removed, and that of a library of its
/// own.
const ABSENT: [&str; 4] = ["LLVMConstMul", "LLVMConstNSWMul", "LLVMConstNUWMul", "LLVMRemarkVersion"];

/// Compares the list with the declarations. That LLVM has all of them, it shows itself when it is loaded.
pub fn check() -> Result<(), Failure> {
    let read = |path: &Path| fs::read_to_string(path).map_err(|e| failure(format!("{}: {e}", path.display())));
    let mut declared = BTreeSet::new();
    for file in sources(&folder()?.join("src")).map_err(|e| failure(format!("the sources of llvm-sys: {e}")))? {
        let text = read(&file)?;
        let names = text.split("pub fn ").skip(1).filter_map(|rest| rest.split(|c: char| !is_of_name(c)).next());
        // other libraries' functions begin otherwise
        let names = names.filter(|name| name.starts_with("LLVM") && !ABSENT.contains(name));
        declared.extend(names.map(str::to_owned));
    }
    let (text, stubs) = (read(&root().join(LIST))?, read(&root().join(STUBS))?);
    let listed: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("llvm_function ")).collect();
    if listed.len() != text.lines().count() || !listed.is_sorted() {
        return Err(failure(format!("{LIST}: expected a line `llvm_function NAME` for each function, sorted")));
    }
    // those in C have lines of their own, with the functions that take their place
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

/// The folder of the crate, where cargo has put it.
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
