//! Libraries that the compiler's driver links, or that are linked in this process, and then loaded.
#![cfg(any(target_os = "linux", windows))]

use std::fs;
use std::path::Path;

use tvm_ffi_codegen::artifact::{
    ArchiveInput, LibraryBuilder, LinkError, Linker, PackBuilder, Payload, Triple, inspect, write_archive,
};
use tvm_ffi_codegen::runtime::unstable::library_bin::{LibraryBin, Node};
use tvm_ffi_codegen::runtime::{Function, Module, registry};
use tvm_ffi_codegen::{Backend, Kernel, ScalarType, Signature};

use crate::support::{compiler, host_linker};

/// How a library is linked: with a driver or in another way.
type Link = fn(&Linker, &Path) -> Result<(), LinkError>;

const LINKS: &[Link] = &[
    |linker, path| linker.link(path),
    #[cfg(feature = "libwild")]
    |linker, path| linker.link_in_process(path),
];

fn compile(folder: &Path, name: &str, code: &str) {
    fs::write(folder.join("code.c"), code).unwrap();
    let status = compiler::c().args(["-fPIC", "-c", "code.c", "-o", name]).current_dir(folder).status();
    assert!(status.unwrap().success());
}

#[test]
#[cfg_attr(all(target_env = "musl", target_feature = "crt-static"), ignore = "a static executable loads no library")]
fn a_linked_library_loads_and_carries_its_modules() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    // on Windows the modules' object states what is exported, so the linker exports nothing else by default
    let export = if cfg!(windows) { "__declspec(dllexport)" } else { "" };
    compile(folder.path(), "answer.o", &format!("{export} int answer(void) {{ return 42; }}"));
    let mut bin = PackBuilder::new();
    let (library, module) = (bin.library(), bin.module("kind", Payload::Bytes(b"payload".to_vec())));
    bin.import(library, module).write_object(&Triple::host(), path("bin.o")).unwrap();
    for (number, link) in LINKS.iter().enumerate() {
        let output = path(&format!("lib{number}.so"));
        link(&host_linker().file(path("answer.o")).file(path("bin.o")), &output).unwrap();
        // SAFETY: it has no constructors.
        let loaded = unsafe { libloading::Library::new(&output) }.unwrap();
        // SAFETY: the prototype is the one in the code above.
        let answer = unsafe { loaded.get::<extern "C" fn() -> i32>("answer") }.unwrap();
        assert_eq!(answer(), 42);
        // SAFETY: only the address of the symbol is used.
        let start = unsafe { loaded.get::<*const u8>("__tvm_ffi__library_bin") }.unwrap();
        // SAFETY: the symbol's address is that of the bytes, which the library keeps until it is dropped below.
        let read = unsafe { LibraryBin::from_ptr(start.try_as_raw_ptr().unwrap().cast()) }.unwrap();
        assert_eq!(read.nodes(), [Node::Library, Node::Module { kind: "kind", payload: b"payload" }]);
        drop(read);
        drop(loaded);
        let mut needed = inspect(&output).unwrap().needed_libraries;
        // mingw's startup code, which is part of each DLL, needs these
        needed.retain(|name| !cfg!(windows) || !["KERNEL32.dll", "msvcrt.dll"].contains(&&**name));
        assert_eq!(needed, Vec::<String>::new(), "nothing needs libc");
    }
}

#[test]
#[cfg_attr(all(target_env = "musl", target_feature = "crt-static"), ignore = "a static executable loads no library")]
fn wrappers_link_with_the_runtime_left_open() {
    let folder = tempfile::tempdir().unwrap();
    compile(folder.path(), "twice.o", "long long twice(long long n) { return 2 * n; }");
    let signature: Signature = "twice(n: int64) -> int64".parse().unwrap();
    let object = LibraryBuilder::new()
        .function(&signature.clone().with_doc("Doubles."), &Kernel::symbol("twice"))
        .emit()
        .unwrap();
    for (number, link) in LINKS.iter().enumerate() {
        let output = folder.path().join(format!("twice{number}.so"));
        let linker = host_linker().object(object.as_bytes()).file(folder.path().join("twice.o"));
        link(&linker, &output).unwrap();
        let seen = inspect(&output).unwrap();
        assert!(seen.linked && seen.has_context && seen.modules.is_none());
        assert_eq!(seen.functions.len(), 1);
        assert_eq!(seen.functions[0].signature.as_deref(), Some("twice(n: int64) -> int64"));
        assert_eq!(seen.functions[0].doc.as_deref(), Some("Doubles."));
        assert!(seen.needed_symbols.iter().any(|symbol| symbol.starts_with("TVMFFI")));
        // SAFETY: the library is the one above.
        let module = unsafe { Module::load_from_file(&output) }.unwrap();
        let twice = module.get_function("twice").unwrap().unwrap();
        assert_eq!(i64::try_from(twice.call((21,)).unwrap()).unwrap(), 42);
        assert!(twice.call(("21",)).unwrap_err().message().contains("expected int64, got str"));
    }
}

