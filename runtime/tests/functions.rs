use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tvm_ffi_runtime::abi::*;
use tvm_ffi_runtime::capi::*;
use tvm_ffi_runtime::{Any, AnyView, AsObject, Error, Function, Shape, Str};

use crate::support::*;

fn sum() -> Function {
    Function::from_packed(|args| {
        let mut total = 0.0;
        for arg in args {
            total += arg.cast::<f64>()?;
        }
        Ok(total.into())
    })
}

#[test]
fn tuples_and_slices_are_arguments() {
    let sum = sum();
    let x = 2;
    assert_eq!(sum.call(()).unwrap().cast::<f64>().unwrap(), 0.0);
    assert_eq!(sum.call((&x, 3, 1.5, true)).unwrap().cast::<f64>().unwrap(), 7.5);
    let many = sum.call((1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16));
    assert_eq!(many.unwrap().cast::<i64>().unwrap_err().kind(), "TypeError");
    let one = Any::from(1);
    let views = vec![one.as_view(); 5];
    assert_eq!(sum.call(&views).unwrap().cast::<f64>().unwrap(), 5.0);
    assert_eq!(sum.call(&views[..2]).unwrap().cast::<f64>().unwrap(), 2.0);
    assert_eq!(sum.call([one.as_view()]).unwrap().cast::<f64>().unwrap(), 1.0);
}

#[test]
fn text_arguments_live_through_the_call() {
    let echo = Function::from_packed(|args| args[0].to_owned());
    for text in ["short", "longer than seven bytes"] {
        assert_eq!(echo.call((text,)).unwrap().as_str(), Some(text));
        assert_eq!(echo.call((text.to_owned(),)).unwrap().as_str(), Some(text));
        assert_eq!(echo.call((Str::new(text),)).unwrap().as_str(), Some(text));
    }
    assert_eq!(echo.call((c"from c, and long",)).unwrap().as_str(), Some("from c, and long"));
    assert_eq!(echo.call((&b"123456789"[..],)).unwrap().as_bytes(), Some(&b"123456789"[..]));
    assert!(echo.call((Option::<i32>::None,)).unwrap().is_none());
}

#[test]
fn closures_raise_their_errors() {
    let error = sum().call(("x",)).unwrap_err();
    assert_eq!(error.to_string(), "TypeError: expected float, got ffi.SmallStr");
    let own = Function::from_packed(|_| Err(Error::new("KeyError", "k")));
    assert_eq!(own.call(()).unwrap_err().kind(), "KeyError");
}

#[test]
fn panics_become_errors() {
    let function = Function::from_packed(|_| panic!("boom {}", 1));
    let error = function.call(()).unwrap_err();
    assert_eq!(error.to_string(), "InternalError: panic: boom 1");
    let mut result = TVMFFIAny::none();
    // SAFETY: the function is alive, there are no arguments, and the result is None.
    let code = unsafe { TVMFFIFunctionCall(function.as_raw_handle(), std::ptr::null_mut(), 0, &mut result) };
    assert_eq!(raised(code).kind(), "InternalError");
}

struct PanicsOnDrop;

impl Drop for PanicsOnDrop {
    fn drop(&mut self) {
        panic!("in drop");
    }
}

#[test]
fn a_panic_in_a_closures_drop_is_swallowed() {
    let bomb = PanicsOnDrop;
    let function = Function::from_packed(move |_| {
        let _keep = &bomb;
        Ok(().into())
    });
    function.call(()).unwrap();
    drop(function);
}

#[test]
fn closures_are_dropped_with_the_last_reference() {
    let token = Arc::new(());
    let captured = token.clone();
    let function = Function::from_packed(move |_| {
        let _keep = &captured;
        Ok(().into())
    });
    let any = Any::from(function.clone());
    drop(function);
    assert_eq!(Arc::strong_count(&token), 2);
    drop(any);
    assert_eq!(Arc::strong_count(&token), 1);
}

unsafe extern "C" fn add_to_handle(
    handle: *mut c_void,
    args: *const TVMFFIAny,
    num_args: i32,
    result: *mut TVMFFIAny,
) -> i32 {
    // SAFETY: by the convention; the handle is a test's counter.
    unsafe {
        let args = AnyView::slice_from_raw(args, num_args);
        let base = (*handle.cast::<AtomicUsize>()).load(Ordering::SeqCst);
        result.write(Any::from(base as i64 + args.len() as i64).into_raw());
    }
    0
}

