//! C symbols of functions: create, call, and the global table. `TVMFFIFunctionCall` jumps straight to the callable,
//! which has its own panic guard. Header section: "Basic function calling API for function implementation".

use std::ffi::{c_int, c_void};

use crate::abi::*;
use crate::any::AnyView;
use crate::boundary::{guard, null_argument, required, required_bytes, required_out};
use crate::error::{Result, type_mismatch};
use crate::function::Function;
use crate::heap::{AsObject, ObjectRef};
use crate::registry;
use crate::string::Str;

/// A new reference to the function of a borrowed handle.
///
/// # Safety
/// A non-NULL handle must be an object that is alive.
unsafe fn function_of(handle: TVMFFIObjectHandle, name: &str) -> Result<Function> {
    // SAFETY: promised by the caller.
    let object = unsafe { ObjectRef::clone_from_raw(handle.cast()) };
    object.ok_or_else(|| null_argument(name))?.try_into()
}

/// Creates a function from a C callback.
///
/// # Safety
/// As [`Function::from_extern_c`]; `out` must be NULL or writable.
#[cfg_attr(not(feature = "hidden"), unsafe(no_mangle))]
pub unsafe extern "C" fn TVMFFIFunctionCreate(
    self_: *mut c_void,
    safe_call: Option<TVMFFISafeCallType>,
    deleter: Option<unsafe extern "C" fn(*mut c_void)>,
    out: *mut TVMFFIObjectHandle,
) -> c_int {
    guard(|| {
        let out = required_out(out, "out")?;
        let safe_call = safe_call.ok_or_else(|| null_argument("safe_call"))?;
        // SAFETY: promised by the caller.
        let function = unsafe { Function::from_extern_c(self_, safe_call, deleter) };
        // SAFETY: `out` is not NULL, and writable by contract.
        unsafe { out.write(function.into_object().into_raw().cast()) };
        Ok(())
    })
}

/// Looks up a global function; `*out` is NULL when it is not registered.
///
/// # Safety
/// Pointers must be NULL or valid as the header says.
#[cfg_attr(not(feature = "hidden"), unsafe(no_mangle))]
pub unsafe extern "C" fn TVMFFIFunctionGetGlobal(name: *const TVMFFIByteArray, out: *mut TVMFFIObjectHandle) -> c_int {
    guard(|| {
        let out = required_out(out, "out")?;
        // SAFETY: promised by the caller.
        let name = unsafe { required_bytes(name, "name")? };
        let found = registry::find(name);
        let handle = found.map_or(std::ptr::null_mut(), |f| f.into_object().into_raw());
        // SAFETY: `out` is not NULL, and writable by contract.
        unsafe { out.write(handle.cast()) };
        Ok(())
    })
}

/// Registers a global function.
///
/// # Safety
/// Pointers must be NULL or valid as the header says.
#[cfg_attr(not(feature = "hidden"), unsafe(no_mangle))]
pub unsafe extern "C" fn TVMFFIFunctionSetGlobal(
    name: *const TVMFFIByteArray,
    f: TVMFFIObjectHandle,
    allow_override: c_int,
) -> c_int {
    guard(|| {
        // SAFETY: promised by the caller.
        let (name, function) = unsafe { (required_bytes(name, "name")?, function_of(f, "f")?) };
        registry::register(name, function, Str::new(""), allow_override != 0, "")
    })
}

/// Registers a global function with its metadata.
///
/// # Safety
/// The method info must be NULL or filled as the header says.
#[cfg_attr(not(feature = "hidden"), unsafe(no_mangle))]
pub unsafe extern "C" fn TVMFFIFunctionSetGlobalFromMethodInfo(
    method_info: *const TVMFFIMethodInfo,
    allow_override: c_int,
) -> c_int {
    guard(|| {
        // SAFETY: promised by the caller.
        unsafe {
            let info = required(method_info, "method_info")?;
            let name = required_bytes(&raw const info.name, "name")?;
            let metadata = Str::from_utf8(info.metadata.as_slice())?;
            let function: Function = AnyView::from_raw(info.method).cast()?;
            registry::register(name, function, metadata, allow_override != 0, registry::TAKEN_BY_DEFINITION)
        }
    })
}

/// Calls a function. The callable uses the same calling convention, so no adapter is needed.
///
/// # Safety
/// `func` must be NULL or a function object; arguments and result as [`TVMFFISafeCallType`] says.
#[cfg_attr(not(feature = "hidden"), unsafe(no_mangle))]
pub unsafe extern "C" fn TVMFFIFunctionCall(
    func: TVMFFIObjectHandle,
    args: *mut TVMFFIAny,
    num_args: i32,
    result: *mut TVMFFIAny,
) -> c_int {
    if func.is_null() {
        return raise_null_function();
    }
    // SAFETY: the cell follows the header of every function object.
    let cell = unsafe { &*func.cast::<TVMFFIObject>().add(1).cast::<TVMFFIFunctionCell>() };
    match cell.safe_call {
        // SAFETY: the callable takes its own function object and these arguments by contract.
        Some(safe_call) => unsafe { safe_call(func, args, num_args, result) },
        None => raise_null_function(),
    }
}

/// Declared as a C function, like its caller: neither unwinds, so the caller jumps here and needs no frame.
#[cold]
#[inline(never)]
extern "C" fn raise_null_function() -> c_int {
    guard(|| Err(null_argument("func")))
}

/// Turns a view into an owned value.
///
/// # Safety
/// `any_view` must be NULL or a valid view; `out` NULL or writable, and own nothing.
#[cfg_attr(not(feature = "hidden"), unsafe(no_mangle))]
pub unsafe extern "C" fn TVMFFIAnyViewToOwnedAny(any_view: *const TVMFFIAny, out: *mut TVMFFIAny) -> c_int {
    // SAFETY: promised by the caller.
    if let (Some(view), false) = (unsafe { any_view.as_ref() }, out.is_null()) {
        // SAFETY: promised by the caller.
        let view = unsafe { AnyView::from_raw(*view) };
        // Like upstream for a `DLTensor*`: C code may know that the tensor stays alive.
        if !view.borrows() || view.type_index() == TypeIndex::DL_TENSOR_PTR {
            // SAFETY: `out` is not NULL, and writable by contract.
            unsafe { out.write(view.share()) };
            return 0;
        }
    }
    // SAFETY: promised by the caller.
    unsafe { own_borrowed(any_view, out) }
}

/// # Safety
/// As [`TVMFFIAnyViewToOwnedAny`].
unsafe fn own_borrowed(any_view: *const TVMFFIAny, out: *mut TVMFFIAny) -> c_int {
    guard(|| {
        let out = required_out(out, "out")?;
        // SAFETY: promised by the caller.
        let view = unsafe { AnyView::from_raw(*required(any_view, "any_view")?) };
        // SAFETY: `out` is not NULL, and writable by contract.
        unsafe { out.write(view.to_owned()?.into_raw()) };
        Ok(())
    })
}

/// Raises a type mismatch if the handle's object is not of the wanted type.
pub(super) fn check_type(handle: TVMFFIObjectHandle, want: TypeIndex, name: &str) -> Result<()> {
    if handle.is_null() {
        return Err(null_argument(name));
    }
    // SAFETY: every caller in this module tree passes a live object by contract.
    let got = TypeIndex(unsafe { (*handle.cast::<TVMFFIObject>()).type_index });
    if got == want {
        return Ok(());
    }
    let want = want.static_type_key().unwrap_or("ffi.Object");
    Err(type_mismatch(want, got))
}
