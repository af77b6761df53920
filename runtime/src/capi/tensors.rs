//! C symbols of tensors: DLPack in and out, and views over another tensor's memory. On an error the caller keeps
//! ownership of an imported structure. Header section: "DLPack support APIs".

use std::ffi::c_int;
use std::mem::ManuallyDrop;

use super::call::check_type;
use crate::abi::*;
use crate::boundary::{guard, null_argument, required, required_out};
use crate::error::{Result, value_error};
use crate::heap::{AsObject, ObjectRef};
use crate::tensor::Tensor;

/// Borrows the tensor of a handle.
///
/// # Safety
/// A non-NULL handle must be an object that stays alive while the result is used.
unsafe fn tensor_of(handle: TVMFFIObjectHandle, name: &str) -> Result<ManuallyDrop<Tensor>> {
    check_type(handle, TypeIndex::TENSOR, name)?;
    // SAFETY: the handle is not NULL; the caller owns the reference, so it is never dropped here.
    let object = unsafe { ObjectRef::from_raw(handle.cast()) }.ok_or_else(|| null_argument(name))?;
    // SAFETY: the type index was checked.
    Ok(ManuallyDrop::new(unsafe { Tensor::from_object_unchecked(object) }))
}

fn alignment_of(require_alignment: i32) -> Result<usize> {
    usize::try_from(require_alignment).map_err(|_| value_error("negative alignment"))
}

/// # Safety
/// `out` must be writable.
unsafe fn write_tensor(out: *mut TVMFFIObjectHandle, tensor: Tensor) {
    // SAFETY: promised by the caller.
    unsafe { out.write(tensor.into_object().into_raw().cast()) };
}

/// Writes the tensor that `import` creates with the checked alignment. If another argument is invalid, ownership of the
/// input is not taken.
///
/// # Safety
/// `out` must be NULL or writable.
unsafe fn import_to(
    out: *mut TVMFFIObjectHandle,
    require_alignment: i32,
    import: impl FnOnce(usize) -> Result<Tensor>,
) -> c_int {
    guard(|| {
        let out = required_out(out, "out")?;
        let tensor = import(alignment_of(require_alignment)?)?;
        // SAFETY: promised by the caller; `out` is not NULL.
        unsafe { write_tensor(out, tensor) };
        Ok(())
    })
}

/// Takes over a managed tensor without a version.
///
/// # Safety
/// As [`Tensor::from_dlpack`]; `out` must be NULL or writable.
#[cfg_attr(not(feature = "hidden"), unsafe(no_mangle))]
pub unsafe extern "C" fn TVMFFITensorFromDLPack(
    from: *mut DLManagedTensor,
    require_alignment: i32,
    require_contiguous: i32,
    out: *mut TVMFFIObjectHandle,
) -> c_int {
    // SAFETY: promised by the caller.
    let import = |alignment| unsafe { Tensor::from_dlpack(from, alignment, require_contiguous != 0) };
    // SAFETY: promised by the caller.
    unsafe { import_to(out, require_alignment, import) }
}

/// Takes over a managed tensor with a version.
///
/// # Safety
/// As [`TVMFFITensorFromDLPack`].
#[cfg_attr(not(feature = "hidden"), unsafe(no_mangle))]
pub unsafe extern "C" fn TVMFFITensorFromDLPackVersioned(
    from: *mut DLManagedTensorVersioned,
    require_alignment: i32,
    require_contiguous: i32,
    out: *mut TVMFFIObjectHandle,
) -> c_int {
    // SAFETY: promised by the caller.
    let import = |alignment| unsafe { Tensor::from_dlpack_versioned(from, alignment, require_contiguous != 0) };
    // SAFETY: promised by the caller.
    unsafe { import_to(out, require_alignment, import) }
}

/// Exports a tensor without a version.
///
/// # Safety
/// `from` must be NULL or a tensor object; `out` NULL or writable.
#[cfg_attr(not(feature = "hidden"), unsafe(no_mangle))]
pub unsafe extern "C" fn TVMFFITensorToDLPack(from: TVMFFIObjectHandle, out: *mut *mut DLManagedTensor) -> c_int {
    guard(|| {
        let out = required_out(out, "out")?;
        // SAFETY: promised by the caller; `out` is not NULL.
        unsafe { out.write(tensor_of(from, "from")?.try_export()?) };
        Ok(())
    })
}

/// Exports a tensor with a version.
///
/// # Safety
/// As [`TVMFFITensorToDLPack`].
#[cfg_attr(not(feature = "hidden"), unsafe(no_mangle))]
pub unsafe extern "C" fn TVMFFITensorToDLPackVersioned(
    from: TVMFFIObjectHandle,
    out: *mut *mut DLManagedTensorVersioned,
) -> c_int {
    guard(|| {
        let out = required_out(out, "out")?;
        // SAFETY: promised by the caller; `out` is not NULL.
        unsafe { out.write(tensor_of(from, "from")?.try_export()?) };
        Ok(())
    })
}

/// Creates a tensor with the prototype's metadata that keeps `source` alive.
///
/// # Safety
/// As [`Tensor::create_unsafe_view`]; `out` must be NULL or writable.
#[cfg_attr(not(feature = "hidden"), unsafe(no_mangle))]
pub unsafe extern "C" fn TVMFFITensorCreateUnsafeView(
    source: TVMFFIObjectHandle,
    prototype: *const DLTensor,
    out: *mut TVMFFIObjectHandle,
) -> c_int {
    guard(|| {
        let out = required_out(out, "out")?;
        // SAFETY: promised by the caller; `out` is not NULL.
        unsafe {
            let prototype = required(prototype, "prototype")?;
            let source = tensor_of(source, "source")?;
            write_tensor(out, Tensor::create_unsafe_view(&source, prototype)?);
        }
        Ok(())
    })
}
