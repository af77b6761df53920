//! C symbols for the code in libraries: looking up imported functions, and registering values for libraries. Header
//! section: "Module symbol management in callee side" of `extra/c_env_api.h`.

use std::ffi::{c_char, c_int, c_void};

use crate::abi::*;
use crate::boundary::{c_bytes, guard, null_argument, required_out};
use crate::error::{Result, type_mismatch, value_error};
use crate::heap::ObjectRef;
use crate::module::{Module, object_of_context, register_context_symbol, register_system_symbol};

/// Finds a function in the modules that a library imports, or else among the global ones.
///
/// `library_ctx` is the value of the library's `__tvm_ffi__library_ctx`. The result is not an owned reference: it lives
/// as long as the library's module, and the same name always gives the same function.
///
/// # Safety
/// `library_ctx` must be NULL or a module that is alive; `func_name` NULL or NUL-terminated; `out` NULL or writable.
#[cfg_attr(not(feature = "hidden"), unsafe(no_mangle))]
pub unsafe extern "C" fn TVMFFIEnvModLookupFromImports(
    library_ctx: TVMFFIObjectHandle,
    func_name: *const c_char,
    out: *mut TVMFFIObjectHandle,
) -> c_int {
    guard(|| {
        let out = required_out(out, "out")?;
        // SAFETY: promised by the caller.
        let name = unsafe { required_name(func_name, "func_name")? };
        // SAFETY: as above.
        let object = unsafe { ObjectRef::clone_from_raw(object_of_context(library_ctx)) };
        let object = object.ok_or_else(|| null_argument("library_ctx"))?;
        let module: Module =
            object.downcast().map_err(|object: ObjectRef| type_mismatch("ffi.Module", object.type_index()))?;
        let function = module.lookup_for_code(name)?;
        // SAFETY: not NULL, and writable by contract. The module keeps the function.
        unsafe { out.write(function.as_raw_handle()) };
        Ok(())
    })
}

/// Registers the value of the pointer variables called `name` in libraries that are loaded from now on. NULL removes
/// the registration.
///
/// # Safety
/// `name` must be NULL or NUL-terminated, and in every library the symbol of that name must be a pointer variable.
#[cfg_attr(not(feature = "hidden"), unsafe(no_mangle))]
pub unsafe extern "C" fn TVMFFIEnvModRegisterContextSymbol(name: *const c_char, symbol: *mut c_void) -> c_int {
    guard(|| {
        // SAFETY: promised by the caller.
        register_context_symbol(unsafe { required_name(name, "name")? }, symbol);
        Ok(())
    })
}

/// Registers a symbol of the system library; a later one of the same name wins. NULL removes it.
///
/// # Safety
/// `name` must be NULL or NUL-terminated. `symbol` must be what the rules for libraries require of that name, and stay
/// valid forever.
#[cfg_attr(not(feature = "hidden"), unsafe(no_mangle))]
pub unsafe extern "C" fn TVMFFIEnvModRegisterSystemLibSymbol(name: *const c_char, symbol: *mut c_void) -> c_int {
    guard(|| {
        // SAFETY: promised by the caller.
        register_system_symbol(unsafe { required_name(name, "name")? }, symbol);
        Ok(())
    })
}

/// Reads a name that must not be NULL.
///
/// # Safety
/// A non-NULL pointer must be a NUL-terminated string for `'a`.
unsafe fn required_name<'a>(name: *const c_char, argument: &str) -> Result<&'a str> {
    if name.is_null() {
        return Err(null_argument(argument));
    }
    // SAFETY: promised by the caller.
    let bytes = unsafe { c_bytes(name) };
    std::str::from_utf8(bytes).map_err(|error| value_error(&format!("argument `{argument}` is not UTF-8: {error}")))
}
