//! Locations of signatures. The backtrace of a wrapper's error ends in them, in this process, in a library, and in a
//! module of the caller's.

use std::sync::Arc;

use cranelift_jit::{JITBuilder, JITModule};
use libloading::Library;
use object::{Object, ObjectSymbol};
use tvm_ffi_codegen::artifact::LibraryBuilder;
use tvm_ffi_codegen::runtime::abi::TVMFFISafeCallType;
use tvm_ffi_codegen::runtime::{Function, Tensor, capi};
use tvm_ffi_codegen::spec::{CompareOp, Part, SourceLocation};
use tvm_ffi_codegen::{Backend, DLDataType, Engine, Kernel, ScalarType, Signature, TensorType, dim, embed};

use crate::support::{host_linker, sig};

/// `inner(x: Tensor([n], float32), k: int8) where n % 2 == 0`. Parameter `x` and the constraint have their own lines.
fn inner() -> Signature {
    let builder = Signature::builder("inner").location("model.dsl", 1, "inner");
    let builder = builder.param("x", TensorType::new(["n"], DLDataType::FLOAT32)).location("model.dsl", 2, "inner");
    let builder = builder.param("k", ScalarType::Int8);
    builder.constraint(dim("n") % 2, CompareOp::Eq, 0).location("model.dsl", 3, "inner").build().unwrap()
}

/// A kernel that raises an error from its own line if `k` is 7.
fn kernel() -> Kernel {
    Kernel::body(|b| {
        b.set_location("model.dsl", 4, "inner");
        b.if_(b.arg("k").eq(7), || b.raise("mylang.Error", "seven", ()));
    })
}

/// Calls `inner` with its own arguments, from another line.
fn outer() -> (Signature, Kernel) {
    let signature =
        sig("outer(x: Any, k: int64)").with_location(Part::Signature, SourceLocation::new("model.dsl", 10, "outer"));
    let kernel = Kernel::body(|b| {
        b.set_location("model.dsl", 12, "outer");
        b.call_symbol("inner", (b.param(0), b.param(1))).run();
    });
    (signature.unwrap(), kernel)
}

/// The DSL lines at the end of the backtrace of a call's error, with their functions.
fn locations(function: &Function, x: Option<usize>, k: i64) -> Vec<(u32, String)> {
    let tensor = x.map(|size| Tensor::from_slice(&vec![0f32; size], &[size as i64]).unwrap());
    let error = match &tensor {
        Some(tensor) => function.call((tensor, k)),
        None => function.call((1.5, k)),
    };
    let error = error.unwrap_err();
    let backtrace = error.backtrace();
    let lines = backtrace.lines().filter_map(|line| line.strip_prefix("  File \"model.dsl\", line "));
    lines
        .map(|line| line.split_once(", in ").map(|(line, name)| (line.parse().unwrap(), name.to_owned())).unwrap())
        .collect()
}

/// Calls of `inner`, each with the line that its error ends in.
const CALLS: [(Option<usize>, i64, u32); 4] = [(None, 0, 2), (Some(2), 300, 1), (Some(3), 0, 3), (Some(2), 7, 4)];

fn check(inner: &Function, outer: Option<&Function>) {
    for (x, k, line) in CALLS {
        assert_eq!(locations(inner, x, k), [(line, "inner".to_owned())], "{x:?}, {k}");
        if let Some(outer) = outer {
            let both = [(line, "inner".to_owned()), (12, "outer".to_owned())];
            assert_eq!(locations(outer, x, k), both, "{x:?}, {k}");
        }
    }
    assert!(inner.call((1,)).unwrap_err().backtrace().ends_with("  File \"model.dsl\", line 1, in inner\n"));
    if let Some(outer) = outer {
        assert!(outer.call(()).unwrap_err().backtrace().ends_with("  File \"model.dsl\", line 10, in outer\n"));
    }
}

#[test]
fn an_error_in_a_process_ends_in_its_location() {
    for &backend in Backend::ALL {
        let engine = Engine::builder().backend(backend).build().unwrap();
        let (inner, (outer, calls)) = (inner(), outer());
        // SAFETY: the bodies read no memory.
        let module = unsafe { engine.compile_module([(&inner, &kernel()), (&outer, &calls)]) }.unwrap();
        let function = |name: &str| module.get_function(name).unwrap().unwrap();
        check(&function("inner"), Some(&function("outer")));
    }
}

/// In a library, where a wrapper's frame is in the backtrace too. Backtraces omit the names of its parts.
#[test]
#[cfg_attr(all(target_env = "musl", target_feature = "crt-static"), ignore = "a static executable loads no library")]
fn an_error_of_a_library_ends_in_its_location() {
    assert!(!capi::symbols().is_empty());
    for &backend in Backend::ALL {
        let (dir, (outer, calls)) = (tempfile::tempdir().unwrap(), outer());
        let library = LibraryBuilder::new().backend(backend).function(&inner(), &kernel()).function(&outer, &calls);
        let object = library.emit().unwrap();
        let file = object::File::parse(object.as_bytes()).unwrap();
        let functions =
            file.symbols().filter(|symbol| symbol.kind() == object::SymbolKind::Text && symbol.is_definition());
        let (mut exported, mut local) = (0, 0);
        for symbol in functions {
            let name = symbol.name().unwrap();
            let own = name.trim_start_matches('_');
            match symbol.is_local() {
                true => assert!(own.starts_with("ffi_call_"), "{backend}: {name}"),
                false => assert!(own.starts_with("tvm_ffi_"), "{backend}: {name}"),
            }
            *if symbol.is_local() { &mut local } else { &mut exported } += 1;
        }
        assert!(exported >= 4 && local >= 3, "{backend}: {exported} {local}");

        object.write(dir.path().join("f.o")).unwrap();
        host_linker().file(dir.path().join("f.o")).link(dir.path().join("f.so")).unwrap();
        // SAFETY: loading it runs nothing but its own constructors.
        let library = Arc::new(unsafe { Library::new(dir.path().join("f.so")) }.unwrap());
        let function = |symbol: &[u8]| {
            // SAFETY: the symbol is a function of the packed prototype, and the function keeps the library.
            unsafe {
                let safe_call = *library.get::<TVMFFISafeCallType>(symbol).unwrap();
                Function::from_code(safe_call, Arc::clone(&library))
            }
        };
        check(&function(b"__tvm_ffi_inner"), Some(&function(b"__tvm_ffi_outer")));
    }
}

#[test]
fn an_error_in_a_module_of_the_callers_ends_in_its_location() {
    let mut builder = JITBuilder::new(cranelift_module::default_libcall_names()).unwrap();
    builder.symbols(embed::runtime_symbols());
    let mut module = JITModule::new(builder);
    let (inner, kernel) = (inner(), kernel());
    let ids = embed::cranelift::add_wrappers(&mut module, [(&inner, kernel.into())]).unwrap();
    module.finalize_definitions().unwrap();
    let address = module.get_finalized_function(ids[0]);
    // SAFETY: that is the type of every wrapper, and the module's memory is never given back.
    let function = unsafe {
        let safe_call = std::mem::transmute::<*const u8, TVMFFISafeCallType>(address);
        Function::from_code(safe_call, Arc::new(()))
    };
    check(&function, None);
}
