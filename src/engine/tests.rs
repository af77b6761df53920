#![allow(clippy::unwrap_used, clippy::panic)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use region::Protection;

use super::*;
use crate::backend::Backend;
use crate::ir::interp::{Datum, Host, InterpError, Interpreter};
use crate::ir::*;

/// Runs a test, `fn(Backend)`, once with each backend.
macro_rules! on_each_backend {
    ($($name:ident)*) => {
        #[cfg(feature = "cranelift")]
        mod cranelift {
            $(#[test] fn $name() { super::$name(crate::Backend::Cranelift); })*
        }
        #[cfg(feature = "_llvm")]
        mod llvm {
            $(#[test] fn $name() { super::$name(crate::Backend::Llvm); })*
        }
    };
}

on_each_backend! {
    a_function_is_found_by_its_name_and_nothing_else_is
    the_jit_of_an_engine_has_its_helpers
    code_that_is_loaded_is_never_writable
    missing_symbols_are_all_named_at_once
    symbols_come_from_the_caller_then_libm_then_the_process
    what_code_needs_lives_as_long_as_the_code
    threads_load_and_call_at_once
    the_native_host_calls_any_signature
    the_interpreter_runs_with_it
    native_code_calls_the_interpreter_back
    what_only_objects_have_is_refused
}

/// `f(x) = x + n`, with `n` in static data.
fn adds(n: i64) -> VerifiedModule {
    let mut module = Module::new();
    let data = module.add_data("n", n.to_le_bytes().to_vec(), 8);
    let f = module.declare("f", FuncSig::new([Type::I64], Some(Type::I64)), Linkage::Export);
    let mut b = FunctionBuilder::new(&mut module, f);
    let at = b.data_addr(data, 0);
    let n = b.load(Type::I64, at, 0, MemFlags::READONLY);
    let r = b.binary(BinaryOp::Add, b.param(0), n);
    b.ret(Some(r));
    b.finish();
    verify(module).unwrap()
}

fn call(code: &Code, x: i64) -> i64 {
    // SAFETY: every `f` in this file has this signature.
    let f: extern "C" fn(i64) -> i64 = unsafe { std::mem::transmute(code.function("f").unwrap()) };
    f(x)
}

/// `f(x)` calls all imports, each an `fn(f64) -> f64`, one after the other.
fn calls(imports: &[&str]) -> VerifiedModule {
    let mut module = Module::new();
    let sig = FuncSig::new([Type::F64], Some(Type::F64));
    let f = module.declare("f", sig.clone(), Linkage::Export);
    let imports: Vec<FuncRef> = imports.iter().map(|name| module.import(name, sig.clone())).collect();
    module.import("never_called", sig);
    let mut b = FunctionBuilder::new(&mut module, f);
    let mut v = b.param(0);
    for import in imports {
        v = b.call(import, &[v]).unwrap();
    }
    b.ret(Some(v));
    b.finish();
    verify(module).unwrap()
}

fn the_jit_of_an_engine_has_its_helpers(backend: Backend) {
    use crate::lower::{RuntimeHelpers, lower};
    use tvm_ffi_runtime::Function;
    use tvm_ffi_runtime::abi::TVMFFISafeCallType;

    let engine = Engine::builder().backend(backend).build().unwrap();
    // checks by `bind`, and a result by `take_result`
    let signature: crate::Signature = "f(xs: Array[int64]) -> Array[Any]".parse().unwrap();
    extern "C" fn nothing() {}
    let kernel = crate::Kernel::address(nothing as *const u8);
    let module = verify(lower(&signature, &kernel, RuntimeHelpers::Import).unwrap()).unwrap();
    assert!(module.imports().any(|(_, import)| import.name == crate::lower::TAKE_RESULT_SYMBOL));
    let code = engine.jit().load_with(&module, LoadOptions::default()).unwrap();
    let address = code.function(&signature.symbol()).unwrap();
    // SAFETY: every wrapper is such a function.
    let safe_call = unsafe { std::mem::transmute::<*const u8, TVMFFISafeCallType>(address) };
    // SAFETY: the function owns its code, and calls nothing before its checks are through.
    let function = unsafe { Function::from_code(safe_call, code) };
    let error = function.call((1,)).unwrap_err().to_string();
    assert!(error.contains("expected Array, got int"), "{error}");
    assert!(Jit::builder().backend(backend).build().unwrap().load(&module).is_err());
}

fn a_function_is_found_by_its_name_and_nothing_else_is(backend: Backend) {
    let code = Jit::builder().backend(backend).build().unwrap().load(&adds(5)).unwrap();
    assert_eq!(call(&code, 37), 42);
    assert_eq!(code.function("n"), None);
    assert_eq!(code.functions().map(|(name, _)| name).collect::<Vec<_>>(), ["f"]);
    assert!(code.contains(code.function("f").unwrap()));
    // Backends may fold constants.
    assert!(code.code_size() > 0 && code.data_size() <= 8);
}

fn code_that_is_loaded_is_never_writable(backend: Backend) {
    let code = Jit::builder().backend(backend).build().unwrap().load(&adds(5)).unwrap();
    assert_eq!(protection(code.function("f").unwrap()), Protection::READ_EXECUTE);
    // writable data is elsewhere
    let mut module = adds(5).into_inner();
    module.data[DataRef::from_u32(0)].kind = DataKind::Variable;
    let code = Jit::builder().backend(backend).build().unwrap().load(&verify(module).unwrap()).unwrap();
    assert_eq!(call(&code, 37), 42);
    assert_eq!(protection(code.function("f").unwrap()), Protection::READ_EXECUTE);
    assert_eq!(protection(code.variable("n").unwrap()), Protection::READ_WRITE);
}

/// The protection of a mapped address. `region` reads the system's list of mappings piece by piece, while other tests
/// map and unmap memory. On the emulator of aarch64 one such reading lacked the address.
fn protection(address: *const u8) -> Protection {
    let found = (0..100).find_map(|_| region::query(address).ok());
    found.unwrap().protection()
}

fn missing_symbols_are_all_named_at_once(backend: Backend) {
    let jit = Jit::builder().backend(backend).build().unwrap();
    let e = jit.load(&calls(&["first_missing", "exp", "second_missing"])).unwrap_err();
    let EngineError::Unresolved { names, .. } = &e else { panic!("{e}") };
    assert_eq!(names, &["first_missing", "second_missing"]);
    let text = e.to_string();
    assert!(text.contains("symbols: `first_missing`, `second_missing`; give each"), "{text}");
    assert!(text.contains("search_process"), "{text}");
}

extern "C" fn twice(x: f64) -> f64 {
    2.0 * x
}

fn symbols_come_from_the_caller_then_libm_then_the_process(backend: Backend) {
    let module = calls(&["exp", "log", "twice"]);
    let f = |code: &Code| {
        // SAFETY: `f` of `calls` has this type.
        let f: extern "C" fn(f64) -> f64 = unsafe { std::mem::transmute(code.function("f").unwrap()) };
        f(1.5)
    };
    let jit = Jit::builder().backend(backend).symbols([("twice", twice as *const u8)]).build().unwrap();
    assert!((f(&jit.load(&module).unwrap()) - 3.0).abs() < 1e-12);
    // The symbols of one load take precedence over the JIT's own.
    let own =
        LoadOptions { symbols: &[("exp", twice as *const u8), ("log", twice as *const u8)], ..Default::default() };
    assert_eq!(f(&jit.load_with(&module, own).unwrap()), 12.0);

    let module = calls(&["lgamma"]);
    assert!(Jit::builder().backend(backend).build().unwrap().load(&module).is_err());
    let jit = Jit::builder().backend(backend).search_process().build().unwrap();
    if cfg!(all(target_env = "musl", target_feature = "crt-static")) {
        let error = jit.load(&module).unwrap_err().to_string();
        assert!(error.ends_with("statically linked with musl"), "{error}");
        return;
    }
    assert!((f(&jit.load(&module).unwrap()) - libm_lgamma(1.5)).abs() < 1e-12);
}

fn libm_lgamma(x: f64) -> f64 {
    unsafe extern "C" {
        fn lgamma(x: f64) -> f64;
    }
    // SAFETY: a function of the C library.
    unsafe { lgamma(x) }
}

fn what_code_needs_lives_as_long_as_the_code(backend: Backend) {
    struct Owner(Arc<AtomicUsize>);
    impl Drop for Owner {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let dropped = Arc::new(AtomicUsize::new(0));
    let owner = || -> KeepAlive { Arc::new(Owner(Arc::clone(&dropped))) };
    let jit = Jit::builder().backend(backend).keep_alive(owner()).build().unwrap();
    let options = LoadOptions { keep_alive: vec![owner()], ..LoadOptions::default() };
    let code = jit.load_with(&adds(1), options).unwrap();
    let other = jit.load(&adds(2)).unwrap();
    drop(jit);
    assert_eq!(dropped.load(Ordering::SeqCst), 0);
    drop(code);
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
    assert_eq!(call(&other, 1), 3);
    drop(other);
    assert_eq!(dropped.load(Ordering::SeqCst), 2);
}

#[test]
fn everything_may_be_shared() {
    fn shared<T: Send + Sync + 'static>() {}
    shared::<Jit>();
    shared::<Code>();
    shared::<SymbolResolver>();
    shared::<EngineError>();
}

fn threads_load_and_call_at_once(backend: Backend) {
    let jit = Jit::builder().backend(backend).build().unwrap();
    let shared = jit.load(&adds(1000)).unwrap();
    std::thread::scope(|scope| {
        for t in 0..8i64 {
            let (jit, shared) = (jit.clone(), Arc::clone(&shared));
            scope.spawn(move || {
                let mut kept = Vec::new();
                for i in 0..40 {
                    let code = jit.load(&adds(100 * t + i)).unwrap();
                    assert_eq!(call(&code, 1), 100 * t + i + 1);
                    assert_eq!(call(&shared, i), 1000 + i);
                    if i % 3 == 0 {
                        kept.push((code, i));
                    }
                }
                for (code, i) in kept {
                    assert_eq!(call(&code, 2), 100 * t + i + 2);
                }
            });
        }
    });
}

extern "C" fn mix(a: i8, b: u16, c: i32, d: f32, e: f64, p: *const u8) -> f64 {
    f64::from(a) + f64::from(b) + f64::from(c) + f64::from(d) + e + p.addr() as f64
}

extern "C" fn minus_one() -> i8 {
    -1
}

extern "C" fn nothing() {}

fn the_native_host_calls_any_signature(backend: Backend) {
    let host = NativeHost::new(Jit::builder().backend(backend).symbol("mix", mix as *const u8).build().unwrap());
    let sig = FuncSig {
        params: vec![
            AbiParam::signed(Type::I8),
            AbiParam::unsigned(Type::I16),
            AbiParam::signed(Type::I32),
            AbiParam::new(Type::F32),
            AbiParam::new(Type::F64),
            AbiParam::new(Type::Ptr),
        ],
        ret: Some(AbiParam::new(Type::F64)),
    };
    let args = [
        Datum::I8(-5i8 as u8),
        Datum::I16(60_000),
        Datum::I32(-7i32 as u32),
        Datum::F32(0.5),
        Datum::F64(0.25),
        Datum::Ptr(64),
    ];
    let address = host.resolve("mix").unwrap();
    for _ in 0..3 {
        // SAFETY: the function has this signature.
        let result = unsafe { host.call(address, &sig, &args) };
        assert_eq!(result, Ok(Some(Datum::F64(-5.0 + 60_000.0 - 7.0 + 0.75 + 64.0))));
    }
    let sig = FuncSig { params: vec![], ret: Some(AbiParam::signed(Type::I8)) };
    // SAFETY: as above.
    let result = unsafe { host.call(minus_one as *const u8 as u64, &sig, &[]) };
    assert_eq!(result, Ok(Some(Datum::I8(255))));
    // SAFETY: as above.
    let result = unsafe { host.call(nothing as *const u8 as u64, &FuncSig::default(), &[]) };
    assert_eq!(result, Ok(None));
    assert_eq!(host.resolve("no_such_symbol"), None);
    // SAFETY: both are refused before anything is called.
    unsafe {
        assert!(host.call(address, &sig, &args).is_err());
        assert!(host.call(0, &sig, &[]).is_err());
    }
}

/// The interpreter with native calls returns the same results as compiled code.
fn the_interpreter_runs_with_it(backend: Backend) {
    let module = calls(&["exp", "twice"]);
    let jit = Jit::builder()
        .backend(backend)
        .symbol("twice", twice as *const u8)
        .symbol("never_called", twice as *const u8)
        .build()
        .unwrap();
    let code = jit.load(&module).unwrap();
    // SAFETY: `f` of `calls` has this type.
    let f: extern "C" fn(f64) -> f64 = unsafe { std::mem::transmute(code.function("f").unwrap()) };
    let mut interpreter = Interpreter::new(&module, NativeHost::new(jit)).unwrap();
    // SAFETY: the imports have these signatures.
    let result = unsafe { interpreter.run("f", &[Datum::F64(1.5)]) }.unwrap();
    assert_eq!(result, Some(Datum::F64(f(1.5))));
}

fn what_only_objects_have_is_refused(backend: Backend) {
    let with = |change: fn(&mut Module)| {
        let mut module = adds(5).into_inner();
        change(&mut module);
        verify(module).unwrap()
    };
    let data = DataRef::from_u32(0);
    let constructor = |module: &mut Module| {
        let start = module.declare("start", FuncSig::default(), Linkage::Local);
        let mut b = FunctionBuilder::new(module, start);
        b.ret(None);
        b.finish();
        module.constructors.push(start);
    };
    for (module, what) in [
        (
            with(|m| m.data[DataRef::from_u32(0)].addresses = vec![(0, FuncRef::from_u32(0))]),
            "the addresses of functions in `n`",
        ),
        (with(constructor), "the constructor `start`"),
    ] {
        assert_eq!(module.data[data].name, "n");
        let jit = Jit::builder().backend(backend).build().unwrap();
        let error = jit.load(&module).unwrap_err();
        assert!(matches!(&error, EngineError::OnlyInObjects { what: found } if found == what), "{error}");
        let error = Interpreter::new(&module, NativeHost::new(jit.clone())).err().unwrap();
        assert!(error.to_string().starts_with(what), "{error}");
    }
}

/// Native code calls back into the interpreter, which calls native code again.
fn native_code_calls_the_interpreter_back(backend: Backend) {
    type Narrow = extern "C" fn(i8, f32, u16, f64, i64) -> i16;
    extern "C" fn calls(f: Narrow, depth: i64) -> i16 {
        f(-3, 0.5, 60_000, 0.25, depth)
    }
    let mut module = Module::new();
    let sig = FuncSig {
        params: vec![
            AbiParam::signed(Type::I8),
            AbiParam::new(Type::F32),
            AbiParam::unsigned(Type::I16),
            AbiParam::new(Type::F64),
            AbiParam::new(Type::I64),
        ],
        ret: Some(AbiParam::signed(Type::I16)),
    };
    let calls_sig = FuncSig::new([Type::Ptr, Type::I64], None);
    let calls_sig = FuncSig { ret: Some(AbiParam::signed(Type::I16)), ..calls_sig };
    let import = module.import("calls", calls_sig);
    let own = module.declare("own", sig, Linkage::Local);
    let mut b = FunctionBuilder::new(&mut module, own);
    let (more, done) = (b.block(), b.block());
    let end = b.icmp_imm(IntCC::Eq, b.param(4), 0);
    b.branch(end, done, more, Hint::None);
    b.switch_to(more);
    let (address, less) = (b.func_addr(own), b.binary_imm(BinaryOp::Sub, b.param(4), 1));
    let r = b.call(import, &[address, less]);
    b.ret(r);
    b.switch_to(done);
    // -3 * 1000 + (60000 - 59000) + (0.5 + 0.25) * 4
    let a = b.convert(ConvertOp::SExt, Type::I16, b.param(0));
    let a = b.binary_imm(BinaryOp::Mul, a, 1000);
    let c = b.binary_imm(BinaryOp::Sub, b.param(2), 59_000);
    let wide = b.convert(ConvertOp::FPromote, Type::F64, b.param(1));
    let sum = b.binary(BinaryOp::FAdd, wide, b.param(3));
    let four = b.f64(4.0);
    let sum = b.binary(BinaryOp::FMul, sum, four);
    let sum = b.convert(ConvertOp::FloatToSInt, Type::I32, sum);
    let sum = b.convert(ConvertOp::Truncate, Type::I16, sum);
    let r = b.binary(BinaryOp::Add, a, c);
    let r = b.binary(BinaryOp::Add, r, sum);
    b.ret(Some(r));
    b.finish();
    let f = module.declare("f", FuncSig::new([Type::I64], Some(Type::I16)), Linkage::Export);
    let mut b = FunctionBuilder::new(&mut module, f);
    let address = b.func_addr(own);
    let r = b.call(import, &[address, b.param(0)]);
    b.ret(r);
    b.finish();
    let module = verify(module).unwrap();
    let jit = Jit::builder().backend(backend).symbol("calls", calls as *const u8).build().unwrap();
    let host = NativeHost::new(jit);
    for _ in 0..2 {
        let mut interpreter = Interpreter::new(&module, host.clone()).unwrap();
        for depth in [0, 1, 20] {
            // SAFETY: `calls` has this signature, and so does the function at the address that it calls.
            let result = unsafe { interpreter.run("f", &[Datum::I64(depth)]) };
            assert_eq!(result, Ok(Some(Datum::I16(-1997i16 as u16))));
        }
        // SAFETY: as above.
        let error = unsafe { interpreter.run("f", &[Datum::I64(1000)]) }.unwrap_err();
        assert!(matches!(error, InterpError::TooDeep { .. }), "{error}");
    }
}
