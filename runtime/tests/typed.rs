//! Functions with typed parameters, and exported ones.

use std::sync::Arc;

use tvm_ffi_runtime as tvm_ffi;

use tvm_ffi::abi::*;
use tvm_ffi::{Any, AnyView, Array, Bytes, DLDevice, DLDeviceType, Error, Function, Obj, Object, Result, Tensor};

use crate::support::*;

#[test]
fn closures_of_typed_parameters() {
    let none = Function::from_typed(|| ());
    assert!(none.call(()).unwrap().is_none());
    let many = Function::from_typed(
        |a: i8,
         b: u64,
         c: f32,
         d: bool,
         e: String,
         f: Bytes,
         g: Option<i64>,
         h: Array,
         i: Any,
         j: DLDevice,
         k: Tensor,
         l: Function| {
            let sum = l.call_as::<i64>((a, b))? + h.len() as i64 + g.unwrap_or(100) + k.numel() as i64;
            Ok::<_, Error>(format!("{sum} {c} {d} {e} {} {i:?} {j}", f.len()))
        },
    );
    let add = Function::from_typed(|x: i64, y: i64| x + y);
    let tensor = Tensor::from_vec(vec![0u8; 3], &[3]).unwrap();
    let device = DLDevice::new(DLDeviceType::CUDA, 1);
    let array: Array = [1, 2].into_iter().collect();
    let text: String = many
        .call_as((1, 2u64, 0.5, true, "text", [0u8; 9].as_slice(), (), &array, "any", device, &tensor, &add))
        .unwrap();
    assert_eq!(text, "108 0.5 true text 9 \"any\" cuda:1");
}

#[test]
fn wrong_calls_have_upstreams_messages() {
    let f = Function::from_typed_named("test.f", |x: i8, text: Option<String>| format!("{x}{text:?}"));
    let message = |error: Error| error.to_string();
    let signature = "test.f(0: int, 1: Optional<str>) -> str";
    assert_eq!(
        message(f.call(()).unwrap_err()),
        format!(
            "TypeError: Mismatched number of arguments when calling: `{signature}`. Expected 2 but got 0 arguments"
        )
    );
    assert_eq!(
        message(f.call((1, 2.5)).unwrap_err()),
        format!(
            "TypeError: Mismatched type on argument #1 when calling: `{signature}`. Expected `Optional<str>` but got \
             `float`"
        )
    );
    assert_eq!(
        message(f.call((300, ())).unwrap_err()),
        format!("ValueError: Mismatched value of argument #0 when calling: `{signature}`. 300 is out of range for i8")
    );
    assert_eq!(f.call_as::<i64>((1, ())).unwrap_err().kind(), "TypeError");
}

#[test]
fn closures_fail_and_are_dropped() {
    let shared = Arc::new(());
    let captured = shared.clone();
    let fails = Function::from_typed(move |x: i64| -> Result<i64> {
        let _captured = &captured;
        match x {
            0 => tvm_ffi::bail!(ValueError, "{x} is zero"),
            1 => std::panic::resume_unwind(Box::new("one")),
            _ => Ok(10 / x),
        }
    });
    assert_eq!(fails.call((0,)).unwrap_err().to_string(), "ValueError: 0 is zero");
    assert_eq!(fails.call((1,)).unwrap_err().to_string(), "InternalError: panic: one");
    assert_eq!(fails.call_as::<i64>((5,)).unwrap(), 2);
    drop(fails);
    assert_eq!(Arc::strong_count(&shared), 1);
}

/// Adds one.
///
/// To any number.
#[tvm_ffi::export]
fn typed_add_one(x: i64) -> Result<i64> {
    x.checked_add(1).ok_or_else(|| tvm_ffi::err!(OverflowError, "{x} is the last"))
}

#[tvm_ffi::export(name = "typed.joined")]
fn join(before: &str, texts: &Array, after: Option<String>) -> Result<String> {
    assert!(after.is_none(), "a panic");
    let texts: Result<Vec<String>> = texts.iter().map(|text| text.cast()).collect();
    Ok(before.to_owned() + &texts?.concat())
}

