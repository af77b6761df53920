//! Shared libraries, compiled here with `cc`: their functions, the modules that they carry, and when they are closed.

use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use tvm_ffi_runtime::capi::{TVMFFIEnvModRegisterContextSymbol, TVMFFIFunctionGetGlobal};
use tvm_ffi_runtime::module::{PropertyMask, register_module_loader};
use tvm_ffi_runtime::registry::{get_global, get_global_unchecked};
use tvm_ffi_runtime::unstable::library_bin::Node;
use tvm_ffi_runtime::{Any, AnyView, AsObject, Bytes, Function, Module, Result};

use crate::library_bin::write;
use crate::support::*;

/// The common source of the tests' libraries.
const SOURCE: &str = r#"
#include <stddef.h>
#include <stdint.h>
typedef struct { int32_t type_index; uint32_t zero_padding; union { int64_t v_int64; void* v_ptr; }; } Any;
typedef struct { const char* data; size_t size; } ByteArray;
int TVMFFIStringFromByteArray(const ByteArray* in, Any* out);
void TVMFFIErrorSetRaisedFromCStr(const char* kind, const char* message);
int TVMFFIEnvModLookupFromImports(void* library_ctx, const char* name, void** out);
int TVMFFIFunctionCall(void* function, Any* args, int32_t num_args, Any* result);

void* __tvm_ffi__library_ctx = NULL;
void* libraries_test_symbol = NULL;

#define FUNCTION(name) int name(void* handle, const Any* args, int32_t num_args, Any* result)
static int string(const char* text, size_t size, Any* result) {
  ByteArray bytes = {text, size};
  return TVMFFIStringFromByteArray(&bytes, result);
}
FUNCTION(__tvm_ffi_twice) {
  if (num_args != 1 || args[0].type_index != 1) {
    TVMFFIErrorSetRaisedFromCStr("TypeError", "twice takes an int");
    return -1;
  }
  result->type_index = 1;
  result->v_int64 = 2 * args[0].v_int64;
  return 0;
}
FUNCTION(__tvm_ffi__metadata_twice) { return string("{\"type_schema\": 1}", 18, result); }
FUNCTION(__tvm_ffi__doc_twice) { return string("Doubles.", 8, result); }
FUNCTION(__tvm_ffi__doc_odd) { result->type_index = 1; return 0; }
FUNCTION(__tvm_ffi_odd) { return 0; }
FUNCTION(__tvm_ffi_has_handle) { result->type_index = 2; result->v_int64 = handle != NULL; return 0; }
FUNCTION(__tvm_ffi_call_imported) {
  void* function;
  if (TVMFFIEnvModLookupFromImports(__tvm_ffi__library_ctx, "imported", &function) != 0) return -1;
  return TVMFFIFunctionCall(function, NULL, 0, result);
}
FUNCTION(__tvm_ffi_pointers) {
  result->type_index = 4;
  result->v_ptr = num_args ? libraries_test_symbol : __tvm_ffi__library_ctx;
  return 0;
}
/* Tells when the library is closed. */
static uint64_t* closed = NULL;
FUNCTION(__tvm_ffi_watch) { closed = args[0].v_ptr; return 0; }
__attribute__((destructor)) static void on_close(void) { if (closed) ++*closed; }
"#;

/// A separate library for each test: the one above, compiled once and copied, or one with more code in it.
fn compile(directory: &Path, name: &str, more: &str) -> PathBuf {
    static PLAIN: OnceLock<Vec<u8>> = OnceLock::new();
    if !more.is_empty() {
        return compile_source(directory, name, &format!("{SOURCE}{more}"));
    }
    let plain = PLAIN.get_or_init(|| std::fs::read(compile_source(directory, "plain", SOURCE)).unwrap());
    let library = directory.join(format!("{name}.so"));
    std::fs::write(&library, plain).unwrap();
    library
}