/// An error names each symbol that neither an input nor a library defines, with everything that refers to it. The
/// existing file is unchanged.
#[test]
#[cfg(target_os = "linux")]
fn undefined_symbols_are_named_with_who_refers_to_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let code = "#include <math.h>\n#include <string.h>\nlong missing(long); extern int nobody(void) __attribute__((weak));\n\
                static long local(long n) { return missing(n); }\n\
                long one(long n) { return local(n) + (long)expf(n) + (nobody ? 1 : 0); }\n\
                long two(long n) { char text[64]; memset(text, 'x', n); text[n] = 0; return strlen(text); }";
    compile(folder.path(), "kernels.o", code);
    let wrapper = |signature: &str, kernel: &str| {
        let signature: Signature = signature.parse().unwrap();
        LibraryBuilder::new().function(&signature, &Kernel::symbol(kernel)).emit().unwrap().into_bytes()
    };
    for link in LINKS {
        let output = path("out.so");
        fs::write(&output, "before").unwrap();
        let linker = host_linker().object(wrapper("one(n: int64) -> int64", "one")).file(path("kernels.o"));
        let error = link(&linker.object(wrapper("f()", "absent")), &output).unwrap_err();
        let LinkError::Undefined { symbols } = &error else { panic!("{error}") };
        let names: Vec<&str> = symbols.iter().map(|symbol| symbol.name.as_str()).collect();
        assert_eq!(names, ["absent", "missing"]);
        assert_eq!(symbols[0].references, ["`__tvm_ffi_f` of object 2 in memory"]);
        let text = error.to_string();
        // the compiler may have inlined `local` into `one`
        let expected = "undefined symbols: `absent` (referred to by `__tvm_ffi_f` of object 2 in memory), `missing` (referred to by `";
        assert!(text.starts_with(expected), "{text}");
        assert!(text.contains(&format!("` of {})", path("kernels.o").display())), "{text}");
        assert_eq!(fs::read(&output).unwrap(), b"before");

        // the program that loads the library may define them
        for allowed in [&["absent", "missing"][..], &["ab*", "missing"], &["*"]] {
            let linker = host_linker().object(wrapper("f()", "absent")).file(path("kernels.o"));
            link(&allowed.iter().fold(linker, |linker, name| linker.allow_undefined(*name)), &output).unwrap();
        }
        let linker = host_linker().object(wrapper("f()", "absent")).file(path("kernels.o")).allow_undefined("absen");
        assert!(matches!(link(&linker, &output), Err(LinkError::Undefined { symbols }) if symbols.len() == 2));
    }
}

/// A process that lacks a function refuses the library. A later call would end the process.
#[test]
#[cfg(target_os = "linux")]
#[cfg_attr(all(target_env = "musl", target_feature = "crt-static"), ignore = "a static executable loads no library")]
fn functions_are_bound_when_the_library_is_loaded() {
    let folder = tempfile::tempdir().unwrap();
    compile(folder.path(), "kernel.o", "long missing(long n); long kernel(long n) { return missing(n) + 1; }");
    for (number, link) in LINKS.iter().enumerate() {
        let output = folder.path().join(format!("kernel{number}.so"));
        link(&host_linker().file(folder.path().join("kernel.o")).allow_undefined("missing"), &output).unwrap();
        // SAFETY: it has no constructors.
        let error = unsafe { libloading::Library::new(&output) }.unwrap_err();
        let source = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
        assert!(format!("{error} {source}").contains("missing"), "{error} {source}");
    }
}

