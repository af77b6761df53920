//! Tensors in and out of DLPack's managed structures, with and without a version.
//! Import takes the structure over and calls its deleter once; export holds a reference.
//! Header section: "DLPack support APIs"; checks as upstream's `Tensor::FromDLPack`.

use super::dims::{dims, fill_contiguous_strides, is_aligned, is_contiguous};
use super::object::Tensor;
use crate::abi::*;
use crate::error::{Error, Result, runtime_error};
use crate::heap::alloc::{place, take_out};
use crate::heap::{AsObject, ObjectRef};

/// What both managed structures have in common.
pub(crate) trait Managed: Sized {
    /// The tensor in it.
    fn dl_tensor(&self) -> &DLTensor;
    /// Its deleter.
    fn deleter(&self) -> Option<unsafe extern "C" fn(*mut Self)>;
    /// What speaks against an import.
    fn refusal(&self) -> Option<&'static str>;
    /// A structure for the export of a tensor, whose reference is in `manager_ctx`.
    fn export(dl_tensor: DLTensor, object: *mut TVMFFIObject) -> Self;
}

impl Managed for DLManagedTensor {
    fn dl_tensor(&self) -> &DLTensor {
        &self.dl_tensor
    }

    fn deleter(&self) -> Option<unsafe extern "C" fn(*mut Self)> {
        self.deleter
    }

    fn refusal(&self) -> Option<&'static str> {
        None
    }

    fn export(dl_tensor: DLTensor, object: *mut TVMFFIObject) -> Self {
        Self { dl_tensor, manager_ctx: object.cast(), deleter: Some(delete_export) }
    }
}

impl Managed for DLManagedTensorVersioned {
    fn dl_tensor(&self) -> &DLTensor {
        &self.dl_tensor
    }

    fn deleter(&self) -> Option<unsafe extern "C" fn(*mut Self)> {
        self.deleter
    }

    fn refusal(&self) -> Option<&'static str> {
        if self.version.major != DLPACK_MAJOR_VERSION {
            return Some("DLPack major version is not supported");
        }
        if self.flags & DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED != 0 {
            return Some("Subbyte type padded is not yet supported");
        }
        None
    }

    fn export(dl_tensor: DLTensor, object: *mut TVMFFIObject) -> Self {
        Self {
            version: DLPackVersion { major: DLPACK_MAJOR_VERSION, minor: DLPACK_MINOR_VERSION },
            manager_ctx: object.cast(),
            deleter: Some(delete_versioned_export),
            flags: 0,
            dl_tensor,
        }
    }
}

unsafe extern "C" fn delete_export(managed: *mut DLManagedTensor) {
    if managed.is_null() {
        return;
    }
    // SAFETY: the structure was made by `export`, with the tensor's reference in its context; its
    // consumer calls this once.
    unsafe {
        let managed = take_out(managed);
        drop(ObjectRef::from_raw(managed.manager_ctx.cast()));
    }
}

unsafe extern "C" fn delete_versioned_export(managed: *mut DLManagedTensorVersioned) {
    if managed.is_null() {
        return;
    }
    // SAFETY: as in `delete_export`.
    unsafe {
        let managed = take_out(managed);
        drop(ObjectRef::from_raw(managed.manager_ctx.cast()));
    }
}

/// Owner of an imported structure: calls its deleter when it is dropped.
struct Imported<T: Managed>(*mut T);

impl<T: Managed> Drop for Imported<T> {
    fn drop(&mut self) {
        // SAFETY: the structure was taken over and lives until its deleter is called, here, once.
        unsafe {
            if let Some(deleter) = (*self.0).deleter() {
                deleter(self.0);
            }
        }
    }
}

#[cold]
#[inline(never)]
fn misaligned(alignment: usize) -> Error {
    runtime_error(&format!("FromDLPack: Data is not aligned to {alignment} bytes."))
}

impl Tensor {
    /// # Safety
    /// As [`Tensor::from_dlpack`].
    #[inline]
    pub(crate) unsafe fn import<T: Managed>(from: *mut T, alignment: usize, contiguous: bool) -> Result<Self> {
        // SAFETY: NULL is excluded here, the rest is promised by the caller.
        let Some(managed) = (unsafe { from.as_ref() }) else {
            return Err(runtime_error("FromDLPack: tensor is NULL"));
        };
        if let Some(refusal) = managed.refusal() {
            return Err(runtime_error(refusal));
        }
        let tensor = managed.dl_tensor();
        if tensor.ndim < 0 || (tensor.ndim > 0 && tensor.shape.is_null()) {
            return Err(runtime_error("FromDLPack: tensor has no shape"));
        }
        if !is_aligned(tensor, alignment) {
            return Err(misaligned(alignment));
        }
        // SAFETY: shape and strides have `ndim` numbers, by contract.
        let (shape, strides) = unsafe { (dims(tensor.shape, tensor.ndim), dims(tensor.strides, tensor.ndim)) };
        if contiguous && !is_contiguous(shape, strides) {
            return Err(runtime_error("FromDLPack: Tensor is not contiguous."));
        }
        // Only missing strides are made here; what is there is used where it is.
        if tensor.ndim > 0 && tensor.strides.is_null() {
            return Ok(Self::with_made_strides(*tensor, shape, Imported(from)));
        }
        Ok(Self::over(tensor, Imported(from)))
    }

    #[cold]
    #[inline(never)]
    fn with_made_strides<T: Managed>(tensor: DLTensor, shape: &[i64], managed: Imported<T>) -> Self {
        let mut strides = vec![0; shape.len()];
        fill_contiguous_strides(shape, &mut strides);
        Self::with_dims(tensor, &[], &strides, managed)
    }

    /// Takes over a managed tensor: its deleter is called once, when the last reference goes. On
    /// an error the structure stays the caller's. `alignment` is in bytes, zero for any.
    ///
    /// # Errors
    /// `RuntimeError` when the memory is not aligned, or not contiguous where that is required.
    ///
    /// # Safety
    /// `from` must be filled as `dlpack.h` says; its memory and lists must stay valid until its
    /// deleter is called, which may happen on any thread.
    pub unsafe fn from_dlpack(from: *mut DLManagedTensor, alignment: usize, contiguous: bool) -> Result<Self> {
        // SAFETY: promised by the caller.
        unsafe { Self::import(from, alignment, contiguous) }
    }

    /// As [`Tensor::from_dlpack`], for the structure with a version.
    ///
    /// # Errors
    /// Also `RuntimeError` for another major version, and for padded types below a byte.
    ///
    /// # Safety
    /// As [`Tensor::from_dlpack`].
    pub unsafe fn from_dlpack_versioned(
        from: *mut DLManagedTensorVersioned,
        alignment: usize,
        contiguous: bool,
    ) -> Result<Self> {
        // SAFETY: promised by the caller.
        unsafe { Self::import(from, alignment, contiguous) }
    }

    fn export<T: Managed>(&self) -> *mut T {
        let object = self.clone().into_object().into_raw();
        place(T::export(*self.as_dl_tensor(), object))
    }

    /// Exports the tensor: the structure shares its memory and holds a reference, which its
    /// deleter gives up. The caller must call the deleter once.
    pub fn to_dlpack(&self) -> *mut DLManagedTensor {
        self.export()
    }

    /// As [`Tensor::to_dlpack`], with a version.
    pub fn to_dlpack_versioned(&self) -> *mut DLManagedTensorVersioned {
        self.export()
    }
}
