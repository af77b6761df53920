//! Everything that can be wrong between a signature and a kernel. Each defect is a specific error, and leaves nothing
//! behind.

use cranelift_codegen::ir::{AbiParam, InstBuilder, types};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Linkage, Module, default_libcall_names};

use tvm_ffi_codegen::artifact::LibraryBuilder;
use tvm_ffi_codegen::backend::CodegenError;
use tvm_ffi_codegen::embed::cranelift::KernelSource;
use tvm_ffi_codegen::embed::{self, EmbedError};
use tvm_ffi_codegen::engine::EngineError;
use tvm_ffi_codegen::lower::{Recipe, RuntimeHelpers};
use tvm_ffi_codegen::runtime::abi::{TVMFFIAny, TVMFFISafeCallType, TypeIndex};
use tvm_ffi_codegen::runtime::{AnyView, Function, capi};
use tvm_ffi_codegen::{
    Convention, Dim, Engine, Kernel, KernelReturn, LowerError, Operand, ParamType, ScalarType, Signature, ir,
};

use crate::support::sig;

fn lower_error(signature: &Signature, kernel: &Kernel) -> LowerError {
    match tvm_ffi_codegen::lower::lower(signature, kernel, RuntimeHelpers::Import) {
        Err(error) => error,
        Ok(_) => panic!("{signature} was lowered"),
    }
}

/// The rejected operations, in order.
fn operations(error: LowerError) -> Vec<String> {
    match error {
        LowerError::Body { errors, .. } => errors.into_iter().map(|m| m.operation).collect(),
        other => panic!("{other}"),
    }
}

#[test]
fn a_wrapper_may_not_take_all_of_the_stack() {
    let wide = |tensors: usize| {
        let ty = tvm_ffi_codegen::TensorType::new(["n"; 64], tvm_ffi_codegen::DLDataType::INT8);
        let names = (0..tensors).map(|i| format!("t{i}"));
        names.fold(Signature::builder("wide"), |b, name| b.param(name, ty.clone())).build().unwrap()
    };
    let kernel = Kernel::check_only();
    assert!(tvm_ffi_codegen::lower::lower(&wide(200), &kernel, RuntimeHelpers::Import).is_ok());
    let error = lower_error(&wide(300), &kernel);
    let text = "the wrapper of function `wide` needs 173216 bytes of stack, and may use 131072; most of them are for tensors, \
                their sizes and strides (168000)";
    assert_eq!(error.to_string(), text);
}

#[test]
fn a_wrapper_that_takes_too_much_stack_says_for_what() {
    let largest = |signature: Signature| match lower_error(&signature, &Kernel::check_only()) {
        LowerError::TooLarge { bytes, largest, .. } => {
            let sum: u32 = largest.iter().map(|(_, bytes)| bytes).sum();
            assert!(sum <= bytes && largest.is_sorted_by(|(_, more), (_, less)| more >= less), "{largest:?}");
            largest.into_iter().map(|(what, _)| what.split(',').next().unwrap_or_default()).collect::<Vec<_>>()
        }
        other => panic!("{other}"),
    };
    let many = |count: usize, ty: &dyn Fn(usize) -> ParamType| {
        (0..count).fold(Signature::builder("f"), |b, i| b.param(format!("p{i}"), ty(i))).build().unwrap()
    };
    assert_eq!(largest(many(4000, &|_| ParamType::Str)), ["strs and bytes", "arguments"]);
    assert_eq!(largest(many(300, &|_| ParamType::Shape(None))), ["shapes"]);
    let tuple = ParamType::Tuple(vec![ParamType::Bool(true); 100]);
    assert_eq!(largest(many(100, &|_| tuple.clone())), ["tuples and containers"]);
    let chain = |i| {
        ParamType::Shape(Some(vec![Dim::from(format!("s{i}")) + format!("s{}", i + 1), Dim::from(format!("s{i}"))]))
    };
    assert_eq!(
        largest(many(1000, &|i| if i == 999 { ParamType::Shape(Some(vec!["s999".into()])) } else { chain(i) })),
        ["dimensions that are expressions", "shapes", "dimension variables and device ids"]
    );
}

