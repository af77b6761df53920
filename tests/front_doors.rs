//! An engine, wrappers in a caller's module, and the builder of libraries report the same errors in the same way.

use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_codegen::settings;
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{Linkage, Module, default_libcall_names};
use tvm_ffi_codegen::artifact::{EmitError, LibraryBuilder, Triple};
use tvm_ffi_codegen::diagnostic::{Diagnostic, DiagnosticKind};
use tvm_ffi_codegen::embed::cranelift::KernelSource;
use tvm_ffi_codegen::embed::cranelift::{Wrappers, finish_functions, host_isa, jit_builder, jit_module};
use tvm_ffi_codegen::embed::{self, EmbedError};
use tvm_ffi_codegen::image::Image;
use tvm_ffi_codegen::lower::{Purpose, Recipe, RuntimeHelpers};
use tvm_ffi_codegen::spec::Launch;
use tvm_ffi_codegen::{Engine, EngineError, Kernel, LowerError, Signature};

use crate::support::sig;

/// Functions of which the second and the last have errors; the last has two.
fn functions() -> Vec<(Signature, Kernel)> {
    let check = Kernel::check_only();
    let body = Kernel::body(|b| {
        b.arg("nobody");
        b.dim("none");
    });
    vec![(sig("good()"), check.clone()), (sig("returns() -> int64"), check), (sig("body()"), body)]
}

#[test]
fn all_errors_of_all_functions_come_at_once() {
    let functions = functions();
    let pairs = || functions.iter().map(|(signature, kernel)| (signature, kernel));
    let expect = |errors: &[LowerError], diagnostic: Diagnostic| {
        assert!(
            matches!(errors, [LowerError::KernelReturn { .. }, LowerError::Body { errors, .. }] if errors.len() == 2),
            "{errors:?}"
        );
        assert_eq!((diagnostic.kind, diagnostic.errors.len()), (DiagnosticKind::Kernel, 3), "{diagnostic:?}");
        diagnostic.message
    };
    let mut messages = Vec::new();

    let error = Engine::new().unwrap().compile_code(pairs()).unwrap_err();
    let EngineError::Functions(errors) = &error else { panic!("{error}") };
    messages.push(expect(errors, Diagnostic::of(&error)));

    let mut module = jit_module(host_isa().unwrap()).unwrap();
    let targets = pairs().map(|(signature, kernel)| (signature, KernelSource::from(kernel.clone())));
    let error = embed::cranelift::add_wrappers(&mut module, targets).unwrap_err();
    let EmbedError::Functions(errors) = &error else { panic!("{error}") };
    messages.push(expect(errors, Diagnostic::of(&error)));

    let library =
        pairs().fold(LibraryBuilder::new(), |library, (signature, kernel)| library.function(signature, kernel));
    let error = library.emit().unwrap_err();
    let EmitError::Functions(errors) = &error else { panic!("{error}") };
    messages.push(expect(errors, Diagnostic::of(&error)));
    assert!(messages.iter().all(|message| *message == messages[0]), "{messages:#?}");
}