fn compile_source(directory: &Path, name: &str, text: &str) -> PathBuf {
    let (source, library) = (directory.join(format!("{name}.c")), directory.join(format!("{name}.so")));
    std::fs::write(&source, text).unwrap();
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    // The runtime defines the undefined symbols. macOS needs an option for that.
    let undefined = cfg!(target_os = "macos").then_some("-Wl,-undefined,dynamic_lookup");
    let mut command = Command::new(compiler);
    command.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(&source).args(undefined);
    // On Windows, where a library names the file of each symbol.
    #[cfg(windows)]
    command.arg(import_library());
    assert!(command.status().unwrap().success(), "{command:?}");
    library
}

/// The import library of this executable, which contains the runtime.
#[cfg(windows)]
fn import_library() -> &'static Path {
    static MADE: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let (_, library) = MADE.get_or_init(|| {
        let directory = directory();
        let (definitions, library) = (directory.path().join("own.def"), directory.path().join("own.a"));
        let own = std::env::current_exe().unwrap();
        let names: Vec<_> = tvm_ffi_runtime::capi::symbols().iter().map(|(name, _)| *name).collect();
        let text = format!("LIBRARY {:?}\nEXPORTS\n{}\n", own.file_name().unwrap(), names.join("\n"));
        std::fs::write(&definitions, text).unwrap();
        let status = Command::new("dlltool").arg("-d").arg(&definitions).arg("-l").arg(&library).status();
        assert!(status.unwrap().success());
        (directory, library)
    });
    library
}

fn load(directory: &Path, name: &str, more: &str) -> Result<Module> {
    // SAFETY: the library is the one above.
    unsafe { Module::load_from_file(compile(directory, name, more)) }
}

/// Allows closing a library: it has made nothing that outlives its module and functions.
fn closable(module: &Module) {
    // SAFETY: as stated.
    unsafe { module.unload_when_unused() }.unwrap();
}

/// A C array with the bytes of a blob.
fn library_bin(blob: &[u8]) -> String {
    format!(
        "const unsigned char __tvm_ffi__library_bin[] = {{{}}};",
        blob.iter().map(|b| format!("{b},")).collect::<String>()
    )
}

fn function(module: &Module, name: &str) -> Function {
    module.get_function(name).unwrap().unwrap()
}

fn directory() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

/// Returns a counter of how often a library has been closed.
fn watch(module: &Module) -> &'static AtomicUsize {
    let closed: &'static AtomicUsize = leak(Box::default());
    // SAFETY: the function keeps the address of a counter that is never freed.
    let counter = unsafe { AnyView::from_opaque_ptr(counter_ptr(closed)) };
    function(module, "watch").call((counter,)).unwrap();
    closed
}

#[test]
#[cfg_attr(all(target_env = "musl", target_feature = "crt-static"), ignore = "a static executable loads no library")]
fn functions_of_a_library_are_found() {
    let directory = directory();
    let module = load(directory.path(), "found", "").unwrap();
    assert_eq!(module.kind(), "library");
    assert_eq!(module.property_mask(), PropertyMask::RUNNABLE | PropertyMask::BINARY_SERIALIZABLE);
    assert!(module.function_names().is_none());
    assert!(module.imports().is_empty());
    let twice = function(&module, "twice");
    assert_eq!(twice.call((21,)).unwrap().cast::<i64>().unwrap(), 42);
    assert_eq!(twice.call(()).unwrap_err().to_string(), "TypeError: twice takes an int");
    // As upstream: a library's function has no object of its own.
    assert!(!function(&module, "has_handle").call(()).unwrap().cast::<bool>().unwrap());
    for name in ["", "thrice", "twice\0", "_tvm_ffi_twice", "_library_ctx"] {
        assert!(module.get_function(name).unwrap().is_none(), "{name:?}");
        assert!(!module.implements_function(name, true).unwrap());
    }
    assert_eq!(module.function_metadata("twice", false).unwrap().unwrap(), "{\"type_schema\": 1}");
    assert_eq!(module.function_doc("twice", false).unwrap().unwrap(), "Doubles.");
    assert!(module.function_metadata("odd", false).unwrap().is_none());
    assert_eq!(module.function_doc("odd", false).unwrap_err().to_string(), "TypeError: expected ffi.String, got int");
}

