//! The functions of the runtime, and their replacements that record calls.

use std::cell::Cell;
use std::ffi::{c_char, c_int, c_void};

use tvm_ffi_codegen::runtime::abi::{DLTensor, TVMFFIAny, TVMFFIByteArray, TVMFFIObjectHandle, TVMFFISafeCallType};
use tvm_ffi_codegen::runtime::capi;

use super::describe::{bytes, c_text, descriptor};
use super::{Change, fallible, noted, with};

/// The table of the runtime's functions, as required by `EngineBuilder::external_runtime`.
pub fn symbols() -> Vec<(&'static str, *const u8)> {
    let own = |name: &str| WRAPPED.iter().find(|(known, _)| *known == name).map(|(_, address)| address());
    let all = capi::symbols().iter();
    all.map(|(name, address)| (*name, own(name).unwrap_or_else(|| address.as_ptr().cast()))).collect()
}

macro_rules! wrapped {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),*) $(-> $ret:ty)? $body:block)*) => {
        $(
            $(#[$doc])*
            #[allow(non_snake_case, unused_unsafe)] // a function without arguments has no unsafe calls
            unsafe extern "C" fn $name($($arg: $ty),*) $(-> $ret)? {
                // SAFETY: the function with this name receives its caller's arguments according to the C header, and
                // the trace reads only data that the C header guarantees.
                unsafe { $body }
            }
        )*

        /// The original functions.
        pub mod real {
            use super::*;
            use crate::support::c_api::c_functions;

            c_functions! { $(fn $name($($arg: $ty),*) $(-> $ret)?;)* }
        }

        const WRAPPED: &[(&str, fn() -> *const u8)] = &[$((stringify!($name), || $name as *const u8)),*];
    };
}

