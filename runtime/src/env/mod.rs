//! The environment of a call: streams by device, tensor allocator, signal check. Streams belong to a thread. A thread
//! may have an allocator of its own; otherwise it uses the process's. Header: `extra/c_env_api.h`.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::transmute;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::abi::*;
use crate::error::raised_error;
use crate::error::{Error, Result, kind, runtime_error, set_raised, value_error};
use crate::tensor::Tensor;

/// Devices of these types, with these many ids each, have slots of their own for streams.
const DEVICE_TYPES: usize = 20;
const DEVICE_IDS: usize = 16;

thread_local! {
    /// Streams by device type and id; NULL if none is set. They need neither an initialiser nor a destructor. So a
    /// thread reaches them at one address, until it ends.
    static STREAMS: [[Cell<*mut c_void>; DEVICE_IDS]; DEVICE_TYPES] =
        const { [const { [const { Cell::new(std::ptr::null_mut()) }; DEVICE_IDS] }; DEVICE_TYPES] };
    /// Streams of all other devices.
    static OTHER_STREAMS: RefCell<HashMap<(i32, i32), *mut c_void>> = RefCell::new(HashMap::new());
    static ALLOCATOR: Cell<Option<DLPackManagedTensorAllocator>> = const { Cell::new(None) };
}

/// The process's allocator; NULL if none is set.
static GLOBAL_ALLOCATOR: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// Calls `look` with the slot of a device's stream in this thread. Returns `None` if the device has no slot.
#[inline]
fn with_location<T>(device: DLDevice, look: impl FnOnce(&Cell<*mut c_void>) -> T) -> Option<T> {
    let (ty, id) = (usize::try_from(device.device_type.0).ok()?, usize::try_from(device.device_id).ok()?);
    if ty >= DEVICE_TYPES || id >= DEVICE_IDS {
        return None;
    }
    STREAMS.with(|streams| Some(look(streams.get(ty)?.get(id)?)))
}

/// Sets this thread's stream of a device and returns the one before; NULL if there was none.
#[inline]
pub(crate) fn set_stream(device: DLDevice, stream: *mut c_void) -> Result<*mut c_void> {
    with_location(device, |place| place.replace(stream)).map_or_else(|| set_other_stream(device, stream), Ok)
}

#[cold]
fn set_other_stream(device: DLDevice, stream: *mut c_void) -> Result<*mut c_void> {
    if device.device_type.0 < 0 || device.device_id < 0 {
        return Err(value_error(&format!("no such device: {device}")));
    }
    let key = (device.device_type.0, device.device_id);
    let old = OTHER_STREAMS.try_with(|streams| streams.borrow_mut().insert(key, stream));
    Ok(old.ok().flatten().unwrap_or(std::ptr::null_mut()))
}

/// This thread's stream of a device; NULL if none is set.
#[inline]
pub(crate) fn stream(device: DLDevice) -> *mut c_void {
    with_location(device, Cell::get).unwrap_or_else(|| other_stream(device))
}

#[cold]
fn other_stream(device: DLDevice) -> *mut c_void {
    let key = (device.device_type.0, device.device_id);
    let found = OTHER_STREAMS.try_with(|streams| streams.borrow().get(&key).copied());
    found.ok().flatten().unwrap_or(std::ptr::null_mut())
}

/// Sets this thread's allocator, and the process's too if `global` is set. Returns the thread's previous one.
pub(crate) fn set_allocator(
    allocator: Option<DLPackManagedTensorAllocator>,
    global: bool,
) -> Option<DLPackManagedTensorAllocator> {
    if global {
        let pointer = allocator.map_or(std::ptr::null_mut(), |allocator| allocator as *mut c_void);
        GLOBAL_ALLOCATOR.store(pointer, Ordering::Release);
    }
    ALLOCATOR.with(|place| place.replace(allocator))
}

/// Sets the process's allocator.
pub(crate) fn set_process_allocator(allocator: DLPackManagedTensorAllocator) -> Result<()> {
    set_allocator(Some(allocator), true);
    Ok(())
}

