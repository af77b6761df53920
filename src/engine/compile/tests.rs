//! Tests of code with state and imports, and of code that calls other code by its symbol.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::cell::{Cell, RefCell};
use std::ffi::c_void;

use super::*;
use crate::backend::Backend;
use crate::ir::{FuncSig, FunctionBuilder, Linkage, MemFlags, Module, Type};
use tvm_ffi_runtime::abi::{TVMFFIAny, TVMFFIObjectHandle};
use tvm_ffi_runtime::capi;
use tvm_ffi_runtime::{Any, ToAnyView};

thread_local! {
    /// Events recorded by the code on this thread: a context, and a count.
    static TOLD: RefCell<Vec<(usize, u64)>> = const { RefCell::new(Vec::new()) };
    static CALLED: Cell<u64> = const { Cell::new(0) };
}

/// Looks up `helper` in the context and calls it with the count, or fails.
unsafe extern "C" fn calls_helper(context: TVMFFIObjectHandle, count: u64, result: *mut TVMFFIAny) -> i32 {
    TOLD.with_borrow_mut(|told| told.push((context.addr(), count)));
    let mut function = std::ptr::null_mut();
    // SAFETY: the context is null or a module; the argument is a valid value, and the result is initialised to None.
    unsafe {
        match capi::TVMFFIEnvModLookupFromImports(context, c"helper".as_ptr(), &raw mut function) {
            0 => {
                let count = count as i64;
                let arg = count.to_arg();
                capi::TVMFFIFunctionCall(function, [arg.as_view().as_raw()].as_mut_ptr(), 1, result)
            }
            code => code,
        }
    }
}

extern "C" fn gone(context: TVMFFIObjectHandle, count: u64) {
    TOLD.with_borrow_mut(|told| told.push((context.addr(), 1000 + count)));
}

/// Wrappers `names` that share a counter and pass the library's context to `calls_helper`, with a destructor that calls
/// `gone`.
fn with_state(names: &[&str]) -> VerifiedModule {
    let mut module = Module::new();
    let count = module.add_state("count", 8, 8);
    let context = module.add_state(LIBRARY_CTX, 8, 8);
    module.data[context].kind = DataKind::Variable;
    let calls = module.import("calls_helper", FuncSig::new([Type::Ptr, Type::I64, Type::Ptr], Some(Type::I32)));
    let gone = module.import("gone", FuncSig::new([Type::Ptr, Type::I64], None));
    for name in names {
        let sig = FuncSig::new([Type::Ptr, Type::Ptr, Type::I32, Type::Ptr], Some(Type::I32));
        let f = module.declare(format!("{FUNCTION}{name}"), sig, Linkage::Export);
        let mut b = FunctionBuilder::new(&mut module, f);
        let (at, one) = (b.data_addr(count, 0), b.i64(1));
        let before = b.atomic_add(at, one);
        let at = b.data_addr(context, 0);
        let handle = b.load_acquire(at);
        let code = b.call(calls, &[handle, before, b.param(3)]);
        b.ret(code);
        b.finish();
    }
    let destructor = module.declare("destructor", FuncSig::default(), Linkage::Local);
    let mut b = FunctionBuilder::new(&mut module, destructor);
    let [at, handle] = [count, context].map(|data| b.data_addr(data, 0));
    let ran = b.load(Type::I64, at, 0, MemFlags::ALIGNED);
    let handle = b.load_acquire(handle);
    b.call(gone, &[handle, ran]);
    b.ret(None);
    b.finish();
    module.destructors.push(destructor);
    ir::verify(module).unwrap()
}

fn engine(backend: Backend) -> EngineBuilder {
    let builder = Engine::builder().backend(backend);
    // SAFETY: the modules of these tests call the functions with these prototypes.
    unsafe {
        builder
            .symbol("calls_helper", calls_helper as *const u8)
            .symbol("gone", gone as *const u8)
            .symbol("one", one as *const u8)
            .symbol("two", two as *const u8)
    }
}

fn signature(name: &str) -> Signature {
    Signature::builder(name).build().unwrap()
}