#[test]
fn errors_of_a_body_come_all_at_once() {
    let signature = sig("f(x: Tensor([n], float32), h: Tensor([n], float8_e4m3fn), a: int32, p: handle) -> int64");
    let kernel = Kernel::body(|b| {
        let (x, a) = (b.tensor("x"), b.arg("a"));
        b.arg("nobody");
        b.tensor("nobody");
        b.arg("x");
        b.tensor("a");
        b.dim("m");
        let _ = a + 1.5;
        let _ = a + x.load([0]);
        let _ = b.bool(true) + b.bool(false);
        let _ = -b.arg("p");
        x.load([0, 0]);
        x.store([0], 1.0);
        x.store([0], a);
        b.tensor("h").load([0]);
        x.size(1);
        x.stride(1);
        b.if_(a, || {});
        b.ret_none();
        b.raise("", "{} {} {}", [a]);
        b.load(ScalarType::Int8, a);
        let _ = b.arg("p").cast(ScalarType::Float64);
        let _ = a.cast(ScalarType::Handle);
        let _ = a.exp();
        b.int(ScalarType::Float32, 1);
    });
    let error = lower_error(&signature, &kernel);
    let text = error.to_string();
    assert!(text.starts_with("the body of function `f` has errors:\n  arg(\"nobody\"): `f("), "{text}");
    let want = [
        "arg(\"nobody\")",
        "tensor(\"nobody\")",
        "arg(\"x\")",
        "tensor(\"a\")",
        "dim(\"m\")",
        "add",
        "add",
        "add",
        "neg",
        "index",
        "store",
        "load",
        "size",
        "stride",
        "if: the condition",
        "ret_none",
        "raise",
        "raise",
        "load",
        "cast",
        "cast",
        "exp",
        "int",
    ];
    assert_eq!(operations(error), want, "{text}");
}

#[test]
fn casts_between_pointers_and_floats_are_errors_not_invalid_code() {
    for (from, to) in [("float64", ScalarType::Handle), ("handle", ScalarType::Float64), ("bool", ScalarType::Handle)] {
        let signature = sig(&format!("f(a: {from})"));
        let kernel = Kernel::body(move |b| {
            b.arg("a").cast(to);
        });
        assert_eq!(operations(lower_error(&signature, &kernel)), ["cast"], "{from} to {to}");
    }
    let kernel = Kernel::body(|b| b.ret(b.arg("a").cast(ScalarType::Bool)));
    let engine = Engine::new().unwrap();
    // SAFETY: the body reads no memory.
    let given = unsafe { engine.compile(&sig("f(a: handle) -> bool"), &kernel).unwrap() };
    assert!(!given.call((None::<i32>,)).unwrap().cast::<bool>().unwrap());
    // SAFETY: the function only looks whether there is a pointer.
    let pointer = unsafe { AnyView::from_opaque_ptr(std::ptr::without_provenance_mut(8)) };
    assert!(given.call((pointer,)).unwrap().cast::<bool>().unwrap());
}

#[test]
fn a_body_has_to_return_its_value_on_every_way() {
    let signature = sig("f(a: bool) -> int32");
    let partly = Kernel::body(|b| b.if_(b.arg("a"), || b.ret(1)));
    assert_eq!(operations(lower_error(&signature, &partly)), ["ret"]);
    let in_a_loop = Kernel::body(|b| b.for_range(0, 3, |_| b.ret(1)));
    assert_eq!(operations(lower_error(&signature, &in_a_loop)), ["ret"]);
    let none = Kernel::body(|_| {});
    assert_eq!(operations(lower_error(&signature, &none)), ["ret"]);
    let wrong = Kernel::body(|b| b.ret(b.arg("a")));
    assert_eq!(operations(lower_error(&signature, &wrong)), ["ret"]);
    let nothing = sig("f(a: bool)");
    assert_eq!(operations(lower_error(&nothing, &wrong)), ["ret"]);
    let on_both = Kernel::body(|b| b.if_else(b.arg("a"), || b.ret(1), || b.raise("ValueError", "no", ())));
    assert!(tvm_ffi_codegen::lower::lower(&signature, &on_both, RuntimeHelpers::Define).is_ok());
}

