//! Writable data, addresses of functions, atomic accesses and destructors, in every environment that runs code.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use super::jits;
use crate::backend::Backend;
use crate::engine::{Code, Jit, LoadOptions};
use crate::ir::interp::{Datum, Interpreter};
use crate::ir::*;

type Word = extern "C" fn(u64, u64) -> u64;

/// Functions of two words with a result. They use 24 bytes of state, another piece of state, and a variable that is
/// initially 7.
fn module() -> Module {
    let mut module = Module::new();
    module.add_data("constant", vec![1, 2, 3], 1);
    let state = module.add_state("state", 24, 8);
    let other = module.add_state("other", 3, 64);
    let variable = module.data.push(Data {
        name: "variable".to_owned(),
        bytes: 7u64.to_ne_bytes().to_vec(),
        align: 8,
        kind: DataKind::Variable,
        addresses: Vec::new(),
    });
    let sig = FuncSig::new([Type::I64; 2], Some(Type::I64));
    let twice = module.declare("twice", sig.clone(), Linkage::Local);
    let ext = module.import("ext", sig.clone());
    let define = |module: &mut Module, name: &str, body: &dyn Fn(&mut FunctionBuilder<'_>) -> Value| {
        let known = module.function_named(name).map(|(func, _)| func);
        let func = known.unwrap_or_else(|| module.declare(name, sig.clone(), Linkage::Export));
        let mut b = FunctionBuilder::new(module, func);
        let result = body(&mut b);
        let result = match b.type_of(result) {
            Type::Ptr => b.convert(ConvertOp::PtrToInt, Type::I64, result),
            _ => result,
        };
        b.ret(Some(result));
        b.finish();
    };
    define(&mut module, "twice", &|b| b.binary(BinaryOp::Add, b.param(0), b.param(0)));
    define(&mut module, "add", &|b| {
        let at = b.data_addr(state, 8);
        b.atomic_add(at, b.param(0))
    });
    define(&mut module, "read", &|b| {
        let at = b.data_addr(state, 8);
        b.load_acquire(at)
    });
    define(&mut module, "exchange", &|b| {
        let at = b.data_addr(state, 16);
        let [expected, new] = [0, 1].map(|i| b.convert(ConvertOp::IntToPtr, Type::Ptr, b.param(i)));
        b.compare_exchange(at, expected, new)
    });
    define(&mut module, "first", &|b| {
        let at = b.data_addr(state, 0);
        b.load(Type::I64, at, 0, MemFlags::ALIGNED)
    });
    define(&mut module, "address_of_other", &|b| b.data_addr(other, 0));
    define(&mut module, "variable_is", &|b| {
        let at = b.data_addr(variable, 0);
        b.load(Type::I64, at, 0, MemFlags::ALIGNED)
    });
    define(&mut module, "set_variable", &|b| {
        let at = b.data_addr(variable, 0);
        b.store(b.param(0), at, 0, MemFlags::ALIGNED);
        b.param(0)
    });
    for (name, callee) in [("call_own", twice), ("call_import", ext)] {
        define(&mut module, name, &|b| {
            let address = b.func_addr(callee);
            let sig = b.signature(FuncSig::new([Type::I64; 2], Some(Type::I64)));
            b.call_indirect(sig, address, &[b.param(0), b.param(1)]).unwrap()
        });
        define(&mut module, &name.replace("call", "address_of"), &|b| b.func_addr(callee));
    }
    module
}

/// Adds destructors that call `gone` with 1 and 2, and with the value that `add` has stored.
fn add_destructors(module: &mut Module) {
    let gone = module.import("gone", FuncSig::new([Type::I64; 2], None));
    for number in [1, 2] {
        let func = module.declare(format!("destroy{number}"), FuncSig::default(), Linkage::Local);
        let mut b = FunctionBuilder::new(module, func);
        let (number, at) = (b.i64(number), b.data_addr(DataRef::from_u32(1), 8));
        let made = b.load(Type::I64, at, 0, MemFlags::ALIGNED);
        b.call(gone, &[number, made]);
        b.ret(None);
        let func = b.finish();
        module.destructors.push(func);
    }
}

extern "C" fn ext(a: u64, b: u64) -> u64 {
    1000 * a + b
}

/// `run(name, a, b)` calls a function.
fn check(how: &str, run: &dyn Fn(&str, u64, u64) -> u64) {
    assert_eq!(run("read", 0, 0), 0, "{how}");
    assert_eq!(run("add", 5, 0), 0, "{how}");
    assert_eq!(run("add", u64::MAX, 0), 5, "{how}");
    assert_eq!(run("read", 0, 0), 4, "{how}");
    assert_eq!(run("exchange", 0, 11), 0, "{how}");
    assert_eq!(run("exchange", 0, 12), 11, "{how}");
    assert_eq!(run("exchange", 11, 13), 11, "{how}");
    assert_eq!(run("exchange", 0, 0), 13, "{how}");
    assert_eq!(run("first", 0, 0), 0, "{how}");
    assert_eq!(run("address_of_other", 0, 0) % 64, 0, "{how}");
    assert_eq!(run("variable_is", 0, 0), 7, "{how}");
    assert_eq!(run("set_variable", 8, 0), 8, "{how}");
    assert_eq!(run("variable_is", 0, 0), 8, "{how}");
    assert_eq!(run("call_own", 21, 0), 42, "{how}");
    assert_eq!(run("call_import", 3, 4), 3004, "{how}");
    assert_eq!(run("address_of_own", 0, 0), run("address_of_own", 0, 0), "{how}");
    assert_ne!(run("address_of_own", 0, 0), run("address_of_import", 0, 0), "{how}");
}

