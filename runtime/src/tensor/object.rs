//! The tensor object.
//! Layout: header, `DLTensor`, the memory's owner, then shape and strides if this crate stores them.
//! Header sections: `kTVMFFITensor`, "DLPack support APIs"; same rules as `container/tensor.h`.

use std::ffi::c_void;
use std::fmt;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::OnceLock;

use super::dims::{checked_numel, checked_size, contiguous_strides, dims, is_aligned, is_contiguous, ndim_of};
use super::element::Element;
use super::memory::{OwnedMemory, copy_shared};
use crate::abi::*;
use crate::any::exact_objects;
use crate::error::{Error, Result, kind, memory_error, object_wrapper, runtime_error, value_error};
use crate::heap::alloc::deleter_of;
use crate::heap::{AsObject, ObjectLayout, ObjectRef, release_one, try_make_object};

#[repr(C)]
struct TensorObject<M> {
    header: TVMFFIObject,
    tensor: DLTensor,
    /// Frees the memory when it is dropped.
    manager: M,
}

// SAFETY: repr(C) with the header first; the DLTensor follows, as in the header file.
unsafe impl<M> ObjectLayout for TensorObject<M> {
    const TYPE_INDEX: TypeIndex = TypeIndex::TENSOR;

    unsafe fn drop_fields(object: *mut Self) {
        // SAFETY: promised by the caller.
        unsafe { (&raw mut (*object).manager).drop_in_place() };
    }
}

/// An n-dimensional array, `ffi.Tensor`. Cloning adds a reference; the memory is shared.
///
/// **Reading and writing.** Functions that receive the tensor may write to its memory, from safe code and on any
/// thread. [`Tensor::to_vec`] therefore copies the elements. [`Tensor::as_mut_slice`] only returns a slice of memory
/// that this crate has allocated and that has no other reference. [`Tensor::as_slice`] is `unsafe`.
#[derive(Clone)]
#[repr(transparent)]
pub struct Tensor(ObjectRef);

object_wrapper!(Tensor, TypeIndex::TENSOR);
exact_objects!(Tensor);

/// The tensor that keeps a view's memory alive.
struct Source(Option<ObjectRef>);

impl Drop for Source {
    fn drop(&mut self) {
        // `release_one` handles chains of views of any length.
        if let Some(source) = self.0.take() {
            release_one(source);
        }
    }
}

impl Tensor {
    /// A new tensor on the CPU, contiguous and aligned to [`TENSOR_ALIGNMENT`](super::TENSOR_ALIGNMENT). Its memory is
    /// zeroed, because Rust must not read uninitialised memory. This doesn't touch the pages of a large tensor.
    ///
    /// # Errors
    /// `ValueError` for a negative extent, a size that overflows, or a device other than the CPU; `MemoryError` when
    /// out of memory.
    pub fn empty(shape: &[i64], dtype: DLDataType, device: DLDevice) -> Result<Self> {
        if device.device_type != DLDeviceType::CPU {
            return Err(value_error(&format!("cannot allocate on {device}: only the CPU is supported")));
        }
        let size = checked_size(checked_numel(shape)?, dtype)?;
        let (memory, data) = OwnedMemory::new(size)?;
        let strides = contiguous_strides(shape)?;
        let tensor = DLTensor {
            data: data.cast(),
            device,
            ndim: ndim_of(shape)?,
            dtype,
            shape: std::ptr::null_mut(),
            strides: std::ptr::null_mut(),
            byte_offset: 0,
        };
        Self::with_deleter(tensor, shape, &strides, memory, owned_deleter()).map_err(|_memory| memory_error())
    }

    /// A new tensor of zeros on the CPU, like [`Tensor::empty`].
    ///
    /// # Errors
    /// As [`Tensor::empty`].
    pub fn zeros(shape: &[i64], dtype: DLDataType, device: DLDevice) -> Result<Self> {
        Self::empty(shape, dtype, device)
    }

