//! Objects for this machine: linked, loaded and called. Also libraries that are rejected.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use libloading::Library;
use object::{Object, ObjectSymbol};
use tvm_ffi_codegen::artifact::{ArchiveInput, EmitError, LibraryBuilder, PackBuilder, Triple, write_archive};
use tvm_ffi_codegen::lower::{LowerError, metadata};
use tvm_ffi_codegen::runtime::{Function, Tensor, abi::TVMFFISafeCallType, capi};
use tvm_ffi_codegen::{Backend, Kernel, Signature};

use crate::support::{compiler, host_linker, sig};

/// Runs the C compiler driver.
fn cc(args: &[&Path]) {
    let out = compiler::c().args(args).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
}

fn function(library: &Arc<Library>, symbol: &str) -> Function {
    // SAFETY: the symbol is a function with the packed prototype, and the function keeps the library loaded.
    unsafe {
        let safe_call = *library.get::<TVMFFISafeCallType>(symbol.as_bytes()).unwrap();
        Function::from_code(safe_call, Arc::clone(library))
    }
}

fn text(library: &Arc<Library>, symbol: &str) -> String {
    String::try_from(function(library, symbol).call(()).unwrap()).unwrap()
}

fn add(name: &str, what: f32) -> (Signature, Kernel) {
    let kernel = Kernel::body(move |b| {
        let y = b.tensor("y");
        b.for_range(0, b.dim("n"), |i| y.store([i], y.load([i]) + what));
    });
    (sig(&format!("{name}(y: Tensor([n], float32), k: int64 = 7)")), kernel)
}

/// Two objects with the same helpers, from one backend or from both, are linked into one library. One of them calls a
/// function that a C compiler has compiled.
#[test]
#[cfg_attr(all(target_env = "musl", target_feature = "crt-static"), ignore = "a static executable loads no library")]
fn two_objects_and_a_c_object_are_one_library() {
    // the libraries find the runtime in this executable
    assert!(!capi::symbols().is_empty());
    let last = *Backend::ALL.last().unwrap();
    for (first, second) in [(Backend::ALL[0], Backend::ALL[0]), (Backend::ALL[0], last), (last, last)] {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let (one, one_body) = add("one", 1.0);
        let (two, two_body) = add("two", 2.0);
        let square = sig("square(x: float64) -> float64");
        let library =
            LibraryBuilder::new().backend(first).function(&one.clone().with_doc("Adds \"one\".\n\0"), &one_body);
        library.emit().unwrap().write(path("one.o")).unwrap();
        let library = LibraryBuilder::new().backend(second).function(&two, &two_body);
        library.function(&square, &Kernel::symbol("c_square")).emit().unwrap().write(path("two.o")).unwrap();
        std::fs::write(path("c.c"), "double c_square(double x) { return x * x; }").unwrap();
        let [pic, c, o] = ["-fPIC", "-c", "-o"].map(Path::new);
        cc(&[pic, c, &path("c.c"), o, &path("c.o")]);
        let objects = ["one.o", "two.o", "c.o"].into_iter();
        objects.fold(host_linker(), |linker, object| linker.file(path(object))).link(path("lib.so")).unwrap();
        // SAFETY: loading it runs nothing.
        let library = Arc::new(unsafe { Library::new(path("lib.so")) }.unwrap());

        let y = Tensor::from_slice(&[1.0f32, 2.0], &[2]).unwrap();
        function(&library, "__tvm_ffi_one").call((&y,)).unwrap();
        function(&library, "__tvm_ffi_two").call((&y, 3)).unwrap();
        assert_eq!(y.to_vec::<f32>().unwrap(), [4.0, 5.0]);
        let nine = function(&library, "__tvm_ffi_square").call((-3,)).unwrap();
        assert_eq!(f64::try_from(nine).unwrap(), 9.0);
        let error = function(&library, "__tvm_ffi_two").call((1,)).unwrap_err().to_string();
        assert!(error.contains("expected Tensor, got int"), "{error}");
        assert_eq!(text(&library, "__tvm_ffi__metadata_one"), metadata(&one));
        assert_eq!(text(&library, "__tvm_ffi__metadata_square"), metadata(&square));
        assert_eq!(text(&library, "__tvm_ffi__doc_one"), "Adds \"one\".\n\0");
        // SAFETY: the symbol is a variable of this type, which no other code uses.
        let context = unsafe { **library.get::<*const usize>(b"__tvm_ffi__library_ctx").unwrap() };
        assert_eq!(context, 0);
    }
}