#[test]
fn c_callbacks_get_their_handle_and_one_deleter_call() {
    let counter = AtomicUsize::new(40);
    let mut out = std::ptr::null_mut();
    // SAFETY: the counter outlives the function.
    let code = unsafe { TVMFFIFunctionCreate(counter_ptr(&counter), Some(add_to_handle), Some(count_up), &mut out) };
    assert_eq!(code, 0);
    let function: Function = own(out);
    assert_eq!(function.call((1, 2)).unwrap().cast::<i64>().unwrap(), 42);
    let clone = function.clone();
    drop(function);
    assert_eq!(counter.load(Ordering::SeqCst), 40);
    drop(clone);
    assert_eq!(counter.load(Ordering::SeqCst), 41);
}

unsafe extern "C" fn return_handle(
    handle: *mut c_void,
    _args: *const TVMFFIAny,
    _num_args: i32,
    result: *mut TVMFFIAny,
) -> i32 {
    // SAFETY: the result is writable.
    unsafe { result.write(TVMFFIAny::from_ptr(TypeIndex::OPAQUE_PTR, handle)) };
    0
}

#[test]
#[cfg_attr(miri, ignore = "functions have several addresses there")]
fn code_is_called_without_a_trampoline() {
    let token = Arc::new(());
    // SAFETY: the callable follows the convention.
    let function = unsafe { Function::from_code(return_handle, token.clone()) };
    let want: TVMFFISafeCallType = return_handle;
    assert!(std::ptr::fn_addr_eq(function.as_safe_call(), want));
    let handle: *mut c_void = function.call(()).unwrap().try_into().unwrap();
    assert_eq!(handle, function.as_raw_handle());
    assert_eq!(Arc::strong_count(&token), 2);
    drop(function);
    assert_eq!(Arc::strong_count(&token), 1);
}

unsafe extern "C" fn write_then_fail(
    handle: *mut c_void,
    _args: *const TVMFFIAny,
    _num_args: i32,
    result: *mut TVMFFIAny,
) -> i32 {
    // SAFETY: the handle is an object that the test keeps alive; the result is writable.
    unsafe {
        TVMFFIObjectIncRef(handle);
        result.write(TVMFFIAny::from_ptr(TypeIndex::SHAPE, handle));
        TVMFFIErrorSetRaisedFromCStr(c"ValueError".as_ptr(), c"late".as_ptr());
    }
    -1
}

#[test]
fn a_result_of_a_failed_call_does_not_leak() {
    let shape = Shape::new(&[1]);
    let handle = shape.as_object().as_ptr().cast();
    // SAFETY: the callback follows the convention, and the shape outlives the function.
    let function = unsafe { Function::from_extern_c(handle, write_then_fail, None) };
    assert_eq!(function.call(()).unwrap_err().message(), "late");
    assert_eq!(shape.as_object().strong_count(), 1);
}

#[test]
fn a_result_that_owns_something_is_refused() {
    let function = Function::from_packed(|_| Ok(().into()));
    let mut result = Any::from(Shape::new(&[1])).into_raw();
    // SAFETY: this breaks the caller's rule on purpose. The callable reads only the index.
    let code = unsafe { function.call_raw(&[], &mut result) };
    assert_eq!(raised(code).kind(), "RuntimeError");
    // SAFETY: the value was left unchanged.
    drop(unsafe { Any::from_raw(result) });
}

#[test]
fn functions_work_from_many_threads() {
    let sum = sum();
    std::thread::scope(|scope| {
        for n in 0..4 {
            let sum = sum.clone();
            scope.spawn(move || {
                for i in 0..rounds(500) as i32 {
                    assert_eq!(sum.call((n, i)).unwrap().cast::<f64>().unwrap(), f64::from(n + i));
                    assert!(sum.call(("no",)).is_err());
                }
            });
        }
    });
    assert_eq!(sum.as_object().strong_count(), 1);
}

#[test]
fn symbols_are_those_of_upstreams_headers() {
    let mut names: Vec<_> = symbols().iter().map(|(name, _)| *name).collect();
    assert!(symbols().iter().all(|(_, address)| !address.as_ptr().is_null()));
    names.sort_unstable();
    // The step `headers` compares this list with the headers' declarations.
    assert_eq!(names, include_str!("../../fixtures/upstream/symbols.txt").lines().collect::<Vec<_>>());
    let call = symbols().iter().find(|(name, _)| *name == "TVMFFIFunctionCall").unwrap();
    assert_eq!(call.1.as_ptr(), TVMFFIFunctionCall as *const c_void);
}