/// A library that is loaded with the output defines the symbols that the output needs, wherever the linker has found
/// it.
#[test]
#[cfg(target_os = "linux")]
#[cfg_attr(all(target_env = "musl", target_feature = "crt-static"), ignore = "a static executable loads no library")]
fn libraries_that_are_linked_define_symbols() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    compile(folder.path(), "two.o", "long two(long n) { return 2 * n; }");
    compile(folder.path(), "kernel.o", "long two(long); long kernel(long n) { return two(n) + 2; }");
    let signature: Signature = "f(n: int64) -> int64".parse().unwrap();
    let object = LibraryBuilder::new().function(&signature, &Kernel::symbol("kernel")).emit().unwrap().into_bytes();
    for soname in ["", "-Wl,-soname,libtwo.so.1"] {
        let library = if soname.is_empty() { "libtwo.so" } else { "libtwo.so.1" };
        let linker = host_linker().file(path("two.o"));
        let linker = if soname.is_empty() { linker } else { linker.arg(soname) };
        linker.link(path(library)).unwrap();
        let linker = || host_linker().object(object.clone()).file(path("kernel.o"));
        linker().file(path(library)).link(path("out.so")).unwrap();
        assert!(inspect(path("out.so")).unwrap().needed_libraries.iter().any(|name| name.ends_with(library)));
        assert!(matches!(linker().link(path("out.so")), Err(LinkError::Undefined { .. })));
    }
    let linker = || host_linker().object(object.clone()).file(path("kernel.o"));
    linker().library_folder(folder.path()).library("two").link(path("out.so")).unwrap();
    let args = linker().arg(format!("-L{}", folder.path().display())).arg("-ltwo");
    args.link(path("out.so")).unwrap();
}

/// Code that uses absolute addresses, or assumes that no other library defines its symbols. With an option, a linker
/// lets the loader patch the code.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn objects_that_are_not_position_independent_are_refused() {
    let source = "int mine = 3; static const int table[4] = {1, 2, 3, 4}; static const char* names[] = {\"a\", \"b\"};\n\
                  long f(long n) { mine++; return table[n & 3] + mine + (long)names[n & 1]; }";
    let own = "int mine = 3; long f(long n) { return mine + n; }";
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("code.c"), source).unwrap();
    fs::write(path("own.c"), own).unwrap();
    let object = |source: &str, flags: &[&str]| {
        let mut compile = compiler::c();
        compile.args(["-O2", "-c", source, "-o", "code.o"]).args(flags).current_dir(folder.path());
        assert!(compile.status().unwrap().success());
        fs::read(path("code.o")).unwrap()
    };
    let absolute = "section `.text` has a relocation R_X86_64_32S to `";
    for (source, flags, expected) in [
        ("code.c", &["-fno-pic", "-fno-pie"][..], absolute),
        ("code.c", &["-fno-pic", "-fno-pie", "-mcmodel=large"], "section `.text` has a relocation R_X86_64_64 to `"),
        ("own.c", &["-fno-pic", "-fno-pie"], "section `.text` has a relocation R_X86_64_PC32 to `mine`"),
        ("own.c", &["-fPIE"], "section `.text` has a relocation R_X86_64_PC32 to `mine`"),
    ] {
        let bytes = object(source, flags);
        let is_large = flags.contains(&"-mcmodel=large");
        let member = ArchiveInput::Object { name: "code.o".to_owned(), bytes: bytes.clone() };
        write_archive(&Triple::host(), &[member], path("code.a")).unwrap();
        for (number, link) in LINKS.iter().enumerate() {
            let output = path("lib.so");
            let refused = |linker: Linker, what: &str| {
                let error = link(&linker, &output).unwrap_err();
                assert!(matches!(error, LinkError::PositionDependent { .. }), "{flags:?}: {error}");
                let error = error.to_string();
                assert!(error.starts_with(&format!("can't put {what} into a shared library: ")), "{error}");
                assert!(error.contains(expected), "{error}");
                assert!(error.ends_with("; compile as position-independent code (`-fPIC`)"), "{error}");
                assert!(!output.exists());
            };
            refused(Linker::new(Triple::host()).object(bytes.clone()), "the object in memory");
            refused(Linker::new(Triple::host()).file(path("code.o")), &path("code.o").display().to_string());
            let archive = path("code.a").display().to_string();
            refused(Linker::new(Triple::host()).whole_archive(path("code.a")), &format!("{archive}(code.o)"));
            // from an archive, the linker takes only the needed members: here none, then one
            link(&Linker::new(Triple::host()).file(path("code.a")), &output).unwrap();
            fs::remove_file(&output).unwrap();
            let needs_it =
                Linker::new(Triple::host()).file(path("code.a")).arg(if number == 0 { "-Wl,-uf" } else { "-uf" });
            match is_large && number == 0 {
                // GNU ld lets the loader patch the code
                true => link(&needs_it, &output).unwrap(),
                false => refused(needs_it, &format!("{archive}(code.o)")),
            }
            let _ = fs::remove_file(&output);
            if is_large && number == 0 {
                link(&Linker::new(Triple::host()).object(bytes.clone()).arg("-Wl,-z,notext"), &output).unwrap();
                fs::remove_file(&output).unwrap();
            }
        }
    }
    // position-independent code is accepted, whatever its code model
    for flags in [&["-fPIC"][..], &["-fPIC", "-mcmodel=large"], &["-fPIC", "-g", "-ffunction-sections"]] {
        for link in LINKS {
            link(&Linker::new(Triple::host()).object(object("code.c", flags)), &path("lib.so")).unwrap();
        }
    }
}

