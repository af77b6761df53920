//! One library, made with every backend, in every host: `tests/hosts`.

mod alone;
mod aot;
mod c_api;
mod cross;
mod cxx;
mod dsl;
mod foreign;
mod formats;
mod graph;
mod headers;
mod jit_in_python;
mod load;
mod missing;
mod on_both;
mod three_ways;
mod versions;
mod windows;

use std::fs;
use std::path::{Path, PathBuf};

use crate::command::{Cmd, Tests, cargo, cmd, root, target_folder, without_stacks};
use crate::difference::first_difference;
use crate::run::Failure;
use crate::tools::{UPSTREAM, python_package};
use crate::with_llvm;

pub use alone::alone;
pub use aot::aot;
pub use c_api::c_api;
pub use cross::cross;
pub use foreign::foreign;
pub use formats::formats;
pub use headers::headers;
pub use jit_in_python::jit_in_python;
pub use load::load;
pub use three_ways::three_ways;
pub use versions::versions;
pub use windows::windows;

type Result<T = ()> = std::result::Result<T, Failure>;

/// The backends that emit the library.
const BACKENDS: [&str; 2] = ["cranelift", "llvm"];

/// A path in the tests' directory.
fn source(name: &str) -> String {
    format!("tests/hosts/{name}")
}

/// The directory that a step writes to; created if missing.
fn folder(name: &str) -> Result<PathBuf> {
    let folder = root().join("target/hosts").join(name);
    fs::create_dir_all(&folder).map_err(|e| failure(format!("{}: {e}", folder.display())))?;
    Ok(folder)
}

/// The names of a directory's files with this suffix, without the suffix, sorted.
fn files(folder: &Path, end: &str) -> Result<Vec<String>> {
    let failure = |e| failure(format!("{}: {e}", folder.display()));
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(failure)? {
        let name = entry.map_err(failure)?.file_name();
        names.extend(name.to_string_lossy().strip_suffix(end).map(str::to_owned));
    }
    names.sort();
    Ok(names)
}

fn failure(what: String) -> Failure {
    Failure { what, tests: Tests::default() }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// The directory of upstream's Python package.
pub fn upstream() -> PathBuf {
    python_package(&UPSTREAM).join("tvm_ffi")
}

/// `cargo`, with a target's linker for another machine.
fn cargo_for(args: &[&str], target: Option<(&str, &str)>) -> Cmd {
    let Some((triple, gcc)) = target else { return cargo(args) };
    let variable = format!("CARGO_TARGET_{}_LINKER", triple.replace('-', "_").to_uppercase());
    cargo(&[args, &["--target", triple]].concat()).env(&variable, gcc)
}

/// Builds the runtime as a C library, and returns its directory.
fn runtime_library(target: Option<(&str, &str)>) -> Result<PathBuf> {
    cargo_for(&["build", "--package", "tvm-ffi-runtime-c"], target).run()?;
    let folder = target_folder();
    Ok(target.map_or(folder.clone(), |(triple, _)| folder.join(triple)).join("debug"))
}

/// Compiles C on upstream's headers, as position-independent code.
fn compile(compiler: &str, options: &[&str], source: &str, object: &Path) -> Result {
    let include = text(&upstream().join("include"));
    let fixed = ["-O1", "-fPIC", "-Wall", "-Wextra", "-Werror", "-isystem", &include, "-c"];
    cmd(compiler, &[&fixed, options, &[source, "-o", &text(object)]].concat()).run().map(|_| ())
}

/// The object files of the C host, without its libraries.
fn c_host(compiler: &str, folder: &Path) -> Result<Vec<String>> {
    let mut objects = Vec::new();
    for name in ["main", "values", "prices", "allocator"] {
        let object = folder.join(format!("{name}.o"));
        compile(compiler, &[], &source(&format!("c/{name}.c")), &object)?;
        objects.push(text(&object));
    }
    Ok(objects)
}

/// The library with the kind of module `hosts.prices`, for hosts on upstream's runtime to load beforehand.
fn kind_library(folder: &Path) -> Result<String> {
    let [prices, allocator, kind] = ["cpp_prices.o", "allocator.o", "kind.so"].map(|name| folder.join(name));
    compile("g++", &["-std=c++17"], &source("cpp/prices.cc"), &prices)?;
    compile("cc", &[], &source("c/allocator.c"), &allocator)?;
    let library = library_in(&upstream().join("lib"), "tvm_ffi");
    let options = [&["-shared"], &library.each_ref().map(String::as_str)[..]].concat();
    link_program("g++", &[text(&prices), text(&allocator)], &options, &kind)?;
    Ok(text(&kind))
}

/// Links a program.
fn link_program(compiler: &str, inputs: &[String], options: &[&str], program: &Path) -> Result {
    let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
    cmd(compiler, &[&inputs, options, &["-o", &text(program)]].concat()).run().map(|_| ())
}

/// Linker options to find a shared library in a directory, at link time and at run time.
fn library_in(folder: &Path, name: &str) -> [String; 3] {
    let folder = text(folder);
    [format!("-L{folder}"), format!("-l{name}"), format!("-Wl,-rpath,{folder}")]
}

/// Runs the command line, with both backends.
fn codegen(args: &[&str]) -> Result {
    with_llvm::command_line(args)?.run().map(|_| ())
}

/// Emits the library as objects: `wrappers.o`, and `bin.o` with the module that it imports. Options state the target
/// and the prefix.
fn emit(folder: &Path, backend: &str, options: &[&str]) -> Result {
    let [wrappers, packed] = ["wrappers.o", "bin.o"].map(|name| text(&folder.join(name)));
    fs::create_dir_all(folder).map_err(|e| failure(format!("{}: {e}", folder.display())))?;
    let import = format!("hosts.prices={}", source("prices.txt"));
    codegen(&[&["pack", "--import", &import, "-o", &packed], options].concat())?;
    let signatures = source("signatures.txt");
    codegen(&[&["wrap", "--signatures", &signatures, "--backend", backend, "-o", &wrappers], options].concat())
}

/// Emits the library with its kernels and the module that it imports, and returns its path. The name decides whether it
/// is a shared library or an archive.
fn emit_linked(folder: &Path, name: &str, backend: &str, options: &[&str], kernels: &Path) -> Result<PathBuf> {
    emit(folder, backend, options)?;
    let (library, signatures) = (folder.join(name), source("signatures.txt"));
    let (packed, kernels, output) = (text(&folder.join("bin.o")), text(kernels), text(&library));
    // archives have no linker, and other hosts use libraries of the command line's own linker
    let files = ["--object", &packed, "--object", &kernels, "--linker", "cc", "-o", &output];
    codegen(&[&["wrap", "--signatures", &signatures, "--backend", backend], options, &files].concat())?;
    Ok(library)
}

/// The expected output of every host of the library.
const EXPECTED: &str = "expected.txt";

/// Runs a host, and counts it as a test. It must print that file.
fn expect(tests: &mut Tests, what: &str, host: Cmd, expected: &str) -> Result {
    let path = source(expected);
    let expected = fs::read_to_string(root().join(&path)).map_err(|e| failure(format!("{path}: {e}")))?;
    let printed = host.read().map_err(|failure| Failure { what: failure.what, tests: *tests })?;
    let Some((line, was, is)) = first_difference(&expected, &printed) else {
        println!("{what}: {} lines as expected", expected.lines().count());
        tests.passed += 1;
        return Ok(());
    };
    tests.failed += 1;
    let what = format!("{what}: expected {path}:{line} `{was}`, got `{is}`");
    Err(Failure { what, tests: *tests })
}