#[test]
fn kernels_have_to_fit_the_return() {
    let (nothing, value) = (sig("f(a: int32)"), sig("f(a: int32) -> float32"));
    let symbol = || Kernel::symbol("k");
    let cases = [
        (&nothing, symbol().returns(KernelReturn::Value), "returns a value, and the signature returns nothing"),
        (
            &value,
            symbol().returns(KernelReturn::Nothing),
            "has to return float32, as the signature does, or a status and write it",
        ),
        (&value, Kernel::check_only(), "is missing: the signature returns float32, and only a kernel can make it"),
        (&nothing, Kernel::address(std::ptr::null()), "the kernel of function `f` is at address NULL"),
        (&nothing, Kernel::symbol(""), "kernel symbol \"\" of function `f` is empty or holds a NUL byte"),
        (&nothing, Kernel::symbol("a\0b"), "kernel symbol \"a\\0b\" of function `f` is empty or holds a NUL byte"),
    ];
    for (signature, kernel, problem) in cases {
        let text = lower_error(signature, &kernel).to_string();
        assert!(text.ends_with(problem), "{text}");
    }
}

#[test]
fn a_null_address_is_an_error_of_its_own() {
    let error = lower_error(&sig("f(a: int32)"), &Kernel::address(std::ptr::null()));
    assert_eq!(error, LowerError::NullAddress { function: "f".to_owned() });
}

/// The only lowering error of an engine error.
fn only(error: &EngineError) -> &LowerError {
    match error {
        EngineError::Functions(errors) if errors.len() == 1 => &errors[0],
        other => panic!("{other:?}"),
    }
}

#[test]
fn only_native_kernels_are_told_how_they_are_called() {
    let signature = sig("f(a: int32)");
    let cases = [
        (Kernel::body(|_| {}).convention(Convention::Packed), "a body", "convention"),
        // although bodies are called by that convention
        (Kernel::body(|_| {}).convention(Convention::Flat), "a body", "convention"),
        (Kernel::body(|_| {}).returns(KernelReturn::Status), "a body", "returns"),
        (Kernel::check_only().convention(Convention::DlTensor), "check-only", "convention"),
        (Kernel::check_only().returns(KernelReturn::Nothing), "check-only", "returns"),
    ];
    let engine = Engine::new().unwrap();
    for (kernel, is, called) in cases {
        let Err(error) = engine.compile_code([(&signature, &kernel)]) else { panic!("{kernel:?}") };
        let error = only(&error).clone();
        let text = format!(
            "the kernel of function `f` is {is}, and `{called}` is for native kernels, which are symbols or addresses; leave it out"
        );
        assert_eq!(error.to_string(), text);
        let LowerError::NotNative { function, kernel, method, .. } = error else { panic!("{error}") };
        assert_eq!((function.as_str(), kernel, method), ("f", is, called));
    }
}

#[test]
fn two_functions_of_one_name_are_an_error() {
    let (a, b) = (sig("f(a: int32)"), sig("f(b: int32)"));
    let kernel = Kernel::check_only();
    let engine = Engine::new().unwrap();
    let Err(error) = engine.compile_code([(&a, &kernel), (&b, &kernel)]) else { panic!() };
    assert_eq!(error.to_string(), "function `f` is defined twice; give each wrapper of a module a name of its own");
    // a function with an error hides none of the errors in later functions
    let bad = Kernel::body(|b| {
        b.arg("nobody");
    });
    let g = sig("g()");
    let recipe = Recipe { helpers: RuntimeHelpers::Define, ..Recipe::default() };
    let recipe = recipe.function(&g, &bad).function(&a, &kernel).function(&b, &kernel).function(&g, &bad);
    let errors = recipe.lower().unwrap_err();
    assert!(
        matches!(&errors[..], [LowerError::Body { .. }, LowerError::DuplicateName { name }, ..] if name == "f"),
        "{errors:?}"
    );
    assert_eq!(errors.len(), 3);
}

