//! Functions: objects that hold one callable of the C calling convention. You make one from a closure, a C callback or
//! machine code. Rust and C call all of them in the same way. Header sections: `TVMFFISafeCallType`,
//! `TVMFFIFunctionCell`, `TVMFFIFunctionCreate`.

use std::ffi::c_void;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;

use crate::abi::*;
use crate::any::{Any, AnyView, exact_objects};
use crate::error::{self, Error, Result, object_wrapper, raised_error, runtime_error};
use crate::heap::{ObjectLayout, ObjectRef, make_object, make_own_object};

mod args;
mod callable;

pub use args::CallArgs;
pub use callable::Callable;

#[repr(C)]
struct FunctionObject<T> {
    header: TVMFFIObject,
    cell: TVMFFIFunctionCell,
    payload: T,
}

// SAFETY: repr(C) with the header first; the cell follows, as in the header file.
unsafe impl<T> ObjectLayout for FunctionObject<T> {
    const TYPE_INDEX: TypeIndex = TypeIndex::FUNCTION;

    unsafe fn drop_fields(object: *mut Self) {
        // SAFETY: promised by the caller.
        unsafe { (&raw mut (*object).payload).drop_in_place() };
    }
}

impl<T> FunctionObject<T> {
    fn new(header: TVMFFIObject, safe_call: TVMFFISafeCallType, payload: T) -> Self {
        let cell = TVMFFIFunctionCell { safe_call: Some(safe_call), cpp_call: std::ptr::null_mut() };
        Self { header, cell, payload }
    }
}

/// A function object, `ffi.Function`. Cloning adds a reference.
#[derive(Clone)]
#[repr(transparent)]
pub struct Function(ObjectRef);

object_wrapper!(Function, TypeIndex::FUNCTION);
exact_objects!(Function);

impl Function {
    fn with_payload<T>(safe_call: TVMFFISafeCallType, payload: T) -> Self {
        let object = make_object(0, |header, _| FunctionObject::new(header, safe_call, payload));
        // SAFETY: `make_object` returns the object's one strong reference.
        Self(unsafe { ObjectRef::from_non_null(object) })
    }