#[test]
fn a_missing_symbol_is_named_with_its_callers() {
    let functions = [
        (sig("f(n: int64)"), Kernel::symbol("no_such_kernel")),
        (sig("g(n: int64)"), Kernel::symbol("no_such_kernel")),
        (sig("h(x: float64) -> float64"), Kernel::body(|b| b.ret(b.arg("x").exp()))),
    ];
    let error = Engine::new().unwrap().compile_code(functions.iter().map(|(s, k)| (s, k))).unwrap_err();
    let expected = "unresolved symbol: `no_such_kernel` (called by `f`, `g`); give each an address with the builder's `symbol(name, address)`";
    assert!(error.to_string().starts_with(expected), "{error}");

    let mut module = jit_module(host_isa().unwrap()).unwrap();
    let library = functions.iter().fold(Wrappers::in_process(), |library, (s, k)| library.function(s, k.clone()));
    let added = library.add_to(&mut module).unwrap();
    // SAFETY: nothing is called.
    let error = unsafe { finish_functions(module, [added], ()) }.unwrap_err();
    let expected = "undefined symbol: `no_such_kernel` (referred to by f, g); define them in the module, or give them addresses with `JITBuilder::symbol`";
    assert!(error.to_string().starts_with(expected), "{error}");
    let diagnostic = Diagnostic::of(&error);
    assert_eq!(diagnostic.kind, DiagnosticKind::UndefinedSymbol);
    assert!(
        diagnostic.to_json().contains(r#""symbols":[{"name":"no_such_kernel","references":["f","g"]}]"#),
        "{diagnostic:?}"
    );
}

/// The target with this name, and an additional feature.
fn isa(target: &str, feature: Option<&str>) -> OwnedTargetIsa {
    let mut builder = cranelift_codegen::isa::lookup_by_name(target).unwrap();
    if let Some(feature) = feature {
        settings::Configurable::enable(&mut builder, feature).unwrap();
    }
    builder.finish(settings::Flags::new(settings::builder())).unwrap()
}

#[test]
fn a_module_for_another_machine_is_never_finished() {
    let other = if cfg!(target_arch = "x86_64") { "aarch64" } else { "x86_64" };
    let system = if cfg!(windows) { "unknown-linux-gnu" } else { "pc-windows-msvc" };
    let mut refused = vec![(format!("{other}-unknown-linux-gnu"), None, "this machine is")];
    if cfg!(target_arch = "x86_64") {
        refused.push((format!("x86_64-{system}"), None, "its functions are called by"));
        #[cfg(target_arch = "x86_64")]
        if !std::arch::is_x86_feature_detected!("avx512vbmi") {
            refused.push((Triple::host().to_string(), Some("has_avx512vbmi"), "this CPU lacks `has_avx512vbmi`"));
        }
    }
    for (target, feature, problem) in refused {
        let expect = |error: EmbedError| {
            assert!(matches!(error, EmbedError::OtherMachine { .. }), "{error}");
            assert!(error.to_string().contains(problem) && error.to_string().contains(&target), "{error}");
            assert_eq!(Diagnostic::of(&error).kind, DiagnosticKind::UnsupportedTarget);
        };
        expect(jit_module(isa(&target, feature)).map(drop).unwrap_err());
        // callers may also create the module themselves
        let mut module = JITModule::new(jit_builder(isa(&target, feature)));
        let double = Kernel::body(|b| b.ret(b.arg("n") * 2));
        let added = Wrappers::in_process().function(&sig("double(n: int64) -> int64"), double);
        let added = added.add_to(&mut module).unwrap();
        // SAFETY: the body reads no memory.
        expect(unsafe { finish_functions(module, [added], ()) }.map(drop).unwrap_err());
    }
}

/// Missing symbols that a caller's own function refers to are reported when the module is finished.
#[test]
fn a_symbol_of_the_callers_own_code_is_no_internal_error() {
    use cranelift_codegen::ir::InstBuilder;
    use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};

    let mut module = JITModule::new(JITBuilder::with_isa(host_isa().unwrap(), default_libcall_names()));
    let mut context = module.make_context();
    let missing = module.declare_function("no_such_function", Linkage::Import, &context.func.signature).unwrap();
    let id = module.declare_function("mine", Linkage::Export, &context.func.signature).unwrap();
    let missing = module.declare_func_in_func(missing, &mut context.func);
    let mut frontend = FunctionBuilderContext::new();
    let mut b = FunctionBuilder::new(&mut context.func, &mut frontend);
    let entry = b.create_block();
    b.switch_to_block(entry);
    b.seal_all_blocks();
    b.ins().call(missing, &[]);
    b.ins().return_(&[]);
    b.finalize(module.target_config());
    module.define_function(id, &mut context).unwrap();
    // SAFETY: nothing is called.
    let error = unsafe { finish_functions(module, [], ()) }.unwrap_err();
    assert!(
        matches!(&error, EmbedError::Undefined { symbols, .. } if symbols[0].name == "no_such_function"),
        "{error}"
    );
    assert!(!error.to_string().contains("internal"), "{error}");
}

