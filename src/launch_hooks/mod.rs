//! Launch hooks: code of the process that runs around each launch on a device.
//!
//! A library calls the driver through addresses in its *state*. At its first use of a device it [attaches](attach) the
//! state, and while a hook is set, the addresses there are those of [functions](around) that run the hooks. So a launch
//! without hooks costs nothing. `lower::device_api::launch_hooks` is the library's part.
//!
//! Two hooks are set by environment variables: [`log`] and [`ranges`].

mod around;
mod attach;
mod launch;
mod log;
mod nvtx;
mod profiler;
mod ranges;
mod registry;
mod user;

use std::ffi::c_void;

use tvm_ffi_runtime::Function;

/// The functions that libraries call, in the order that `lower::device_api::launch_hooks` states.
#[repr(C)]
struct Table {
    attach: unsafe extern "C" fn(*const registry::StateHead, i32, *mut c_void),
    note: unsafe extern "C" fn(*const registry::StateHead, *mut c_void, *const std::ffi::c_char),
    detach: unsafe extern "C" fn(*const registry::StateHead),
}

static TABLE: Table = Table { attach: attach::attach, note: attach::note, detach: attach::detach };

/// The address of the table.
pub(crate) fn table() -> *mut c_void {
    (&raw const TABLE).cast_mut().cast()
}

/// Sets the process's hook in place of the one before; without functions there is none.
pub(crate) fn set(enter: Option<Function>, exit: Option<Function>) {
    let hook = (enter.is_some() || exit.is_some()).then(|| user::UserHook { enter, exit });
    attach::set_user_hook(hook);
}