#[test]
fn unresolved_symbols_are_all_named() {
    let (a, b) = (sig("f(a: int32)"), sig("g(b: int64)"));
    let (first, second) = (Kernel::symbol("no_such_kernel"), Kernel::symbol("none_such_either"));
    let Err(error) = Engine::new().unwrap().compile_code([(&a, &first), (&b, &second)]) else { panic!() };
    let EngineError::Unresolved { names, .. } = &error else { panic!("{error}") };
    assert_eq!(names, &["no_such_kernel", "none_such_either"]);
    assert!(error.to_string().contains("`symbol(name, address)`"), "{error}");
}

extern "C" fn two(_: i64, _: i64) {}

#[test]
fn one_symbol_has_one_prototype() {
    let (one, two_args) = (sig("f(a: int32)"), sig("g(a: int64, b: int64)"));
    let kernel = Kernel::symbol("k");
    // SAFETY: never called.
    let engine = unsafe { Engine::builder().symbol("k", two as *const u8) }.build().unwrap();
    let Err(error) = engine.compile_code([(&two_args, &kernel), (&one, &kernel)]) else { panic!() };
    let text = error.to_string();
    assert!(
        text.starts_with("the kernel of function `f` is the symbol `k`, but the module already has it as an import"),
        "{text}"
    );
    assert!(engine.compile_code([(&two_args, &kernel)]).is_ok());
    assert!(engine.compile_code([(&two_args, &kernel), (&sig("h(a: int64, b: uint64)"), &kernel)]).is_ok());

    // a kernel can't be a wrapper: neither its own nor an earlier one
    let own = Kernel::symbol("__tvm_ffi_f");
    let Err(error) = engine.compile_code([(&one, &own)]) else { panic!() };
    assert!(matches!(error, EngineError::Functions(_)), "{error}");
    let Err(error) = engine.compile_code([(&one, &Kernel::check_only()), (&two_args, &own)]) else { panic!() };
    assert!(error.to_string().ends_with("already has it as a function that it defines"), "{error}");

    // nor can it be a runtime helper, with any prototype
    for helper in ["__tvm_ffi_codegen_bind", "__tvm_ffi_codegen_check"] {
        let Err(error) = engine.compile_code([(&two_args, &Kernel::symbol(helper))]) else { panic!() };
        assert!(matches!(only(&error), LowerError::SymbolConflict { .. }), "{error}");
    }

    // functions that bodies import from libm
    let exp = Kernel::symbol("exp");
    let body = Kernel::body(|b| {
        b.arg("a").exp();
    });
    let with_exp = sig("e(a: float64)");
    let Err(error) = engine.compile_code([(&two_args, &exp), (&with_exp, &body)]) else { panic!() };
    assert!(error.to_string().contains("exp: needs the symbol `exp`, which the module has as an import"), "{error}");
    let Err(error) = engine.compile_code([(&with_exp, &body), (&two_args, &exp)]) else { panic!() };
    assert!(matches!(only(&error), LowerError::SymbolConflict { .. }), "{error}");
}

#[test]
fn kernels_may_have_the_names_of_ordinary_things() {
    let signature = sig("f(a: int64, b: int64)");
    for name in ["messages", "names", "decimal", "report", "f", "exp", "main", "with space", "\u{e9}"] {
        // SAFETY: that is the prototype.
        let engine = unsafe { Engine::builder().symbol(name, two as *const u8) }.build().unwrap();
        engine.compile_code([(&signature, &Kernel::symbol(name))]).unwrap();
        let module = tvm_ffi_codegen::lower::lower(&signature, &Kernel::symbol(name), RuntimeHelpers::Define).unwrap();
        engine.load(&ir::verify(module).unwrap()).unwrap();
    }
}

