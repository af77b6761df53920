use tvm_ffi_runtime::abi::*;
use tvm_ffi_runtime::capi::*;
use tvm_ffi_runtime::registry::*;
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
    assert_eq!(unsafe { TVMFFIFunctionSetGlobalFromMethodInfo(&info, 0) }, 0);
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
