//! The states of the process's libraries, their kernels, and the hooks.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};

use tvm_ffi_runtime::abi::DLDeviceType;

use super::around;
use super::launch::{Hook, ParamInfo};
use super::user::UserHook;
use super::{log, ranges};

/// The functions of a state that hooks replace. `lower::device_api::state` has the whole layout.
#[repr(C)]
pub(super) struct StateHead {
    launch: AtomicPtr<c_void>,
    start: AtomicPtr<c_void>,
    start_cooperative: AtomicPtr<c_void>,
}

/// The three functions of a state, or those in their places. The last one may be NULL.
pub(super) type Functions = [*mut c_void; 3];

/// What is known about a state.
#[derive(Clone, Copy)]
pub(super) struct Attached {
    /// The library's own functions.
    pub functions: Functions,
    pub device_type: DLDeviceType,
    pub param_info: Option<ParamInfo>,
}

/// A loaded kernel.
struct Kernel {
    name: Arc<str>,
    /// The address of its library's state.
    state: usize,
}

struct Registry {
    /// By the addresses of the states.
    states: BTreeMap<usize, Attached>,
    /// By the driver's handles.
    kernels: BTreeMap<usize, Kernel>,
    user: Option<Arc<UserHook>>,
}

// SAFETY: the addresses are those of functions, which any thread may call.
unsafe impl Send for Registry {}
// SAFETY: as above.
unsafe impl Sync for Registry {}

static REGISTRY: RwLock<Registry> =
    RwLock::new(Registry { states: BTreeMap::new(), kernels: BTreeMap::new(), user: None });

/// A kernel that is about to be launched, and the hooks, in the order of their `enter`.
pub(super) struct Found {
    pub name: Arc<str>,
    pub attached: Attached,
    pub hooks: Vec<Arc<dyn Hook>>,
}

/// Looks up a kernel, by its handle. `None` if no attached library has loaded it.
pub(super) fn find(kernel: *mut c_void) -> Option<Found> {
    let registry = REGISTRY.read().unwrap_or_else(PoisonError::into_inner);
    let known = registry.kernels.get(&kernel.addr())?;
    let attached = *registry.states.get(&known.state)?;
    Some(Found { name: Arc::clone(&known.name), attached, hooks: registry.hooks() })
}

/// Sets or removes the program's hook.
pub(super) fn set_user_hook(hook: Option<UserHook>) {
    let mut registry = write();
    let before = std::mem::replace(&mut registry.user, hook.map(Arc::new));
    for (&state, attached) in &registry.states {
        // SAFETY: a state stays valid until its library has detached it, for which this lock is needed.
        unsafe { registry.place(std::ptr::with_exposed_provenance(state), attached) };
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
    let now = unsafe { &*state }.each_ref().map(|function| function.load(Ordering::Acquire));
    // A hook that was set between the library's stores and this has replaced them already.
    let known = registry.states.get(&state.expose_provenance()).map(|known| known.functions);
    let functions = known.filter(|known| now == around::in_place_of(*known)).unwrap_or(now);
    let param_info = (!param_info.is_null()).then(|| {
        // SAFETY: promised by the caller.
        unsafe { std::mem::transmute::<*mut c_void, ParamInfo>(param_info) }
    });
    let attached = Attached { functions, device_type: DLDeviceType(device_type as _), param_info };
    registry.states.insert(state.expose_provenance(), attached);
    // SAFETY: promised by the caller.
    unsafe { registry.place(state, &attached) };
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

fn write() -> RwLockWriteGuard<'static, Registry> {
    REGISTRY.write().unwrap_or_else(PoisonError::into_inner)
}

impl Registry {
    fn hooks(&self) -> Vec<Arc<dyn Hook>> {
        let user = self.user.clone().map(|user| user as Arc<dyn Hook>);
        log::hook().into_iter().chain(ranges::hook()).chain(user).collect()
    }

    /// Writes the functions into a state that launches have to call now.
    ///
    /// # Safety
    /// The state is valid.
    unsafe fn place(&self, state: *const StateHead, attached: &Attached) {
        let is_hooked = !self.hooks().is_empty();
        let functions = if is_hooked { around::in_place_of(attached.functions) } else { attached.functions };
        // SAFETY: promised by the caller. Generated code reads these places as whole words.
        for (place, function) in unsafe { &*state }.each_ref().into_iter().zip(functions) {
            place.store(function, Ordering::Release);
        }
    }
}

impl StateHead {
    fn each_ref(&self) -> [&AtomicPtr<c_void>; 3] {
        [&self.launch, &self.start, &self.start_cooperative]
    }
}
