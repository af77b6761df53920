//! Rust closures called through the ABI. A panic in a closure is an error for its caller, also through a wrapper.

use std::ffi::c_void;

use tvm_ffi_codegen::runtime::abi::TVMFFIAny;
use tvm_ffi_codegen::runtime::error::take_raised;
use tvm_ffi_codegen::runtime::{Any, AnyView, Error, Function, capi};
use tvm_ffi_codegen::{Engine, Kernel, KernelReturn};

use crate::support::sig;

/// A kernel that calls a function object with a number and returns its code.
extern "C" fn call_back(function: *mut c_void, a: i64) -> i32 {
    let mut args = [*Any::from(a).as_raw()];
    let mut result = TVMFFIAny::none();
    // SAFETY: the tests pass function objects that are alive, and an int owns nothing.
    unsafe { capi::TVMFFIFunctionCall(function, args.as_mut_ptr(), 1, &raw mut result) }
}

fn wrapper() -> Function {
    // SAFETY: `call_back` has the prototype of the signature below.
    let engine = unsafe { Engine::builder().symbol("call_back", call_back as *const u8) }.build().unwrap();
    let kernel = Kernel::symbol("call_back").returns(KernelReturn::Status);
    // SAFETY: as above; callers pass function objects.
    unsafe { engine.compile(&sig("call(f: handle, a: int64)"), &kernel).unwrap() }
}

/// A function in the form that the wrapper takes.
fn handle(function: &Function) -> AnyView<'_> {
    // SAFETY: the function lives as long as the view.
    unsafe { AnyView::from_opaque_ptr(function.as_raw_handle()) }
}

#[test]
fn a_panic_through_the_abi_is_an_error() {
    let f = Function::from_packed(|_| panic!("no way"));
    let mut result = TVMFFIAny::none();
    // SAFETY: the function is alive, and there are no arguments.
    let code = unsafe { capi::TVMFFIFunctionCall(f.as_raw_handle(), std::ptr::null_mut(), 0, &raw mut result) };
    assert_eq!((code, result.type_index), (-1, 0));
    assert_eq!(take_raised().unwrap().to_string(), "InternalError: panic: no way");
}

#[test]
fn a_panic_below_a_wrappers_kernel_is_an_error() {
    let wrapper = wrapper();
    let f = Function::from_packed(|args| match args[0].cast::<i64>()? {
        0 => Ok(().into()),
        1 => Err(Error::new("KeyError", "one")),
        n => panic!("number {n}"),
    });
    let call = |n: i64| wrapper.call((handle(&f), n));
    assert!(call(0).unwrap().is_none());
    assert_eq!(call(1).unwrap_err().to_string(), "KeyError: one");
    assert_eq!(call(2).unwrap_err().to_string(), "InternalError: panic: number 2");
    assert!(call(0).is_ok());
}

#[test]
fn a_wrapper_below_a_closure_below_a_wrapper() {
    let (outer, inner) = (wrapper(), wrapper());
    let last = Function::from_packed(|args| Err(Error::new("ValueError", &format!("got {}", args[0].cast::<i64>()?))));
    let middle = Function::from_packed(move |args| inner.call((handle(&last), args[0].cast::<i64>()? + 1)));
    let error = outer.call((handle(&middle), 41)).unwrap_err();
    assert_eq!(error.to_string(), "ValueError: got 42");
}
