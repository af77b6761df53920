//! The global functions that generated libraries ask the process for, and one that programs call.

use std::ffi::c_void;

use tvm_ffi_runtime::registry::{get_global, set_global};
use tvm_ffi_runtime::{Any, Function, Result};

use crate::lower::{LAUNCH_HOOKS, PARALLEL_FOR};
use crate::{launch_hooks, parallel_for};

/// The global function that sets the process's launch hook.
const SET_LAUNCH_HOOK: &str = "tvm_ffi_codegen.set_launch_hook";

/// Registers the global functions that libraries ask for at their first launch, unless the names are taken:
///
/// - `tvm_ffi_codegen.parallel_for` gives launches on the CPU threads.
/// - `tvm_ffi_codegen.launch_hooks` lets [hooks](set_launch_hook) see launches on devices.
///
/// Engines do this when they are built. A program that only loads libraries does it before their first launches.
/// A shared library that contains this crate must stay loaded from then on.
///
/// # Errors
/// The same as for [`set_global`](tvm_ffi_runtime::registry::set_global).
pub fn register_globals() -> Result<()> {
    let set_hook = |args: &[tvm_ffi_runtime::AnyView<'_>]| {
        let [enter, exit] = [0, 1].map(|index| args.get(index).map_or(Ok(None), |arg| arg.cast::<Option<Function>>()));
        launch_hooks::set(enter?, exit?);
        Ok(Any::from(()))
    };
    register(SET_LAUNCH_HOOK, || Function::from_packed(set_hook))?;
    register_address(LAUNCH_HOOKS, launch_hooks::table)?;
    register_address(PARALLEL_FOR, parallel_for::address)
}

/// Registers a function that returns an address of this crate.
fn register_address(name: &str, address: fn() -> *mut c_void) -> Result<()> {
    // SAFETY: libraries expect the address under this name.
    register(name, || Function::from_packed(move |_| Ok(unsafe { Any::from_opaque_ptr(address()) })))
}

fn register(name: &str, function: impl FnOnce() -> Function) -> Result<()> {
    let is_registered = || get_global(name).is_some();
    if is_registered() {
        return Ok(());
    }
    match set_global(name, function(), false) {
        // another thread may have registered it first
        Err(error) if !is_registered() => Err(error),
        _ => Ok(()),
    }
}

/// Sets the functions that the process calls before and after each launch on a device, in place of those before.
///
/// Both take the kernel's name, the grid and the block (`Shape`s of three extents), the dynamic shared memory of a
/// block in bytes, the stream (an opaque pointer), and the device. They run on the launching thread. An error of
/// `enter` fails the call, and nothing is launched. `exit` also runs if the driver has refused the launch; if the
/// driver hasn't, an error of `exit` fails the call.
///
/// Hooks see launches of each library whose first launch comes after [`register_globals`]. They don't see launches on
/// the CPU, launches of a graph, nor launches of modules that this crate neither loads nor writes to a file
/// ([`embed`](crate::embed)).
///
/// # Errors
/// The same as for [`register_globals`].
pub fn set_launch_hook(enter: Option<&Function>, exit: Option<&Function>) -> Result<()> {
    register_globals()?;
    match get_global(SET_LAUNCH_HOOK) {
        Some(set) => set.call((enter.cloned(), exit.cloned())).map(drop),
        None => Ok(()),
    }
}