#[tvm_ffi::export(name = "typed_packed", packed)]
fn packed(args: &[AnyView<'_>]) -> Result<Any> {
    args.first().copied().unwrap_or_default().to_owned()
}

/// The result of an exported function.
#[derive(Object)]
#[object(key = "test.typed.Made")]
struct Made {
    value: i64,
}

#[tvm_ffi::export]
fn typed_make(value: i64) -> Result<Obj<Made>> {
    Obj::new(Made { value })
}

unsafe extern "C" {
    fn __tvm_ffi_typed_add_one(_: *mut std::ffi::c_void, _: *const TVMFFIAny, _: i32, _: *mut TVMFFIAny) -> i32;
    fn __tvm_ffi__metadata_typed_add_one(
        _: *mut std::ffi::c_void,
        _: *const TVMFFIAny,
        _: i32,
        _: *mut TVMFFIAny,
    ) -> i32;
    fn __tvm_ffi__doc_typed_add_one(_: *mut std::ffi::c_void, _: *const TVMFFIAny, _: i32, _: *mut TVMFFIAny) -> i32;
    #[link_name = "__tvm_ffi_typed.joined"]
    fn joined(_: *mut std::ffi::c_void, _: *const TVMFFIAny, _: i32, _: *mut TVMFFIAny) -> i32;
    fn __tvm_ffi_typed_packed(_: *mut std::ffi::c_void, _: *const TVMFFIAny, _: i32, _: *mut TVMFFIAny) -> i32;
    fn __tvm_ffi_typed_make(_: *mut std::ffi::c_void, _: *const TVMFFIAny, _: i32, _: *mut TVMFFIAny) -> i32;
}

/// The symbol as a function.
fn exported(symbol: TVMFFISafeCallType) -> Function {
    // SAFETY: exported functions follow the calling convention.
    unsafe { Function::from_extern_c(std::ptr::null_mut(), symbol, None) }
}

#[test]
fn exported_functions_are_symbols() {
    let add_one = exported(__tvm_ffi_typed_add_one);
    assert_eq!(add_one.call_as::<i64>((41,)).unwrap(), 42);
    assert_eq!(add_one.call((i64::MAX,)).unwrap_err().kind(), "OverflowError");
    let message = add_one.call((1, 2)).unwrap_err().to_string();
    assert!(message.contains("`typed_add_one(0: int) -> int`. Expected 1 but got 2"), "{message}");
    let text = |symbol| exported(symbol).call_as::<String>(()).unwrap();
    assert_eq!(text(__tvm_ffi__doc_typed_add_one), "Adds one.\n\nTo any number.");
    assert_eq!(
        text(__tvm_ffi__metadata_typed_add_one),
        concat!(
            r#"{"type_schema":"{\"type\":\"ffi.Function\",\"named_args\":"#,
            r#"{\"return\":[{\"type\":\"int\"}],\"params\":[{\"type\":\"int\"}]}}"}"#,
        )
    );
    let made: Obj<Made> = exported(__tvm_ffi_typed_make).call_as((7,)).unwrap();
    assert_eq!(made.value, 7);
    assert_eq!(exported(__tvm_ffi_typed_packed).call_as::<i64>((3, 4)).unwrap(), 3);
}

#[test]
fn exported_functions_borrow_and_stop_panics() {
    let joined = exported(joined);
    let texts: Array = ["a", "b"].into_iter().collect();
    // SAFETY: the pointer is never followed.
    let null = unsafe { AnyView::from_raw(TVMFFIAny::from_ptr(TypeIndex::STR, std::ptr::null_mut())) };
    for error in [joined.call((null, &texts, ())).unwrap_err(), joined.call(("t", &texts, null)).unwrap_err()] {
        assert!(error.message().starts_with("Mismatched type on argument #"), "{error}");
    }
    assert_eq!(joined.call_as::<String>(("x", &texts, ())).unwrap(), "xab");
    let numbers: Array = [1].into_iter().collect();
    assert_eq!(joined.call(("x", &numbers, ())).unwrap_err().kind(), "TypeError");
    assert_eq!(joined.call(("x", &texts, "y")).unwrap_err().to_string(), "InternalError: panic: a panic");
    // SAFETY: the symbol takes NULL as result, which is an error.
    let code = unsafe { __tvm_ffi_typed_packed(std::ptr::null_mut(), std::ptr::null(), 0, std::ptr::null_mut()) };
    assert_eq!(raised(code).message(), "result is NULL");
}