fn function(code: &Code, name: &str) -> Word {
    // SAFETY: each function of `module` has this signature.
    unsafe { std::mem::transmute(code.function(name).unwrap_or_else(|| panic!("{name}"))) }
}

fn load(jit: &Jit, module: &VerifiedModule) -> std::sync::Arc<Code> {
    let symbols = [("ext", ext as *const u8), ("gone", gone as *const u8)];
    jit.load_with(module, LoadOptions { symbols: &symbols, ..LoadOptions::default() }).unwrap()
}

#[test]
fn state_and_variables_in_jits() {
    let module = verify(module()).unwrap();
    for (how, jit) in jits() {
        // each has its own state
        let (one, two) = (load(&jit, &module), load(&jit, &module));
        for code in [&one, &two] {
            check(&how, &|name, a, b| function(code, name)(a, b));
            assert_eq!(function(code, "address_of_import")(0, 0), (ext as *const u8).addr() as u64, "{how}");
            let variable = code.variable("variable").unwrap_or_else(|| panic!("{how}"));
            // SAFETY: the variable is 8 bytes, and lives as long as the code.
            unsafe {
                assert_eq!(variable.cast::<u64>().read(), 8, "{how}");
                variable.cast::<u64>().write(9);
            }
            assert_eq!(function(code, "variable_is")(0, 0), 9, "{how}");
            assert_eq!((code.variable("state"), code.variable("twice")), (None, None));
            assert!(how.starts_with("Llvm") || code.contains(variable), "{how}");
        }
    }
}

#[test]
fn the_interpreter_has_state_and_variables() {
    let module = verify(module()).unwrap();
    let jit = Jit::builder().symbol("ext", ext as *const u8).build().unwrap();
    let interpreter = Interpreter::new(&module, crate::engine::NativeHost::new(jit)).unwrap();
    let interpreter = std::cell::RefCell::new(interpreter);
    check("interpreter", &|name, a, b| {
        // SAFETY: the functions use their own data, and `ext` has the signature of its import.
        let result = unsafe { interpreter.borrow_mut().run(name, &[Datum::I64(a), Datum::I64(b)]) };
        result.unwrap_or_else(|error| panic!("{error}")).unwrap().bits()
    });
    let at = interpreter.borrow().variable("variable").unwrap();
    // SAFETY: the variable is 8 bytes, and lives as long as the interpreter.
    assert_eq!(unsafe { std::ptr::with_exposed_provenance::<u64>(at as usize).read() }, 8);
    assert_eq!(interpreter.borrow().variable("state"), None);
}

#[test]
fn threads_count_and_agree() {
    const EACH: u64 = 2000;
    let module = verify(module()).unwrap();
    for (how, jit) in jits() {
        let code = load(&jit, &module);
        let winners = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for thread in 1..5 {
                let (code, winners) = (&code, &winners);
                scope.spawn(move || {
                    let add = function(code, "add");
                    let before = (0..EACH).map(|_| add(1, 0)).max();
                    assert!(before < Some(4 * EACH));
                    let won = function(code, "exchange")(0, thread) == 0;
                    winners.fetch_add(won.into(), Ordering::Relaxed);
                });
            }
        });
        assert_eq!(function(&code, "read")(0, 0), 4 * EACH, "{how}");
        assert_eq!(winners.into_inner(), 1, "{how}");
    }
}

thread_local! {
    /// The arguments of the destructors' calls on this thread.
    static GONE: Cell<[(u64, u64); 2]> = const { Cell::new([(0, 0); 2]) };
}

extern "C" fn gone(number: u64, made: u64) {
    GONE.set([GONE.get()[1], (number, made)]);
}

#[test]
fn destructors_run_when_code_that_may_is_dropped() {
    let mut module = module();
    add_destructors(&mut module);
    let module = verify(module).unwrap();
    for (how, jit) in jits() {
        for allowed in [false, true] {
            GONE.take();
            let code = load(&jit, &module);
            function(&code, "add")(3, 0);
            if allowed {
                // SAFETY: they only call `gone`, which has the declared signature.
                unsafe { code.run_destructors_on_drop() };
            }
            let again = std::sync::Arc::clone(&code);
            drop(code);
            assert_eq!(GONE.get(), [(0, 0); 2], "{how}");
            drop(again);
            let expected = if allowed { [(2, 3), (1, 3)] } else { [(0, 0); 2] };
            assert_eq!(GONE.get(), expected, "{how}");
        }
    }
}