    /// A function that calls a closure.
    ///
    /// An error of the closure is raised to the caller. A panic becomes an error of kind `InternalError` with the
    /// panic's message. (Upstream gives that kind to any exception that is not an error of its own.) The last reference
    /// drops the closure; a panic in that drop is swallowed.
    pub fn from_packed<F>(closure: F) -> Self
    where
        F: Fn(&[AnyView<'_>]) -> Result<Any> + Send + Sync + 'static,
    {
        Self::with_payload(call_closure::<F>, closure)
    }

    /// As [`Function::from_packed`], for a function that the crate makes for itself while other threads wait for it.
    pub(crate) fn built_in<F>(closure: F) -> Self
    where
        F: Fn(&[AnyView<'_>]) -> Result<Any> + Send + Sync + 'static,
    {
        let object = make_own_object(|header| FunctionObject::new(header, call_closure::<F>, closure));
        // SAFETY: `make_own_object` returns the object's one strong reference.
        Self(unsafe { ObjectRef::from_non_null(object) })
    }

    /// A function that calls a C callback with `self_` as its handle (`TVMFFIFunctionCreate`). When the last reference
    /// goes, it calls `deleter` once with `self_`.
    ///
    /// With a NULL `self_` and no deleter the callback is called directly. Its handle is then the function object, as
    /// upstream.
    ///
    /// # Safety
    /// `safe_call` must follow [`TVMFFISafeCallType`] for any arguments and never unwind. It and `deleter` must be
    /// callable on any thread with `self_`, until the deleter has run. You are responsible for what the callback writes
    /// through its arguments, because its callers are safe Rust. A callback that writes into tensor arguments must
    /// document it. It must not be called while Rust code holds a slice of such a tensor.
    pub unsafe fn from_extern_c(
        self_: *mut c_void,
        safe_call: TVMFFISafeCallType,
        deleter: Option<unsafe extern "C" fn(*mut c_void)>,
    ) -> Self {
        if self_.is_null() && deleter.is_none() {
            return Self::with_payload(safe_call, ());
        }
        let callback = Callback { self_, safe_call, deleter };
        Self::with_payload(call_callback, callback)
    }

    /// A function whose cell holds `safe_call` itself, so a call is one indirect jump. `keep_alive` owns the code, and
    /// is dropped when the function is freed. The code receives the function object as its handle.
    ///
    /// # Safety
    /// As for [`Function::from_extern_c`], for as long as `keep_alive` lives.
    pub unsafe fn from_code(safe_call: TVMFFISafeCallType, keep_alive: impl Send + Sync + 'static) -> Self {
        Self::with_payload(safe_call, keep_alive)
    }

    /// A function that calls a value with the raw arguments and the caller's result. The last reference drops the
    /// value.
    ///
    /// Prefer [`Function::from_packed`], unless the value forwards its calls: here nothing is checked, and a panic ends
    /// the process.
    pub fn from_callable(value: impl Callable) -> Self {
        fn make<T: Callable>(value: T) -> Function {
            Function::with_payload(call_value::<T>, value)
        }
        make(value)
    }

    /// A function of a library's symbol. The callable receives NULL as its handle, as upstream. `keep_alive` keeps the
    /// library open, and is dropped when the function is freed.
    ///
    /// # Safety
    /// As for [`Function::from_extern_c`], for as long as `keep_alive` lives.
    pub(crate) unsafe fn from_symbol(safe_call: TVMFFISafeCallType, keep_alive: impl Send + Sync + 'static) -> Self {
        fn make<T>(payload: SymbolOf<T>) -> Function {
            Function::with_payload(call_symbol::<T>, payload)
        }
        make(SymbolOf { safe_call, _keep_alive: keep_alive })
    }

    /// A function that calls this one and keeps a value alive. The value is dropped after this function.
    pub(crate) fn keeping(self, keep_alive: impl Send + Sync + 'static) -> Self {
        fn make<T>(payload: Keeping<T>) -> Function {
            Function::with_payload(call_keeping::<T>, payload)
        }
        make(Keeping { function: self, _keep_alive: keep_alive })
    }

    /// The callable in the object's cell. Call it with [`Function::as_raw_handle`] as its handle, and keep `self` alive
    /// during the call.
    #[inline]
    pub fn as_safe_call(&self) -> TVMFFISafeCallType {
        // SAFETY: the cell follows the header of every function object.
        let cell = unsafe { &*self.0.as_ptr().add(1).cast::<TVMFFIFunctionCell>() };
        cell.safe_call.unwrap_or(no_callable)
    }

    /// The object's address, which is the callable's handle.
    #[inline]
    pub fn as_raw_handle(&self) -> *mut c_void {
        self.0.as_ptr().cast()
    }

    /// Calls the function with a tuple of up to sixteen arguments, or with a slice of views.
    ///
    /// # Errors
    /// The error that the function raises. `RuntimeError` with the return code if it fails without raising one.
    #[inline]
    pub fn call<A: CallArgs>(&self, args: A) -> Result<Any> {
        args.with_views(|views| self.call_packed(views))
    }

    /// Calls the function with views.
    ///
    /// # Errors
    /// As [`Function::call`].
    #[inline]
    pub fn call_packed(&self, args: &[AnyView<'_>]) -> Result<Any> {
        let mut result = TVMFFIAny::none();
        // SAFETY: a view is a transparent `TVMFFIAny`, so this is the same slice.
        let raw = unsafe { std::slice::from_raw_parts(args.as_ptr().cast(), args.len()) };
        // SAFETY: the views are valid for the call, and the result is None.
        let code = unsafe { self.call_raw(raw, &mut result) };
        if code == 0 {
            // SAFETY: on success the result is an owned value, or still None, and was written just before.
            return unsafe { Any::from_result(TVMFFIAny::read_parts(&raw const result)) };
        }
        // SAFETY: a result that was written before the failure is an owned value.
        Err(unsafe { failed_call(code, result) })
    }

    /// Calls the function and returns its code. The result and a raised error are left to you.
    ///
    /// # Safety
    /// The arguments must be valid by their type indices. The result must own nothing: its type index must be below 64.
    #[inline]
    pub unsafe fn call_raw(&self, args: &[TVMFFIAny], result: &mut TVMFFIAny) -> i32 {
        let Ok(num_args) = i32::try_from(args.len()) else {
            error::set_raised(runtime_error("too many arguments"));
            return -1;
        };
        // SAFETY: the callable follows its convention, and `self` keeps it alive.
        unsafe { (self.as_safe_call())(self.as_raw_handle(), args.as_ptr(), num_args, result) }
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Function({:p})", self.0.as_ptr())
    }
}

/// The error of a call that failed with `code`.
///
/// # Safety
/// The result must be an owned value, and is dropped.
#[cold]
#[inline(never)]
unsafe fn failed_call(code: i32, result: TVMFFIAny) -> Error {
    // SAFETY: promised by the caller.
    drop(unsafe { Any::from_raw(result) });
    raised_error(code)
}

/// Raises `error` as the failure of a callable.
#[cold]
#[inline(never)]
fn raise(error: Error) -> i32 {
    error::set_raised(error);
    -1
}

/// Stands in for the callable of a broken function object.
unsafe extern "C" fn no_callable(
    _handle: *mut c_void,
    _args: *const TVMFFIAny,
    _num_args: i32,
    _result: *mut TVMFFIAny,
) -> i32 {
    raise(runtime_error("function object without a callable"))
}

/// The callable of [`Function::from_packed`].
unsafe extern "C" fn call_closure<F>(
    handle: *mut c_void,
    args: *const TVMFFIAny,
    num_args: i32,
    result: *mut TVMFFIAny,
) -> i32
where
    F: Fn(&[AnyView<'_>]) -> Result<Any> + Send + Sync + 'static,
{
    let Some(result) = NonNull::new(result) else {
        return raise(runtime_error("result is NULL"));
    };
    // SAFETY: the caller's result is readable, and this reads only its type index.
    if TypeIndex(unsafe { result.as_ref() }.type_index).is_object() {
        return raise(runtime_error("result must be initialised to None"));
    }
    let Some(object) = NonNull::new(handle.cast::<FunctionObject<F>>()) else {
        return raise(runtime_error("function is NULL"));
    };
    // SAFETY: the handle is the function object that holds this callable, alive for the call; the
    // arguments are valid for the call by the calling convention.
    let (closure, args) = unsafe { (&object.as_ref().payload, AnyView::slice_from_raw(args, num_args)) };
    match catch_unwind(AssertUnwindSafe(|| closure(args))) {
        Ok(Ok(value)) => {
            // SAFETY: the result is writable and owns nothing.
            unsafe { result.write(value.into_fresh_raw()) };
            0
        }
        Ok(Err(error)) => raise(error),
        Err(payload) => raise(error::from_panic(payload)),
    }
}

/// The callable of [`Function::from_callable`].
unsafe extern "C" fn call_value<T: Callable>(
    handle: *mut c_void,
    args: *const TVMFFIAny,
    num_args: i32,
    result: *mut TVMFFIAny,
) -> i32 {
    // SAFETY: the handle is the function object that holds this callable, alive for the call. The arguments are passed
    // on under the same convention.
    unsafe { (*handle.cast::<FunctionObject<T>>()).payload.call(args, num_args, result) }
}

struct Callback {
    self_: *mut c_void,
    safe_call: TVMFFISafeCallType,
    deleter: Option<unsafe extern "C" fn(*mut c_void)>,
}

impl Drop for Callback {
    fn drop(&mut self) {
        if let Some(deleter) = self.deleter {
            // SAFETY: promised by the caller of `from_extern_c`; called once, here.
            unsafe { deleter(self.self_) };
        }
    }
}

/// The callable of [`Function::from_extern_c`]. It passes on the handle that the callback expects.
unsafe extern "C" fn call_callback(
    handle: *mut c_void,
    args: *const TVMFFIAny,
    num_args: i32,
    result: *mut TVMFFIAny,
) -> i32 {
    // SAFETY: the handle is the function object that holds this callable, alive for the call.
    let callback = unsafe { &(*handle.cast::<FunctionObject<Callback>>()).payload };
    // SAFETY: the arguments are passed on under the same convention.
    unsafe { (callback.safe_call)(callback.self_, args, num_args, result) }
}

/// A callable of a library, and the value that keeps the library open.
struct SymbolOf<T> {
    safe_call: TVMFFISafeCallType,
    _keep_alive: T,
}

/// The callable of [`Function::from_symbol`].
unsafe extern "C" fn call_symbol<T>(
    handle: *mut c_void,
    args: *const TVMFFIAny,
    num_args: i32,
    result: *mut TVMFFIAny,
) -> i32 {
    // SAFETY: the handle is the function object that holds this callable, alive for the call.
    let symbol = unsafe { &(*handle.cast::<FunctionObject<SymbolOf<T>>>()).payload };
    // SAFETY: the arguments are passed on under the same convention.
    unsafe { (symbol.safe_call)(std::ptr::null_mut(), args, num_args, result) }
}

/// A function, and a value that lives as long. Fields are dropped in this order.
struct Keeping<T> {
    function: Function,
    _keep_alive: T,
}

/// The callable of [`Function::keeping`].
unsafe extern "C" fn call_keeping<T>(
    handle: *mut c_void,
    args: *const TVMFFIAny,
    num_args: i32,
    result: *mut TVMFFIAny,
) -> i32 {
    // SAFETY: the handle is the function object that holds this callable, alive for the call.
    let function = unsafe { &(*handle.cast::<FunctionObject<Keeping<T>>>()).payload.function };
    // SAFETY: the arguments are passed on under the same convention, with the callable's own handle.
    unsafe { function.as_safe_call()(function.as_raw_handle(), args, num_args, result) }
}