    /// A new tensor on the CPU with a copy of `elements`, in row-major order.
    ///
    /// # Errors
    /// `ValueError` when the shape doesn't match the number of elements; otherwise as [`Tensor::empty`].
    pub fn from_slice<T: Element>(elements: &[T], shape: &[i64]) -> Result<Self> {
        let numel = checked_numel(shape)?;
        if numel != elements.len() {
            return Err(value_error(&format!("shape {shape:?} has {numel} elements, got {}", elements.len())));
        }
        let tensor = Self::empty(shape, T::DTYPE, DLDevice::CPU)?;
        if numel != 0 {
            let data = tensor.data_ptr().cast::<T>();
            // SAFETY: the new memory has room for that many elements and is aligned for them.
            unsafe { data.copy_from_nonoverlapping(elements.as_ptr(), numel) };
        }
        Ok(tensor)
    }

    /// A new tensor on the CPU with a vector's elements, in row-major order. The elements are not copied. They are
    /// aligned for their type, which may be less than [`TENSOR_ALIGNMENT`](super::TENSOR_ALIGNMENT).
    ///
    /// ```
    /// let elements = vec![1.0f32, 2.0, 3.0];
    /// let address = elements.as_ptr();
    /// let mut tensor = tvm_ffi_runtime::Tensor::from_vec(elements, &[3])?;
    /// assert_eq!(tensor.data_ptr(), address.cast_mut().cast());
    /// tensor.as_mut_slice::<f32>()?[0] = 4.0;
    /// assert_eq!(tensor.to_vec::<f32>()?, [4.0, 2.0, 3.0]);
    /// # Ok::<(), tvm_ffi_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` when the shape doesn't match the number of elements.
    pub fn from_vec<T: Element>(elements: Vec<T>, shape: &[i64]) -> Result<Self> {
        let numel = checked_numel(shape)?;
        if numel != elements.len() {
            return Err(value_error(&format!("shape {shape:?} has {numel} elements, got {}", elements.len())));
        }
        let ndim = ndim_of(shape)?;
        let (memory, data) = OwnedMemory::from_vec(elements)?;
        let strides = contiguous_strides(shape)?;
        let tensor = DLTensor {
            // A tensor without elements has a NULL data pointer.
            data: if numel == 0 { std::ptr::null_mut() } else { data.cast() },
            device: DLDevice::CPU,
            ndim,
            dtype: T::DTYPE,
            shape: std::ptr::null_mut(),
            strides: std::ptr::null_mut(),
            byte_offset: 0,
        };
        Self::with_deleter(tensor, shape, &strides, memory, owned_deleter()).map_err(|_memory| memory_error())
    }

    /// Creates an object that refers to a shape and strides stored elsewhere. Returns the manager when out of memory.
    #[inline]
    pub(super) fn over<M>(tensor: &DLTensor, manager: M) -> Result<Self, M> {
        Self::made(0, manager, |header, _, manager| TensorObject { header, tensor: *tensor, manager })
    }

    /// Creates an object. Returns the manager when out of memory.
    #[inline]
    fn made<M>(
        tail: usize,
        manager: M,
        build: impl FnOnce(TVMFFIObject, *mut u8, M) -> TensorObject<M>,
    ) -> Result<Self, M> {
        let manager = ManuallyDrop::new(manager);
        // SAFETY: the manager is read only if an object is made; otherwise it is returned.
        let object =
            try_make_object(tail, |header, tail| build(header, tail, unsafe { std::ptr::read(&raw const *manager) }));
        match object {
            // SAFETY: `try_make_object` returns the object's one strong reference.
            Some(object) => Ok(Self(unsafe { ObjectRef::from_non_null(object) })),
            None => Err(ManuallyDrop::into_inner(manager)),
        }
    }

    /// Creates an object with shape and strides in its tail. Returns the manager when out of memory.
    pub(super) fn with_dims<M>(tensor: DLTensor, shape: &[i64], strides: &[i64], manager: M) -> Result<Self, M> {
        Self::with_deleter(tensor, shape, strides, manager, deleter_of::<TensorObject<M>>())
    }