#[test]
#[cfg_attr(all(target_env = "musl", target_feature = "crt-static"), ignore = "a static executable loads no library")]
fn functions_keep_their_library_open() {
    let directory = directory();
    let module = load(directory.path(), "open", "").unwrap();
    closable(&module);
    let closed = watch(&module);
    let twice = function(&module, "twice");
    drop(module);
    assert_eq!(closed.load(Ordering::SeqCst), 0);
    assert_eq!(twice.call((4,)).unwrap().cast::<i64>().unwrap(), 8);
    drop(twice);
    assert_eq!(closed.load(Ordering::SeqCst), 1);
}

/// Functions that outlive their library's module. The library's code makes one, with a deleter in its code.
const MAKER: &str = r#"
int TVMFFIFunctionCreate(void* self, int (*call)(void*, const Any*, int32_t, Any*), void (*deleter)(void*), void** out);
static uint64_t deleted = 0;
static void count_deleted(void* self) { ++deleted; }
FUNCTION(answer) { result->type_index = 1; result->v_int64 = 42; return 0; }
FUNCTION(__tvm_ffi_make) {
  void* function;
  if (TVMFFIFunctionCreate(&deleted, answer, count_deleted, &function) != 0) return -1;
  result->type_index = 68;
  result->v_ptr = function;
  return 0;
}
"#;

#[test]
#[cfg_attr(all(target_env = "musl", target_feature = "crt-static"), ignore = "a static executable loads no library")]
fn values_outlive_the_library_that_made_them() {
    let directory = directory();
    let module = load(directory.path(), "maker", MAKER).unwrap();
    let closed = watch(&module);
    let made: Function = function(&module, "make").call(()).unwrap().cast().unwrap();
    drop(module);
    assert_eq!(closed.load(Ordering::SeqCst), 0);
    assert_eq!(made.call(()).unwrap().cast::<i64>().unwrap(), 42);
    // Its deleter is code of the library, too.
    drop(made);
    assert_eq!(closed.load(Ordering::SeqCst), 0);
}

#[test]
fn only_libraries_are_unloaded() {
    let module = Module::new("libraries_test_memory", []);
    // SAFETY: nothing is unloaded.
    let error = unsafe { module.unload_when_unused() }.unwrap_err();
    assert_eq!(error.message(), "a module of kind `libraries_test_memory` has nothing to unload");
}

#[test]
#[cfg_attr(all(target_env = "musl", target_feature = "crt-static"), ignore = "a static executable loads no library")]
fn loading_code_takes_unsafe() {
    let directory = directory();
    let path = compile(directory.path(), "guarded", "");
    let path = path.to_str().unwrap();
    for name in ["ffi.ModuleLoadFromFile", "ffi.Module.load_from_file.so"] {
        let error = get_global(name).unwrap().call((path, "so")).unwrap_err();
        assert_eq!(error.kind(), "RuntimeError");
        assert!(error.message().contains("`registry::get_global_unchecked`"), "{error}");
        let module = Module::new("libraries_test_empty", []);
        assert!(module.lookup_from_imports(name).unwrap_err().message().contains("loads code"));
    }
    // C code is unsafe anyway.
    let mut out = std::ptr::null_mut();
    // SAFETY: all arguments are valid.
    assert_eq!(unsafe { TVMFFIFunctionGetGlobal(&bytes("ffi.ModuleLoadFromFile"), &mut out) }, 0);
    let module: Module = own::<Function>(out).call((path,)).unwrap().cast().unwrap();
    assert_eq!(module.kind(), "library");
}

