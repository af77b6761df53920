//! The calls of libraries, and the functions in the states of libraries.

use std::ffi::{CStr, c_char, c_void};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tvm_ffi_runtime::abi::DLDeviceType;

use super::around;
use super::launch::ParamInfo;
use super::registry::{Attached, Kernel, Registry, StateHead, write};
use super::user::UserHook;

/// Sets or removes the program's hook.
pub(super) fn set_user_hook(hook: Option<UserHook>) {
    let mut registry = write();
    let before = std::mem::replace(&mut registry.user, hook.map(Arc::new));
    for (&state, attached) in &registry.states {
        // SAFETY: a state stays valid until its library has detached it, for which this lock is needed.
        unsafe { place(&registry, std::ptr::with_exposed_provenance(state), attached) };
    }
    drop(registry);
    // The last reference may run code of the program.
    drop(before);
}

/// Attaches a state whose functions are set, or set again.
///
/// # Safety
/// The state is valid until it is detached. `param_info` is NULL or the address of a [`ParamInfo`].
pub(super) unsafe extern "C" fn attach(state: *const StateHead, device_type: i32, param_info: *mut c_void) {
    let mut registry = write();
    // SAFETY: promised by the caller.
    let now = unsafe { &*state }.functions().map(|function| function.load(Ordering::Acquire));
    // A hook that was set between the library's stores and this may have replaced some of them already.
    let known = registry.states.get(&state.expose_provenance()).map_or(now, |known| known.functions);
    let around = around::in_place_of(known);
    let functions = std::array::from_fn(|i| if now[i] == around[i] { known[i] } else { now[i] });
    let param_info = (!param_info.is_null()).then(|| {
        // SAFETY: promised by the caller.
        unsafe { std::mem::transmute::<*mut c_void, ParamInfo>(param_info) }
    });
    let attached = Attached { functions, device_type: DLDeviceType(device_type as _), param_info };
    registry.states.insert(state.expose_provenance(), attached);
    // SAFETY: promised by the caller.
    unsafe { place(&registry, state, &attached) };
}

/// Notes the name of a loaded kernel.
///
/// # Safety
/// `name` is a C string.
pub(super) unsafe extern "C" fn note(state: *const StateHead, kernel: *mut c_void, name: *const c_char) {
    // SAFETY: promised by the caller.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
    let kernel_of = Kernel { name: name.into(), state: state.expose_provenance() };
    write().kernels.insert(kernel.addr(), kernel_of);
}

/// Forgets a state and its kernels. Its library is about to be unloaded.
///
/// # Safety
/// No launch of the library is under way.
pub(super) unsafe extern "C" fn detach(state: *const StateHead) {
    let mut registry = write();
    registry.states.remove(&state.addr());
    registry.kernels.retain(|_, kernel| kernel.state != state.addr());
}

/// Writes the functions into a state that launches have to call now.
///
/// # Safety
/// The state is valid.
unsafe fn place(registry: &Registry, state: *const StateHead, attached: &Attached) {
    let is_hooked = !registry.hooks().is_empty();
    let functions = if is_hooked { around::in_place_of(attached.functions) } else { attached.functions };
    // SAFETY: promised by the caller. Generated code reads these places as whole words.
    for (place, function) in unsafe { &*state }.functions().into_iter().zip(functions) {
        place.store(function, Ordering::Release);
    }
}
