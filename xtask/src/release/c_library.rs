//! The archive of the C library, as `pkg-config` and CMake find it.

use std::fs;

use super::{failed, folder, text};
use crate::book;
use crate::command::{Tests, cmd, target_folder};
use crate::run::Failure;
use crate::tools::{CMAKE, UPSTREAM, python_package};

const PROJECT: &str = "\
cmake_minimum_required(VERSION 3.16)
project(first C)
find_package(tvm_ffi_codegen 0.1 REQUIRED)
foreach(kind static shared)
  add_executable(first_${kind} main.c)
  target_include_directories(first_${kind} PRIVATE ${TVM_FFI_HEADERS})
  target_link_libraries(first_${kind} PRIVATE tvm_ffi_codegen::${kind})
endforeach()
";

/// Builds the program of the book's page for C in four ways, and compares what it prints.
pub fn check() -> Result<Tests, Failure> {
    let project = target_folder().join("release-c");
    // left by an earlier run
    let _ = fs::remove_dir_all(&project);
    let program = book::start_program("c", "main.c")?;
    let written = fs::create_dir_all(&project)
        .and_then(|()| fs::write(project.join("main.c"), program.text))
        .and_then(|()| fs::write(project.join("CMakeLists.txt"), PROJECT));
    written.map_err(|e| failed(format!("{}: {e}", project.display())))?;
    let archive = text(&folder().join("tvm-ffi-codegen-c-x86_64-unknown-linux-gnu.tar.gz"));
    let headers = text(&python_package(&UPSTREAM).join("tvm_ffi/include"));
    let cmake = text(&python_package(&CMAKE).join("bin/cmake"));
    let script = format!(
        "tar xf {archive}; library=$PWD/tvm-ffi-codegen-c
         export PKG_CONFIG_PATH=$library/lib/pkgconfig LD_LIBRARY_PATH=$library/lib
         flags=\"-I{headers} $(pkg-config --cflags tvm_ffi_codegen)\"
         cc $flags main.c $(pkg-config --libs tvm_ffi_codegen) -o shared
         cc $flags main.c $library/lib/libtvm_ffi_codegen.a $(pkg-config --libs-only-l --static tvm_ffi_codegen | sed s/-ltvm_ffi_codegen//) -o static
         {cmake} -S . -B build -DCMAKE_PREFIX_PATH=$library -DTVM_FFI_HEADERS={headers} >&2
         {cmake} --build build >&2
         for program in ./shared ./static build/first_shared build/first_static; do $program; done"
    );
    // CMake's package for Python has its files beside its module
    let run = cmd("bash", &["-ec", &script]).within(&text(&project)).env("PYTHONPATH", &text(&python_package(&CMAKE)));
    let printed = run.read()?;
    match printed == program.prints.repeat(4) {
        true => Ok(Tests { passed: 4, ..Tests::default() }),
        false => Err(failed(format!("the programs print\n{printed}"))),
    }
}
