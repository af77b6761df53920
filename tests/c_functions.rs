//! C functions made from bodies. Kernels of a caller's module use them to raise errors and to call functions of TVM
//! FFI.

use std::borrow::Cow;

use cranelift_codegen::ir::InstBuilder;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_module::{FuncId, Module};
use tvm_ffi_codegen::embed::cranelift::{self, Native, Wrappers};
use tvm_ffi_codegen::lower::{Recipe, RecipeFunction, lower};
use tvm_ffi_codegen::runtime::abi::DLTensor;
use tvm_ffi_codegen::runtime::{Any, AnyView, Array, DLDevice, Error, Function, Map, ObjectRef, Tensor, registry};
use tvm_ffi_codegen::spec::{self, Part, SourceLocation};
use tvm_ffi_codegen::{
    Convention, DLDataType, DLDeviceType, Engine, HostProgram, Kernel, KernelReturn, ParamType, Signature,
};

/// The signature of a C function: that of the function whose kernel it is, under another name.
fn c(name: &str, rest: &str, line: u32) -> Signature {
    let signature: Signature = format!("{name}{rest}").parse().unwrap();
    signature.with_location(Part::Signature, SourceLocation::new("k.dsl", line, "f")).unwrap()
}

/// The wrapper's kernel is the C function itself, so it receives a kernel's arguments.
#[test]
fn kernels_raise_and_call() {
    let scale = |text: String, flag: bool, x: i64| match text.as_str() {
        "long enough for an object" if flag => Ok(x as f64 * 0.5),
        "" => Ok(-1.0),
        other => Err(Error::new("KeyError", other)),
    };
    registry::set_global("c_functions.scale", Function::from_typed(scale), true).unwrap();
    registry::set_global("c_functions.flip", Function::from_typed(|x: bool| !x), true).unwrap();
    let mut module = cranelift::jit_module(cranelift::host_isa().unwrap()).unwrap();
    let types = ["(s: str, b: bool, x: int8) -> float64", "(x: bool) -> bool", "(s: str, x: int64)"];
    let functions = Wrappers::in_process()
        .c_call(&c("c_scale", types[0], 3), "c_functions.scale")
        .c_call(&c("c_flip", types[1], 4), "c_functions.flip")
        .c_raise(&c("c_refuse", types[2], 5), "my.Error", "no {} of {}")
        .add_to(&mut module)
        .unwrap();
    assert_eq!(functions.functions().count(), 0, "they are no functions of the library");
    let wrappers =
        ["scale", "flip", "refuse"].iter().zip(types).fold(Wrappers::in_process(), |library, (name, rest)| {
            let kernel = Kernel::symbol(format!("c_{name}")).returns(KernelReturn::Status);
            library.function(&format!("{name}{rest}").parse().unwrap(), kernel)
        });
    let wrappers = wrappers.add_to(&mut module).unwrap();
    // SAFETY: the C functions read the texts that they get.
    let module = unsafe { cranelift::finish(module, [functions, wrappers], ()).unwrap() };
    let get = |name: &str| module.get_function(name).unwrap().unwrap();

    let scaled = |text: &str| get("scale").call((text, true, -7)).map(|any| any.cast::<f64>().unwrap());
    assert_eq!(scaled("long enough for an object").unwrap(), -3.5);
    assert_eq!(scaled("").unwrap(), -1.0);
    let error = scaled("other").unwrap_err();
    assert_eq!(error.to_string(), "KeyError: other");
    assert_eq!(error.backtrace().matches("File \"k.dsl\", line 3, in f").count(), 1, "{}", error.backtrace());
    assert!(!get("flip").call((true,)).unwrap().cast::<bool>().unwrap());
    let error = get("refuse").call(("mode", -5)).unwrap_err();
    assert_eq!((error.kind(), error.message()), ("my.Error", "no mode of -5"));
    assert!(error.backtrace().contains("File \"k.dsl\", line 5, in f"), "{}", error.backtrace());
}

