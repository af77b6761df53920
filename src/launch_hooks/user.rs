//! The program's own hook: two functions of TVM FFI.

use std::ffi::c_int;

use tvm_ffi_runtime::abi::TVMFFIAny;
use tvm_ffi_runtime::error::set_raised;
use tvm_ffi_runtime::{Any, CallArgs, Function, Shape};

use super::launch::{Hook, Launch};

/// Functions that take a launch's name, grid, block, shared memory in bytes, stream and device.
pub(super) struct UserHook {
    pub enter: Option<Function>,
    pub exit: Option<Function>,
}

impl Hook for UserHook {
    fn enter(&self, launch: &Launch<'_>) -> Result<(), c_int> {
        call(self.enter.as_ref(), launch)
    }

    fn exit(&self, launch: &Launch<'_>) -> Result<(), c_int> {
        call(self.exit.as_ref(), launch)
    }
}

fn call(function: Option<&Function>, launch: &Launch<'_>) -> Result<(), c_int> {
    let Some(function) = function else { return Ok(()) };
    let config = launch.config;
    // SAFETY: nothing reads the memory behind an opaque pointer.
    let stream = unsafe { Any::from_opaque_ptr(config.stream) };
    let [grid, block] = [config.grid, config.block].map(|extents| Shape::new(&extents.map(i64::from)));
    let mut result = TVMFFIAny::none();
    let args = (&*launch.name, &grid, &block, i64::from(config.shared_memory), stream.as_view(), launch.device);
    let code = args.with_views(|views| {
        let raw: Vec<TVMFFIAny> = views.iter().map(|view| view.as_raw()).collect();
        // SAFETY: the views are valid for the call, and the result is None.
        Ok(unsafe { function.call_raw(&raw, &mut result) })
    });
    let code = code.unwrap_or_else(|error| {
        set_raised(error);
        -1
    });
    // SAFETY: a call leaves an owned value.
    drop(unsafe { Any::from_raw(result) });
    match code {
        0 => Ok(()),
        // A status of the driver isn't negative.
        code => Err(code.min(-1)),
    }
}
