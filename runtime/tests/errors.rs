use std::ffi::c_void;

use tvm_ffi_runtime::abi::*;
use tvm_ffi_runtime::capi::*;
use tvm_ffi_runtime::error::{set_raised, take_raised};
use tvm_ffi_runtime::{AsObject, Error, Function, ObjectRef, Shape};

use crate::faults::{with_allocations, with_ever_more_allocations};
use crate::support::*;

#[test]
fn errors_round_trip_through_the_slot() {
    // SAFETY: the strings are NUL-terminated.
    unsafe { TVMFFIErrorSetRaisedFromCStr(c"ValueError".as_ptr(), c"bad".as_ptr()) };
    let mut handle = std::ptr::null_mut();
    // SAFETY: writable.
    unsafe { TVMFFIErrorMoveFromRaised(&mut handle) };
    let error: Error = own(handle);
    assert_eq!(error.to_string(), "ValueError: bad");
    assert_eq!(error.as_object().strong_count(), 1);
    // SAFETY: the error is alive, and the slot takes its own reference.
    unsafe { TVMFFIErrorSetRaised(error.as_object().as_ptr().cast()) };
    assert_eq!(error.as_object().strong_count(), 2);
    drop(take_raised());
    // SAFETY: writable.
    unsafe { TVMFFIErrorMoveFromRaised(&mut handle) };
    assert!(handle.is_null());
}

#[test]
fn messages_are_joined_from_parts() {
    let parts = [c"one ".as_ptr(), std::ptr::null(), c"two".as_ptr()];
    // SAFETY: the parts are NULL or NUL-terminated.
    unsafe { TVMFFIErrorSetRaisedFromCStrParts(c"TypeError".as_ptr(), parts.as_ptr(), 3) };
    assert_eq!(take_raised().unwrap().message(), "one two");
}

#[test]
fn created_errors_have_all_their_parts() {
    let cause = Error::new("A", "a");
    let context = Shape::new(&[5]);
    let mut handle = std::ptr::null_mut();
    // SAFETY: all arguments are valid.
    let code = unsafe {
        TVMFFIErrorCreateWithCauseAndExtraContext(
            &bytes("B"),
            &bytes("b"),
            &bytes("trace\n"),
            cause.as_object().as_ptr().cast(),
            context.as_object().as_ptr().cast(),
            &mut handle,
        )
    };
    assert_eq!(code, 0);
    let error: Error = own(handle);
    assert_eq!(error.backtrace(), "trace\n");
    assert_eq!(error.cause().unwrap().kind(), "A");
    assert!(error.extra_context().unwrap().ptr_eq(context.as_object()));
    drop(error);
    assert_eq!(cause.as_object().strong_count(), 1);
    assert_eq!(context.as_object().strong_count(), 1);
}

#[test]
fn failed_creation_raises_nothing() {
    let mut handle = std::ptr::null_mut();
    let shape = Shape::new(&[5]);
    // SAFETY: NULL is allowed; the shape is alive.
    unsafe {
        let null = std::ptr::null();
        assert_eq!(TVMFFIErrorCreate(null, &bytes("b"), &bytes(""), &mut handle), -1);
        let code = TVMFFIErrorCreateWithCauseAndExtraContext(
            &bytes("B"),
            &bytes("b"),
            &bytes(""),
            shape.as_object().as_ptr().cast(),
            std::ptr::null_mut(),
            &mut handle,
        );
        assert_eq!(code, -1);
    }
    assert!(take_raised().is_none());
}

