//! Conversions between tensors and arrays of the crate `ndarray`.

use ndarray::{Array, ArrayD, ArrayViewD, ArrayViewMutD, Dimension, IxDyn};

use super::element::Element;
use super::object::Tensor;
use crate::error::{Error, Result, value_error};

fn extents(tensor: &Tensor) -> Result<IxDyn> {
    let extents: Option<Vec<usize>> = tensor.shape().iter().map(|&extent| usize::try_from(extent).ok()).collect();
    extents.map(|extents| IxDyn(&extents)).ok_or_else(|| value_error("tensor has a negative extent"))
}

fn shape_error(error: &ndarray::ShapeError) -> Error {
    value_error(&error.to_string())
}

impl Tensor {
    /// A view of the elements as an array, without a copy.
    ///
    /// # Errors
    /// As [`Tensor::as_slice`].
    ///
    /// # Safety
    /// As [`Tensor::as_slice`].
    pub unsafe fn as_array<T: Element>(&self) -> Result<ArrayViewD<'_, T>> {
        // SAFETY: promised by the caller.
        let elements = unsafe { self.as_slice::<T>()? };
        ArrayViewD::from_shape(extents(self)?, elements).map_err(|error| shape_error(&error))
    }

    /// A view of the elements as an array, for writing.
    ///
    /// # Errors
    /// As [`Tensor::as_mut_slice`].
    pub fn as_array_mut<T: Element>(&mut self) -> Result<ArrayViewMutD<'_, T>> {
        let extents = extents(self)?;
        ArrayViewMutD::from_shape(extents, self.as_mut_slice::<T>()?).map_err(|error| shape_error(&error))
    }

    /// A copy of the elements as an array.
    ///
    /// # Errors
    /// As [`Tensor::to_vec`].
    pub fn to_array<T: Element>(&self) -> Result<ArrayD<T>> {
        ArrayD::from_shape_vec(extents(self)?, self.to_vec::<T>()?).map_err(|error| shape_error(&error))
    }
}

/// Converts an array to a tensor. If its elements are in row-major order, they are not copied.
///
/// ```
/// let array = ndarray::array![[1.0f32, 2.0], [3.0, 4.0]];
/// let mut tensor = tvm_ffi_runtime::Tensor::try_from(array.t().to_owned())?;
/// assert_eq!(tensor.shape(), [2, 2]);
/// assert_eq!(tensor.to_vec::<f32>()?, [1.0, 3.0, 2.0, 4.0]);
/// tensor.as_array_mut::<f32>()?[[0, 1]] = 5.0;
/// assert_eq!(tensor.to_array::<f32>()?.sum(), 12.0);
/// # Ok::<(), tvm_ffi_runtime::Error>(())
/// ```
impl<T: Element, D: Dimension> TryFrom<Array<T, D>> for Tensor {
    type Error = Error;

    fn try_from(array: Array<T, D>) -> Result<Self> {
        let shape: Option<Vec<i64>> = array.shape().iter().map(|&extent| i64::try_from(extent).ok()).collect();
        let shape = shape.ok_or_else(|| value_error("array is too large"))?;
        let len = array.len();
        if !array.is_standard_layout() {
            return Tensor::from_vec(array.iter().copied().collect(), &shape);
        }
        // The vector also contains elements that were sliced off.
        let (mut elements, start) = array.into_raw_vec_and_offset();
        elements.drain(..start.unwrap_or(0).min(elements.len()));
        elements.truncate(len);
        Tensor::from_vec(elements, &shape)
    }
}