    /// As `with_dims`, with a given address of the type's deleter, because a function may have several addresses.
    fn with_deleter<M>(
        tensor: DLTensor,
        shape: &[i64],
        strides: &[i64],
        manager: M,
        deleter: TVMFFIObjectDeleter,
    ) -> Result<Self, M> {
        let tail = size_of_val(shape) + size_of_val(strides);
        Self::made(tail, manager, |header, tail, manager| {
            let place = tail.cast::<i64>();
            let strides_place = place.wrapping_add(shape.len());
            // SAFETY: the tail is new and has room for both lists. It is aligned for them, because the object's size is
            // a multiple of its alignment, which is at least 8.
            unsafe {
                place.copy_from_nonoverlapping(shape.as_ptr(), shape.len());
                strides_place.copy_from_nonoverlapping(strides.as_ptr(), strides.len());
            }
            let tensor = DLTensor {
                shape: if shape.is_empty() { tensor.shape } else { place },
                strides: if strides.is_empty() { tensor.strides } else { strides_place },
                ..tensor
            };
            TensorObject { header: TVMFFIObject { deleter: Some(deleter), ..header }, tensor, manager }
        })
    }

    /// Creates a tensor over memory that stays valid while `source` is alive, and keeps `source` alive
    /// (`TVMFFITensorCreateUnsafeView`). Shape and strides are copied.
    ///
    /// # Errors
    /// `ValueError` for a negative number of dimensions, or missing shape or strides.
    ///
    /// # Safety
    /// The prototype must be initialised as `dlpack.h` requires, and its memory must live as long as the source.
    pub unsafe fn create_unsafe_view(source: &Tensor, prototype: &DLTensor) -> Result<Self> {
        let missing = prototype.shape.is_null() || prototype.strides.is_null();
        if prototype.ndim < 0 || (prototype.ndim > 0 && missing) {
            return Err(value_error("view prototype needs its shape and strides"));
        }
        // SAFETY: by contract, the prototype's lists have `ndim` numbers.
        let (shape, strides) =
            unsafe { (dims(prototype.shape, prototype.ndim), dims(prototype.strides, prototype.ndim)) };
        let tensor = DLTensor { shape: std::ptr::null_mut(), strides: std::ptr::null_mut(), ..*prototype };
        let source = Source(Some(source.clone().into_object()));
        Self::with_dims(tensor, shape, strides, source).map_err(|_source| memory_error())
    }

    /// The tensor's `DLTensor`.
    #[inline]
    pub fn as_dl_tensor(&self) -> &DLTensor {
        // SAFETY: the DLTensor follows the header of every tensor object and does not change.
        unsafe { &*self.0.as_ptr().add(1).cast() }
    }

    /// Number of dimensions.
    #[inline]
    pub fn ndim(&self) -> usize {
        self.shape().len()
    }

    /// The extents.
    #[inline]
    pub fn shape(&self) -> &[i64] {
        let tensor = self.as_dl_tensor();
        // SAFETY: the shape has `ndim` numbers, which live as long as the object.
        unsafe { dims(tensor.shape, tensor.ndim) }
    }

    /// The strides, in elements.
    #[inline]
    pub fn strides(&self) -> &[i64] {
        let tensor = self.as_dl_tensor();
        // SAFETY: as for the shape; every tensor object with dimensions has strides.
        unsafe { dims(tensor.strides, tensor.ndim) }
    }

    /// Element type.
    #[inline]
    pub fn dtype(&self) -> DLDataType {
        self.as_dl_tensor().dtype
    }

    /// Device of the memory.
    #[inline]
    pub fn device(&self) -> DLDevice {
        self.as_dl_tensor().device
    }

    /// Address of the memory, without the byte offset; NULL when there are no elements.
    #[inline]
    pub fn data_ptr(&self) -> *mut c_void {
        self.as_dl_tensor().data
    }