/// The result of compiling a lowered module.
fn wrappers(engine: &Engine, module: &VerifiedModule) -> Wrappers {
    let code = engine.load(module).unwrap();
    // SAFETY: the destructor calls `gone`.
    unsafe { code.run_destructors_on_drop() };
    let exported = module.functions.values().filter(|function| function.linkage == Linkage::Export);
    let functions = exported.map(|function| LoweredFunction {
        name: function.name.clone(),
        symbol: function.name.clone(),
        launches: Vec::new(),
        parts: 0..0,
    });
    Wrappers { code, needs_module: needs_module(module), functions: functions.collect() }
}

fn helper(factor: i64) -> runtime::Module {
    let function = Function::from_packed(move |args| Ok(Any::from(factor * args[0].cast::<i64>()?)));
    runtime::Module::new("host", [("helper".to_owned(), function)])
}

fn int(value: Any) -> i64 {
    i64::try_from(value).unwrap()
}

#[test]
fn code_with_state_belongs_to_a_module_that_it_knows() {
    for &backend in Backend::ALL {
        TOLD.take();
        let engine = engine(backend).build().unwrap();
        let (f, g) = (signature("f"), signature("g"));
        let made = wrappers(&engine, &with_state(&["f", "g"]));
        assert!(made.needs_module);
        let module = engine.module_of(made, [&f, &g].into_iter()).unwrap();
        assert_eq!((module.kind(), module.function_names()), ("jit", Some(vec!["f".to_owned(), "g".to_owned()])));
        let handle = module.as_object().as_ptr().addr();
        let run = module.get_function("f").unwrap().unwrap();
        assert!(module.get_function("h").unwrap().is_none());

        let error = run.call(()).unwrap_err().to_string();
        assert!(error.contains("helper"), "{error}");
        module.import_module(&helper(10)).unwrap();
        assert_eq!(int(run.call(()).unwrap()), 10);
        assert_eq!(int(module.get_function("g").unwrap().unwrap().call(()).unwrap()), 20);
        // only the function keeps the module alive
        drop(module);
        assert_eq!(int(run.call(()).unwrap()), 30);
        assert_eq!(TOLD.take(), [(handle, 0), (handle, 1), (handle, 2), (handle, 3)]);
        drop(run);
        // the context is null when destructors run
        assert_eq!(TOLD.take(), [(0, 1004)]);
    }
}

#[test]
fn modules_import_what_the_engine_says() {
    let engine = engine(Backend::default()).import(helper(7)).import(helper(1000)).build().unwrap();
    let f = signature("f");
    let module = engine.module_of(wrappers(&engine, &with_state(&["f"])), [&f].into_iter()).unwrap();
    let run = module.get_function("f").unwrap().unwrap();
    run.call(()).unwrap();
    assert_eq!(int(run.call(()).unwrap()), 7);
    assert_eq!(module.imports().len(), 2);
    // modules without state, too
    // SAFETY: the kernel has no code.
    let plain = unsafe { engine.compile_module([(&signature("plain"), &Kernel::check_only())]) }.unwrap();
    assert_eq!((plain.kind(), plain.imports().len()), ("jit", 2));
    assert!(plain.get_function_from("helper", true).unwrap().is_some());
}

#[test]
fn the_caller_sets_the_context_of_code() {
    TOLD.take();
    let engine = engine(Backend::default()).build().unwrap();
    let code = engine.load(&with_state(&["f"])).unwrap();
    // SAFETY: every wrapper has this type.
    let f = unsafe { std::mem::transmute::<*const u8, TVMFFISafeCallType>(code.function("__tvm_ffi_f").unwrap()) };
    let mut result = TVMFFIAny::none();
    // SAFETY: a packed call.
    let mut run = || unsafe { f(std::ptr::null_mut(), std::ptr::null(), 0, &raw mut result) };
    assert_eq!(run(), -1);
    drop(runtime::error::take_raised());
    let module = helper(0);
    module.import_module(&helper(5)).unwrap();
    let handle = module.as_object().as_ptr();
    // SAFETY: the module lives until the end of this test.
    assert!(unsafe { code.set_library_context(handle.cast::<c_void>()) });
    assert_eq!(run(), 0);
    assert_eq!(TOLD.take(), [(0, 0), (handle.addr(), 1)]);
    let plain = engine.compile_code([(&signature("plain"), &Kernel::check_only())]).unwrap();
    // SAFETY: as above.
    assert!(!unsafe { plain.set_library_context(handle.cast::<c_void>()) });
    // `run_destructors_on_drop` was not called
    drop(code);
    assert_eq!(TOLD.take(), []);
}