#[test]
fn c_updates_the_backtrace() {
    let error = Error::from_parts("A", "a", "1\n", None, None);
    let object = error.as_object().as_ptr();
    // SAFETY: the cell follows the header of an error.
    unsafe {
        let cell = object.add(1).cast::<TVMFFIErrorCell>();
        let update = (*cell).update_backtrace.unwrap();
        update(object.cast(), &bytes("2\n"), kTVMFFIBacktraceUpdateModeAppend);
        assert_eq!((*cell).backtrace.as_slice(), b"1\n2\n");
        // The text may be the error's own.
        let own = (*cell).backtrace;
        update(object.cast(), &own, kTVMFFIBacktraceUpdateModeAppend);
        assert_eq!(error.backtrace(), "1\n2\n1\n2\n");
        update(object.cast(), &bytes("3\n"), kTVMFFIBacktraceUpdateModeReplace);
    }
    assert_eq!(error.backtrace(), "3\n");
}

#[test]
fn slots_belong_to_threads() {
    set_raised(Error::new("A", "here"));
    std::thread::spawn(|| {
        assert!(take_raised().is_none());
        set_raised(Error::new("B", "there"));
    })
    .join()
    .unwrap();
    assert_eq!(take_raised().unwrap().message(), "here");
}

#[test]
fn raising_what_is_no_error_raises_a_type_error() {
    let shape = Shape::new(&[1]);
    // SAFETY: the shape is alive.
    unsafe { TVMFFIErrorSetRaised(shape.as_object().as_ptr().cast()) };
    assert_eq!(take_raised().unwrap().message(), "expected ffi.Error, got ffi.Shape");
}

#[test]
fn backtrace_text_is_there() {
    // SAFETY: the strings are NUL-terminated.
    let text = unsafe { (*TVMFFIBacktrace(c"file.c".as_ptr(), 7, c"f".as_ptr(), 0)).as_slice() };
    assert!(text.starts_with(b"  File \"file.c\", line 7, in f\n"));
}

#[test]
#[cfg(not(miri))]
fn whole_stacks_are_in_upstreams_form() {
    let set = |name: &str, value: &str| {
        // SAFETY: no other test runs in this process.
        unsafe { std::env::set_var(name, value) }
    };
    let status = alone("errors::whole_stacks_are_in_upstreams_form", || {
        set("TVM_FFI_BACKTRACE", "1");
        let lines = |text: &str| {
            let in_form =
                |line: &&str| line.starts_with("  File \"") && line.contains(", line ") && line.contains(", in ");
            assert_eq!(text.lines().filter(in_form).count(), text.lines().count(), "{text}");
            text.lines().count()
        };
        let line = line!() + 1;
        let text = Error::new("ValueError", "here").backtrace();
        assert!(lines(&text) > 3, "{text}");
        let first = text.lines().next().unwrap();
        assert!(first.contains("errors.rs\"") && first.contains(&format!(", line {line}, in ")), "{text}");
        // SAFETY: the strings are NUL-terminated.
        let place = || unsafe { (*TVMFFIBacktrace(c"file.c".as_ptr(), 7, c"f".as_ptr(), 0)).as_slice().to_vec() };
        assert!(place().starts_with(b"  File \"file.c\", line 7, in f\n"));
        set("TVM_TRACEBACK_LIMIT", "2");
        assert_eq!(lines(&Error::new("ValueError", "here").backtrace()), 2);
        assert_eq!(lines(str::from_utf8(&place()).unwrap()), 2);
        set("TVM_TRACEBACK_LIMIT", "-1");
        assert!(lines(&Error::new("ValueError", "here").backtrace()) > 3);
    });
    assert!(status.success());
}

#[test]
#[cfg(not(miri))]
fn signals_come_back_as_a_code() {
    unsafe extern "C" fn ensure() -> *mut c_void {
        std::ptr::dangling_mut::<u8>().cast()
    }
    unsafe extern "C" fn release(_state: *mut c_void) {}
    unsafe extern "C" fn check() -> i32 {
        5
    }
    let status = alone("errors::signals_come_back_as_a_code", || {
        let register = |name: &std::ffi::CStr, symbol: *const c_void| {
            // SAFETY: the name is a string, and the symbol is the function of that name.
            assert_eq!(unsafe { TVMFFIEnvRegisterCAPI(name.as_ptr(), symbol.cast_mut()) }, 0);
        };
        register(c"PyErr_CheckSignals", check as *const c_void);
        // Upstream ends the process if the lock's functions are missing.
        assert_eq!(raised(TVMFFIEnvCheckSignals()).kind(), "InternalError");
        register(c"PyGILState_Ensure", ensure as *const c_void);
        register(c"PyGILState_Release", release as *const c_void);
        // The environment has the error.
        assert_eq!(TVMFFIEnvCheckSignals(), -1);
        assert!(take_raised().is_none());
    });
    assert!(status.success());
}