/// A static program without a runtime. The constructors register exactly what they should.
#[test]
fn system_libraries_register_at_start_up() {
    let last = *Backend::ALL.last().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    for (backend, prefix) in [(Backend::ALL[0], "a_"), (last, "b_")] {
        let (one, body) = add("one", 1.0);
        let (two, _) = add("two", 2.0);
        let library = LibraryBuilder::new().backend(backend).system_library(prefix).carries_modules();
        let library = library.function(&one.clone().with_doc("Doc."), &body).function(&two, &Kernel::check_only());
        library.emit().unwrap().write(path(&format!("{prefix}.o"))).unwrap();
        let mut bin = PackBuilder::new();
        bin.library();
        bin.symbol_prefix(prefix).write_object(&Triple::host(), path(&format!("{prefix}bin.o"))).unwrap();
    }
    // all functions of the C API that objects may refer to, and the one that is called
    let mut main = String::from("#include <stdio.h>\n");
    for (name, _) in capi::symbols().iter().filter(|(name, _)| *name != "TVMFFIEnvModRegisterSystemLibSymbol") {
        main += &format!("int {name}(void) {{ return -1; }}\n");
    }
    main += "int TVMFFIEnvModRegisterSystemLibSymbol(const char* name, void* symbol) {\n\
             printf(\"%s %d\\n\", name, symbol != 0);\nreturn 0;\n}\n\
             extern int __tvm_ffi_a_two(void*, void*, int, void*);\n\
             int main(void) { printf(\"main %d\\n\", __tvm_ffi_a_two(0, 0, 0, 0)); return 0; }\n";
    std::fs::write(path("main.c"), main).unwrap();
    // from an archive, only the referenced members are linked: the modules, which the constructor refers to
    let inputs = ["a_bin.o", "b_bin.o"].map(|name| ArchiveInput::File(path(name)));
    write_archive(&Triple::host(), &inputs, path("libs.a")).unwrap();
    cc(&[Path::new("-o"), &path("main"), &path("main.c"), &path("a_.o"), &path("b_.o"), &path("libs.a")]);
    let out = Command::new(path("main")).output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.pop(), Some("main -1"), "{text}");
    let expected = ["a_", "b_"].map(|prefix| {
        [
            format!("{prefix}__tvm_ffi__library_ctx 1"),
            format!("__tvm_ffi_{prefix}one 1"),
            format!("{prefix}__tvm_ffi__metadata_one 1"),
            format!("{prefix}__tvm_ffi__doc_one 1"),
            format!("__tvm_ffi_{prefix}two 1"),
            format!("{prefix}__tvm_ffi__metadata_two 1"),
            format!("{prefix}__tvm_ffi__library_bin 1"),
        ]
    });
    lines.sort_unstable();
    let mut expected = expected.concat();
    expected.sort_unstable();
    assert_eq!(lines, expected);
}