/// The C functions of a text, each behind a wrapper with the same parameters.
pub fn of_text(text: &str) -> Vec<Function> {
    let program = HostProgram::parse(text).unwrap();
    let mut module = cranelift::jit_module(cranelift::host_isa().unwrap()).unwrap();
    let (mut functions, mut wrappers) = (Wrappers::in_process(), Wrappers::in_process());
    for (signature, body) in program.c_functions() {
        functions = functions.c_function(signature, body.clone());
        let kernel = Kernel::symbol(functions.c_symbol(signature)).returns(KernelReturn::Status);
        wrappers = wrappers.function(signature, kernel);
    }
    let added = [functions.add_to(&mut module).unwrap(), wrappers.add_to(&mut module).unwrap()];
    // SAFETY: the bodies keep to the shapes that their signatures state.
    unsafe { cranelift::finish_functions(module, added, ()) }.unwrap()
}

#[test]
fn c_functions_ask_what_their_signatures_leave_open() {
    let text =
        "extern c_ask(x: Tensor([n], any), y: Tensor([...], float32, strides=any, device=any), k: Optional[int64])
    -> float64 {
  if x.dtype == float16 and k.given { return float64(x[0]) + float64(k); }
  if y.ndim == 2 and y.device.kind == \"cpu\" and is_contiguous(y) { return float64(y[0, 1]) + float64(y.strides[0]); }
  ensure x.dtype != y.dtype, TypeError(\"both are {}\", x.dtype);
  return float64(y.ndim * 100 + y.device.id);
}
extern c_kinds(v: Any, t: dtype, d: device) -> int64 {
  if v is str { let s = v as str; return s.size; }
  ensure v is int or is_object(v, \"ffi.Function\"), TypeError(\"{} on {}\", t, d);
  let same = if t == float32 and d == \"cuda:2\" { 10 } else { 0 };
  return same + d.id;
}";
    let functions = of_text(text);
    let [ask, kinds] = functions.as_slice() else { panic!("{functions:?}") };
    let halves = Tensor::from_slice(&[0_i16], &[1]).unwrap();
    let (three, floats) = (Tensor::from_slice(&[3_i32], &[1]).unwrap(), [1.0_f32, 2.5, 3.0, 4.0]);
    let (matrix, vector) =
        (Tensor::from_slice(&floats, &[2, 2]).unwrap(), Tensor::from_slice(&floats[..1], &[1]).unwrap());
    let asked = |x: &Tensor, y: &Tensor| ask.call((x, y, 5)).map(|any| any.cast::<f64>().unwrap());
    assert_eq!(asked(&three, &matrix).unwrap(), 4.5);
    assert_eq!(asked(&halves, &vector).unwrap(), 100.0);
    assert_eq!(asked(&vector, &vector).unwrap_err().to_string(), "TypeError: both are float32");
    let half = half_tensor(0x3e00);
    assert_eq!(asked(&half, &vector).unwrap(), 6.5);
    let (float, device) = (DLDataType::FLOAT32, DLDevice::new(DLDeviceType::CUDA, 2));
    let kind = |v: Any| kinds.call((v, float, device)).map(|any| any.cast::<i64>().unwrap());
    assert_eq!(kind("four".into()).unwrap(), 4);
    assert_eq!(kind(7.into()).unwrap(), 12);
    assert_eq!(kind(ask.clone().into()).unwrap(), 12);
    assert_eq!(kind(1.5.into()).unwrap_err().to_string(), "TypeError: float32 on cuda:2");
}

/// A tensor with one float16.
fn half_tensor(bits: i16) -> Tensor {
    let memory = Tensor::from_slice(&[bits], &[1]).unwrap();
    let prototype = DLTensor { dtype: DLDataType::FLOAT16, ..*memory.as_dl_tensor() };
    // SAFETY: the view has the tensor's memory and elements of the same size.
    unsafe { Tensor::create_unsafe_view(&memory, &prototype) }.unwrap()
}

/// A kernel of its own with the prototype of the C function, which it calls.
fn forwarding(module: &mut impl Module, native: &mut Native<'_>, callee: FuncId) {
    let mut context = module.make_context();
    context.func.signature = module.declarations().get_function_decl(native.function()).signature.clone();
    let callee = module.declare_func_in_func(callee, &mut context.func);
    let mut frontend = FunctionBuilderContext::new();
    let mut b = FunctionBuilder::new(&mut context.func, &mut frontend);
    let entry = b.create_block();
    b.append_block_params_for_function_params(entry);
    b.switch_to_block(entry);
    b.seal_all_blocks();
    let values = b.block_params(entry).to_vec();
    let last = |part: &str| native.parameters().iter().position(|param| param.key() == part).map(|at| values[at]);
    let passed = native.parameters().iter().filter(|param| param.key().ends_with(".argument"));
    let mut args: Vec<_> = passed.map(|param| values[param.position]).collect();
    args.extend(last("->.value"));
    let call = b.ins().call(callee, &args);
    let status = b.inst_results(call)[0];
    b.ins().return_(&[status]);
    b.finalize(module.target_config());
    module.define_function(native.function(), &mut context).unwrap();
}

fn keep(x: Any, k: i64) -> Any {
    if k == 7 { x } else { k.into() }
}

/// Kernels pass arguments on as they came, of each type: the callee gets the caller's own objects.
#[test]
fn kernels_pass_arguments_on() {
    const TYPES: [&str; 10] = [
        "Tensor([n], float32)",
        "Tensor([n], float32, strides=[s])",
        "Optional[Tensor([n], float32)]",
        "Array[float64]",
        "Map[str, Any]",
        "Tuple[int64, Tensor([n], float32)]",
        "str",
        "Optional[int64]",
        "Function",
        "float64",
    ];
    registry::set_global("c_functions.keep", Function::from_typed(keep), true).unwrap();
    let mut module = cranelift::jit_module(cranelift::host_isa().unwrap()).unwrap();
    let mut library = Wrappers::in_process();
    for (i, ty) in TYPES.iter().enumerate() {
        let signature = format!("f{i}(before: int64, x: {ty}, k: int64 = 7) -> Any").parse().unwrap();
        let passed_on = ["x", "k"].map(str::to_owned);
        let mut native = library.native(&mut module, &signature, &passed_on).unwrap();
        let types = [ParamType::Any, ParamType::Any];
        let callee = native.call(&mut module, None, "c_functions.keep", types, Some(ParamType::Any)).unwrap();
        forwarding(&mut module, &mut native, callee);
    }
    let added = library.add_to(&mut module).unwrap();
    // SAFETY: the kernels only pass arguments on.
    let functions = unsafe { cranelift::finish_functions(module, [added], ()).unwrap() };

    let x = Tensor::from_slice(&[1.0f32, 2.0], &[2]).unwrap();
    let map = Map::from_iter([("a", 1)]);
    let long = "a text that is an object of its own";
    let args: [Any; 10] = [
        x.clone().into(),
        x.clone().into(),
        x.clone().into(),
        Array::<f64>::from_iter([1.0, 2.0]).into(),
        map.into(),
        Array::<Any>::from_iter([Any::from(3), x.clone().into()]).into(),
        long.into(),
        5.into(),
        functions[0].clone().into(),
        1.5.into(),
    ];
    let owners = |any: &Any| any.cast::<ObjectRef>().ok().map(|object| object.strong_count() - 1);
    for (function, arg) in functions.iter().zip(&args) {
        let before = owners(arg);
        let kept = function.call((1, arg)).unwrap();
        match (arg.cast::<ObjectRef>(), kept.cast::<ObjectRef>()) {
            (Ok(arg), Ok(kept)) => assert!(arg.ptr_eq(&kept), "{arg:?}"),
            _ => assert_eq!(format!("{arg:?}"), format!("{kept:?}")),
        }
        assert_eq!(owners(arg), before.map(|count| count + 1), "{arg:?}");
        drop(kept);
        assert_eq!(owners(arg), before);
    }
    for function in [2, 7] {
        assert_eq!(functions[function].call((1, AnyView::none())).unwrap().type_key(), "None");
    }
    // the default of `k` is passed where a call leaves it out, and otherwise the caller's own value
    assert_eq!(functions[0].call((1, &args[0], 8)).unwrap().cast::<i64>().unwrap(), 8);
    // the checks take an int for a float, and the callee gets the int
    assert_eq!(functions[9].call((1, 2)).unwrap().type_key(), "int");

    // A moved argument counts as its object. The callee can't take it from the kernel, which still uses it.
    let moves = Kernel::body(|b| {
        let owned = b.variable();
        owned.set(b.param(1));
        b.ret_value(b.call(b.param(0), (1, owned.get().by_move())).returns(ParamType::Any));
    });
    let signature = "moves(f: Function, x: Any) -> Any".parse().unwrap();
    // SAFETY: the body reads no memory.
    let moves = unsafe { Engine::new().unwrap().compile(&signature, &moves).unwrap() };
    for number in [0, 1, 2] {
        let before = owners(&args[0]);
        let kept = moves.call((&functions[number], &args[0])).unwrap();
        assert_eq!(kept.type_key(), "ffi.Tensor");
        drop(kept);
        assert_eq!(owners(&args[0]), before);
    }
}

#[test]
fn names_that_are_no_arguments_are_refused() {
    let prototype = |kernel: Kernel, text: &str| kernel.with_arguments(["x"]).c_prototype(&text.parse().unwrap());
    let plain = || Kernel::symbol("k");
    let stated = plain().args([spec::KernelArg::Param("y".to_owned())]).convention(Convention::Flat);
    assert_eq!(prototype(stated, "f(x: str, y: int64)").unwrap(), "void k(int64_t y, const TVMFFIAny* x_argument);");
    let descriptors = plain().convention(Convention::DlTensor);
    assert_eq!(
        prototype(descriptors, "f(x: Tensor([n], int8), x_argument: bool)").unwrap(),
        "void k(DLTensor* x, uint8_t x_argument, const TVMFFIAny* x_argument_);"
    );
    for (kernel, text, problem) in [
        (plain(), "f(y: int64)", "flat: it takes the caller's argument `x`, but a call doesn't pass it"),
        (
            plain(),
            "f(t: Tensor([n], int8, device=\"cuda\"), x: EnvStream)",
            "flat: it takes the caller's argument `x`, but a call",
        ),
        (plain().convention(Convention::Packed), "f(x: int64)", "packed: it passes all of the caller's arguments"),
        (Kernel::check_only(), "f(x: int64)", "`with_arguments` is for native kernels"),
    ] {
        let error = kernel.with_arguments(["x"]);
        let error = lower(&text.parse().unwrap(), &error, Default::default()).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
}

/// A type that a C function can't have is an error, and nothing is added to the library.
#[test]
fn errors_of_declared_c_functions() {
    let mut module = cranelift::jit_module(cranelift::host_isa().unwrap()).unwrap();
    let mut library = Wrappers::in_process();
    let signature = "f(x: Tensor([n], float32))".parse().unwrap();
    let unknown = library.native(&mut module, &signature, &["y".to_owned()]).unwrap_err().to_string();
    assert!(unknown.contains("takes the caller's argument `y`"), "{unknown}");
    let mut native = library.native(&mut module, &signature, &[]).unwrap();
    let error = native.raise(&mut module, None, "E", "{}", [ParamType::tuple([])]).map(drop);
    assert!(error.is_ok(), "{error:?}");
    let error = native.call(&mut module, None, "g", ["Array[EnvStream]".parse().unwrap()], None).unwrap_err();
    assert!(error.to_string().contains("EnvStream"), "{error}");
    let tensor = "Tensor([n], float32)".parse().unwrap();
    native.call(&mut module, None, "g", [tensor], None).unwrap();
    let error = library.add_to(&mut module).unwrap_err().to_string();
    assert!(error.contains("`x0` is passed as a C argument"), "{error}");
}

/// A reader knows the function that a C function is placed in, and not the C function.
#[test]
fn an_unregistered_global_is_told_of_the_function_in_the_source() {
    let mut module = cranelift::jit_module(cranelift::host_isa().unwrap()).unwrap();
    let added = Wrappers::in_process()
        .c_call(&c("f_26_26", "(x: int64) -> int64", 26), "c_functions.none")
        .add_to(&mut module)
        .unwrap();
    let kernel = Kernel::symbol("f_26_26").returns(KernelReturn::Status);
    let wrapper = Wrappers::in_process().function(&"f(x: int64) -> int64".parse().unwrap(), kernel);
    let wrapper = wrapper.add_to(&mut module).unwrap();
    // SAFETY: the C function reads its number.
    let functions = unsafe { cranelift::finish_functions(module, [added, wrapper], ()).unwrap() };
    let error = functions[0].call((1,)).unwrap_err();
    assert_eq!(error.message(), "global function `c_functions.none`, which `f` calls, is not registered");
    assert!(error.backtrace().contains("File \"k.dsl\", line 26, in f"), "{}", error.backtrace());
}

#[test]
fn what_can_be_no_c_function_is_refused() {
    let lower = |text: &str, kernel: &Kernel| {
        let (signature, kernel) = (Cow::Owned(text.parse().unwrap()), Ok(Cow::Borrowed(kernel)));
        let function = RecipeFunction { signature, kernel, is_c: true };
        let errors = Recipe { functions: vec![function], ..Recipe::default() }.lower().unwrap_err();
        assert_eq!(errors.len(), 1, "{errors:?}");
        errors[0].to_string()
    };
    let passes_on = Kernel::body(|b| b.call_global("host.f", b.params().collect::<Vec<_>>()).run());
    let tensor = lower("f(x: Tensor([n], float32))", &passes_on);
    assert!(
        tensor.contains("`x` is passed as a C argument, so it can't be passed on as an argument of TVM FFI"),
        "{tensor}"
    );
    let native = lower("f(x: int64)", &Kernel::symbol("g"));
    assert!(native.contains("isn't a body, as a C function's kernel has to be"), "{native}");
    let reserved = lower("TVMFFIFunctionCall(x: int64)", &passes_on);
    assert!(reserved.contains("reserved for the C API"), "{reserved}");
}

/// The object of a system library. Its C functions have the same names in each such library.
#[cfg(target_os = "linux")]
fn system_library(prefix: &str) -> Vec<u8> {
    use cranelift_codegen::settings::{self, Configurable};
    use cranelift_module::Linkage;

    let mut flags = settings::builder();
    flags.enable("is_pic").unwrap();
    let isa = cranelift_native::builder().unwrap().finish(settings::Flags::new(flags)).unwrap();
    let names = cranelift_module::default_libcall_names();
    let builder = cranelift_object::ObjectBuilder::new(isa, "mine", names).unwrap();
    let mut module = cranelift_object::ObjectModule::new(builder);
    let signature = |text: &str| -> Signature { text.parse().unwrap() };
    let (rate, refuse) = (signature("mix_rate(x: int64) -> float64"), signature("refuse(s: str)"));
    let library = Wrappers::system(prefix)
        .c_call(&rate, "c_functions.rate")
        .c_raise(&refuse, "my.Error", "no {}")
        .c_function(&signature("plain(n: int64) -> int64"), Kernel::body(|b| b.ret(b.arg("n") + 1)));
    assert_eq!(library.c_symbol(&rate), format!("{prefix}mix_rate"));
    // declared as a compiler would, for a kernel that calls it
    let c_kernel = Kernel::symbol(library.c_symbol(&rate)).returns(KernelReturn::Status);
    cranelift::declare_kernel(&mut module, Linkage::Import, &rate, &c_kernel).unwrap();
    let body = Kernel::body(|b| {
        let closure = b.closure(&"add(n: int64) -> int64".parse().unwrap(), [], |b| b.ret(b.arg("n") + 1));
        b.ret_value(closure);
    });
    library.function(&signature("adds() -> Function"), body).add_to(&mut module).unwrap();
    module.finish().emit().unwrap()
}

/// Two system libraries with C functions of the same names are linked into one program.
#[cfg(target_os = "linux")]
#[test]
#[cfg_attr(all(target_env = "musl", target_feature = "crt-static"), ignore = "a static executable loads no library")]
fn system_libraries_have_c_functions_of_their_own() {
    use tvm_ffi_codegen::artifact::{ArchiveInput, Linker, Triple, write_archive};

    let folder = tempfile::tempdir().unwrap();
    let mut linker = Linker::new(Triple::host());
    let mut defined = std::collections::BTreeSet::new();
    for prefix in ["cf_one_", "cf_two_"] {
        let bytes = system_library(prefix);
        let file = object::File::parse(&*bytes).unwrap();
        for symbol in object::Object::symbols(&file) {
            use object::ObjectSymbol;
            if symbol.is_global() && symbol.is_definition() && !symbol.is_weak() {
                let name = symbol.name().unwrap().to_owned();
                assert!(name.contains(prefix), "{name}");
                assert!(defined.insert(name));
            }
        }
        let archive = folder.path().join(format!("lib{prefix}.a"));
        write_archive(&Triple::host(), &[ArchiveInput::Object { name: "a.o".into(), bytes }], &archive).unwrap();
        linker = linker.whole_archive(archive);
    }
    for name in ["mix_rate", "refuse", "plain"] {
        assert!(
            ["cf_one_", "cf_two_"].iter().all(|prefix| defined.contains(&format!("{prefix}{name}"))),
            "{defined:?}"
        );
    }
    linker.link(folder.path().join("both.so")).unwrap();
}