/// A module of another compiler, with the C API.
fn own_module() -> JITModule {
    let isa = cranelift_native::builder().unwrap();
    let mut flags = cranelift_codegen::settings::builder();
    cranelift_codegen::settings::Configurable::set(&mut flags, "is_pic", "false").unwrap();
    let isa = isa.finish(cranelift_codegen::settings::Flags::new(flags)).unwrap();
    let mut builder = JITBuilder::with_isa(isa, default_libcall_names());
    builder.symbols(capi::symbols().iter().map(|(name, address)| (*name, address.as_ptr().cast())));
    JITModule::new(builder)
}

/// `int64 twice(int64)`, built with cranelift_frontend.
fn define_twice(module: &mut JITModule) -> FuncId {
    let mut context = module.make_context();
    context.func.signature.params.push(AbiParam::new(types::I64));
    context.func.signature.returns.push(AbiParam::new(types::I64));
    let id = module.declare_function("twice", Linkage::Local, &context.func.signature).unwrap();
    let mut frontend = FunctionBuilderContext::new();
    let mut b = FunctionBuilder::new(&mut context.func, &mut frontend);
    let block = b.create_block();
    b.append_block_params_for_function_params(block);
    b.switch_to_block(block);
    b.seal_all_blocks();
    let a = b.block_params(block)[0];
    let sum = b.ins().iadd(a, a);
    b.ins().return_(&[sum]);
    b.finalize(module.target_config());
    module.define_function(id, &mut context).unwrap();
    id
}

#[test]
fn a_kernel_in_the_callers_module_is_called_through_its_wrapper() {
    let mut module = own_module();
    let twice = define_twice(&mut module);
    let signature = sig("twice(a: int64) -> int64");
    let id = embed::cranelift::add_wrapper(&mut module, &signature, twice).unwrap();
    module.finalize_definitions().unwrap();
    let address = module.get_finalized_function(id);
    // SAFETY: wrappers are of this type; the module lives to the end of the test.
    let function = unsafe {
        let safe_call = std::mem::transmute::<*const u8, TVMFFISafeCallType>(address);
        Function::from_code(safe_call, ())
    };
    assert_eq!(function.call((21,)).unwrap().cast::<i64>().unwrap(), 42);
    let error = function.call(("x",)).unwrap_err();
    assert!(error.to_string().ends_with("expected int64, got str"), "{error}");
    drop(function);
    // SAFETY: neither its code nor its data is used any more.
    unsafe { module.free_memory() };
}

#[test]
fn a_failure_leaves_the_callers_module_as_it_was() {
    let mut module = own_module();
    let twice = define_twice(&mut module);
    let good = sig("twice(a: int64) -> int64");
    let names = |module: &JITModule| {
        let all = module.declarations().get_functions();
        all.map(|(id, decl)| (id, decl.name.clone())).collect::<Vec<_>>()
    };
    let before = names(&module);

    let other = sig("other(a: int32) -> int64");
    let error = embed::cranelift::add_wrapper(&mut module, &other, twice).unwrap_err();
    assert!(
        matches!(&error, EmbedError::Functions(all) if matches!(all[..], [LowerError::Prototype { .. }])),
        "{error}"
    );
    assert_eq!(names(&module), before);

    let body = Kernel::body(|b| {
        b.arg("nobody");
    });
    let targets = [(&good, KernelSource::from(twice)), (&other, KernelSource::from(body))];
    let error = embed::cranelift::add_wrappers(&mut module, targets).unwrap_err();
    assert!(matches!(&error, EmbedError::Functions(all) if matches!(all[..], [LowerError::Body { .. }])), "{error}");
    assert_eq!(names(&module), before);

    let twice_over = [(&good, KernelSource::from(twice)), (&good, KernelSource::from(twice))];
    let error = embed::cranelift::add_wrappers(&mut module, twice_over).unwrap_err();
    assert!(
        matches!(&error, EmbedError::Functions(all) if matches!(all[..], [LowerError::DuplicateName { .. }])),
        "{error}"
    );
    assert_eq!(names(&module), before);

    // the module is still usable, and a name that is taken is rejected
    embed::cranelift::add_wrapper(&mut module, &good, twice).unwrap();
    let after = names(&module);
    let error = embed::cranelift::add_wrapper(&mut module, &good, twice).unwrap_err();
    assert!(matches!(error, EmbedError::Codegen(CodegenError::Cranelift(_))), "{error}");
    assert_eq!(names(&module), after);
    module.finalize_definitions().unwrap();
    // SAFETY: nothing of it is used.
    unsafe { module.free_memory() };
}

