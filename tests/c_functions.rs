//! C functions of bodies, by which kernels of a caller's module raise errors and call functions of TVM FFI.

use tvm_ffi_codegen::embed::cranelift::{self, Library};
use tvm_ffi_codegen::lower::{Lowering, RuntimeHelpers};
use tvm_ffi_codegen::runtime::{Error, Function, registry};
use tvm_ffi_codegen::spec::{Part, Place};
use tvm_ffi_codegen::{Kernel, KernelReturn, Signature};

/// A C function with the type of the function that it is the kernel of.
fn c(name: &str, rest: &str, line: u32) -> Signature {
    let signature: Signature = format!("{name}{rest}").parse().unwrap();
    signature.with_place(Part::Signature, Place::new("k.dsl", line, "f")).unwrap()
}

/// The wrapper's kernel is the C function, which gets what a kernel gets.
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
    let functions = Library::in_process()
        .calling(&c("c_scale", types[0], 3), "c_functions.scale")
        .calling(&c("c_flip", types[1], 4), "c_functions.flip")
        .raising(&c("c_refuse", types[2], 5), "my.Error", "no {} of {}")
        .add_to(&mut module)
        .unwrap();
    assert_eq!(functions.functions().count(), 0, "they are no functions of the library");
    let wrappers =
        ["scale", "flip", "refuse"].iter().zip(types).fold(Library::in_process(), |library, (name, rest)| {
            let kernel = Kernel::symbol(format!("c_{name}")).returning(KernelReturn::Status);
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

#[test]
fn what_can_be_no_c_function_is_refused() {
    let lower = |text: &str, kernel: &Kernel| {
        let mut lowering = Lowering::new(RuntimeHelpers::Import);
        let error = lowering.add_c_function(&text.parse().unwrap(), kernel).unwrap_err().to_string();
        assert!(lowering.finish().functions.is_empty(), "{text}: nothing is left of it");
        error
    };
    let passes_on = Kernel::body(|b| b.call_global("host.f", b.params().collect::<Vec<_>>()).run());
    let tensor = lower("f(x: Tensor([n], float32))", &passes_on);
    assert!(tensor.contains("`x` came as a C argument, of which no argument of TVM FFI is made"), "{tensor}");
    let native = lower("f(x: int64)", &Kernel::symbol("g"));
    assert!(native.contains("is no body, of which C functions are made"), "{native}");
    let reserved = lower("TVMFFIFunctionCall(x: int64)", &passes_on);
    assert!(reserved.contains("reserved for the C API"), "{reserved}");
}
