//! Layouts and constants that generated code writes, compared with cuda.h.

use std::fs;

use super::brought;
use crate::support::compiler;

/// Lines of a C program that asserts each fact of `layouts.txt`.
fn assertions() -> String {
    let mut code = "#include <stddef.h>\n#include <cuda.h>\n".to_owned();
    for line in include_str!("layouts.txt").lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (left, right) = match words[..] {
            ["sizeof", what, size] => (format!("sizeof({what})"), size),
            ["offsetof", what, field, offset] => (format!("offsetof({what}, {field})"), offset),
            ["value", what, number] => (what.to_owned(), number),
            _ => panic!("{line}"),
        };
        code.push_str(&format!("_Static_assert({left} == {right}, \"{line}\");\n"));
    }
    code
}

#[test]
fn the_header_has_the_layouts_that_are_written() {
    let Some(headers) = brought("TVM_FFI_CODEGEN_CUDA_HEADERS") else { return };
    let folder = tempfile::tempdir().unwrap();
    let compiles = |code: &str| {
        fs::write(folder.path().join("layouts.c"), code).unwrap();
        let done = compiler::c()
            .current_dir(folder.path())
            .args(["-fsyntax-only", "layouts.c", "-I"])
            .arg(&headers)
            .output()
            .unwrap();
        done.status.success().then_some(()).ok_or_else(|| String::from_utf8(done.stderr).unwrap())
    };
    compiles(&assertions()).unwrap();
    // the compiler detects a wrong assertion
    let wrong = assertions() + "_Static_assert(sizeof(CUlaunchConfig) == 57, \"wrong\");\n";
    assert!(compiles(&wrong).unwrap_err().contains("wrong"));
}