#[test]
fn constants_out_of_range_are_errors() {
    let signature = sig("f(x: uint8, y: int64, z: uint64, v: float32, w: int8)");
    let kernel = Kernel::body(|b| {
        let [x, y, z, v, w] = ["x", "y", "z", "v", "w"].map(|name| b.arg(name));
        // the ends of each range are valid
        let _ =
            (x.lt(0), x.lt(255), w + -128, w + 127, z.eq(u64::MAX), y.eq(i64::MIN), v * f32::MAX, v * f64::INFINITY);
        let _ = (v * u64::MAX, b.int(ScalarType::UInt64, u64::MAX), y + usize::MAX / 2);
        x.lt(456);
        x.lt(-1);
        let _ = w + 128_u8;
        let _ = -129 - w;
        let _ = y + u64::MAX;
        let _ = y * usize::MAX;
        let _ = z / -1;
        let _ = v * 1e300;
        let _ = -1e39 / v;
        b.int(ScalarType::Int8, 128);
        b.int(ScalarType::UInt64, -1);
        b.int(ScalarType::UInt64, u128::MAX);
        b.for_range(0, u64::MAX, |_| {});
    });
    let error = lower_error(&signature, &kernel);
    let text = error.to_string();
    let lines: Vec<&str> = text.lines().skip(1).map(str::trim).collect();
    let want = [
        "lt: 456 is out of the range of uint8, which is 0 to 255",
        "lt: -1 is out of the range of uint8, which is 0 to 255",
        "add: 128 is out of the range of int8, which is -128 to 127",
        "sub: -129 is out of the range of int8, which is -128 to 127",
        "add: 18446744073709551615 is out of the range of int64, which is -9223372036854775808 to 9223372036854775807",
        "mul: 18446744073709551615 is out of the range of int64, which is -9223372036854775808 to 9223372036854775807",
        "div: -1 is out of the range of uint64, which is 0 to 18446744073709551615",
        "mul: 1e300 is out of the range of float32",
        "div: -1e39 is out of the range of float32",
        "int: 128 is out of the range of int8, which is -128 to 127",
        "int: -1 is out of the range of uint64, which is 0 to 18446744073709551615",
        "int: the number is out of the range of uint64",
        "for: end: 18446744073709551615 is out of the range of int64, which is -9223372036854775808 to 9223372036854775807",
    ];
    assert_eq!(lines, want);
}

