use std::sync::Arc;

use tvm_ffi_runtime::abi::*;
use tvm_ffi_runtime::capi::*;
use tvm_ffi_runtime::registry::*;
use tvm_ffi_runtime::unstable::type_table::{TypeRequest, get_or_alloc_index};
use tvm_ffi_runtime::{Any, Function, Shape, ToAnyView};

use crate::support::*;

fn constant(value: i64) -> Function {
    Function::from_packed(move |_| Ok(value.into()))
}

fn value_of(function: &Function) -> i64 {
    function.call(()).unwrap().cast().unwrap()
}

#[test]
fn overriding_must_be_allowed() {
    set_global("test.override", constant(1), false).unwrap();
    let error = set_global("test.override", constant(2), false).unwrap_err();
    assert!(error.message().contains("already registered"));
    assert_eq!(value_of(&get_global("test.override").unwrap()), 1);
    set_global("test.override", constant(3), true).unwrap();
    assert_eq!(value_of(&get_global("test.override").unwrap()), 3);
    assert!(list_global_names().contains(&"test.override".to_owned()));
    assert!(remove_global("test.override"));
    assert!(!remove_global("test.override"));
    assert!(get_global("test.override").is_none());
}

#[test]
fn c_and_rust_share_the_table() {
    let function = constant(7);
    let mut out = std::ptr::null_mut();
    // SAFETY: all arguments are valid.
    unsafe {
        assert_eq!(TVMFFIFunctionSetGlobal(&bytes("test.c"), function.as_raw_handle(), 0), 0);
        let code = TVMFFIFunctionSetGlobal(&bytes("test.c"), function.as_raw_handle(), 0);
        assert_eq!(raised(code).kind(), "RuntimeError");
        assert_eq!(TVMFFIFunctionGetGlobal(&bytes("test.c"), &mut out), 0);
        assert_eq!(value_of(&own(out)), 7);
        assert_eq!(TVMFFIFunctionGetGlobal(&bytes("test.missing"), &mut out), 0);
    }
    assert!(out.is_null());
    assert!(get_global("test.c").is_some());
}

#[test]
fn metadata_is_kept() {
    let function = constant(1);
    let arg = function.to_arg();
    let info = TVMFFIMethodInfo {
        name: bytes("test.meta"),
        doc: TVMFFIByteArray::EMPTY,
        metadata: bytes("{\"a\": 1}"),
        flags: kTVMFFIFieldFlagBitMaskIsStaticMethod,
        method: arg.as_view().as_raw(),
    };
    // SAFETY: the info is filled.
    let got = unsafe { TVMFFIFunctionSetGlobalFromMethodInfo(&info, 0) };
    assert_eq!(got, 0);
    let metadata = get_global("ffi.GetGlobalFuncMetadata").unwrap();
    assert_eq!(metadata.call(("test.meta",)).unwrap().as_str(), Some("{\"a\": 1}"));
    assert_eq!(metadata.call(("test.none",)).unwrap_err().kind(), "RuntimeError");
}

#[test]
fn builtins_are_there() {
    let functor = get_global("ffi.FunctionListGlobalNamesFunctor").unwrap();
    let functor: Function = functor.call(()).unwrap().try_into().unwrap();
    let count: i64 = functor.call((-1,)).unwrap().cast().unwrap();
    let names: Vec<String> = (0..count).map(|i| functor.call((i,)).unwrap().cast().unwrap()).collect();
    for name in ["ffi.String", "ffi.Bytes", "ffi.Shape", "ffi.FunctionRemoveGlobal"] {
        assert!(names.iter().any(|n| n == name), "{name}");
    }
    assert_eq!(functor.call((count,)).unwrap_err().kind(), "IndexError");

    let shape = get_global("ffi.Shape").unwrap();
    let shape: Shape = shape.call((2, 3)).unwrap().try_into().unwrap();
    assert_eq!(*shape, [2, 3]);
    assert_eq!(get_global("ffi.Shape").unwrap().call(("x",)).unwrap_err().kind(), "ValueError");

    let string = get_global("ffi.String").unwrap();
    let text: Any = string.call((c"raw and long enough",)).unwrap();
    assert_eq!(text.type_index(), TypeIndex::STR);
    assert_eq!(string.call((1,)).unwrap_err().kind(), "TypeError");
    let remove = get_global("ffi.FunctionRemoveGlobal").unwrap();
    assert!(!remove.call(("test.nothing",)).unwrap().cast::<bool>().unwrap());
}

/// Readers always find a global function while it is replaced. Each function is dropped when it is replaced or removed.
#[test]
fn functions_are_read_while_others_replace_them() {
    let rounds = if cfg!(miri) { 5 } else { 200 };
    let alive = Arc::new(());
    let function = |value: i64| {
        let alive = alive.clone();
        Function::from_packed(move |_| {
            let _alive = &alive;
            Ok(value.into())
        })
    };
    let name = "test.replaced";
    set_global(name, function(0), false).unwrap();
    std::thread::scope(|scope| {
        let readers = [(); 2].map(|()| {
            scope.spawn(|| {
                let mut last = 0;
                for _ in 0..10 * rounds {
                    let value = value_of(&get_global(name).unwrap());
                    assert!(value >= last);
                    last = value;
                    std::thread::yield_now();
                }
            })
        });
        for value in 1..rounds {
            set_global(name, function(value), true).unwrap();
            // Other names move the table's entries to new places.
            set_global(&format!("{name}.{value}"), function(value), false).unwrap();
        }
        readers.into_iter().for_each(|reader| reader.join().unwrap());
    });
    assert_eq!(Arc::strong_count(&alive), 1 + rounds as usize);
    for value in 1..rounds {
        assert!(remove_global(&format!("{name}.{value}")));
    }
    assert!(remove_global(name));
    assert_eq!(Arc::strong_count(&alive), 1);
}

#[test]
#[cfg(not(miri))]
fn every_global_function_stands_any_arguments() {
    // The functions change the process permanently.
    let status = alone("registry::every_global_function_stands_any_arguments", || {
        // `ffi.SystemLib` makes some.
        #[cfg(target_os = "linux")]
        crate::live::expect_system_libraries();
        let count = crate::hostile::walk(2000, |name| {
            eprintln!("{name}");
            true
        });
        assert!(count > 70, "{count}");
    });
    assert!(status.success(), "{status}: the last name above is that of the function");
}

/// A program may use the prefix of upstream's tests, unless upstream's library of tests is loaded too.
#[test]
fn functions_of_upstreams_tests_are_not_for_safe_code() {
    set_global("testing.mine", constant(1), false).unwrap();
    assert_eq!(value_of(&get_global("testing.mine").unwrap()), 1);
    // As upstream's library does at load.
    let request = TypeRequest {
        key: b"testing.TestIntPair",
        static_index: -1,
        depth: 1,
        num_child_slots: 0,
        child_slots_can_overflow: true,
        parent: TypeIndex::OBJECT.0,
    };
    get_or_alloc_index(request).unwrap();
    let error = get_global("testing.mine").unwrap().call(()).unwrap_err();
    assert!(error.message().contains("only unsafe code can answer"), "{error}");
    // SAFETY: the function takes any arguments.
    assert_eq!(value_of(&unsafe { get_global_unchecked("testing.mine") }.unwrap()), 1);
    assert!(remove_global("testing.mine"));
}