    /// Bytes from [`Tensor::data_ptr`] to the first element.
    #[inline]
    pub fn byte_offset(&self) -> u64 {
        self.as_dl_tensor().byte_offset
    }

    /// Number of elements; zero for an invalid foreign shape.
    pub fn numel(&self) -> usize {
        checked_numel(self.shape()).unwrap_or(0)
    }

    /// Size of the packed elements in bytes.
    pub fn nbytes(&self) -> usize {
        checked_size(self.numel(), self.dtype()).unwrap_or(0)
    }

    /// True if the elements are in row-major order without gaps. This holds for tensors without elements, and the
    /// stride of an extent of one does not matter (`IsContiguous`, container/tensor.h).
    pub fn is_contiguous(&self) -> bool {
        is_contiguous(self.shape(), self.strides())
    }

    /// True if the first element is aligned to `alignment` bytes. On devices whose data pointers aren't addresses, only
    /// the byte offset counts (`IsAligned`, container/tensor.h).
    pub fn is_aligned(&self, alignment: usize) -> bool {
        is_aligned(self.as_dl_tensor(), alignment)
    }

    /// The elements in row-major order, without a copy. [`Tensor::to_vec`] copies them without `unsafe`.
    ///
    /// ```compile_fail,E0133
    /// let tensor = tvm_ffi_runtime::Tensor::from_slice(&[1.0f32], &[1]).unwrap();
    /// let elements = tensor.as_slice::<f32>();
    /// ```
    ///
    /// # Errors
    /// `TypeError` for another element type. `ValueError` if the CPU can't read the memory, if it isn't contiguous or
    /// not aligned for `T`, or if it contains invalid bits for a `T`.
    ///
    /// # Safety
    /// The tensor's memory must not be written while the slice exists. This includes every function on any thread that
    /// receives this tensor or another tensor over the same memory.
    pub unsafe fn as_slice<T: Element>(&self) -> Result<&[T]> {
        let (data, len) = self.elements::<T>()?;
        // SAFETY: `elements` checked type, device, contiguity and alignment; the object keeps the memory alive, and the
        // caller promises that no code writes to it.
        unsafe {
            check_values::<T>(std::slice::from_raw_parts(data.as_ptr().cast(), len * size_of::<T>()))?;
            Ok(std::slice::from_raw_parts(data.as_ptr(), len))
        }
    }

    /// The elements in row-major order, for writing.
    ///
    /// # Errors
    /// `RuntimeError` when other references to the tensor exist, or this crate doesn't own its memory; otherwise as
    /// [`Tensor::as_slice`].
    pub fn as_mut_slice<T: Element>(&mut self) -> Result<&mut [T]> {
        if !self.0.is_unique() || !self.owns_memory() {
            return Err(runtime_error("tensor is shared, or its memory is not its own: it cannot be written to"));
        }
        let (data, len) = self.elements::<T>()?;
        // SAFETY: `elements` checked type, device, contiguity and alignment. This is the only reference, borrowed
        // mutably, to memory that only this object owns, so no other code reads or writes it.
        unsafe {
            check_values::<T>(std::slice::from_raw_parts(data.as_ptr().cast(), len * size_of::<T>()))?;
            Ok(std::slice::from_raw_parts_mut(data.as_ptr(), len))
        }
    }