#[test]
fn expressions_end_with_their_block() {
    use std::cell::Cell;
    let signature = sig("f(x: Tensor([n], int64), a: int64, c: bool) -> int64");
    let kernel = Kernel::body(|b| {
        let (x, c) = (b.tensor("x"), b.arg("c"));
        let kept = Cell::new(b.arg("a"));
        b.for_range(0, x.size(0), |i| kept.set(i));
        let _ = kept.get() + 1;
        let _ = 1 - kept.get();
        let _ = -kept.get();
        kept.get().cast(ScalarType::Int32);
        b.if_else(c, || kept.set(b.arg("a") * 2), || x.store([kept.get()], 0));
        x.store([0], kept.get());
        b.raise("ValueError", "{}", [kept.get()]);
        b.for_range(kept.get(), 3, |_| {});
        b.fold(0, 3, kept.get(), |_, sum| sum);
        b.while_(
            || {
                kept.set(x.load([0]));
                kept.get().gt(0)
            },
            || x.store([0], kept.get()),
        );
        b.if_else_value(kept.get().gt(0), || b.i64(1), || kept.get());
        let pointer = Cell::new(x.ptr());
        b.if_(c, || pointer.set(x.element_ptr([0])));
        b.load(ScalarType::Int64, pointer.get());
        let flag = Cell::new(c);
        b.if_(c, || flag.set(!c));
        b.if_(flag.get(), || {});
        flag.get().select(b.i64(1), 2);
        b.ret(kept.get());
    });
    let error = lower_error(&signature, &kernel);
    let text = error.to_string();
    assert!(
        text.contains("add: an operand was made inside of a loop or conditional that has ended; carry it out"),
        "{text}"
    );
    let want = [
        "add",
        "sub",
        "neg",
        "cast",
        "index",
        "store",
        "raise",
        "for: start",
        "fold: the first value",
        "store",
        "gt",
        "if: the other value",
        "load",
        "if: the condition",
        "select",
        "ret",
    ];
    assert_eq!(operations(error), want, "{text}");

    // parameters and their sizes can be used from the start of the body, wherever they are requested; so can the values
    // that a loop carries
    let kernel = Kernel::body(|b| {
        let kept = Cell::new(b.i64(0));
        b.for_range(0, 3, |_| kept.set(b.dim("n")));
        let n = kept.get() + 1;
        let sum = b.fold(0, n, n, |i, sum| {
            kept.set(sum);
            sum + i
        });
        b.if_(b.arg("c"), || kept.set(b.arg("a")));
        b.ret(kept.get() + sum);
    });
    ir::verify(tvm_ffi_codegen::lower::lower(&signature, &kernel, RuntimeHelpers::Define).unwrap()).unwrap();
}

#[test]
fn errors_of_loops_messages_and_numbers() {
    let signature = sig("f(a: int64, t: Tuple[int64, Tensor([n], float32)], s: str, v: float32)");
    let kernel = Kernel::body(|b| {
        let a = b.arg("a");
        b.for_range_step(0, 10, 0, |_| {});
        b.for_range_step(0, 10, -2, |_| {});
        b.fold_step(0, 10, b.i64(0), a, |_, sum| sum);
        b.for_range_step(0, 10, 1.5, |_| {});
        b.while_(|| a, || {});
        b.while_loop([a], |[a]| a.gt(0), |_| [b.f32(0.0)]);
        b.raise("ValueError", &"{}".repeat(16), [a; 16]);
        b.ensure(a.gt(0), "ValueError", "{} {}", [a]);
        b.param(4).item(3).value();
        b.param(1).value();
        b.param(1).item(2).tensor();
        b.param(1).item(1).value();
        b.param(1).item(0).tensor();
        b.param(0).size();
        b.param(2).is_given();
        a.sin();
        a.round();
        a.trunc();
        b.arg("v").mul_hi(1.0);
        b.arg("v").bitcast(ScalarType::Int64);
        let _ = 1.5 * a;
        let _ = 2 & b.arg("v");
        let _ = true & a;
        let _ = b.bool(true) % true;
    });
    let error = lower_error(&signature, &kernel);
    let text = error.to_string();
    for want in [
        "for: step: expected a step of at least 1, got -2",
        "raise: a message prints at most 15 values, this one 16",
        "ensure: the message prints 2 values, got 1",
        "has 4 parameters",
        "item(2): `t: Tuple[int64, Tensor([n], float32)]` has 2 items",
        "size: `a: int64` has no size",
    ] {
        assert!(text.contains(want), "{want}: {text}");
    }
    let want = [
        "for: step",
        "for: step",
        "for: step",
        "for: step",
        "while: the condition",
        "while: the next value",
        "raise",
        "ensure",
        "param(4)",
        "value",
        "item(2)",
        "value",
        "tensor",
        "size",
        "is_given",
        "sin",
        "round",
        "trunc",
        "mul_hi",
        "bitcast",
        "mul",
        "and",
        "and",
        "rem",
    ];
    assert_eq!(operations(error), want, "{text}");
}

