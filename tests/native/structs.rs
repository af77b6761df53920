//! Native kernels that take structs by value, between other arguments: registers run out before, in and after them. A C
//! compiler compiles the kernels with struct types of the test, and checks the types of the headers.
#![cfg_attr(all(target_env = "musl", target_feature = "crt-static"), allow(dead_code, unused_imports))]

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use tvm_ffi_codegen::spec::{FloatBits, KernelArg};
use tvm_ffi_codegen::{CType, Kernel, ScalarType, Signature};

use super::cases::{self, Case, H, P, PARAMS, START, T, V};
use crate::support::args::Form;
use crate::support::exec::{Program, executors, run};
use crate::support::kernels::receive;
use crate::support::value::{Call, Value};
use crate::support::{compiler, sig};

/// The header of a kernel, and what has to hold for its types.
fn header(case: &Case, signature: &Signature) -> String {
    let kernel = case.kernel(Kernel::symbol(&case.name));
    let mut text = kernel.header(signature).unwrap().replace("#pragma once", "");
    for (param, size) in kernel.parameters(signature).unwrap().iter().zip(&case.args.sizes) {
        if let Some((size, align)) = size {
            let ty = param.c_type;
            writeln!(text, "static_assert(sizeof({ty}) == {size}, \"\");").unwrap();
            // one word is passed alike, whatever its alignment
            if !matches!(ty, CType::Struct(_)) {
                writeln!(text, "static_assert(alignof({ty}) == {align}, \"\");").unwrap();
            }
        }
    }
    text
}

fn compile(mut command: Command, directory: &Path, args: &[&str]) {
    command.current_dir(directory).args(["-Wall", "-Wextra", "-Werror"]).args(args);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A library of the kernels.
fn library(signature: &Signature, cases: &[Case]) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("native-structs");
    std::fs::create_dir_all(&directory).unwrap();
    let write = |file: &str, text: &str| std::fs::write(directory.join(file), text).unwrap();
    let kernels: String = cases.iter().map(Case::source).collect();
    write("kernels.c", &format!("{START}{kernels}"));
    let headers: String = cases.iter().map(|case| header(case, signature)).collect();
    write("headers.h", &headers);
    write("headers.c", "#include <assert.h>\n#include <stdalign.h>\n#include \"headers.h\"\n");
    write("headers.cc", "#include \"headers.h\"\n");
    compile(compiler::c(), &directory, &["-O1", "-shared", "-fPIC", "kernels.c", "-o", "kernels.so"]);
    compile(compiler::c(), &directory, &["-fsyntax-only", "headers.c"]);
    compile(compiler::cpp(), &directory, &["-fsyntax-only", "headers.cc"]);
    directory.join("kernels.so")
}

#[test]
#[cfg_attr(all(target_env = "musl", target_feature = "crt-static"), ignore = "a static executable loads no library")]
fn structs_by_value_between_other_arguments() {
    let signature = sig(&format!("f{PARAMS}"));
    let cases = cases::all();
    // SAFETY: a library without initialisers.
    let library = unsafe { libloading::Library::new(library(&signature, &cases)).unwrap() };
    // SAFETY: both are what `kernels.c` says.
    let (words, count) =
        unsafe { (*library.get::<*const u64>(b"noted").unwrap(), *library.get::<*mut usize>(b"noted_count").unwrap()) };
    let values = [Value::int(P), Value::Raw(4, H), Value::Raw(5, T), Value::Raw(6, V)];
    let call = Call::new(values.to_vec());
    // each shape after two or three of the mixes; the step `struct-args` calls all
    for case in cases.iter().step_by(3) {
        // SAFETY: nothing is read through the symbol.
        let address = unsafe { *library.get::<*const u8>(case.name.as_bytes()).unwrap() };
        let program = Program::new(signature.clone(), case.kernel(Kernel::address(address))).unwrap();
        for executor in executors() {
            let told = format!("{}: {}, {:?}", executor.name, case.shape, case.args.args);
            let mut runnable = (executor.prepare)(&program).unwrap_or_else(|e| panic!("{told}\n{e}"));
            let outcome = run(&mut *runnable, &call, Form::DlTensor);
            assert_eq!((outcome.code, outcome.error), (Ok(0), None), "{told}");
            // SAFETY: the kernels, which no other thread calls, have written so many words.
            let noted = unsafe {
                let noted = std::slice::from_raw_parts(words, count.read()).to_vec();
                count.write(0);
                noted
            };
            assert_eq!(noted, case.args.expected, "{told}");
        }
    }
}

/// The largest struct, which System V copies to the stack.
#[test]
#[cfg_attr(all(target_env = "musl", target_feature = "crt-static"), ignore = "a static executable loads no library")]
fn the_largest_struct() {
    #[repr(C)]
    struct Large([f64; 512]);
    #[allow(improper_ctypes_definitions)]
    extern "C" fn kernel(first: i32, large: Large, last: f32) {
        let sum: f64 = large.0.iter().enumerate().map(|(i, x)| i as f64 * x).sum();
        receive([first as u64, sum.to_bits(), u64::from(last.to_bits())]);
    }
    let field = |i: u32| (8 * i, KernelArg::Float(FloatBits::new(f64::from(i)), ScalarType::Float64));
    let large = KernelArg::Struct { size: 4096, align: 8, fields: (0..512).map(field).collect() };
    let [first, last] = ["int32(7)", "float32(1.5)"].map(|text| text.parse().unwrap());
    let kernel = Kernel::address(kernel as *const u8).args([first, large, last]);
    let program = Program::new(sig("f()"), kernel).unwrap();
    let sum: f64 = (0..512).map(|i| f64::from(i * i)).sum();
    for executor in executors() {
        let mut runnable = (executor.prepare)(&program).unwrap();
        let outcome = run(&mut *runnable, &Call::new([]), Form::DlTensor);
        assert_eq!((outcome.code, outcome.error), (Ok(0), None), "{}", executor.name);
        assert_eq!(outcome.received, [7, sum.to_bits(), u64::from(1.5f32.to_bits())], "{}", executor.name);
    }
}
