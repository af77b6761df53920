//! The error of a process that has no tensor allocator.

use std::ffi::{CStr, c_int, c_void};
use std::sync::OnceLock;

use crate::abi::*;
use crate::env;
use crate::error::Result;

static MESSAGE: OnceLock<&'static CStr> = OnceLock::new();

/// Lets calls that need an allocator fail with a `RuntimeError` that has this text, while no allocator is set. It
/// replaces the external runtime's own message. The first message stays.
///
/// An allocator that is set already stays, and one that is set later replaces this one. The bundled runtime needs no
/// allocator and ignores the message.
///
/// ```
/// tvm_ffi_runtime::explain_missing_allocator(c"call `my_compiler.install()` first")?;
/// # Ok::<(), tvm_ffi_runtime::Error>(())
/// ```
///
/// # Errors
/// There is no external runtime.
pub fn explain_missing_allocator(message: &'static CStr) -> Result<()> {
    MESSAGE.get_or_init(|| message);
    env::set_last_allocator(refuse)
}

/// A `DLPackManagedTensorAllocator` (`dlpack.h`) that always fails.
unsafe extern "C" fn refuse(
    _prototype: *mut DLTensor,
    _out: *mut *mut DLManagedTensorVersioned,
    error_ctx: *mut c_void,
    set_error: Option<DLPackSetError>,
) -> c_int {
    if let Some(set_error) = set_error {
        let message = MESSAGE.get().copied().unwrap_or_default();
        // SAFETY: the context belongs to the function, and the texts end with NUL (`dlpack.h`).
        unsafe { set_error(error_ctx, c"RuntimeError".as_ptr(), message.as_ptr()) };
    }
    -1
}