#[test]
fn metadata_may_be_left_out() {
    for &backend in Backend::ALL {
        let library =
            LibraryBuilder::new().backend(backend).function(&sig("f()").with_doc("A doc."), &Kernel::check_only());
        let symbols = |library: LibraryBuilder| -> Vec<String> {
            let object = library.emit().unwrap();
            let file = object::File::parse(object.as_bytes()).unwrap();
            // only the linker treats COFF's common symbols as definitions
            let exported = file.symbols().filter(|symbol| symbol.is_global() && !symbol.is_undefined());
            let mut names: Vec<_> = exported.map(|symbol| symbol.name().unwrap().to_owned()).collect();
            names.sort_unstable();
            names
        };
        let less = ["__tvm_ffi__doc_f", "__tvm_ffi__library_ctx", "__tvm_ffi_f"];
        assert_eq!(symbols(library.clone().metadata(false)), less, "{backend}");
        let all = ["__tvm_ffi__doc_f", "__tvm_ffi__library_ctx", "__tvm_ffi__metadata_f", "__tvm_ffi_f"];
        assert_eq!(symbols(library), all, "{backend}");
    }
}

fn errors(library: LibraryBuilder) -> Vec<LowerError> {
    match library.emit() {
        Err(EmitError::Functions(errors)) => errors,
        other => panic!("{other:?}"),
    }
}

extern "C" fn nothing() {}

#[test]
fn all_errors_come_at_once() {
    let check = Kernel::check_only();
    let address = Kernel::address(nothing as *const u8);
    let mut library = LibraryBuilder::new().system_library("9 lives");
    for name in ["_library_bin", "_library_ctx", "_metadata_f", "_doc_f", "codegen_bind", "f"] {
        library = library.function(&sig(&format!("{name}()")), &check);
    }
    library = library.function(&sig("f()"), &check).function(&sig("g()"), &address);
    library = library.function(&sig("h()"), &Kernel::symbol("\0")).function(&sig("i() -> int64"), &check);
    let errors = errors(library);
    let is = |i: usize, ok: fn(&LowerError) -> bool| assert!(ok(&errors[i]), "{i}: {}", errors[i]);
    is(0, |e| matches!(e, LowerError::Prefix { prefix } if prefix == "9 lives"));
    for i in 1..=5 {
        is(i, |e| matches!(e, LowerError::ReservedName { .. }));
    }
    is(6, |e| matches!(e, LowerError::DuplicateName { name } if name == "f"));
    is(7, |e| matches!(e, LowerError::AddressInFile { function } if function == "g"));
    is(8, |e| matches!(e, LowerError::KernelName { .. }));
    is(9, |e| matches!(e, LowerError::KernelReturn { .. }));
    assert_eq!(errors.len(), 10);
}

#[test]
fn a_global_function_is_one_of_the_library_and_has_a_name() {
    let library = LibraryBuilder::new().function(&sig("f()"), &Kernel::check_only());
    let registered = [("g", "my.g"), ("f", "my.f"), ("f", "my.f"), ("f", ""), ("f", "my\0f"), ("f", "my.other")];
    let library = registered.iter().fold(library, |library, (name, global)| library.register_global(*name, *global));
    let texts: Vec<String> = errors(library).iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "function `g` can't be the global function \"my.g\": the library has no such function",
            "function `f` can't be the global function \"my.f\": the library registers it already",
            "function `f` can't be the global function \"\": the name is empty or holds a NUL byte",
            "function `f` can't be the global function \"my\\0f\": the name is empty or holds a NUL byte",
        ]
    );
}

/// The name with its prefix must not be reserved; the name alone may be.
#[test]
fn a_prefix_may_make_a_reserved_name() {
    let check = Kernel::check_only();
    let found = errors(LibraryBuilder::new().system_library("_library_").function(&sig("bin()"), &check));
    assert!(matches!(&found[..], [LowerError::ReservedName { symbol, .. }] if symbol == "__tvm_ffi__library_bin"));
    let library = LibraryBuilder::new().system_library("p").function(&sig("_library_bin()"), &check);
    assert_eq!(library.emit().unwrap().functions(), ["_library_bin"]);
    assert!(LibraryBuilder::new().emit().unwrap().functions().is_empty());
}
