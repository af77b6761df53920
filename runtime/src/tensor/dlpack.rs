//! Import and export of tensors as DLPack's managed structures, versioned and unversioned.
//! Import takes ownership of the structure and calls its deleter once. Export holds a reference.
//! Header section: "DLPack support APIs"; same checks as upstream's `Tensor::FromDLPack`.

use super::dims::{contiguous_strides, dims, is_aligned, is_contiguous};
use super::object::Tensor;
use crate::abi::*;
use crate::error::{Error, Result, memory_error, runtime_error};
use crate::heap::alloc::{place, take_out, try_place};
use crate::heap::{AsObject, ObjectRef};

/// The interface that both managed structures share.
pub(crate) trait Managed: Sized {
    /// The structure's tensor.
    fn dl_tensor(&self) -> &DLTensor;
    /// The structure's deleter.
    fn deleter(&self) -> Option<unsafe extern "C" fn(*mut Self)>;
    /// The reason why this structure can't be imported, if any.
    fn refusal(&self) -> Option<&'static str>;
    /// Creates a structure for exporting a tensor, with the tensor's reference in `manager_ctx`.
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
    // SAFETY: `export` made the structure, with the tensor's reference in its context. The consumer calls this once.
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

/// Owns an imported structure and calls its deleter on drop.
struct Imported<T: Managed>(*mut T);

impl<T: Managed> Imported<T> {
    /// Returns ownership of the structure to the caller, because there is no memory for the import.
    #[cold]
    fn kept(self) -> Error {
        std::mem::forget(self);
        memory_error()
    }
}

impl<T: Managed> Drop for Imported<T> {
    fn drop(&mut self) {
        // SAFETY: this object owns the structure, which lives until its deleter is called here, once.
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
        // SAFETY: NULL is handled here; the caller promises the rest.
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
        // SAFETY: by contract, shape and strides have `ndim` numbers.
        let (shape, strides) = unsafe { (dims(tensor.shape, tensor.ndim), dims(tensor.strides, tensor.ndim)) };
        if contiguous && !is_contiguous(shape, strides) {
            return Err(runtime_error("FromDLPack: Tensor is not contiguous."));
        }
        // Only missing strides are allocated here. Existing lists are used without a copy.
        if tensor.ndim > 0 && tensor.strides.is_null() {
            return Self::with_made_strides(*tensor, shape, from);
        }
        Self::over(tensor, Imported(from)).map_err(Imported::kept)
    }

    #[cold]
    #[inline(never)]
    fn with_made_strides<T: Managed>(tensor: DLTensor, shape: &[i64], from: *mut T) -> Result<Self> {
        let strides = contiguous_strides(shape)?;
        Self::with_dims(tensor, &[], &strides, Imported(from)).map_err(Imported::kept)
    }

    /// Takes ownership of a managed tensor. Its deleter is called once, when the last reference is released. On an
    /// error the caller keeps the structure. `alignment` is in bytes; zero means no requirement.
    ///
    /// # Errors
    /// `RuntimeError` when the memory is not aligned, or not contiguous although `contiguous` is set.
    ///
    /// # Safety
    /// `from` must be initialised as `dlpack.h` requires. Its memory and lists must stay valid until its deleter is
    /// called, which may happen on any thread.
    pub unsafe fn from_dlpack(from: *mut DLManagedTensor, alignment: usize, contiguous: bool) -> Result<Self> {
        // SAFETY: promised by the caller.
        unsafe { Self::import(from, alignment, contiguous) }
    }

    /// As [`Tensor::from_dlpack`], for the versioned structure.
    ///
    /// # Errors
    /// As [`Tensor::from_dlpack`]; also `RuntimeError` for another major version, and for padded types smaller than a
    /// byte.
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

    /// As the functions below, but returns an error when out of memory.
    pub(crate) fn try_export<T: Managed>(&self) -> Result<*mut T> {
        let object = self.clone().into_object();
        let placed = try_place(T::export(*self.as_dl_tensor(), object.as_ptr())).map_err(|_| memory_error())?;
        // The structure now owns the reference.
        std::mem::forget(object);
        Ok(placed)
    }

    /// Exports the tensor. The structure shares its memory and holds a reference, which the structure's deleter
    /// releases. The caller must call the deleter once.
    pub fn to_dlpack(&self) -> *mut DLManagedTensor {
        self.export()
    }

    /// As [`Tensor::to_dlpack`], as the versioned structure.
    pub fn to_dlpack_versioned(&self) -> *mut DLManagedTensorVersioned {
        self.export()
    }
}
