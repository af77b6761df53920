//! Modules for tests: created in memory on the bundled runtime; loaded from a library on an external runtime, where
//! Rust can't create modules.

#[cfg(not(feature = "external-runtime"))]
pub use bundled::*;
#[cfg(feature = "external-runtime")]
pub use external::*;

#[cfg(not(feature = "external-runtime"))]
mod bundled {
    use std::ffi::c_void;

    use tvm_ffi_codegen::runtime::{AsObject, Error, Function, Module};

    /// The context variable's value in a library loaded as this module.
    pub fn context(module: &Module) -> *mut c_void {
        module.as_object().as_ptr().cast()
    }

    /// A module whose functions are never looked up.
    pub fn empty(kind: &str) -> Module {
        Module::new(kind, [])
    }

    /// A module with `echo`, which returns its argument, and `fail`, which raises a `KeyError`.
    pub fn echo_and_fail() -> Module {
        let echo = Function::from_packed(|args| args[0].to_owned());
        let fail = Function::from_packed(|_| Err(Error::new("KeyError", "the import's own words")));
        Module::new("calls", [("echo".to_owned(), echo), ("fail".to_owned(), fail)])
    }
}

#[cfg(feature = "external-runtime")]
mod external {
    use std::ffi::c_void;
    use std::path::{Path, PathBuf};
    use std::sync::LazyLock;

    use tvm_ffi_codegen::Kernel;
    use tvm_ffi_codegen::artifact::LibraryBuilder;
    use tvm_ffi_codegen::runtime::{AsObject, Module};

    use crate::support::{host_linker, sig};

    /// The context variable's value in a library loaded as this module: upstream's C++ object. It starts with the
    /// pointer to its virtual functions, followed by the header that handles point to.
    pub fn context(module: &Module) -> *mut c_void {
        module.as_object().as_ptr().cast::<*const c_void>().wrapping_sub(1).cast()
    }

    /// A module whose functions are never looked up.
    pub fn empty(_kind: &str) -> Module {
        echo_and_fail()
    }

    /// A module with `echo`, which returns its argument, and `fail`, which raises a `KeyError`.
    pub fn echo_and_fail() -> Module {
        static LIBRARY: LazyLock<PathBuf> = LazyLock::new(build);
        // SAFETY: the functions are the wrappers of `build`, and the library isn't used without its module.
        unsafe { Module::load_from_file(&*LIBRARY) }.unwrap()
    }

    fn build() -> PathBuf {
        let echo = Kernel::body(|b| b.ret_value(b.param(0)));
        let fail = Kernel::body(|b| b.raise("KeyError", "the import's own words", ()));
        let library = LibraryBuilder::new().function(&sig("echo(x: Any) -> Any"), &echo);
        let object = library.function(&sig("fail()"), &fail).emit().unwrap();
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let new = tempfile::tempdir_in(folder).unwrap();
        object.write(new.path().join("calls.o")).unwrap();
        host_linker().file(new.path().join("calls.o")).link(new.path().join("calls.so")).unwrap();
        // renamed atomically, because another process may load it at any time
        let library = folder.join("calls.so");
        std::fs::rename(new.path().join("calls.so"), &library).unwrap();
        library
    }
}
