//! Signals of the environment, such as Python's Ctrl-C, while a thread waits.

use std::ffi::c_int;
use std::sync::OnceLock;
use std::time::Duration;

use tvm_ffi_runtime::capi;

use super::failure::Failure;

/// The time between two checks of a waiting thread for signals.
pub const INTERVAL: Duration = Duration::from_millis(50);

type Check = unsafe extern "C" fn() -> c_int;

/// Lets the environment handle its signals. The caller must not hold the process's lock, since a handler may run.
///
/// # Errors
/// Code -2 if a handler has set an error in the environment.
pub fn check() -> Result<(), Failure> {
    static CHECK: OnceLock<Option<Check>> = OnceLock::new();
    let find = || {
        let (_, address) = capi::symbols().iter().find(|(name, _)| *name == "TVMFFIEnvCheckSignals")?;
        // SAFETY: this is the function's type in `c_env_api.h`.
        Some(unsafe { std::mem::transmute::<*const std::ffi::c_void, Check>(address.as_ptr()) })
    };
    // SAFETY: any thread may call it.
    match CHECK.get_or_init(find).map_or(0, |check| unsafe { check() }) {
        0 => Ok(()),
        _ => match Failure::of_call(-2) {
            Failure::Raised(error, _) => Err(error.into()),
            failure => Err(failure),
        },
    }
}
