//! Libraries that are linked here and loaded from memory. They behave like libraries in files, from their constructors
//! to their destructors.
#![cfg(all(target_os = "linux", target_env = "gnu", any(target_arch = "x86_64", target_arch = "aarch64")))]

use std::path::PathBuf;

use tvm_ffi_codegen::artifact::{LibraryBuilder, PackBuilder, Payload, Triple};
use tvm_ffi_codegen::embed::runtime_symbols;
use tvm_ffi_codegen::engine::{EngineError, LibraryImage, SymbolResolver};
use tvm_ffi_codegen::runtime::{Function, Module, module, registry};
use tvm_ffi_codegen::{Backend, Kernel, ScalarType};

use crate::native_code::object;
use crate::support::sig;

fn symbols() -> SymbolResolver {
    let mut symbols = SymbolResolver::new();
    symbols.add_all(runtime_symbols());
    symbols.search_process();
    symbols
}

fn image<'o>(objects: impl IntoIterator<Item = &'o [u8]>) -> LibraryImage {
    // SAFETY: the objects are those of these tests, and call only functions of the C library and the runtime.
    let image = unsafe { LibraryImage::link(objects, &symbols()) };
    image.unwrap().expect("glibc takes images")
}

fn load(image: &LibraryImage) -> Module {
    // SAFETY: as above.
    unsafe { Module::load_library(image.path()) }.unwrap()
}

/// A library with everything that is possible: kernels in C, docs, metadata, registered functions, state, and a module
/// of another kind.
#[test]
fn a_library_in_memory_is_as_one_in_a_file() {
    let [global, counter] = ["tests.image.scaled", "tests.image.count"].map(str::to_owned);
    let kept = std::sync::Arc::new(());
    let in_function = std::sync::Arc::clone(&kept);
    let count = move |n: i64| n + std::sync::Arc::strong_count(&in_function).min(1) as i64;
    registry::set_global(&counter, Function::from_typed(count), true).unwrap();
    module::register_module_loader("tests.image", |bytes| {
        let said = String::from_utf8_lossy(&bytes).into_owned();
        Ok(Module::new("tests.image", [("said".to_owned(), Function::from_typed(move || said.clone()))]))
    })
    .unwrap();

    let kernels = object("static long factor = 3; long scale(long n) { return n * factor++; }");
    let folder = tempfile::tempdir().unwrap();
    let bin = folder.path().join("bin.o");
    let mut builder = PackBuilder::new();
    let (library, other) = (builder.library(), builder.module("tests.image", Payload::Bytes(b"hello".to_vec())));
    builder.import(library, other).write_object(&Triple::host(), &bin).unwrap();
    let bin = std::fs::read(bin).unwrap();
    for &backend in Backend::ALL {
        let counted = Kernel::body(|b| {
            b.ret(b.call_global("tests.image.count", (b.arg("n"),)).returns(ScalarType::Int64).value());
        });
        let said = Kernel::body(|b| b.ret_value(b.call_import("said", ()).returns(tvm_ffi_codegen::ParamType::Str)));
        let functions = LibraryBuilder::new()
            .backend(backend)
            .function(&sig("scale(n: int64) -> int64").with_doc("n times a factor"), &Kernel::symbol("scale"))
            .function(&sig("counted(n: int64) -> int64"), &counted)
            .function(&sig("said() -> str"), &said)
            .register_global("scale", &global)
            .import_helpers()
            .emit()
            .unwrap();
        let image = image([functions.as_bytes(), &kernels, &bin]);
        assert!(registry::get_global(&global).is_none(), "nothing is loaded yet");
        let module = load(&image);
        // the loader keeps what it needs
        drop(image);
        let call = |name: &str, n: i64| {
            let function = module.get_function(name).unwrap().unwrap();
            function.call((n,)).map(|any| any.cast::<i64>().unwrap())
        };
        assert_eq!([call("scale", 5).unwrap(), call("scale", 5).unwrap()], [15, 20]);
        assert_eq!(registry::get_global(&global).unwrap().call((5,)).unwrap().cast::<i64>().unwrap(), 25);
        assert_eq!(call("counted", 1).unwrap(), 2);
        let said = module.get_function("said").unwrap().unwrap().call(()).unwrap();
        assert_eq!(said.cast::<String>().unwrap(), "hello");
        let error = module.get_function("scale").unwrap().unwrap().call(("5",)).unwrap_err().to_string();
        assert!(error.contains("expected int64, got str"), "{error}");
        assert_eq!(module.kind(), "library");
        assert_eq!(module.imports().len(), 1);
        assert_eq!(module.function_doc("scale", false).unwrap().as_deref(), Some("n times a factor"));
        assert!(module.function_metadata("scale", false).unwrap().is_some_and(|text| text.contains("int64")));
        // SAFETY: nothing of the library but the module is left.
        unsafe { module.unload_when_unused() }.unwrap();
        drop(module);
        assert!(registry::get_global(&global).is_none(), "its destructors have run");
    }
    registry::remove_global(&counter);
    assert_eq!(std::sync::Arc::strong_count(&kept), 1, "its state is released");
}

/// No library gets the code of another one, although both use the same file descriptor in turn.
#[test]
fn each_image_has_a_path_of_its_own() {
    let mut modules = Vec::new();
    for number in 0..20i64 {
        let kernel = object(&format!("long f(long n) {{ return n + {number}; }}"));
        let functions = LibraryBuilder::new().function(&sig("f(n: int64) -> int64"), &Kernel::symbol("f"));
        let functions = functions.import_helpers().emit().unwrap();
        modules.push(load(&image([functions.as_bytes(), &kernel])));
    }
    for (number, module) in (0i64..).zip(modules) {
        let f = module.get_function("f").unwrap().unwrap();
        assert_eq!(f.call((100,)).unwrap().cast::<i64>().unwrap(), 100 + number);
    }
}

#[test]
fn an_image_that_nobody_loads_is_freed() {
    let kernel = object("void f(void) {} __attribute__((constructor)) static void never(void) { __builtin_trap(); }");
    let image = image([&kernel[..]]);
    let path = PathBuf::from(image.path());
    assert!(path.exists());
    drop(image);
    assert!(!path.exists() || std::fs::read_link(&path).is_ok_and(|file| !file.ends_with("tvm-ffi-codegen (deleted)")));
}

#[test]
fn what_is_missing_or_refused_is_an_error() {
    let link = |source: &str| {
        // SAFETY: nothing is loaded.
        unsafe { LibraryImage::link([&object(source)[..]], &symbols()) }.map(drop).unwrap_err()
    };
    let error = link("long no_such_function(long); long f(long n) { return no_such_function(n); }");
    let EngineError::Unresolved { names, .. } = &error else { panic!("{error}") };
    assert_eq!(names, &["no_such_function"]);
    assert!(error.to_string().contains("`no_such_function` (referred to by `f` of object 0 of a library)"), "{error}");
    let error = link("static __thread volatile long n; void f(void) { n++; }").to_string();
    assert!(error.contains("of thread-local variables"), "{error}");
}
