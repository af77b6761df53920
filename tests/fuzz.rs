//! The committed inputs of the fuzz targets; `cargo xtask fuzz` generates more. They include inputs that have found
//! defects.

use std::fs;
use std::path::Path;

#[path = "../fuzz/src/lib.rs"]
pub mod targets;

/// Runs a target on its committed inputs.
fn run(target: &str, run: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let mut inputs: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    inputs.sort_unstable();
    assert!(!inputs.is_empty(), "{} is empty", folder.display());
    for input in inputs {
        println!("{}", input.display());
        run(&fs::read(&input).unwrap());
    }
}

#[test]
fn bodies() {
    run("bodies", targets::bodies::run);
}

#[test]
fn cache() {
    run("cache", targets::cache::run);
}

#[test]
fn calls() {
    run("calls", targets::calls::run);
}

#[test]
fn dispatch() {
    run("dispatch", targets::dispatch::run);
}

#[test]
fn files() {
    run("files", targets::files::run);
}

#[test]
fn graphs() {
    run("graphs", targets::graphs::run);
}

#[test]
fn host_text() {
    run("host_text", targets::host_text::run);
}

#[test]
fn images() {
    run("images", targets::images::run);
}

#[test]
fn listings() {
    run("listings", targets::listings::run);
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn objects() {
    run("objects", targets::objects::run);
}

#[test]
fn signatures() {
    run("signatures", targets::signatures::run);
}

#[test]
fn values() {
    run("values", targets::values::run);
}