fn global(name: &str, arg: i64) -> Option<i64> {
    Some(registry::get_global(name)?.call((arg,)).unwrap().cast().unwrap())
}

/// A free name refers to the library's function while the library is loaded. A name that was taken before, or was
/// reassigned meanwhile, stays with its owner.
#[test]
#[cfg_attr(all(target_env = "musl", target_feature = "crt-static"), ignore = "a static executable loads no library")]
fn functions_of_a_library_are_global_functions() {
    let folder = tempfile::tempdir().unwrap();
    let [free, taken, given] = ["free", "taken", "given"].map(|name| format!("tests.link.{name}"));
    registry::set_global(&taken, Function::from_typed(|n: i64| n), false).unwrap();
    let twice: Signature = "twice(n: int64) -> int64".parse().unwrap();
    let double = Kernel::body(|b| b.ret(b.arg("n") * 2));
    let caller: Signature = "four_times(n: int64) -> int64".parse().unwrap();
    // this function precedes the one that it calls
    let call = Kernel::body(|b| {
        let two = b.call_symbol("twice", (b.arg("n"),)).returns(ScalarType::Int64);
        b.ret(b.call_symbol("twice", (two.value(),)).returns(ScalarType::Int64).value());
    });
    for backend in Backend::ALL {
        let library = LibraryBuilder::new().backend(*backend).function(&caller, &call).function(&twice, &double);
        let library = library.register_global("twice", &taken).register_global("twice", &given);
        let object = library.register_global("four_times", &free).emit().unwrap();
        let path = folder.path().join(format!("globals_{backend}.so"));
        host_linker().object(object.into_bytes()).link(&path).unwrap();
        // SAFETY: the library is the one above.
        let module = unsafe { Module::load_from_file(&path) }.unwrap();
        assert_eq!([&free, &taken, &given].map(|name| global(name, 5)), [Some(20), Some(5), Some(10)]);
        registry::set_global(&given, Function::from_typed(|n: i64| -n), true).unwrap();
        // SAFETY: only the module refers to the library.
        unsafe { module.unload_when_unused() }.unwrap();
        drop(module);
        assert_eq!([&free, &taken, &given].map(|name| global(name, 5)), [None, Some(5), Some(-5)]);
        registry::remove_global(&given);
    }
    registry::remove_global(&taken);
}

/// Packed bytes and strings share a section, in any order, and are still found.
#[cfg(feature = "libwild")]
#[test]
fn libraries_of_other_machines_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let signature: Signature = "f(n: int64)".parse().unwrap();
    for target in ["aarch64-unknown-linux-gnu", "riscv64gc-unknown-linux-gnu"] {
        let target: Triple = target.parse().unwrap();
        let object = LibraryBuilder::new()
            .target(target.clone())
            .function(&signature.clone().with_doc("Checks."), &Kernel::check_only());
        let mut bin = PackBuilder::new();
        let (library, module) = (bin.library(), bin.module("kind", Payload::Bytes(b"payload".to_vec())));
        bin.import(library, module).write_object(&target, path("bin.o")).unwrap();
        let linker = Linker::new(target).file(path("bin.o")).object(object.emit().unwrap().as_bytes());
        linker.link_in_process(path("lib.so")).unwrap();
        let seen = inspect(path("lib.so")).unwrap();
        assert_eq!(seen.modules.unwrap().len(), 2);
        let function = &seen.functions[0];
        assert_eq!((function.signature.as_deref(), function.doc.as_deref()), (Some("f(n: int64)"), Some("Checks.")));
    }
}