    /// A copy of the elements in row-major order. If a function on another thread writes to the tensor meanwhile, each
    /// copied element is either the old or the new value.
    ///
    /// # Errors
    /// As [`Tensor::as_slice`].
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        let (data, len) = self.elements::<T>()?;
        let mut copy: Vec<T> = Vec::with_capacity(len);
        // SAFETY: `elements` checked type, device, contiguity and alignment; the object keeps the memory alive. The
        // copy has room for that many elements, and its bytes are checked before they become values.
        unsafe {
            copy_shared(data.as_ptr(), copy.as_mut_ptr(), len);
            check_values::<T>(std::slice::from_raw_parts(copy.as_ptr().cast(), len * size_of::<T>()))?;
            copy.set_len(len);
        }
        Ok(copy)
    }

    /// A copy of the bytes of a contiguous tensor's elements, in any memory that the CPU can read. Other threads may
    /// write to the tensor meanwhile.
    ///
    /// # Errors
    /// `ValueError` without memory or with an invalid shape; `MemoryError` if the copy can't be allocated.
    pub(crate) fn content(&self) -> Result<Vec<u8>> {
        let tensor = self.as_dl_tensor();
        let size = checked_size(checked_numel(self.shape())?, tensor.dtype)?;
        let data = tensor.data.cast::<u8>().wrapping_add(tensor.byte_offset as usize);
        if data.is_null() && size != 0 {
            return Err(value_error("tensor has elements but no memory"));
        }
        let mut copy: Vec<u8> = Vec::new();
        copy.try_reserve_exact(size).map_err(|_| memory_error())?;
        // SAFETY: a tensor's memory is readable for all of its elements, and the copy has room for their bytes, which
        // are all initialised. Words are copied only between aligned addresses.
        unsafe {
            let to = copy.as_mut_ptr();
            let words = if data.cast::<u64>().is_aligned() && to.cast::<u64>().is_aligned() { size / 8 } else { 0 };
            copy_shared(data.cast::<u64>(), to.cast::<u64>(), words);
            copy_shared(data.add(words * 8), to.add(words * 8), size - words * 8);
            copy.set_len(size);
        }
        Ok(copy)
    }

    /// True if this object owns memory that this crate allocated, as [`Tensor::empty`] creates it.
    fn owns_memory(&self) -> bool {
        let own: TVMFFIObjectDeleter = owned_deleter();
        // SAFETY: the reference keeps the header alive, and the deleter never changes.
        let deleter = unsafe { (*self.0.as_ptr()).deleter };
        deleter.is_some_and(|deleter| std::ptr::fn_addr_eq(deleter, own))
    }

    fn elements<T: Element>(&self) -> Result<(NonNull<T>, usize)> {
        let tensor = self.as_dl_tensor();
        if tensor.dtype != T::DTYPE {
            return Err(Error::new(kind::TYPE_ERROR, &format!("expected elements {}, got {}", T::DTYPE, tensor.dtype)));
        }
        if !tensor.device.device_type.is_host_accessible() {
            return Err(value_error(&format!("memory on {} is not readable by the CPU", tensor.device)));
        }
        if !self.is_contiguous() {
            return Err(value_error("tensor is not contiguous"));
        }
        let len = checked_numel(self.shape())?;
        let data = tensor.data.cast::<u8>().wrapping_add(tensor.byte_offset as usize).cast::<T>();
        let Some(data) = NonNull::new(data).filter(|_| len != 0) else {
            if len != 0 {
                return Err(value_error("tensor has elements but no memory"));
            }
            return Ok((NonNull::dangling(), 0));
        };
        if !data.is_aligned() {
            return Err(value_error("tensor is not aligned for its elements"));
        }
        Ok((data, len))
    }
}

/// Checks that the bytes are valid values of `T`.
fn check_values<T: Element>(bytes: &[u8]) -> Result<()> {
    if T::is_valid(bytes) {
        return Ok(());
    }
    Err(value_error("tensor holds bytes that aren't a value of its type"))
}

/// The deleter that marks tensors over this crate's own memory.
fn owned_deleter() -> TVMFFIObjectDeleter {
    static DELETER: OnceLock<TVMFFIObjectDeleter> = OnceLock::new();
    *DELETER.get_or_init(deleter_of::<TensorObject<OwnedMemory>>)
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tensor")
            .field("shape", &self.shape())
            .field("dtype", &format_args!("{}", self.dtype()))
            .field("device", &format_args!("{}", self.device()))
            .finish_non_exhaustive()
    }
}