extern "C" fn one() {
    CALLED.set(CALLED.get() * 10 + 1);
}

extern "C" fn two() {
    CALLED.set(CALLED.get() * 10 + 2);
}

/// `name` calls `callee` by its symbol.
fn caller(name: &str, callee: &str) -> VerifiedModule {
    let mut module = Module::new();
    let sig = FuncSig::new([Type::Ptr, Type::Ptr, Type::I32, Type::Ptr], Some(Type::I32));
    let callee = module.import(&format!("{FUNCTION}{callee}"), sig.clone());
    let f = module.declare(format!("{FUNCTION}{name}"), sig, Linkage::Export);
    let mut b = FunctionBuilder::new(&mut module, f);
    let args = [0, 1, 2, 3].map(|i| b.param(i));
    let code = b.call(callee, &args);
    b.ret(code);
    b.finish();
    ir::verify(module).unwrap()
}

fn run(code: &Code, name: &str) -> u64 {
    CALLED.set(0);
    let address = code.function(&format!("{FUNCTION}{name}")).unwrap();
    // SAFETY: every wrapper has this type.
    let f = unsafe { std::mem::transmute::<*const u8, TVMFFISafeCallType>(address) };
    let mut result = TVMFFIAny::none();
    // SAFETY: a packed call.
    assert_eq!(unsafe { f(std::ptr::null_mut(), std::ptr::null(), 0, &raw mut result) }, 0);
    CALLED.take()
}

#[test]
fn symbols_of_an_engines_own_functions() {
    for &backend in Backend::ALL {
        let engine = engine(backend).build().unwrap();
        let callee = signature("callee");
        let calls = caller("f", "callee");
        let EngineError::Unresolved { names, .. } = engine.load(&calls).unwrap_err() else { panic!() };
        assert_eq!(names, ["__tvm_ffi_callee"]);
        // SAFETY: the kernels take nothing and return nothing.
        let compile = |kernel: &str| unsafe { engine.compile(&callee, &Kernel::symbol(kernel)) }.unwrap();
        let first = compile("one");
        let of_first = engine.clone().load(&calls).unwrap();
        let second = compile("two");
        let of_second = engine.load(&calls).unwrap();
        assert_eq!([run(&of_first, "f"), run(&of_second, "f")], [1, 2]);
        // the importing code keeps its callee alive; an unreferenced function is not found
        drop(second);
        assert_eq!(run(&of_second, "f"), 2);
        drop(of_second);
        assert_eq!(run(&engine.load(&calls).unwrap(), "f"), 1);
        drop(first);
        assert_eq!(run(&engine.load(&calls).unwrap(), "f"), 1);
        assert_eq!(run(&of_first, "f"), 1);
        drop(of_first);
        assert!(matches!(engine.load(&calls), Err(EngineError::Unresolved { .. })));
        // another engine has its own functions
        let other = self::engine(backend).build().unwrap();
        let _first = compile("one");
        assert!(matches!(other.load(&calls), Err(EngineError::Unresolved { .. })));
    }
}

#[test]
fn who_calls_code_with_state_keeps_its_module() {
    TOLD.take();
    let engine = engine(Backend::default()).import(helper(3)).build().unwrap();
    let g = signature("g");
    let module = engine.module_of(wrappers(&engine, &with_state(&["g"])), [&g].into_iter()).unwrap();
    let handle = module.as_object().as_ptr().addr();
    let code = engine.load(&caller("f", "g")).unwrap();
    drop(module);
    run(&code, "f");
    assert_eq!(TOLD.take(), [(handle, 0)]);
    drop(code);
    assert_eq!(TOLD.take(), [(0, 1001)]);
    assert!(matches!(engine.load(&caller("f", "g")), Err(EngineError::Unresolved { .. })));
}