/// Libraries from each backend's objects, linked with the system's linker.
#[test]
// a static program can't load libraries
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn objects_have_them_too() {
    use crate::backend::{ObjectOptions, OptLevel};
    use std::process::Command;
    use target_lexicon::Triple;

    let dir = tempfile::tempdir().unwrap();
    let path = |name: String| dir.path().join(name);
    let c = path("c.c".to_owned());
    let text = "unsigned long last[4];\n\
                unsigned long ext(unsigned long a, unsigned long b) { return 1000 * a + b; }\n\
                void gone(unsigned long number, unsigned long made) {\n\
                unsigned long* to = *(unsigned long**)last; to[0] = to[0] * 10 + number; to[1] = made; }\n";
    std::fs::write(&c, text).unwrap();
    for &backend in Backend::ALL {
        let mut module = module();
        add_destructors(&mut module);
        let triple = Triple::host();
        let options = ObjectOptions {
            target: &triple,
            opt_level: OptLevel::Speed,
            cpu: None,
            features: &[],
            threads: None,
            verifier: true,
            compiled: &|_, _| {},
        };
        let object = backend.codegen().object(verify(module).unwrap(), &options).unwrap();
        let (o, so) = (path(format!("{backend}.o")), path(format!("{backend}.so")));
        std::fs::write(&o, object).unwrap();
        let cc = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
        let built = Command::new(cc).args(["-shared", "-fPIC", "-O0", "-o"]).args([&so, &o, &c]).output().unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        let mut told = [0u64; 2];
        {
            // SAFETY: its destructors call `gone`, which writes to what `last` points at.
            let library = unsafe { libloading::Library::new(&so) }.unwrap();
            // SAFETY: the symbols are defined by `module` and the C source above, with this type.
            let run = |name: &str, a, b| unsafe { library.get::<Word>(name.as_bytes()).unwrap()(a, b) };
            check(backend.name(), &run);
            // SAFETY: as above.
            unsafe {
                assert_eq!(**library.get::<*const u64>(b"variable").unwrap(), 8, "{backend}");
                assert!(library.get::<Word>(b"state").is_err() && library.get::<Word>(b"twice").is_err());
                library.get::<*mut *mut u64>(b"last").unwrap().write(told.as_mut_ptr());
            }
        }
        // SAFETY: the library has written it.
        assert_eq!(unsafe { (&raw const told).read_volatile() }, [21, 4], "{backend}");
    }
}

/// Code for machines other than the host.
#[test]
#[cfg(feature = "cranelift")]
fn objects_for_other_machines() {
    use crate::backend::{ObjectOptions, OptLevel};
    use object::{Object, ObjectSection, ObjectSymbol, SectionKind};
    use std::str::FromStr;
    use target_lexicon::Triple;

    for triple in [
        "x86_64-unknown-linux-gnu",
        "x86_64-apple-darwin",
        "aarch64-apple-darwin",
        "aarch64-unknown-linux-gnu",
        "riscv64gc-unknown-linux-gnu",
        "s390x-unknown-linux-gnu",
        "x86_64-pc-windows-gnu",
        "x86_64-pc-windows-msvc",
    ] {
        let target = Triple::from_str(triple).unwrap();
        for &backend in Backend::ALL {
            if backend.name() == "llvm" && triple.starts_with("s390x") {
                continue;
            }
            let mut module = module();
            add_destructors(&mut module);
            // COFF only shares zeros
            let variable = module.data.keys().next_back().unwrap();
            module.data[variable].bytes = vec![0; 8];
            module.endianness = target.endianness().unwrap();
            let options = ObjectOptions {
                target: &target,
                opt_level: OptLevel::Speed,
                cpu: None,
                features: &[],
                threads: None,
                verifier: true,
                compiled: &|_, _| {},
            };
            let object = backend.codegen().object(verify(module).unwrap(), &options);
            let object = object.unwrap_or_else(|error| panic!("{triple} {backend}: {error}"));
            let file = object::File::parse(&*object).unwrap();
            let sections: Vec<&str> = file.sections().map(|section| section.name().unwrap()).collect();
            let fini = match file.format() {
                object::BinaryFormat::Elf => Some(".fini_array"),
                object::BinaryFormat::MachO => Some("__mod_term_func"),
                _ => None,
            };
            // for Mach-O, LLVM registers destructors when the library is loaded
            let at_exit = file.symbols().any(|symbol| symbol.name() == Ok("___cxa_atexit"));
            let there = fini.is_none_or(|fini| sections.contains(&fini));
            assert!(there || backend.name() == "llvm" && at_exit, "{triple} {backend}: {sections:?}");
            let zeros = file.sections().any(|section| section.kind() == SectionKind::UninitializedData);
            assert!(zeros, "{triple} {backend}: {sections:?}");
        }
    }
}
