//! Bodies that make calls, in a module of the caller's that becomes a library.

use std::path::Path;

use cranelift_codegen::settings::{self, Configurable};
use cranelift_object::{ObjectBuilder, ObjectModule};
use tvm_ffi_codegen::artifact::{Linker, Triple};
use tvm_ffi_codegen::embed::cranelift::Wrappers;
use tvm_ffi_codegen::runtime::Module;
use tvm_ffi_codegen::{Kernel, ParamType};

use crate::support::sig;

/// Links an object of the caller's Cranelift module with `name(n: int64) -> int64`, which calls a global function.
fn link(library: Wrappers, name: &str, path: &Path) {
    let mut flags = settings::builder();
    flags.enable("is_pic").unwrap();
    let isa = cranelift_native::builder().unwrap().finish(settings::Flags::new(flags)).unwrap();
    let builder = ObjectBuilder::new(isa, "mine", cranelift_module::default_libcall_names()).unwrap();
    let mut module = ObjectModule::new(builder);
    let kernel = Kernel::body(|b| {
        let text = b.call_global("ffi.ReprPrint", (b.arg("n"),)).returns(ParamType::Str);
        b.ret(text.size());
    });
    let signature = sig(&format!("{name}(n: int64) -> int64"));
    library.function(&signature.with_doc("the number of digits"), kernel).add_to(&mut module).unwrap();
    Linker::new(Triple::host()).object(module.finish().emit().unwrap()).link(path).unwrap();
}

/// The caller's object is a library like those of `LibraryBuilder`: it has metadata, docs, and state that is released
/// when it is unloaded.
#[test]
#[cfg_attr(all(target_env = "musl", target_feature = "crt-static"), ignore = "a static executable loads no library")]
fn objects_of_the_callers_are_libraries() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("digits.so");
    link(Wrappers::new(), "digits", &path);
    // SAFETY: the library is the one above, whose functions check their arguments.
    let module = unsafe { Module::load_from_file(&path) }.unwrap();
    assert_eq!(module.function_doc("digits", false).unwrap().as_deref(), Some("the number of digits"));
    assert!(module.function_metadata("digits", false).unwrap().unwrap().contains("int64"));
    let digits = module.get_function("digits").unwrap().unwrap();
    assert_eq!(digits.call((1234,)).unwrap().cast::<i64>().unwrap(), 4);
    let error = digits.call(("x",)).unwrap_err().to_string();
    assert!(error.contains("expected int64, got str"), "{error}");
}

/// System libraries keep their objects. A process that runs tests of modules with this name expects that.
mod system_lib {
    use super::*;

    #[test]
    #[cfg_attr(
        all(target_env = "musl", target_feature = "crt-static"),
        ignore = "a static executable loads no library"
    )]
    fn objects_of_the_callers_register_themselves() {
        crate::live::expect_system_libraries();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("system.so");
        link(Wrappers::system("embedded_"), "count", &path);
        // SAFETY: its constructor registers symbols, and it is never closed.
        std::mem::forget(unsafe { libloading::Library::new(&path) }.unwrap());
        let module = Module::system_lib("embedded_").unwrap();
        let count = module.get_function("count").unwrap().unwrap();
        assert_eq!(count.call((77777,)).unwrap().cast::<i64>().unwrap(), 5);
    }
}
