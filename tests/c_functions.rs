//! C functions made from bodies. Kernels of a caller's module use them to raise errors and to call functions of TVM
//! FFI.

use std::borrow::Cow;
use tvm_ffi_codegen::embed::cranelift::{self, Wrappers};

use tvm_ffi_codegen::lower::{Recipe, RecipeFunction};
use tvm_ffi_codegen::runtime::{Error, Function, registry};
use tvm_ffi_codegen::spec::{Part, SourceLocation};
use tvm_ffi_codegen::{Kernel, KernelReturn, Signature};

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
        .calling(&c("c_scale", types[0], 3), "c_functions.scale")
        .calling(&c("c_flip", types[1], 4), "c_functions.flip")
        .raising(&c("c_refuse", types[2], 5), "my.Error", "no {} of {}")
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

/// The message names the function in the source where the C function is placed, because users don't know the C
/// function.
#[test]
fn an_unregistered_global_is_told_of_the_function_in_the_source() {
    let mut module = cranelift::jit_module(cranelift::host_isa().unwrap()).unwrap();
    let added = Wrappers::in_process()
        .calling(&c("f_26_26", "(x: int64) -> int64", 26), "c_functions.none")
        .add_to(&mut module)
        .unwrap();
    let kernel = Kernel::symbol("f_26_26").returns(KernelReturn::Status);
    let wrapper = Wrappers::in_process().function(&"f(x: int64) -> int64".parse().unwrap(), kernel);
    let wrapper = wrapper.add_to(&mut module).unwrap();
    // SAFETY: the C function reads its number.
    let functions = unsafe { cranelift::finish_functions(module, [added, wrapper], ()).unwrap() };
    let error = functions[0].call((1,)).unwrap_err();
    assert_eq!(error.message(), "global function `c_functions.none` is not registered, which `f` calls");
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
    assert!(native.contains("is no body, of which C functions are made"), "{native}");
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
        .calling(&rate, "c_functions.rate")
        .raising(&refuse, "my.Error", "no {}")
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
