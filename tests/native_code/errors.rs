//! Rejected code, with the error messages.

use cranelift_jit::{JITBuilder, JITModule};
use object::{Object, ObjectSection, ObjectSymbol};
use tvm_ffi_codegen::artifact::{LibraryBuilder, Triple};
use tvm_ffi_codegen::diagnostic::{Diagnostic, DiagnosticKind};
use tvm_ffi_codegen::{Backend, EngineError, Kernel, embed};

use super::{compile, compiled, engines, object, object_by, refusals};
use crate::support::sig;

/// Expects each backend to reject the kernel `f` in these bytes, with this reason in the message.
fn expect(bytes: Vec<u8>, reason: &str) {
    let kind = if bytes.starts_with(b"!<") { "archive" } else { "object" };
    for message in refusals("f()", &Kernel::object(bytes, "f")) {
        assert!(message.starts_with(&format!("can't load the {kind} of kernel `f`: ")), "{message}");
        assert!(message.contains(reason), "{message}\nexpected: {reason}");
    }
}

/// Expects each backend to report that these bytes don't define the kernel `f`, but something else.
fn expect_undefined(bytes: Vec<u8>, instead: &str) {
    let kind = if bytes.starts_with(b"!<") { "archive" } else { "object" };
    let kernel = Kernel::object(bytes, "f");
    for engine in engines() {
        let error = compile(&engine, "f()", &kernel).unwrap_err();
        let expected =
            format!("undefined symbol `f`: the {kind} of kernel `f` doesn't define it; it defines {instead}");
        assert_eq!(error.to_string(), expected);
        let EngineError::UndefinedKernels { kernels } = &error else { panic!("{error}") };
        assert_eq!((kernels.len(), kernels[0].symbol.as_str()), (1, "f"));
        let diagnostic = Diagnostic::of(&error);
        assert_eq!(diagnostic.kind, DiagnosticKind::UndefinedSymbol);
        assert_eq!((diagnostic.symbols.len(), diagnostic.symbols[0].name.as_str()), (1, "f"));
        assert!(diagnostic.to_json().starts_with(r#"{"kind":"UndefinedSymbolError""#), "{}", diagnostic.to_json());
    }
}

/// An object that defines a strong symbol twice in its symbol table, which no assembler writes.
#[test]
fn one_symbol_is_defined_once() {
    let mut bytes = object("void f(void) {} void g(void) {}");
    let file = object::File::parse(&*bytes).unwrap();
    let entry = |name: &str| file.symbols().find(|symbol| symbol.name() == Ok(name)).unwrap().index().0;
    let (f, g) = (entry("f"), entry("g"));
    let table = file.sections().find(|section| section.name() == Ok(".symtab")).unwrap();
    // the name is the first field of a 24-byte entry
    let at = |index: usize| table.file_range().unwrap().0 as usize + 24 * index;
    let (from, to) = (at(f), at(g));
    bytes.copy_within(from..from + 4, to);
    for message in refusals("f()", &Kernel::object(bytes, "f")) {
        assert!(message.starts_with("`f` is defined twice: by the object of kernel `f`"), "{message}");
    }
}

#[test]
fn files_of_other_kinds_are_refused() {
    expect(b"not an object".to_vec(), "expected a relocatable object or an archive");
    expect(Vec::new(), "expected a relocatable object or an archive");
    expect(b"BC\xc0\xde and so on".to_vec(), "got LLVM's bitcode (see `Kernel::bitcode`)");
    let library = compiled("void f(void) {}", &["-shared", "-fPIC"], "libf.so");
    expect(library, "expected a relocatable object, got a shared library or a program");
    expect(b"!<thin>\n".to_vec(), "a thin archive");
    expect_undefined(b"!<arch>\n".to_vec(), "no function that others see");
}

#[test]
fn objects_of_other_machines_are_refused() {
    for target in
        ["aarch64-unknown-linux-gnu", "x86_64-unknown-linux-gnu", "x86_64-apple-darwin", "x86_64-pc-windows-msvc"]
    {
        let target: Triple = target.parse().unwrap();
        if target == Triple::host()
            || (target.architecture == Triple::host().architecture && target.to_string().contains("linux"))
        {
            continue;
        }
        let library = LibraryBuilder::new().target(target.clone()).backend(Backend::Cranelift);
        let bytes = library.function(&sig("f()"), &Kernel::check_only()).emit().unwrap().into_bytes();
        let expected = format!(
            "expected a relocatable object of this machine, Elf for {} (64 bits, low byte first), got ",
            std::env::consts::ARCH
        );
        expect(bytes, &expected);
    }
}

#[test]
fn what_would_run_by_itself_is_refused() {
    let source = "volatile long n; __attribute__((constructor)) static void start(void) { n = 1; } void f(void) {}";
    expect(object(source), "section `.init_array` has constructors or destructors");
    let source = "volatile long n; __attribute__((destructor)) static void end(void) { n = 1; } void f(void) {}";
    expect(object(source), "section `.fini_array` has constructors or destructors");
    let source = "static __thread volatile long n; void f(void) { n++; }";
    expect(object(source), "of thread-local variables, and kernels can't have any");
    expect(object("extern __thread long n; void f(void) { n++; }"), "`n` is a thread-local variable");
    let source = "static void g(void) {} static void (*choose(void))(void) { return g; }\n\
                  void f(void) __attribute__((ifunc(\"choose\")));";
    expect(object(source), "`f` is an indirect function");
    expect(
        object_by("void f(void) {}", &["-O2", "-fPIC", "-flto", "-fno-fat-lto-objects"]),
        "compile it without `-flto`",
    );
}

#[test]
fn the_kernel_has_to_be_there() {
    let two = object("void g(void) {} void h(void) {} static void f(void) {} void (*p)(void) = f;");
    expect_undefined(two, "`g`, `h`");
    expect(object("long f = 5;"), "`f` is a variable there, not a function");
}

/// An unknown kind of relocation is reported with its section and symbol.
#[cfg(target_arch = "x86_64")]
#[test]
fn unknown_relocations_are_named() {
    let source = "__asm__(\".text\\n.globl f\\nf: ret\\n.byte other - . \\n.globl other\\nother: ret\");\
                  __asm__(\".data\\n.byte elsewhere\\n\");";
    let engine = engines().next().unwrap();
    let error = compile(&engine, "f()", &Kernel::object(object(source), "f")).unwrap_err().to_string();
    assert!(error.contains("`elsewhere`"), "{error}");
    let source = format!("{source} char elsewhere[3];");
    let error = compile(&engine, "f()", &Kernel::object(object(&source), "f")).unwrap_err().to_string();
    let expected = "can't load the object of kernel `f`: section `.data` has a relocation of type 14, which can't be applied here, against `elsewhere`";
    assert_eq!(error, expected);
}

/// A truncated object, or one with modified bytes, loads or is an error; nothing worse happens.
#[test]
fn broken_objects_are_errors() {
    let source = "static int table[4] = {1, 2, 3, 4}; long g(long); long f(long n) { return g(n) + table[n & 3]; } long g(long n) { return n; }";
    let whole = object(source);
    let engine = engines().next().unwrap();
    let load = |bytes: Vec<u8>| {
        // the code may be anything, since it is never called
        let _ = engine.compile_code([(&sig("f(n: int64) -> int64"), &Kernel::object(bytes, "f"))]);
    };
    for len in (0..whole.len()).step_by(29) {
        load(whole[..len].to_vec());
    }
    for at in (0..whole.len()).step_by(13) {
        let mut bytes = whole.clone();
        bytes[at] ^= if at % 2 == 0 { 0xff } else { 0x11 };
        load(bytes);
    }
}

#[test]
fn all_that_is_missing_is_named_at_once() {
    let source = "long first(long); extern long second; static long local(long n) { return first(n); }\n\
                  long f(long n) { return local(n) + second + first(n); }";
    for engine in engines() {
        let kernels = [Kernel::object(object_by(source, &["-O0", "-fPIC"]), "f"), Kernel::symbol("third")];
        let signatures = [sig("f(n: int64) -> int64"), sig("g(n: int64) -> int64")];
        let error = engine.compile_code(signatures.iter().zip(&kernels)).unwrap_err();
        let EngineError::Unresolved { names, .. } = &error else { panic!("{error}") };
        assert_eq!(names, &["first", "second", "third"]);
        let expected = "unresolved symbols: `first` (referred to by `f` of the object of kernel `f`, `local` of the object of kernel `f`), \
                        `second` (referred to by `f` of the object of kernel `f`), `third` (called by `g`); give each an address";
        assert!(error.to_string().starts_with(expected), "{error}");
    }
}

#[test]
fn files_and_modules_of_the_callers_take_no_code() {
    let kernel = Kernel::object(object("void f(void) {}"), "f");
    let error = LibraryBuilder::new().function(&sig("f()"), &kernel).emit().unwrap_err().to_string();
    let expected = "the kernel of function `f` comes with its object, which is linked into a running process alone; name the kernel by its symbol \
                    `f`, and give the object to the linker";
    assert_eq!(error, expected);
    let mut module = JITModule::new(JITBuilder::new(cranelift_module::default_libcall_names()).unwrap());
    let error = embed::cranelift::add_wrapper(&mut module, &sig("f()"), kernel.clone()).unwrap_err().to_string();
    assert_eq!(error, expected);
    #[cfg(feature = "_llvm")]
    {
        let context = inkwell::context::Context::create();
        let error = embed::llvm::add_wrapper(&context.create_module("m"), &sig("f()"), kernel).unwrap_err().to_string();
        assert_eq!(error, expected);
    }
}

#[cfg(feature = "_llvm")]
#[test]
fn errors_in_llvm_ir_have_their_place() {
    let of = |source: &str| refusals("f()", &Kernel::llvm_ir(source, "f"));
    for message in of("define void @f() {\n  %x = add i32 1, true\n  ret void\n}\n") {
        let expected = "can't load the LLVM IR of kernel `f`: IR:2:19: error: ";
        assert!(message.starts_with(expected), "{message}");
        assert!(message.contains("%x = add i32 1, true"), "{message}");
    }
    for message in of("define void @f() {\n  %x = add i32 %y, 1\n  %y = add i32 1, 1\n  ret void\n}\n") {
        assert!(message.contains("Instruction does not dominate all uses!"), "{message}");
    }
    for message in of("target triple = \"nvptx64-nvidia-cuda\"\ndefine void @f() { ret void }\n") {
        assert!(message.contains("expected a module for this machine") && message.contains("nvptx64"), "{message}");
    }
    for message in of("target datalayout = \"E-p:32:32\"\ndefine void @f() { ret void }\n") {
        assert!(message.contains("expected this machine's data layout"), "{message}");
    }
    for message in of("define i64 @f(ptr %x) {\n  ret i64 0\n}\n") {
        let expected =
            "the LLVM IR of kernel `f`: `f` has another type in the module: expected `void ()`, found `i64 (ptr)`";
        assert!(message.ends_with(expected), "{message}");
    }
    // functions that take their parameters differently from plain C values
    let of_plain = |source: &str| refusals("f(x: Tensor([n], int8), v: int8)", &Kernel::llvm_ir(source, "f"));
    for (prototype, problem) in [
        (
            "define void @f(ptr byval(i64) %x, i8 signext %v, i64 %n)",
            "has the attribute `byval` on parameter 1, by which it isn't passed as C passes a plain value: leave the attribute out",
        ),
        (
            "define void @f(ptr sret(i64) %x, i8 signext %v, i64 %n)",
            "has the attribute `sret` on parameter 1, by which it isn't passed as C passes a plain value: leave the attribute out",
        ),
        (
            "define fastcc void @f(ptr %x, i8 signext %v, i64 %n)",
            "has LLVM's calling convention 8, and wrappers call by C's, which is 0",
        ),
        (
            "define void @f(ptr %x, i8 zeroext %v, i64 %n)",
            "has parameter 2 zero-extended, and it is passed sign-extended",
        ),
    ] {
        for message in of_plain(&format!("{prototype} {{\n  ret void\n}}\n")) {
            assert!(message.ends_with(&format!("the LLVM IR of kernel `f`: `f` {problem}")), "{message}");
        }
    }
    for message in of("define void @g() { ret void }\n") {
        assert_eq!(message, "undefined symbol `f`: the LLVM IR of kernel `f` doesn't define it; it defines `g`");
    }
    for message in of("declare void @missing()\ndefine void @f() {\n call void @missing()\n ret void\n}\n") {
        assert!(message.contains("`missing` (referred to by `f` of the LLVM IR of kernel `f`)"), "{message}");
    }
    for message in refusals("f()", &Kernel::bitcode(*b"BC\xc0\xde no more", "f")) {
        assert!(message.starts_with("can't load the LLVM bitcode of kernel `f`: "), "{message}");
    }
}