#[test]
fn a_target_decides_for_windows() {
    let (windows, linux): (Triple, Triple) =
        ("x86_64-pc-windows-msvc".parse().unwrap(), "x86_64-unknown-linux-gnu".parse().unwrap());
    let signature = sig("f(x: Tensor([n], float32, device=\"cuda\"))");
    let ptx =
        ".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry k(.param .u64 x, .param .u64 n) { ret; }\n";
    let launch = Kernel::launch(Launch::new("k").grid([1]).block([1]), [Image::from_bytes(ptx.as_bytes()).unwrap()]);
    for (target, is_windows) in [(&windows, true), (&linux, false)] {
        let (target, helpers) = (target.clone(), RuntimeHelpers::Define);
        let recipe = Recipe { target: target.clone(), purpose: Purpose::Library, helpers, ..Recipe::default() };
        let module = recipe.function(&signature, &launch).lower().unwrap().module;
        let imports: Vec<&str> = module.imports().map(|(_, import)| import.name.as_str()).collect();
        for (symbol, of_windows) in [("LoadLibraryA", true), ("atexit", true), ("dlopen", false)] {
            assert_eq!(imports.contains(&symbol), is_windows == of_windows, "{target}: {symbol} in {imports:?}");
        }
    }
}

/// Every kind of library can register a function as a global function. For a module without a loader that is an error.
#[test]
fn only_libraries_register_functions() {
    use cranelift_codegen::settings::Configurable;

    let signature = sig("double(n: int64) -> int64");
    let body = || Kernel::body(|b| b.ret(b.arg("n") * 2));
    let mut module = jit_module(host_isa().unwrap()).unwrap();
    let library = Wrappers::in_process().function(&signature, body()).register_global("double", "front_doors.double");
    let EmbedError::Functions(errors) = library.add_to(&mut module).unwrap_err() else { panic!() };
    assert_eq!(
        errors[0].to_string(),
        "function `double` can't be the global function \"front_doors.double\": only a library that is loaded as a file \
         registers functions"
    );

    let mut flags = settings::builder();
    flags.enable("is_pic").unwrap();
    let isa = cranelift_native::builder().unwrap().finish(settings::Flags::new(flags)).unwrap();
    let builder = cranelift_object::ObjectBuilder::new(isa, "mine", default_libcall_names()).unwrap();
    let mut module = cranelift_object::ObjectModule::new(builder);
    let library = Wrappers::new().function(&signature, body()).register_global("double", "front_doors.double");
    library.add_to(&mut module).unwrap();
    let ours = module.finish().emit().unwrap();
    let theirs = LibraryBuilder::new().function(&signature, &body()).register_global("double", "front_doors.double");
    for object in [&ours, theirs.emit().unwrap().as_bytes()] {
        let object = object::File::parse(object).unwrap();
        let imports: Vec<_> = object::Object::symbols(&object).filter(object::ObjectSymbol::is_undefined).collect();
        let names: Vec<_> = imports.iter().map(|symbol| object::ObjectSymbol::name(symbol).unwrap()).collect();
        assert!(names.iter().any(|name| name.ends_with("TVMFFIFunctionSetGlobal")), "{names:?}");
    }
}

/// Errors of functions are reported together with those of their library.
#[test]
fn a_wrong_prefix_is_an_error_beside_the_others() {
    let functions = functions();
    let recipe = Recipe { purpose: Purpose::SystemLibrary("9".to_owned()), ..Recipe::default() };
    let recipe = functions.iter().fold(recipe, |recipe, (signature, kernel)| recipe.function(signature, kernel));
    let errors = recipe.lower().unwrap_err();
    assert!(
        matches!(&errors[..], [LowerError::Prefix { .. }, LowerError::KernelReturn { .. }, LowerError::Body { .. }]),
        "{errors:?}"
    );
}