/// Sets nothing: without an allocator this runtime allocates on the CPU.
pub(crate) fn set_last_allocator(_: DLPackManagedTensorAllocator) -> Result<()> {
    Ok(())
}

/// This thread's allocator, or else the process's.
pub(crate) fn allocator() -> Option<DLPackManagedTensorAllocator> {
    // SAFETY: the pointer is NULL, which is None, or an allocator that was stored.
    let global = || unsafe {
        transmute::<*mut c_void, Option<DLPackManagedTensorAllocator>>(GLOBAL_ALLOCATOR.load(Ordering::Acquire))
    };
    ALLOCATOR.with(Cell::get).or_else(global)
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

/// A tensor like the prototype, from the current allocator, or else from this crate's allocator on the CPU.
///
/// # Errors
/// The error that the allocator raises. Without an allocator, `RuntimeError` for a device other than the CPU; otherwise
/// as [`Tensor::empty`].
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
        if device.device_type != DLDeviceType::CPU {
            return Err(runtime_error(&format!(
                "TVMFFIEnvTensorAlloc: no allocator for tensors on {device}; set one with \
                 TVMFFIEnvSetDLPackManagedTensorAllocator, as frameworks such as PyTorch do"
            )));
        }
        return Tensor::empty(shape, dtype, device);
    };
    let mut managed = std::ptr::null_mut();
    // SAFETY: the allocator follows its contract in dlpack.h, and the caller's prototype is valid.
    let code = unsafe { allocate(prototype, &raw mut managed, std::ptr::null_mut(), Some(raise_allocator_error)) };
    if code != 0 {
        return Err(raised_error(code));
    }
    if managed.is_null() {
        return Err(runtime_error("TVMFFIEnvTensorAlloc: failed to allocate a tensor from the allocator"));
    }
    // SAFETY: the allocator returns an owned structure, filled as `dlpack.h` says. If the import refuses it, it stays
    // ours.
    unsafe {
        // Use the generic function, which is compiled here for these arguments.
        Tensor::import(managed, 0, false).inspect_err(|_| {
            if let Some(deleter) = (*managed).deleter {
                deleter(managed);
            }
        })
    }
}

type CheckSignals = unsafe extern "C" fn() -> c_int;
type GilEnsure = unsafe extern "C" fn() -> *mut c_void;
type GilRelease = unsafe extern "C" fn(*mut c_void);

/// Functions of Python's C API; NULL if they aren't registered.
static CHECK_SIGNALS: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static GIL_ENSURE: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static GIL_RELEASE: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// Registers a function of the surrounding environment.
///
/// # Errors
/// `ValueError` for a name that isn't in the header.
///
/// # Safety
/// `symbol` must be NULL or the function of that name in Python's C API.
pub(crate) unsafe fn register_api(name: &str, symbol: *mut c_void) -> Result<()> {
    let place = match name {
        "PyErr_CheckSignals" => &CHECK_SIGNALS,
        "PyGILState_Ensure" => &GIL_ENSURE,
        "PyGILState_Release" => &GIL_RELEASE,
        _ => return Err(value_error(&format!("Unknown env API {name}"))),
    };
    place.store(symbol, Ordering::Release);
    Ok(())
}

/// Lets the surrounding environment handle its signals. Returns false if a handler has set an error in the environment.
/// Without an environment there are no signals.
///
/// # Errors
/// `InternalError` if the environment hasn't registered all required functions.
#[inline]
pub(crate) fn check_signals() -> Result<bool> {
    let check = CHECK_SIGNALS.load(Ordering::Acquire);
    if check.is_null() { Ok(true) } else { run_check(check) }
}

#[inline(never)]
fn run_check(check: *mut c_void) -> Result<bool> {
    // SAFETY: each pointer is NULL, which is None, or the function that the caller of `register_api` promised. This one
    // is not NULL.
    let (check, ensure, release) = unsafe {
        (
            transmute::<*mut c_void, CheckSignals>(check),
            transmute::<*mut c_void, Option<GilEnsure>>(GIL_ENSURE.load(Ordering::Acquire)),
            transmute::<*mut c_void, Option<GilRelease>>(GIL_RELEASE.load(Ordering::Acquire)),
        )
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
