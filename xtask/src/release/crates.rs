//! The crates as they would be uploaded: packed, built from the packed files, and used by a new crate.

use std::fs;
use std::path::{Path, PathBuf};

use super::{failed, text, version};
use crate::command::{Tests, cargo, cmd, target_folder};
use crate::platforms::Amount;
use crate::run::Failure;
use crate::{book, quickstart};

/// The published crates. Each needs those before it.
const CRATES: [&str; 4] = ["tvm-ffi-runtime-macros", "tvm-ffi-runtime", LIBRARY, "tvm-ffi-codegen-cli"];
/// The crate with the README's example.
const LIBRARY: &str = "tvm-ffi-codegen";
/// The new crate.
const USER: &str = "user";

/// Packs the crates and compiles each from its files. New crates in empty directories run the README's example, and
/// follow the book's page for Rust.
///
/// With `All`, cargo verifies each crate, which builds most of them and their dependencies once more. With `Part`, the
/// compiler checks all of them together.
pub fn check(amount: Amount) -> Result<Tests, Failure> {
    let verified: &[&str] = if amount == Amount::All { &[] } else { &["--no-verify"] };
    let packages = CRATES.iter().flat_map(|name| ["-p", name]);
    let words: Vec<&str> = ["package", "--allow-dirty"].iter().chain(verified).copied().chain(packages).collect();
    cargo(&words).env("CARGO_TARGET_DIR", &builds()).run()?;
    unpack()?;
    let within = |folder: &Path, words| cargo(words).within(&text(folder)).env("CARGO_TARGET_DIR", &builds());
    if amount == Amount::Part {
        within(&folder(), &["check", "--workspace"]).run()?;
    }
    let mut tests = quickstart::check(within(&user()?, &["run"]))?;
    book::rust_start()?;
    tests.passed += CRATES.len() as u64 + 2;
    Ok(tests)
}

/// The directory of all that is made here.
fn folder() -> PathBuf {
    target_folder().join("packed")
}

/// The directory of the builds of packed crates. They share one build of their dependencies.
pub fn builds() -> String {
    text(&folder().join("target"))
}

/// The unpacked files of a crate.
pub fn packed(name: &str) -> Result<PathBuf, Failure> {
    Ok(folder().join(format!("{name}-{}", version()?)))
}

/// The part of cargo's configuration that takes the crates from the packed files.
pub fn patches() -> Result<String, Failure> {
    let mut text = "[patch.crates-io]\n".to_owned();
    for name in CRATES {
        text += &format!("{name}.path = {:?}\n", packed(name)?);
    }
    Ok(text)
}

/// Makes a new crate whose program is the packed example. Examples of the library itself also need what its tests need.
fn user() -> Result<PathBuf, Failure> {
    let folder = folder().join(USER);
    let manifest = "[package]\nname = \"user\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
                    [dependencies]\ntvm-ffi-codegen = \"0.1\"\n";
    let example = packed(LIBRARY)?.join("examples/quickstart.rs");
    let made = fs::create_dir_all(folder.join("src"))
        .and_then(|()| fs::write(folder.join("Cargo.toml"), manifest))
        .and_then(|()| fs::copy(&example, folder.join("src/main.rs")));
    made.map(|_| folder).map_err(|e| failed(format!("{}: {e}", example.display())))
}

/// Unpacks the files, and prints their sizes.
fn unpack() -> Result<(), Failure> {
    let into = folder();
    println!("{:<24} {:>5} {:>6} {:>10}", "crate", "files", "KiB", "packed KiB");
    for name in CRATES {
        let folder = packed(name)?;
        // left by an earlier run
        let _ = fs::remove_dir_all(&folder);
        let archive = Path::new(&builds()).join(format!("package/{name}-{}.crate", version()?));
        cmd("tar", &["-xzf", &text(&archive), "-C", &text(&into)]).run()?;
        let (files, bytes) = contents(&folder).map_err(|e| failed(format!("{name}: {e}")))?;
        let compressed = fs::metadata(&archive).map_err(|e| failed(format!("{name}: {e}")))?.len();
        println!("{name:<24} {files:>5} {:>6} {:>10}", bytes / 1024, compressed / 1024);
    }
    let members: Vec<String> =
        CRATES.iter().map(|name| packed(name).map(|path| text(&path))).collect::<Result<_, _>>()?;
    let workspace = format!("[workspace]\nresolver = \"3\"\nmembers = {members:?}\nexclude = [{USER:?}]\n");
    for (name, text) in [("Cargo.toml", workspace), (".cargo/config.toml", patches()?)] {
        let path = into.join(name);
        let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&path, text));
        written.map_err(|e| failed(format!("{}: {e}", path.display())))?;
    }
    Ok(())
}

/// The number of files under a directory, and their bytes.
fn contents(folder: &Path) -> std::io::Result<(u64, u64)> {
    let (mut files, mut bytes) = (0, 0);
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (f, b) = if entry.file_type()?.is_dir() { contents(&entry.path())? } else { (1, entry.metadata()?.len()) };
        files += f;
        bytes += b;
    }
    Ok((files, bytes))
}
