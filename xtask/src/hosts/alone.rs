//! Statically linked programs, with the library as a system library.

use super::*;

/// A program of each backend's object with each compiler's kernels.
pub fn alone() -> Result<Tests> {
    let folder = folder("alone")?;
    let runtime = runtime_library(None)?.join("libtvm_ffi_runtime.a");
    let host = c_host("cc", &folder)?;
    let system = folder.join("system.o");
    compile("cc", &[], &source("c/system.c"), &system)?;
    let mut tests = Tests::default();
    for compiler in ["gcc", "clang-22"] {
        let kernels = folder.join(format!("kernels_{compiler}.o"));
        // the prefix is a part of the variable's name
        compile(compiler, &["-D__tvm_ffi__library_ctx=shop___tvm_ffi__library_ctx"], &source("kernels.c"), &kernels)?;
        for backend in BACKENDS {
            let objects = folder.join(backend);
            emit(&objects, backend, &["--system-lib", "shop_"])?;
            let parts = [&kernels, &system, &objects.join("wrappers.o"), &objects.join("bin.o"), &runtime];
            let inputs = [host.clone(), parts.map(|path| text(path)).to_vec()].concat();
            let program = folder.join(format!("{backend}_{compiler}"));
            // the C library's dlopen isn't linked: system.c has one that ends the program
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