#[test]
fn an_object_of_another_machine_is_named_before_it_is_linked() {
    let folder = tempfile::tempdir().unwrap();
    let other = if cfg!(target_arch = "x86_64") { "aarch64" } else { "x86_64" };
    let machine: Triple = format!("{other}-unknown-linux-gnu").parse().unwrap();
    let signature: Signature = "f()".parse().unwrap();
    let library = LibraryBuilder::new().backend(Backend::Cranelift).function(&signature, &Kernel::check_only());
    let (own, theirs) = (library.clone().emit().unwrap(), library.target(machine).emit().unwrap());
    let file = folder.path().join("theirs.o");
    theirs.write(&file).unwrap();
    let archive = folder.path().join("theirs.a");
    let member = ArchiveInput::Object { name: "theirs.o".to_owned(), bytes: theirs.as_bytes().to_vec() };
    write_archive(theirs.triple(), &[member], &archive).unwrap();
    let linker = || Linker::new(Triple::host()).object(own.as_bytes());
    let cases = [
        (linker().object(theirs.as_bytes()), "object 2 in memory".to_owned()),
        (linker().file(&file), file.display().to_string()),
        (linker().whole_archive(&archive), format!("{}(theirs.o)", archive.display())),
    ];
    for (linker, name) in cases {
        for link in LINKS {
            let error = link(&linker, &folder.path().join("lib.so")).unwrap_err();
            assert!(matches!(&error, LinkError::Machine { object, .. } if *object == name), "{error}");
            let expected = format!("{name} is for {other} in Elf, and the library for {}; ", Triple::host());
            assert!(error.to_string().starts_with(&expected), "{error}");
        }
    }
    assert!(!folder.path().join("lib.so").exists());
}

#[test]
fn a_failed_link_says_the_command_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out.so");
    fs::write(&output, "before").unwrap();
    for link in LINKS {
        let error = link(&host_linker().file("missing.o"), &output).unwrap_err();
        let LinkError::Failed { command, output: said, .. } = &error else { panic!("{error}") };
        assert!(command.contains("-shared") && command.contains("missing.o") && said.contains("missing.o"), "{error}");
        assert_eq!(fs::read(&output).unwrap(), b"before");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}

#[test]
fn a_linker_that_writes_nothing_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out.so");
    fs::write(&output, "before").unwrap();
    // the driver prints its version and succeeds
    let error = host_linker().arg("--version").link(&output).unwrap_err();
    let LinkError::NothingWritten { command, output: said } = &error else { panic!("{error}") };
    assert!(command.contains("-shared") && !said.is_empty(), "{error}");
    assert!(error.to_string().starts_with(&format!("the linker succeeded without writing a library: {command}\n")));
    assert_eq!(fs::read(&output).unwrap(), b"before");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// Set for the process of the test below, whose current directory is the test's.
#[cfg(target_os = "linux")]
const FOLDER: &str = "TEST_OF_NAMES_THAT_LOOK_LIKE_OPTIONS";

