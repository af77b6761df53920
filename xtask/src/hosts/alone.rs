//! Statically linked programs that contain the library as a system library.

use super::*;

/// Builds and runs a program with each backend's object and each compiler's kernels.
pub fn alone() -> Result<Tests> {
    let folder = folder("alone")?;
    let runtime = runtime_library(None)?.join("libtvm_ffi_runtime.a");
    let host = c_host("cc", &folder)?;
    let no_dlopen = folder.join("no_dlopen.o");
    compile("cc", &[], &source("c/no_dlopen.c"), &no_dlopen)?;
    let mut tests = Tests::default();
    for compiler in ["gcc", "clang-22"] {
        let kernels = folder.join(format!("kernels_{compiler}.o"));
        // the prefix is part of the variable's name
        compile(compiler, &["-D__tvm_ffi__library_ctx=shop___tvm_ffi__library_ctx"], &source("kernels.c"), &kernels)?;
        for backend in BACKENDS {
            let objects = folder.join(backend);
            let library = emit_linked(&objects, "library.a", backend, &["--system-lib", "shop_"], &kernels)?;
            // the program doesn't refer to the library
            let whole = ["-Wl,--whole-archive".to_owned(), text(&library), "-Wl,--no-whole-archive".to_owned()];
            let inputs = [&host[..], &[text(&no_dlopen)], &whole, &[text(&runtime)]].concat();
            let program = folder.join(format!("{backend}_{compiler}"));
            // the C library's dlopen isn't linked: no_dlopen.c defines one that ends the program
            link_program("cc", &inputs, &["-static", "-Wl,--wrap=dlopen"], &program)?;
            let program = text(&program);
            let headers = cmd("readelf", &["--program-headers", "--wide", &program]).read()?;
            if headers.contains("INTERP") || headers.contains("DYNAMIC") {
                return Err(Failure { what: format!("{program} isn't statically linked"), tests });
            }
            let what = format!("{backend} with {compiler}, static");
            expect(&mut tests, &what, cmd(&program, &["--system", "shop_"]), EXPECTED)?;
        }
    }
    Ok(tests)
}
