//! The states of the process's libraries, their kernels, and the hooks.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::atomic::AtomicPtr;
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};

use tvm_ffi_runtime::abi::DLDeviceType;

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

/// A library's state, as the library has told it.
#[derive(Clone, Copy)]
pub(super) struct Attached {
    /// The library's own functions.
    pub functions: Functions,
    pub device_type: DLDeviceType,
    pub param_info: Option<ParamInfo>,
}

/// A loaded kernel.
pub(super) struct Kernel {
    pub name: Arc<str>,
    /// The address of its library's state.
    pub state: usize,
}

pub(super) struct Registry {
    /// By the addresses of the states.
    pub states: BTreeMap<usize, Attached>,
    /// By the driver's handles.
    pub kernels: BTreeMap<usize, Kernel>,
    pub user: Option<Arc<UserHook>>,
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

pub(super) fn write() -> RwLockWriteGuard<'static, Registry> {
    REGISTRY.write().unwrap_or_else(PoisonError::into_inner)
}

impl Registry {
    /// The hooks, in the order of their `enter`.
    pub(super) fn hooks(&self) -> Vec<Arc<dyn Hook>> {
        let user = self.user.clone().map(|user| user as Arc<dyn Hook>);
        log::hook().into_iter().chain(ranges::hook()).chain(user).collect()
    }
}

impl StateHead {
    pub(super) fn functions(&self) -> [&AtomicPtr<c_void>; 3] {
        [&self.launch, &self.start, &self.start_cooperative]
    }
}
