//! The tensor allocator for the CPU, for processes without a framework that sets one.

use std::ffi::{CString, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::abi::*;
use crate::env;
use crate::error::{Error, Result, from_panic};
use crate::tensor::Tensor;

/// Allocates the process's tensors on the CPU from this crate's memory. `TVMFFIEnvTensorAlloc` then uses it in threads
/// that have no allocator of their own (`extra/c_env_api.h`). The bundled runtime uses this allocator unless you set
/// another. An external one has none until a framework such as PyTorch sets one. Until then, functions that return
/// tensors fail.
///
/// A tensor on another device is a `ValueError`.
///
/// ```
/// tvm_ffi_runtime::install_cpu_allocator()?;
/// # Ok::<(), tvm_ffi_runtime::Error>(())
/// ```
///
/// # Errors
/// There is no external runtime, or it is too old for allocators.
pub fn install_cpu_allocator() -> Result<()> {
    env::set_process_allocator(allocate)
}

/// A `DLPackManagedTensorAllocator` (`dlpack.h`).
unsafe extern "C" fn allocate(
    prototype: *mut DLTensor,
    out: *mut *mut DLManagedTensorVersioned,
    error_ctx: *mut c_void,
    set_error: Option<DLPackSetError>,
) -> c_int {
    let made = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the prototype's device, type and shape are filled, as `dlpack.h` says.
        let (device, dtype, shape) = unsafe {
            let DLTensor { device, dtype, shape, ndim, .. } = *prototype;
            let rank = usize::try_from(ndim).unwrap_or_default();
            let shape: &[i64] = if rank == 0 { &[] } else { std::slice::from_raw_parts(shape, rank) };
            (device, dtype, shape)
        };
        Tensor::empty(shape, dtype, device)?.try_export()
    }));
    match made.unwrap_or_else(|payload| Err(from_panic(payload))) {
        Ok(managed) => {
            // SAFETY: the caller passes a place for the result.
            unsafe { out.write(managed) };
            0
        }
        Err(error) => {
            report(&error, error_ctx, set_error);
            -1
        }
    }
}

fn report(error: &Error, error_ctx: *mut c_void, set_error: Option<DLPackSetError>) {
    let Some(set_error) = set_error else { return };
    let texts = c_text(error.kind()).zip(c_text(error.message()));
    let (kind, message) =
        texts.as_ref().map_or((c"MemoryError", c"out of memory"), |(kind, message)| (&**kind, &**message));
    // SAFETY: the context belongs to the function, and the texts end with NUL (`dlpack.h`).
    unsafe { set_error(error_ctx, kind.as_ptr(), message.as_ptr()) };
}

/// A copy of a text for C; `None` without memory.
fn c_text(text: &str) -> Option<CString> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(text.len() + 1).ok()?;
    bytes.extend(text.bytes().map(|byte| if byte == 0 { b' ' } else { byte }));
    CString::new(bytes).ok()
}
