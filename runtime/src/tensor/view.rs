//! Views of Rust memory as tensors, for the duration of a borrow.
//! A view owns its shape and strides on the heap, so moving the view doesn't move anything that C code points to.
//! Passed to functions as `kTVMFFIDLTensorPtr`.

use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;

use super::dims::{checked_numel, dims, fill_contiguous_strides, is_contiguous, ndim_of};
use super::element::{AnyBits, Element};
use crate::abi::*;
use crate::any::{AnyView, Arg, ToAnyView};
use crate::error::{Result, value_error};

/// A tensor over borrowed memory.
pub struct TensorView<'a> {
    tensor: DLTensor,
    /// Shape and strides, which `tensor` points to. Not a `Box`, which would have to be the only pointer to them.
    _dims: Vec<i64>,
    memory: PhantomData<&'a mut [u8]>,
}

impl<'a> TensorView<'a> {
    /// Views a mutable slice as a contiguous tensor on the CPU.
    ///
    /// # Errors
    /// `ValueError` when the shape doesn't match the number of elements.
    pub fn from_mut_slice<T: AnyBits>(elements: &'a mut [T], shape: &[i64]) -> Result<Self> {
        Self::over(elements.as_mut_ptr(), elements.len(), shape)
    }

    /// Views a slice as a contiguous tensor on the CPU. The ABI has no read-only `DLTensor*`, so nothing prevents
    /// functions from writing to the slice. [`Tensor::from_slice`](crate::Tensor::from_slice) copies the elements
    /// instead.
    ///
    /// ```compile_fail,E0133
    /// static READ_ONLY: [f32; 2] = [1.0, 2.0];
    /// let view = tvm_ffi_runtime::TensorView::from_slice(&READ_ONLY, &[2]);
    /// ```
    ///
    /// # Errors
    /// As [`TensorView::from_mut_slice`].
    ///
    /// # Safety
    /// No function that receives the view may write to it.
    pub unsafe fn from_slice<T: Element>(elements: &'a [T], shape: &[i64]) -> Result<Self> {
        Self::over(elements.as_ptr().cast_mut(), elements.len(), shape)
    }

    fn over<T: Element>(data: *mut T, len: usize, shape: &[i64]) -> Result<Self> {
        let numel = checked_numel(shape)?;
        if numel != len {
            return Err(value_error(&format!("shape {shape:?} has {numel} elements, got {len}")));
        }
        let data = if len == 0 { std::ptr::null_mut() } else { data.cast() };
        // SAFETY: the memory is borrowed for `'a` and holds the shape's elements.
        unsafe { Self::from_raw_parts(data, shape, None, T::DTYPE, DLDevice::CPU) }
    }

    /// Views arbitrary memory. Without strides the tensor is contiguous.
    ///
    /// # Errors
    /// `ValueError` for a negative extent, or when the numbers of strides and extents differ.
    ///
    /// # Safety
    /// `data` must be memory on `device` that holds the described elements and is borrowed for `'a`. If a function that
    /// receives the view writes to it, the memory must be borrowed for writing.
    pub unsafe fn from_raw_parts(
        data: *mut c_void,
        shape: &[i64],
        strides: Option<&[i64]>,
        dtype: DLDataType,
        device: DLDevice,
    ) -> Result<Self> {
        checked_numel(shape)?;
        let mut all = shape.to_vec();
        match strides {
            Some(strides) if strides.len() != shape.len() => {
                return Err(value_error("shape and strides must have the same size"));
            }
            Some(strides) => all.extend_from_slice(strides),
            None => {
                all.resize(2 * shape.len(), 0);
                fill_contiguous_strides(shape, &mut all[shape.len()..]);
            }
        }
        let start = all.as_mut_ptr();
        let tensor = DLTensor {
            data,
            device,
            ndim: ndim_of(shape)?,
            dtype,
            shape: start,
            strides: start.wrapping_add(shape.len()),
            byte_offset: 0,
        };
        Ok(Self { tensor, _dims: all, memory: PhantomData })
    }

    /// The view's `DLTensor`. It points to memory that the view owns.
    #[inline]
    pub fn as_dl_tensor(&self) -> &DLTensor {
        &self.tensor
    }

    /// The extents.
    pub fn shape(&self) -> &[i64] {
        // SAFETY: the view keeps its list of extents alive.
        unsafe { dims(self.tensor.shape, self.tensor.ndim) }
    }

    /// The strides, in elements.
    pub fn strides(&self) -> &[i64] {
        // SAFETY: the view keeps its list of strides alive.
        unsafe { dims(self.tensor.strides, self.tensor.ndim) }
    }

    /// Element type.
    pub fn dtype(&self) -> DLDataType {
        self.tensor.dtype
    }

    /// Device of the memory.
    pub fn device(&self) -> DLDevice {
        self.tensor.device
    }

    /// Address of the memory.
    pub fn data_ptr(&self) -> *mut c_void {
        self.tensor.data
    }

    /// Number of elements.
    pub fn numel(&self) -> usize {
        checked_numel(self.shape()).unwrap_or(0)
    }

    /// True if the elements are in row-major order without gaps.
    pub fn is_contiguous(&self) -> bool {
        is_contiguous(self.shape(), self.strides())
    }
}

impl ToAnyView for TensorView<'_> {
    #[inline]
    fn to_arg(&self) -> Arg<'_> {
        // SAFETY: the view borrows the memory of its tensor for writing too, or the unsafe code that made it guarantees
        // the accesses.
        Arg::view(unsafe { AnyView::from_dl_tensor(self.as_dl_tensor()) })
    }
}

impl fmt::Debug for TensorView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TensorView")
            .field("shape", &self.shape())
            .field("dtype", &format_args!("{}", self.tensor.dtype))
            .field("device", &format_args!("{}", self.tensor.device))
            .finish_non_exhaustive()
    }
}