wrapped! {
    fn TVMFFIFunctionGetGlobal(name: *const TVMFFIByteArray, out: *mut TVMFFIObjectHandle) -> c_int {
        fallible(
            |_| format!("get global {}", bytes(name)),
            || real::TVMFFIFunctionGetGlobal(name, out),
            |r| r.got(out.read()),
        )
    }

    fn TVMFFIFunctionSetGlobal(name: *const TVMFFIByteArray, f: TVMFFIObjectHandle, allow_override: c_int) -> c_int {
        fallible(
            |r| format!("set global {} to {}, override {allow_override}", bytes(name), r.object(f)),
            || real::TVMFFIFunctionSetGlobal(name, f, allow_override),
            |_| String::new(),
        )
    }

    fn TVMFFIFunctionCreate(
        own: *mut c_void,
        safe_call: Option<TVMFFISafeCallType>,
        deleter: Option<unsafe extern "C" fn(*mut c_void)>,
        out: *mut TVMFFIObjectHandle
    ) -> c_int {
        fallible(
            |_| "create a function".to_owned(),
            || real::TVMFFIFunctionCreate(own, safe_call, deleter, out),
            |r| r.made_function(out.read()),
        )
    }

    /// If the callee takes a reference out of an rvalue reference, its owner has released it.
    fn TVMFFIFunctionCall(f: TVMFFIObjectHandle, args: *mut TVMFFIAny, count: i32, result: *mut TVMFFIAny) -> c_int {
        fallible(
            |r| format!("call {}({})", r.object(f), r.values(args, count)),
            || real::TVMFFIFunctionCall(f, args, count, result),
            |r| r.got_value(result.read()),
        )
    }

    fn TVMFFIObjectIncRef(object: TVMFFIObjectHandle) -> c_int {
        noted(
            |r| format!("share {}", r.got(object)),
            || real::TVMFFIObjectIncRef(object),
            |_, _| String::new(),
        )
    }

    fn TVMFFIObjectDecRef(object: TVMFFIObjectHandle) -> c_int {
        let released = Cell::new(None);
        noted(
            |r| {
                let text = format!("release {}", r.object(object));
                released.set(r.number_of(object));
                r.trace.changes.extend(released.get().map(Change::Released));
                text
            },
            || real::TVMFFIObjectDecRef(object),
            |r, _| if released.get().is_some_and(|number| r.is_gone(number)) { "gone".to_owned() } else { String::new() },
        )
    }

    fn TVMFFIAnyViewToOwnedAny(view: *const TVMFFIAny, out: *mut TVMFFIAny) -> c_int {
        fallible(
            |r| format!("own {}", r.value(view.read())),
            || real::TVMFFIAnyViewToOwnedAny(view, out),
            |r| r.got_value(out.read()),
        )
    }

    fn TVMFFIStringFromByteArray(input: *const TVMFFIByteArray, out: *mut TVMFFIAny) -> c_int {
        fallible(
            |_| format!("string of {}", bytes(input)),
            || real::TVMFFIStringFromByteArray(input, out),
            |r| r.got_value(out.read()),
        )
    }

    fn TVMFFIBytesFromByteArray(input: *const TVMFFIByteArray, out: *mut TVMFFIAny) -> c_int {
        fallible(
            |_| format!("bytes of {}", bytes(input)),
            || real::TVMFFIBytesFromByteArray(input, out),
            |r| r.got_value(out.read()),
        )
    }

    fn TVMFFIHandleInitOnce(handle: *mut *mut c_void, init: Option<unsafe extern "C" fn(*mut *mut c_void) -> c_int>) -> c_int {
        fallible(
            |_| "init once".to_owned(),
            || {
                with(|r| r.initialisations += 1);
                let code = real::TVMFFIHandleInitOnce(handle, init);
                with(|r| r.initialisations -= 1);
                code
            },
            |_| "done".to_owned(),
        )
    }

    fn TVMFFIHandleDeinitOnce(handle: *mut *mut c_void, deinit: Option<unsafe extern "C" fn(*mut c_void) -> c_int>) -> c_int {
        noted(
            |_| "deinit once".to_owned(),
            || real::TVMFFIHandleDeinitOnce(handle, deinit),
            |_, code| format!("code {code}"),
        )
    }

    /// The returned function belongs to the module.
    fn TVMFFIEnvModLookupFromImports(context: TVMFFIObjectHandle, name: *const c_char, out: *mut TVMFFIObjectHandle) -> c_int {
        fallible(
            |_| format!("import \"{}\"", c_text(name)),
            || real::TVMFFIEnvModLookupFromImports(context, name, out),
            |r| r.object(out.read()),
        )
    }

    fn TVMFFIEnvCheckSignals() -> c_int {
        fallible(|_| "check signals".to_owned(), || real::TVMFFIEnvCheckSignals(), |_| String::new())
    }

    fn TVMFFIEnvTensorAlloc(prototype: *mut DLTensor, out: *mut TVMFFIObjectHandle) -> c_int {
        fallible(
            |_| {
                let prototype = DLTensor { data: std::ptr::null_mut(), strides: std::ptr::null_mut(), ..prototype.read() };
                format!("allocate {}", descriptor(&prototype))
            },
            || real::TVMFFIEnvTensorAlloc(prototype, out),
            |r| r.allocated(out.read()),
        )
    }

    fn TVMFFITensorCreateUnsafeView(source: TVMFFIObjectHandle, prototype: *const DLTensor, out: *mut TVMFFIObjectHandle) -> c_int {
        fallible(
            |r| format!("view of {} as {}", r.object(source), descriptor(&*prototype)),
            || real::TVMFFITensorCreateUnsafeView(source, prototype, out),
            |r| r.got(out.read()),
        )
    }

    fn TVMFFIErrorMoveFromRaised(out: *mut TVMFFIObjectHandle) {
        noted(
            |_| "take the error".to_owned(),
            || real::TVMFFIErrorMoveFromRaised(out),
            |r, ()| r.got_error(out.read()),
        );
    }

    fn TVMFFIErrorSetRaised(error: TVMFFIObjectHandle) {
        noted(
            |r| format!("raise {}", r.error(error)),
            || real::TVMFFIErrorSetRaised(error),
            |_, ()| String::new(),
        );
    }

    fn TVMFFIErrorSetRaisedFromCStr(kind: *const c_char, message: *const c_char) {
        noted(
            |_| format!("raise {}: {}", c_text(kind), c_text(message)),
            || real::TVMFFIErrorSetRaisedFromCStr(kind, message),
            |_, ()| String::new(),
        );
    }

    fn TVMFFIErrorSetRaisedFromCStrParts(kind: *const c_char, parts: *const *const c_char, count: i32) {
        noted(
            |_| {
                let parts: String = (0..count.max(0) as usize).map(|i| c_text(parts.add(i).read())).collect();
                format!("raise {}: {parts}", c_text(kind))
            },
            || real::TVMFFIErrorSetRaisedFromCStrParts(kind, parts, count),
            |_, ()| String::new(),
        );
    }

    /// A failure of this function raises no error, so none is injected.
    fn TVMFFIErrorCreate(
        kind: *const TVMFFIByteArray,
        message: *const TVMFFIByteArray,
        backtrace: *const TVMFFIByteArray,
        out: *mut TVMFFIObjectHandle
    ) -> c_int {
        noted(
            |_| format!("create error {}: {}", bytes(kind), bytes(message)),
            || real::TVMFFIErrorCreate(kind, message, backtrace, out),
            |r, code| if *code == 0 { r.got_error(out.read()) } else { format!("code {code}") },
        )
    }

    /// A failure of this function raises no error, so none is injected.
    fn TVMFFIErrorCreateWithCauseAndExtraContext(
        kind: *const TVMFFIByteArray,
        message: *const TVMFFIByteArray,
        backtrace: *const TVMFFIByteArray,
        cause: TVMFFIObjectHandle,
        context: TVMFFIObjectHandle,
        out: *mut TVMFFIObjectHandle
    ) -> c_int {
        noted(
            |r| format!("create error {}: {}, cause {}, context {}", bytes(kind), bytes(message), r.error(cause), r.object(context)),
            || real::TVMFFIErrorCreateWithCauseAndExtraContext(kind, message, backtrace, cause, context, out),
            |r, code| if *code == 0 { r.got_error(out.read()) } else { format!("code {code}") },
        )
    }

    /// A failure only means that the type is unknown, so none is injected.
    fn TVMFFITypeKeyToIndex(key: *const TVMFFIByteArray, out: *mut i32) -> c_int {
        noted(
            |_| format!("index of type {}", bytes(key)),
            || real::TVMFFITypeKeyToIndex(key, out),
            |_, code| if *code == 0 { "known".to_owned() } else { format!("code {code}") },
        )
    }
}
