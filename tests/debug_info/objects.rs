//! Objects: the report of `addr2line` on a library.
#![cfg(target_os = "linux")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use object::{Object, ObjectSymbol};
use tvm_ffi_codegen::backend::cranelift::{Compiler, IsaOptions, Options, host_isa};

use super::program;
use crate::support::compiler;

/// The module as an object of each backend, with the backend's name.
fn objects() -> Vec<(&'static str, Vec<u8>)> {
    let isa = host_isa(&IsaOptions { pic: true, ..IsaOptions::default() }).unwrap();
    let options = Options { unwind: true, ..Options::default() };
    let compiled = Compiler::new().compile(&program::module(), &*isa, options).unwrap();
    vec![
        ("cranelift", compiled.into_object(isa).unwrap()),
        #[cfg(feature = "_llvm")]
        ("llvm", llvm()),
    ]
}

#[cfg(feature = "_llvm")]
fn llvm() -> Vec<u8> {
    use tvm_ffi_codegen::backend::OptLevel;
    use tvm_ffi_codegen::backend::llvm::{Compiler, LlvmTarget, Options, TargetOptions};
    let target = TargetOptions { opt_level: OptLevel::Full, ..TargetOptions::default() };
    let options = Options { for_linker: true, ..Options::default() };
    Compiler::new(LlvmTarget::host(&target).unwrap()).compile(&program::module(), options).unwrap().object
}

/// The output of `addr2line` for each address: a function, and a file with a line.
fn addr2line(library: &Path, addresses: impl IntoIterator<Item = u64>) -> Vec<(String, String)> {
    let addresses = addresses.into_iter().map(|address| format!("{address:#x}"));
    let output = Command::new("addr2line").arg("-f").arg("-e").arg(library).args(addresses).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    lines.chunks(2).map(|pair| (pair[0].to_owned(), pair[1].to_owned())).collect()
}

#[test]
fn addr2line_finds_the_lines_of_a_library() {
    for (backend, object) in objects() {
        let folder = tempfile::tempdir().unwrap();
        let (file, library) = (folder.path().join("traced.o"), folder.path().join("libtraced.so"));
        fs::write(&file, object).unwrap();
        let status = compiler::c().arg("-shared").arg("-o").arg(&library).arg(&file).status().unwrap();
        assert!(status.success(), "{backend}");

        let bytes = fs::read(&library).unwrap();
        let parsed = object::File::parse(&*bytes).unwrap();
        let range = |name: &str| {
            let symbol = parsed.symbols().find(|symbol| symbol.name() == Ok(name)).unwrap();
            symbol.address()..symbol.address() + symbol.size()
        };
        let seen = |name: &str| -> BTreeSet<(String, String)> {
            // code without a line has line 0, which `addr2line` prints as a question mark
            addr2line(&library, range(name)).into_iter().filter(|(_, place)| !place.ends_with(":?")).collect()
        };
        let set = |all: &[(&str, &str)]| -> BTreeSet<(String, String)> {
            all.iter().map(|(function, place)| ((*function).to_owned(), (*place).to_owned())).collect()
        };
        let start = addr2line(&library, [range("traced").start]);
        assert_eq!(start, [("outer".to_owned(), "/demo/model.dsl:3".to_owned())], "{backend}");
        assert_eq!(seen("traced"), set(&[("outer", "/demo/model.dsl:3")]), "{backend}");
        let middle = [("inner", "/demo/model.dsl:7"), ("inner", "library.dsl:12")];
        assert_eq!(seen("ffi_call_middle"), set(&middle), "{backend}");
    }
}