#[test]
fn what_a_body_gives_has_debug() {
    let kernel = Kernel::body(|b| {
        assert_eq!(format!("{b:?}"), "Body { signature: f(x: Tensor([n], int8), a: int32), .. }");
        assert_eq!(format!("{:?}", b.tensor("x")), "TensorRef(x: Tensor([n], int8))");
        assert!(format!("{:?}", b.arg("a")).ends_with(": int32)"));
        assert_eq!(format!("{:?} {:?}", Operand::from(3_usize), Operand::from(0.5)), "Int(3) Float(0.5)");
    });
    tvm_ffi_codegen::lower::lower(&sig("f(x: Tensor([n], int8), a: int32)"), &kernel, RuntimeHelpers::Import).unwrap();
}

#[test]
fn reserved_symbols_are_no_kernels() {
    let signature = sig("f(a: int64) -> Tensor([a], float32)");
    let reserved = [
        ("TVMFFIObjectDecRef", "reserved for the C API"),
        ("TVMFFIEnvTensorAlloc", "reserved for the C API"),
        ("TVMFFIErrorSetRaisedFromCStrParts", "reserved for the C API"),
        ("__tvm_ffi__library_ctx", "reserved for what a library carries"),
        ("demo.__tvm_ffi__library_ctx", "reserved for what a library carries"),
        ("__tvm_ffi__library_bin", "reserved for what a library carries"),
        ("__tvm_ffi__metadata_f", "reserved for what a library carries"),
        ("__tvm_ffi__doc_f", "reserved for what a library carries"),
        ("__tvm_ffi_f-slow-path", "reserved for parts of wrappers"),
        ("__tvm_ffi_f-body", "reserved for parts of wrappers"),
        (".L1", "a label that assemblers keep to themselves"),
        ("llvm.memcpy.p0.p0.i64", "reserved for the intrinsics of LLVM"),
        ("\u{1}f", "taken by LLVM for the name behind the first character"),
    ];
    let engine = Engine::new().unwrap();
    for (name, meaning) in reserved {
        let error = lower_error(&signature, &Kernel::symbol(name));
        let text = format!(
            "the kernel of function `f` can't be the symbol {name:?}, which is {meaning}; give the kernel another name"
        );
        assert_eq!(error.to_string(), text);
        let Err(error) = engine.compile_code([(&signature, &Kernel::symbol(name))]) else { panic!("{name}") };
        assert!(matches!(only(&error), LowerError::ReservedSymbol { .. }), "{error}");
        let library = LibraryBuilder::new().function(&signature, &Kernel::symbol(name)).emit();
        assert!(library.is_err_and(|e| e.to_string() == text), "{name}");
    }
    // these names only look reserved
    for name in ["TVM_FFI_kernel", "L1", ".text", "llvm_memcpy", "__tvm_ffi_g", "__tvm_ffi__other"] {
        let object = LibraryBuilder::new().function(&signature, &Kernel::symbol(name)).emit();
        assert!(object.is_ok(), "{name}: {:?}", object.err());
    }
}

#[test]
fn a_wrapper_without_arguments_needs_no_array() {
    // SAFETY: nothing is called.
    let function = unsafe { Engine::new().unwrap().compile(&sig("f()"), &Kernel::check_only()).unwrap() };
    let mut result = TVMFFIAny::none();
    // SAFETY: there are no arguments.
    let code = unsafe { (function.as_safe_call())(function.as_raw_handle(), std::ptr::null(), 0, &raw mut result) };
    assert_eq!((code, result.type_index), (0, TypeIndex::NONE.0));
}