#[test]
#[cfg_attr(all(target_env = "musl", target_feature = "crt-static"), ignore = "a static executable loads no library")]
fn code_finds_its_module() {
    let directory = directory();
    let mut value = 0;
    let address: *mut c_void = (&raw mut value).cast();
    // SAFETY: only the tests' library has a variable of that name.
    assert_eq!(unsafe { TVMFFIEnvModRegisterContextSymbol(c"libraries_test_symbol".as_ptr(), address) }, 0);
    let module = load(directory.path(), "context", "").unwrap();
    let pointers = function(&module, "pointers");
    let pointer = |value: Any| value.cast::<*mut c_void>().unwrap();
    assert_eq!(pointer(pointers.call(()).unwrap()), module.as_object().as_ptr().cast());
    assert_eq!(pointer(pointers.call((1,)).unwrap()), address);
    // SAFETY: as above.
    let code = unsafe { TVMFFIEnvModRegisterContextSymbol(c"libraries_test_symbol".as_ptr(), std::ptr::null_mut()) };
    assert_eq!(code, 0);

    let call = function(&module, "call_imported");
    let error = call.call(()).unwrap_err();
    assert!(error.message().starts_with("Cannot find function imported"), "{error}");
    let seven = Function::from_packed(|_| Ok(7.into()));
    module.import_module(&Module::new("k", [("imported".to_owned(), seven)])).unwrap();
    // The function keeps the module and its imports.
    drop(module);
    assert_eq!(call.call(()).unwrap().cast::<i64>().unwrap(), 7);
}

#[test]
#[cfg_attr(all(target_env = "musl", target_feature = "crt-static"), ignore = "a static executable loads no library")]
fn a_library_may_be_loaded_twice() {
    let directory = directory();
    let path = compile(directory.path(), "twice", "");
    let load = || {
        // SAFETY: the library is the tests' own.
        let module = unsafe { Module::load_from_file(&path) }.unwrap();
        closable(&module);
        module
    };
    let gives =
        |value: i64| Module::new("k", [("imported".to_owned(), Function::from_packed(move |_| Ok(value.into())))]);
    let (first, second) = (load(), load());
    let closed = watch(&first);
    first.import_module(&gives(1)).unwrap();
    second.import_module(&gives(2)).unwrap();
    let call = function(&first, "call_imported");
    let called = |call: &Function| call.call(()).unwrap().cast::<i64>().unwrap();
    // One library has one variable. As upstream, its code finds the imports of the newer module, also when it looks
    // again.
    assert_eq!(called(&call), 2);
    drop((first, second));
    assert_eq!(called(&call), 2);
    let third = load();
    third.import_module(&gives(3)).unwrap();
    let second_call = function(&third, "call_imported");
    assert_eq!(called(&call), 3);
    // The variable still points at the first module, although this code belongs to another one.
    drop((call, third));
    assert_eq!(called(&second_call), 3);
    drop(second_call);
    assert_eq!(closed.load(Ordering::SeqCst), 1);
    // Closed and opened again, its state is new.
    let fourth = load();
    let pointer: *mut c_void = function(&fourth, "pointers").call(()).unwrap().cast().unwrap();
    assert_eq!(pointer, fourth.as_object().as_ptr().cast());
}

#[test]
#[cfg_attr(all(target_env = "musl", target_feature = "crt-static"), ignore = "a static executable loads no library")]
fn carried_modules_are_imported() {
    let directory = directory();
    static PAYLOAD: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());
    register_module_loader("libraries_test_outer", |bytes| {
        assert_eq!(*bytes, b"outer"[..]);
        Ok(Module::new("libraries_test_outer", []))
    })
    .unwrap();
    register_module_loader("libraries_test_inner", |bytes: Bytes| {
        PAYLOAD.store(bytes.as_ptr().cast_mut(), Ordering::SeqCst);
        let function = Function::from_packed(move |_| Ok(bytes.clone().into()));
        Ok(Module::new("libraries_test_inner", [("imported".to_owned(), function)]))
    })
    .unwrap();
    // The library is in the middle of its own tree.
    let nodes = [
        Node::Module { kind: "libraries_test_outer", payload: b"outer" },
        Node::Module { kind: "libraries_test_inner", payload: b"the inner module's bytes" },
        Node::Library,
    ];
    let blob = write(&nodes, &[vec![2], vec![], vec![1]]).unwrap();
    let more = format!(
        "{} FUNCTION(__tvm_ffi_bin) {{ result->type_index = 4; result->v_ptr = (void*)__tvm_ffi__library_bin; return \
         0; }}",
        library_bin(&blob)
    );
    let root = load(directory.path(), "carried", &more).unwrap();
    assert_eq!(root.kind(), "libraries_test_outer");
    assert!(root.get_function("twice").unwrap().is_none());
    let imports = root.imports();
    let [library] = &imports[..] else { panic!("{imports:?}") };
    assert_eq!(library.kind(), "library");
    assert_eq!(library.imports()[0].kind(), "libraries_test_inner");
    closable(library);
    let closed = watch(library);

    // The library's code finds functions that it imports, not functions of modules that import it.
    let call = root.get_function_from("call_imported", true).unwrap().unwrap();
    let bytes: Bytes = call.call(()).unwrap().cast().unwrap();
    assert_eq!(*bytes, b"the inner module's bytes"[..]);
    // Not copied: the bytes are in the library.
    let start: *mut c_void = function(library, "bin").call(()).unwrap().cast().unwrap();
    let payload = PAYLOAD.load(Ordering::SeqCst);
    assert_eq!(payload.addr(), start.addr() + blob.len() - 4 - 8 - bytes.len());
    assert_eq!(bytes.as_ptr(), payload.cast_const());

    // The bytes alone keep the library open.
    drop((call, imports, root));
    assert_eq!(closed.load(Ordering::SeqCst), 0);
    assert_eq!(*bytes, b"the inner module's bytes"[..]);
    drop(bytes);
    assert_eq!(closed.load(Ordering::SeqCst), 1);
}

