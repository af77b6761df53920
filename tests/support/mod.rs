//! Shared code of the tests: executors, valid and invalid arguments, kernels by name.

pub mod accesses;
pub mod allocator;
pub mod args;
pub mod by_convention;
pub mod c_api;
pub mod compiler;
pub mod dice;
pub mod element;
pub mod exec;
pub mod fence;
pub mod half;
pub mod kernels;
pub mod layout;
pub mod library;
pub mod model;
pub mod modules;
pub mod names;
pub mod owners;
pub mod parallel;
pub mod random;
pub mod recorder;
pub mod recording;
pub mod show;
pub mod states;
pub mod streams;
pub mod text;
pub mod value;
pub mod written;

use tvm_ffi_codegen::Signature;
use tvm_ffi_codegen::artifact::{Linker, Triple};

/// Parses a signature.
pub fn sig(text: &str) -> Signature {
    text.parse().unwrap_or_else(|e| panic!("{text}\n{e}"))
}

/// A linker for this machine. On Windows, libraries import the runtime's symbols from this executable.
pub fn host_linker() -> Linker {
    let linker = Linker::new(Triple::host());
    if cfg!(windows) { linker.runtime(std::env::current_exe().unwrap()) } else { linker }
}
