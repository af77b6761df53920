//! The table of the external runtime's function pointers.

#![allow(non_snake_case)]

use std::ffi::{CStr, c_int, c_void};

use crate::abi::*;

/// Declares the table: each symbol with its prototype. Older libraries may lack the symbols after `optional`.
macro_rules! api {
    (
        required { $($name:ident: fn($($arg:ty),*) $(-> $result:ty)?;)* }
        optional { $($maybe:ident: fn($($opt_arg:ty),*) $(-> $opt_result:ty)?;)* }
    ) => {
        /// The functions of an external runtime that this crate calls.
        pub(crate) struct Api {
            $(pub(crate) $name: unsafe extern "C" fn($($arg),*) $(-> $result)?,)*
            $(pub(crate) $maybe: Option<unsafe extern "C" fn($($opt_arg),*) $(-> $opt_result)?>,)*
        }

        impl Api {
            /// Fills the table with `find`, or returns the names of the missing functions.
            ///
            /// # Safety
            /// `find` must return NULL, or the function of that name with the prototype in the C header.
            pub(super) unsafe fn load(find: impl Fn(&CStr) -> *mut c_void) -> Result<Self, Vec<&'static str>> {
                let mut missing = Vec::new();
                $(
                    // SAFETY: a pointer and an optional function pointer have the same size, and NULL is None; the
                    // caller promises the prototype.
                    let $name = unsafe {
                        std::mem::transmute::<*mut c_void, Option<unsafe extern "C" fn($($arg),*) $(-> $result)?>>(
                            find(c_name(concat!(stringify!($name), "\0"))))
                    };
                    if $name.is_none() {
                        missing.push(stringify!($name));
                    }
                )*
                $(
                    // SAFETY: as above.
                    let $maybe = unsafe {
                        let found = find(c_name(concat!(stringify!($maybe), "\0")));
                        std::mem::transmute::<
                            *mut c_void,
                            Option<unsafe extern "C" fn($($opt_arg),*) $(-> $opt_result)?>,
                        >(found)
                    };
                )*
                match ($($name,)*) {
                    ($(Some($name),)*) => Ok(Self { $($name,)* $($maybe,)* }),
                    _ => Err(missing),
                }
            }
        }
    };
}

/// Converts a NUL-terminated name.
fn c_name(text: &'static str) -> &'static CStr {
    CStr::from_bytes_until_nul(text.as_bytes()).unwrap_or_default()
}

api! {
    required {
        TVMFFIErrorMoveFromRaised: fn(*mut TVMFFIObjectHandle);
        TVMFFIErrorSetRaised: fn(TVMFFIObjectHandle);
        TVMFFIObjectDecRef: fn(TVMFFIObjectHandle) -> c_int;
        TVMFFIFunctionGetGlobal: fn(*const TVMFFIByteArray, *mut TVMFFIObjectHandle) -> c_int;
        TVMFFIFunctionSetGlobal: fn(*const TVMFFIByteArray, TVMFFIObjectHandle, c_int) -> c_int;
        TVMFFIFunctionSetGlobalFromMethodInfo: fn(*const TVMFFIMethodInfo, c_int) -> c_int;
        TVMFFITypeKeyToIndex: fn(*const TVMFFIByteArray, *mut i32) -> c_int;
        TVMFFITypeGetOrAllocIndex: fn(*const TVMFFIByteArray, i32, i32, i32, i32, i32) -> i32;
        TVMFFIGetTypeInfo: fn(i32) -> *const TVMFFITypeInfo;
        TVMFFITypeRegisterField: fn(i32, *const TVMFFIFieldInfo) -> c_int;
        TVMFFITypeRegisterMethod: fn(i32, *const TVMFFIMethodInfo) -> c_int;
        TVMFFITypeRegisterMetadata: fn(i32, *const TVMFFITypeMetadata) -> c_int;
        TVMFFITypeRegisterAttr: fn(i32, *const TVMFFIByteArray, *const TVMFFIAny) -> c_int;
        TVMFFIGetTypeAttrColumn: fn(*const TVMFFIByteArray) -> *const TVMFFITypeAttrColumn;
        TVMFFIEnvSetStream: fn(i32, i32, *mut c_void, *mut *mut c_void) -> c_int;
        TVMFFIEnvGetStream: fn(i32, i32) -> *mut c_void;
    }
    optional {
        TVMFFIGetCustomAllocator: fn() -> *mut TVMFFICustomAllocator;
        TVMFFISetCustomAllocator: fn(*mut TVMFFICustomAllocator) -> c_int;
        TVMFFIEnvGetDLPackManagedTensorAllocator: fn() -> Option<DLPackManagedTensorAllocator>;
        TVMFFIEnvSetDLPackManagedTensorAllocator: fn(
            Option<DLPackManagedTensorAllocator>,
            c_int,
            *mut Option<DLPackManagedTensorAllocator>
        ) -> c_int;
    }
}