#[test]
#[cfg_attr(all(target_env = "musl", target_feature = "crt-static"), ignore = "a static executable loads no library")]
fn libraries_that_can_not_be_loaded_say_why() {
    let directory = directory();
    let blob = write(
        &[Node::Library, Node::Module { kind: "libraries_test_nobody", payload: b"bytes of a module" }],
        &[vec![1], vec![]],
    )
    .unwrap();
    let error = load(directory.path(), "nobody", &library_bin(&blob)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "RuntimeError: The library has a module of kind `libraries_test_nobody` in its __tvm_ffi__library_bin, and no \
         loader is \
         registered for it: the global function `ffi.Module.load_from_bytes.libraries_test_nobody`"
    );
    let error =
        load(directory.path(), "broken", &library_bin(&[8, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "ValueError: __tvm_ffi__library_bin is broken: library_bin, byte 16: indptr takes 8 bytes, got 0"
    );

    for (kind, says) in
        [("panics", "InternalError: panic: loader"), ("none", "TypeError: expected ffi.Module, got None")]
    {
        let kind = format!("libraries_test_{kind}");
        let loader = Function::from_packed(|args| match args[0].cast::<Bytes>()?.first() {
            Some(b'p') => panic!("loader"),
            _ => Ok(Any::none()),
        });
        tvm_ffi_runtime::registry::set_global(&format!("ffi.Module.load_from_bytes.{kind}"), loader, false).unwrap();
        let payload = &kind.as_bytes()["libraries_test_".len()..];
        let blob = write(&[Node::Library, Node::Module { kind: &kind, payload }], &[vec![1], vec![]]).unwrap();
        assert_eq!(load(directory.path(), &kind, &library_bin(&blob)).unwrap_err().to_string(), says);
    }
}

#[test]
#[cfg_attr(all(target_env = "musl", target_feature = "crt-static"), ignore = "a static executable loads no library")]
fn a_loader_may_give_one_module_again() {
    let directory = directory();
    let one = Module::new("libraries_test_same", []);
    let same = one.clone();
    register_module_loader("libraries_test_same", move |_| Ok(same.clone())).unwrap();
    let node = Node::Module { kind: "libraries_test_same", payload: b"" };
    let blob = write(&[Node::Library, node, node], &[vec![1, 2], vec![], vec![]]).unwrap();
    let library = load(directory.path(), "same", &library_bin(&blob)).unwrap();
    assert_eq!(library.imports().len(), 2);
    // The tree has no cycle, but the modules would have one.
    let blob = write(&[Node::Library, node, node], &[vec![1], vec![2], vec![]]).unwrap();
    let error = load(directory.path(), "cycle", &library_bin(&blob)).unwrap_err();
    assert_eq!(error.message(), "Cyclic dependency detected during import");
}

#[test]
#[cfg_attr(all(target_env = "musl", target_feature = "crt-static"), ignore = "a static executable loads no library")]
fn files_are_loaded_by_their_format() {
    let directory = directory();
    let path = compile(directory.path(), "format", "");
    // SAFETY: the libraries are the tests' own.
    let loader = unsafe { get_global_unchecked("ffi.ModuleLoadFromFile") }.unwrap();
    let loaded = |path: &str| loader.call((path,));
    let module: Module = loaded(path.to_str().unwrap()).unwrap().cast().unwrap();
    assert_eq!(module.kind(), "library");
    let other = path.with_extension("dylib");
    std::fs::copy(&path, &other).unwrap();
    assert!(loaded(other.to_str().unwrap()).is_ok());
    let error = loaded("a.libraries_test").unwrap_err();
    let message = "Loader for `.libraries_test` files is not registered, resolved to \
                   (ffi.Module.load_from_file.libraries_test) in the global registry.Ensure that you have loaded the \
                   correct \
                   runtime code, andthat you are on the correct hardware architecture.";
    assert_eq!((error.kind(), error.message()), ("RuntimeError", message));
    assert_eq!(loaded("/no.dot/file").unwrap_err().message(), "Failed to get file format from /no.dot/file");
    let missing = directory.path().join("missing.so");
    let error = loaded(missing.to_str().unwrap()).unwrap_err();
    assert!(
        error.message().starts_with(&format!("Failed to load dynamic shared library {}", missing.display())),
        "{error}"
    );
    assert!(loaded("a\0b.so").is_err());
    std::fs::write(&missing, "no library").unwrap();
    assert_eq!(loaded(missing.to_str().unwrap()).unwrap_err().kind(), "RuntimeError");

    let format = Function::from_packed(|args| Ok(Module::new(&args[1].cast::<String>()?, []).into()));
    tvm_ffi_runtime::registry::set_global("ffi.Module.load_from_file.libtest", format, false).unwrap();
    // SAFETY: the loader is the one above.
    assert_eq!(unsafe { Module::load_from_file("x.libtest") }.unwrap().kind(), "libtest");
}

#[test]
#[cfg_attr(all(target_env = "musl", target_feature = "crt-static"), ignore = "a static executable loads no library")]
fn threads_load_and_call() {
    let directory = directory();
    let path = Arc::new(compile(directory.path(), "threads", ""));
    let threads: Vec<_> = (0..4)
        .map(|thread: i64| {
            let path = path.clone();
            std::thread::spawn(move || {
                for _ in 0..200 {
                    // SAFETY: the library is the tests' own.
                    let module = unsafe { Module::load_from_file(&*path) }.unwrap();
                    let gives = Function::from_packed(|_| Ok(1.into()));
                    module.import_module(&Module::new("k", [("imported".to_owned(), gives)])).unwrap();
                    let (twice, call) = (function(&module, "twice"), function(&module, "call_imported"));
                    drop(module);
                    assert_eq!(twice.call((thread,)).unwrap().cast::<i64>().unwrap(), 2 * thread);
                    // The newest module may be another thread's, which has no import yet.
                    match call.call(()) {
                        Ok(value) => assert_eq!(value.cast::<i64>().unwrap(), 1),
                        Err(error) => assert!(error.message().starts_with("Cannot find function"), "{error}"),
                    }
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// The library is valid, but a static executable has no loader.
#[test]
#[cfg(all(target_env = "musl", target_feature = "crt-static"))]
fn a_static_executable_says_that_it_loads_no_library() {
    let directory = directory();
    let path = compile(directory.path(), "static", "");
    // SAFETY: the library is the tests' own.
    let error = unsafe { Module::load_from_file(&path) }.unwrap_err();
    assert_eq!(error.kind(), "RuntimeError");
    let message = error.message();
    assert!(message.starts_with(&format!("Failed to load dynamic shared library {}", path.display())), "{message}");
    assert!(message.contains("statically linked") && message.ends_with("as a system library"), "{message}");
}