unsafe extern "C" fn silent_failure(
    handle: *mut c_void,
    _args: *const TVMFFIAny,
    _num_args: i32,
    _result: *mut TVMFFIAny,
) -> i32 {
    handle.addr() as i32 - 100
}

#[test]
fn codes_without_an_error_are_named() {
    for (handle, code) in [(99, -1), (98, -2), (103, 3)] {
        let handle = std::ptr::without_provenance_mut(handle);
        // SAFETY: the callback follows the convention.
        let function = unsafe { Function::from_extern_c(handle, silent_failure, None) };
        let error = function.call(()).unwrap_err();
        assert_eq!(error.kind(), "RuntimeError");
        assert!(error.message().contains(&code.to_string()), "{error}");
    }
}

#[test]
#[cfg(not(miri))]
fn stacks_are_captured_with_memory_alone() {
    let status = alone("errors::stacks_are_captured_with_memory_alone", || {
        // SAFETY: this process has no other thread that reads or changes the environment.
        unsafe { std::env::set_var("TVM_FFI_BACKTRACE", "1") };
        let stack = Error::new("ValueError", "first").backtrace();
        assert!(stack.lines().count() > 2, "{stack}");
        let (error, failed) = with_allocations(0, || Error::new("ValueError", "second"));
        assert!(failed);
        assert_eq!((error.kind(), error.message()), ("MemoryError", "out of memory"));
        assert!(error.backtrace().lines().count() <= 1, "{}", error.backtrace());
    });
    assert!(status.success(), "{status}");
}

#[test]
#[cfg(not(miri))]
fn errors_are_raised_without_memory() {
    // A failed allocation without a fallback ends the process.
    let status = alone("errors::errors_are_raised_without_memory", || {
        let texts = [c"a message of many letters".as_ptr(), c" in parts".as_ptr()];
        let (kind, text) = (bytes("ValueError"), bytes("a text that is longer than any string in a value"));
        // The policy of backtraces is read at the first error.
        drop(Error::new("ValueError", "first"));
        let (mut memory, mut value) = (0, 0);
        let mut see = |error: Error| match error.kind() {
            "MemoryError" if error.message() == "out of memory" => memory += 1,
            kind => value += i32::from(kind == "ValueError"),
        };
        let mut made = 0;
        made += with_ever_more_allocations(|| see(Error::new("ValueError", "a message of many letters")));
        // SAFETY: the texts are valid.
        made += with_ever_more_allocations(|| unsafe {
            TVMFFIErrorSetRaisedFromCStrParts(c"ValueError".as_ptr(), texts.as_ptr(), 2);
            see(take_raised().unwrap());
        });
        made += with_ever_more_allocations(|| {
            let mut out = std::ptr::null_mut();
            // SAFETY: the texts are valid, and the place is writable.
            assert_eq!(unsafe { TVMFFIErrorCreate(&kind, &text, &text, &mut out) }, 0);
            // SAFETY: the handle owns a reference.
            let mut error: Error = unsafe { ObjectRef::from_raw(out.cast()) }.unwrap().downcast().ok().unwrap();
            error.append_backtrace("more\n");
            let other = error.clone();
            error.update_backtrace("other\n");
            drop(other);
            see(error);
        });
        assert!(made >= 5, "{made}");
        assert!(memory >= 4 && value >= 3, "{memory} {value}");
    });
    assert!(status.success(), "{status}");
}