/// Links files whose names look like options of a tool. Only relative names can.
#[cfg(target_os = "linux")]
fn link_files_named_like_options() {
    let folder = std::env::current_dir().unwrap();
    let native: Triple = Triple::host();
    let signature: Signature = "twice(n: int64) -> int64".parse().unwrap();
    let object = LibraryBuilder::new().function(&signature, &Kernel::symbol("twice")).emit().unwrap();
    let archived = |name: &str| {
        let member = ArchiveInput::Object { name: "w.o".into(), bytes: object.as_bytes().into() };
        write_archive(&native, &[member], name).unwrap();
    };
    compile(&folder, "plain.o", "long long twice(long long n) { return 2 * n; }");
    for (number, link) in LINKS.iter().enumerate() {
        for begin in ["-", "@", "=", "-B", "-Wl,", "@@"] {
            let named = |name: &str| format!("{begin}{number}{name}");
            fs::copy("plain.o", named("k.o")).unwrap();
            archived(&named("w.a"));
            let place = named("folder");
            fs::create_dir(&place).unwrap();
            let library = format!("lib{}.so", named("s"));
            link(&host_linker().file("plain.o"), Path::new(&format!("{place}/{library}"))).unwrap();
            for output in [named("out.so"), format!("{place}/out.so")] {
                link(&host_linker().file(named("k.o")).whole_archive(named("w.a")), Path::new(&output)).unwrap();
                // SAFETY: the library is the one above.
                let module = unsafe { Module::load_from_file(folder.join(&output)) }.unwrap();
                let twice = module.get_function("twice").unwrap().unwrap();
                assert_eq!(twice.call((4,)).unwrap().cast::<i64>().unwrap(), 8);
            }
            // a library in a directory with such a name, and such a file as the runtime
            let of_folder = host_linker().library_folder(&place).runtime(format!("{place}/{library}"));
            link(&of_folder.whole_archive(named("w.a")), Path::new("out.so")).unwrap();
        }
        // a file with options, and a directory with a program named `ld`
        for name in ["@options", "-Bevil/"] {
            assert!(link(&host_linker().file(name).file("plain.o"), Path::new("out.so")).is_err(), "{name}");
            assert!(link(&host_linker().whole_archive(name).file("plain.o"), Path::new("out.so")).is_err(), "{name}");
        }
        for name in ["", "-x", "@options", "a/b", "/DEBUG", "a\\b"] {
            let error = link(&host_linker().file("plain.o").library(name), Path::new("out.so")).unwrap_err();
            assert!(error.to_string().starts_with("expected the name of a library, such as `m`, got "), "{error}");
        }
    }
    assert!(!Path::new("evil/ran").exists());
}

#[test]
#[cfg(target_os = "linux")]
#[cfg_attr(all(target_env = "musl", target_feature = "crt-static"), ignore = "a static executable loads no library")]
fn names_of_files_are_no_options() {
    if std::env::var_os(FOLDER).is_some() {
        return link_files_named_like_options();
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("evil")).unwrap();
    fs::write(path("ld"), "#!/bin/sh\n: > evil/ran\nexec ld \"$@\"\n").unwrap();
    // by another process: a program can't start while a child that another test forks has it open for writing
    let mut install = std::process::Command::new("install");
    assert!(install.args(["-m", "755"]).args([path("ld"), path("evil/ld")]).status().unwrap().success());
    fs::write(path("options"), "-Bevil/").unwrap();
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "link::names_of_files_are_no_options"])
        .env(FOLDER, "1")
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

/// The headers of a 64-bit image for x86-64 that exports nothing.
fn empty_image() -> Vec<u8> {
    const HEADERS: usize = 64;
    let mut image = vec![0; HEADERS + 4 + 20 + 240];
    let mut put = |at: usize, bytes: &[u8]| image[at..][..bytes.len()].copy_from_slice(bytes);
    put(0, b"MZ");
    put(60, &(HEADERS as u32).to_le_bytes());
    put(HEADERS, b"PE\0\0\x64\x86");
    // the size of the optional header, its kind, and the number of its directories
    put(HEADERS + 20, &240u16.to_le_bytes());
    put(HEADERS + 24, &0x20bu16.to_le_bytes());
    put(HEADERS + 24 + 108, &16u32.to_le_bytes());
    image
}

#[test]
fn a_runtime_for_windows_has_to_export_what_the_library_needs() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let target: Triple = "x86_64-pc-windows-gnu".parse().unwrap();
    let object = LibraryBuilder::new().target(target.clone()).emit().unwrap();
    let signature: Signature = "check(n: int64)".parse().unwrap();
    let needs =
        LibraryBuilder::new().target(target.clone()).function(&signature, &Kernel::check_only()).emit().unwrap();
    let link = |object: &[u8], runtime: &str| {
        let linker = Linker::new(target.clone()).object(object).runtime(path(runtime));
        linker.link(path("out.dll")).unwrap_err()
    };

    fs::write(path("host.exe"), empty_image()).unwrap();
    let error = link(needs.as_bytes(), "host.exe");
    assert!(matches!(error, LinkError::Runtime { .. }), "{error}");
    let text = error.to_string();
    assert!(text.starts_with(&*path("host.exe").to_string_lossy()), "{text}");
    assert!(text.contains("it doesn't export `TVMFFI"), "{text}");

    fs::write(path("broken.dll"), "MZ and no more").unwrap();
    let error = link(object.as_bytes(), "broken.dll");
    assert!(matches!(error, LinkError::Runtime { .. }), "{error}");

    let error = link(object.as_bytes(), "missing.dll");
    assert!(matches!(&error, LinkError::Io { path: at, .. } if *at == path("missing.dll")), "{error}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing else is written");
}
