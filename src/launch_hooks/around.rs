//! Functions in the places of those of a state. They run the hooks around a launch.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use tvm_ffi_runtime::abi::DLDevice;
use tvm_ffi_runtime::error::take_raised;

use super::launch::{Config, Hook, Launch};
use super::registry::{Found, Functions, StateHead, find};

/// `cuLaunchKernelEx`.
type LaunchKernel = unsafe extern "C" fn(*const Config, *mut c_void, *const *const c_void, *mut c_void) -> c_int;
/// A function that launches in a device's context, as `lower::device_api::start` defines it. It returns an outcome.
type Start = unsafe extern "C" fn(*const Config, *mut c_void, *const *const c_void, *const StateHead, i32) -> i64;

/// `CUDA_ERROR_INVALID_HANDLE`; HIP has the same number.
const INVALID_HANDLE: c_int = 400;

/// The functions that run hooks, in the places of those that a state has.
pub(super) fn in_place_of([launch, start, start_cooperative]: Functions) -> Functions {
    let around: [(*mut c_void, *mut c_void); 3] = [
        (launch, self::launch as LaunchKernel as *mut c_void),
        (start, self::start::<1> as Start as *mut c_void),
        (start_cooperative, self::start::<2> as Start as *mut c_void),
    ];
    around.map(|(own, around)| if own.is_null() { own } else { around })
}

/// Launches a kernel in the context of its stream.
///
/// # Safety
/// As for `cuLaunchKernelEx`, with a configuration of generated code.
unsafe extern "C" fn launch(
    config: *const Config,
    kernel: *mut c_void,
    params: *const *const c_void,
    extra: *mut c_void,
) -> c_int {
    let Some(found) = find(kernel) else { return INVALID_HANDLE };
    // SAFETY: the state's first function is the driver's.
    let own = unsafe { std::mem::transmute::<*mut c_void, LaunchKernel>(found.attached.functions[0]) };
    // SAFETY: promised by the caller.
    let device = unsafe { (*config).device };
    // SAFETY: as here.
    unsafe { around(found, (config, kernel, params, device), || own(config, kernel, params, extra)) }
}

/// Launches a kernel in a device's context, with the function that the state has at an index. It returns an outcome.
///
/// # Safety
/// As for that function.
unsafe extern "C" fn start<const FUNCTION: usize>(
    config: *const Config,
    kernel: *mut c_void,
    params: *const *const c_void,
    state: *const StateHead,
    device: i32,
) -> i64 {
    let Some(found) = find(kernel) else { return INVALID_HANDLE.into() };
    let own = found.attached.functions[FUNCTION];
    // SAFETY: these functions of a state are of this type.
    let own = unsafe { std::mem::transmute::<*mut c_void, Start>(own) };
    let mut outcome = 0;
    // SAFETY: promised by the caller.
    let code = unsafe {
        around(found, (config, kernel, params, device), || {
            outcome = own(config, kernel, params, state, device);
            outcome as c_int
        })
    };
    // A hook's code takes the place of the status, which is the outcome's lower half.
    if code < 0 { i64::from(code.cast_unsigned()) } else { outcome }
}

/// Runs the hooks around a launch. Returns the launch's status, or the negative code of a hook's error, which is
/// raised.
///
/// # Safety
/// The configuration, the kernel and the parameters are those of a launch.
unsafe fn around(
    Found { name, attached, hooks }: Found,
    (config, kernel, params, device): (*const Config, *mut c_void, *const *const c_void, i32),
    own: impl FnOnce() -> c_int,
) -> c_int {
    let device = DLDevice { device_type: attached.device_type, device_id: device };
    // SAFETY: promised by the caller.
    let config = unsafe { &*config };
    let launch = Launch { name, config, device, kernel, params, param_info: attached.param_info };
    let mut entered: Vec<&Arc<dyn Hook>> = Vec::with_capacity(hooks.len());
    let refused = hooks.iter().find_map(|hook| {
        let code = hook.enter(&launch).err();
        if code.is_none() {
            entered.push(hook);
        }
        code
    });
    let status = refused.unwrap_or_else(own);
    let mut failed = None;
    for hook in entered.into_iter().rev() {
        if let Err(code) = hook.exit(&launch) {
            failed = Some(code);
        }
    }
    match failed {
        // The driver's failure says more than a hook's.
        Some(_) if status != 0 => {
            drop(take_raised());
            status
        }
        Some(code) => code,
        None => status,
    }
}
