//! The environment of a call: streams by device, tensor allocator, signal check.
//! Streams belong to a thread; the allocator to a thread, with one for the whole process behind.
//! Header: `extra/c_env_api.h`.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::transmute;
use std::sync::{PoisonError, RwLock};

use crate::abi::*;
use crate::error::raised_error;
use crate::error::{Error, Result, kind, runtime_error, set_raised, value_error};
use crate::tensor::Tensor;

thread_local! {
    static STREAMS: RefCell<HashMap<(i32, i32), *mut c_void>> = RefCell::new(HashMap::new());
    static ALLOCATOR: Cell<Option<DLPackManagedTensorAllocator>> = const { Cell::new(None) };
}

static GLOBAL_ALLOCATOR: RwLock<Option<DLPackManagedTensorAllocator>> = RwLock::new(None);

/// Sets this thread's stream of a device and returns the one before, NULL if there was none.
pub(crate) fn set_stream(device: DLDevice, stream: *mut c_void) -> Result<*mut c_void> {
    if device.device_type.0 < 0 || device.device_id < 0 {
        return Err(value_error(&format!("no such device: {device}")));
    }
    let key = (device.device_type.0, device.device_id);
    let old = STREAMS.try_with(|streams| streams.borrow_mut().insert(key, stream));
    Ok(old.ok().flatten().unwrap_or(std::ptr::null_mut()))
}

/// This thread's stream of a device, NULL if none is set.
pub(crate) fn stream(device: DLDevice) -> *mut c_void {
    let key = (device.device_type.0, device.device_id);
    let found = STREAMS.try_with(|streams| streams.borrow().get(&key).copied());
    found.ok().flatten().unwrap_or(std::ptr::null_mut())
}

/// Sets this thread's allocator, maybe the process's too, and returns the thread's one before.
pub(crate) fn set_allocator(
    allocator: Option<DLPackManagedTensorAllocator>,
    global: bool,
) -> Option<DLPackManagedTensorAllocator> {
    if global {
        *GLOBAL_ALLOCATOR.write().unwrap_or_else(PoisonError::into_inner) = allocator;
    }
    let old = ALLOCATOR.try_with(|place| place.replace(allocator));
    old.ok().flatten()
}

/// This thread's allocator, or else the process's.
pub(crate) fn allocator() -> Option<DLPackManagedTensorAllocator> {
    let own = ALLOCATOR.try_with(Cell::get).ok().flatten();
    own.or_else(|| *GLOBAL_ALLOCATOR.read().unwrap_or_else(PoisonError::into_inner))
}

unsafe extern "C" fn raise_allocator_error(_error_ctx: *mut c_void, kind: *const c_char, message: *const c_char) {
    let text = |text: *const c_char| {
        if text.is_null() {
            return "".into();
        }
        // SAFETY: the allocator passes NUL-terminated strings.
        unsafe { CStr::from_ptr(text) }.to_string_lossy()
    };
    set_raised(Error::new(&text(kind), &text(message)));
}

/// A tensor like the prototype, from the current allocator, or else from this crate's on the CPU.
///
/// # Errors
/// What the allocator raises; without one, as [`Tensor::empty`].
///
/// # Safety
/// The prototype's device, type and shape must be filled.
pub(crate) unsafe fn alloc_tensor(prototype: *mut DLTensor) -> Result<Tensor> {
    let Some(allocate) = allocator() else {
        // SAFETY: the caller has checked that the prototype is not NULL and promises its fields.
        let (shape, dtype, device) = unsafe {
            let prototype = &*prototype;
            if prototype.ndim < 0 || (prototype.ndim > 0 && prototype.shape.is_null()) {
                return Err(value_error("prototype has no shape"));
            }
            (crate::tensor::dims(prototype.shape, prototype.ndim), prototype.dtype, prototype.device)
        };
        return Tensor::empty(shape, dtype, device);
    };
    let mut managed = std::ptr::null_mut();
    // SAFETY: the allocator's contract in dlpack.h; the prototype is the caller's.
    let code = unsafe { allocate(prototype, &raw mut managed, std::ptr::null_mut(), Some(raise_allocator_error)) };
    if code != 0 {
        return Err(raised_error(code));
    }
    if managed.is_null() {
        return Err(runtime_error("TVMFFIEnvTensorAlloc: failed to allocate a tensor from the allocator"));
    }
    // SAFETY: the allocator hands out an owned structure that is filled as dlpack.h says. It stays ours where it is refused.
    unsafe {
        Tensor::from_dlpack_versioned(managed, 0, false).inspect_err(|_| {
            if let Some(deleter) = (*managed).deleter {
                deleter(managed);
            }
        })
    }
}

type CheckSignals = unsafe extern "C" fn() -> c_int;
type GilEnsure = unsafe extern "C" fn() -> *mut c_void;
type GilRelease = unsafe extern "C" fn(*mut c_void);

struct PythonApi {
    check_signals: Option<CheckSignals>,
    gil_ensure: Option<GilEnsure>,
    gil_release: Option<GilRelease>,
}

static PYTHON_API: RwLock<PythonApi> =
    RwLock::new(PythonApi { check_signals: None, gil_ensure: None, gil_release: None });

/// Registers a function of the surrounding environment.
///
/// # Errors
/// `ValueError` for a name that the header does not know.
///
/// # Safety
/// `symbol` must be NULL or the function of that name in Python's C API.
pub(crate) unsafe fn register_api(name: &str, symbol: *mut c_void) -> Result<()> {
    let mut api = PYTHON_API.write().unwrap_or_else(PoisonError::into_inner);
    let mut is_known = true;
    // SAFETY: a pointer and an optional function pointer have the same size, and NULL is None; the
    // caller promises the signature that goes with the name.
    unsafe {
        match name {
            "PyErr_CheckSignals" => api.check_signals = transmute::<*mut c_void, Option<CheckSignals>>(symbol),
            "PyGILState_Ensure" => api.gil_ensure = transmute::<*mut c_void, Option<GilEnsure>>(symbol),
            "PyGILState_Release" => api.gil_release = transmute::<*mut c_void, Option<GilRelease>>(symbol),
            _ => is_known = false,
        }
    }
    // An error is made without the lock: its allocator may be somebody's code.
    drop(api);
    if is_known { Ok(()) } else { Err(value_error(&format!("Unknown env API {name}"))) }
}

/// Lets the surrounding environment handle its signals, and says whether it went well: else a handler has set an error in the
/// environment. No environment, no signals.
///
/// # Errors
/// `InternalError` where the environment has not registered all that is needed.
pub(crate) fn check_signals() -> Result<bool> {
    let (check, ensure, release) = {
        let api = PYTHON_API.read().unwrap_or_else(PoisonError::into_inner);
        (api.check_signals, api.gil_ensure, api.gil_release)
    };
    let Some(check) = check else {
        return Ok(true);
    };
    let (Some(ensure), Some(release)) = (ensure, release) else {
        return Err(Error::new(
            kind::INTERNAL_ERROR,
            "PyErr_CheckSignals is registered without the functions of the GIL",
        ));
    };
    // SAFETY: the functions are Python's, as registered; the GIL is held around the check.
    let code = unsafe {
        let state = ensure();
        let code = check();
        release(state);
        code
    };
    Ok(code == 0)
}
