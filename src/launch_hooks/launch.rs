//! A launch as hooks see it.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use tvm_ffi_runtime::abi::DLDevice;

/// `CUlaunchConfig` as generated code writes it, with the device in its padding. HIP's launches have it too.
#[repr(C)]
pub(super) struct Config {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared_memory: u32,
    pub stream: *mut c_void,
    pub attributes: *mut c_void,
    pub count: u32,
    /// Only CUDA's launches have it.
    pub device: i32,
}

/// `cuKernelGetParamInfo`.
pub(super) type ParamInfo = unsafe extern "C" fn(*mut c_void, usize, *mut usize, *mut usize) -> c_int;

/// A launch.
pub(super) struct Launch<'a> {
    /// The kernel's name in its image.
    pub name: Arc<str>,
    pub config: &'a Config,
    pub device: DLDevice,
    pub kernel: *mut c_void,
    /// The addresses of the kernel's parameters.
    pub params: *const *const c_void,
    pub param_info: Option<ParamInfo>,
}

/// A hook. An error is raised on this thread, and its code is returned.
pub(super) trait Hook: Send + Sync {
    /// Runs before the launch. After an error nothing is launched.
    fn enter(&self, launch: &Launch<'_>) -> Result<(), c_int>;

    /// Runs after the launch, also if the driver has refused it.
    fn exit(&self, launch: &Launch<'_>) -> Result<(), c_int>;
}

impl Launch<'_> {
    /// The bytes of each parameter, if the driver tells their sizes. It doesn't on a thread without a current context.
    pub(super) fn param_bytes(&self) -> Option<Vec<&[u8]>> {
        /// Kernels have at most 32,764 bytes of parameters (CUDA C++ Programming Guide).
        const MAX_PARAMS: usize = 32_764;
        /// cuda.h. The driver returns it for an index after the last parameter.
        const INVALID_VALUE: c_int = 1;
        let (info, mut params) = (self.param_info?, Vec::new());
        for index in 0..MAX_PARAMS {
            let (mut offset, mut size) = (0, 0);
            // SAFETY: the driver's function gets a kernel of the driver, and places for its results (cuda.h).
            match unsafe { info(self.kernel, index, &mut offset, &mut size) } {
                0 => {}
                INVALID_VALUE => return Some(params),
                _ => return None,
            }
            // SAFETY: a launch passes the addresses of as many parameters as the kernel has, each of the kernel's size.
            params.push(unsafe { std::slice::from_raw_parts((*self.params.add(index)).cast(), size) });
        }
        None
    }
}
