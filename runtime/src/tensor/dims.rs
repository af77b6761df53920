//! Computations on shapes, strides and sizes, and the alignment of a tensor.
//! Same rules as `container/tensor.h`.

use crate::abi::*;
use crate::error::{Result, memory_error, value_error};

/// Number of elements of a shape.
pub(crate) fn checked_numel(shape: &[i64]) -> Result<usize> {
    let mut numel = 1usize;
    let mut has_zero = false;
    for &extent in shape {
        let extent =
            usize::try_from(extent).map_err(|_| value_error(&format!("negative extent in shape {shape:?}")))?;
        has_zero |= extent == 0;
        if extent != 0 {
            numel = numel
                .checked_mul(extent)
                .filter(|&n| i64::try_from(n).is_ok())
                .ok_or_else(|| value_error(&format!("shape {shape:?} is too large")))?;
        }
    }
    Ok(if has_zero { 0 } else { numel })
}

/// Size of `numel` packed elements, rounded up to whole bytes.
pub(crate) fn checked_size(numel: usize, dtype: DLDataType) -> Result<usize> {
    numel
        .checked_mul(dtype.bits_per_element())
        .map(|bits| bits.div_ceil(8))
        .ok_or_else(|| value_error("tensor is too large"))
}

/// Writes the strides of a contiguous tensor of `shape`.
pub(crate) fn fill_contiguous_strides(shape: &[i64], strides: &mut [i64]) {
    let mut stride = 1i64;
    for (place, &extent) in strides.iter_mut().zip(shape).rev() {
        *place = stride;
        stride = stride.wrapping_mul(extent);
    }
}

/// The strides of a contiguous tensor of `shape`.
///
/// # Errors
/// `MemoryError` when out of memory.
pub(super) fn contiguous_strides(shape: &[i64]) -> Result<Vec<i64>> {
    let mut strides = Vec::new();
    strides.try_reserve_exact(shape.len()).map_err(|_| memory_error())?;
    strides.resize(shape.len(), 0);
    fill_contiguous_strides(shape, &mut strides);
    Ok(strides)
}

/// True if a tensor is contiguous: it has no strides or no elements, or each stride is the product of the extents after
/// its dimension. The stride of an extent of one does not matter.
pub(crate) fn is_contiguous(shape: &[i64], strides: &[i64]) -> bool {
    if strides.is_empty() {
        return true;
    }
    let mut expected = 1i64;
    for (&extent, &stride) in shape.iter().zip(strides).rev() {
        if extent == 1 {
            continue;
        }
        if stride != expected {
            return shape.contains(&0);
        }
        expected = expected.wrapping_mul(extent);
    }
    true
}

/// # Safety
/// A non-NULL `array` must hold `ndim` numbers for `'a`.
pub(crate) unsafe fn dims<'a>(array: *const i64, ndim: i32) -> &'a [i64] {
    if array.is_null() || ndim <= 0 {
        return &[];
    }
    // SAFETY: promised by the caller.
    unsafe { std::slice::from_raw_parts(array, ndim as usize) }
}

/// The number of dimensions of a shape, in the type of `DLTensor`'s field.
pub(super) fn ndim_of(shape: &[i64]) -> Result<i32> {
    i32::try_from(shape.len()).map_err(|_| value_error("too many dimensions"))
}

/// True if a tensor's first element is aligned. An alignment of zero means no requirement.
pub(super) fn is_aligned(tensor: &DLTensor, alignment: usize) -> bool {
    if alignment == 0 {
        return true;
    }
    let mut place = tensor.byte_offset as usize;
    if tensor.device.device_type.is_direct_address() {
        place = place.wrapping_add(tensor.data as usize);
    }
    // A division takes longer than all other checks of an import together.
    if alignment.is_power_of_two() { place & (alignment - 1) == 0 } else { place.is_multiple_of(alignment) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contiguity_follows_upstream() {
        assert!(is_contiguous(&[2, 3], &[3, 1]));
        assert!(!is_contiguous(&[2, 3], &[1, 2]));
        assert!(is_contiguous(&[1, 3], &[77, 1]));
        assert!(is_contiguous(&[0, 3], &[9, 9]));
        assert!(is_contiguous(&[], &[]));
        assert!(is_contiguous(&[2, 3], &[]));
    }

    #[test]
    fn sizes_are_checked() {
        assert!(checked_numel(&[-1]).is_err());
        assert!(checked_numel(&[i64::MAX, 2]).is_err());
        assert!(matches!(checked_numel(&[i64::MAX, 0, 2]), Err(_) | Ok(0)));
        assert!(matches!(checked_numel(&[]), Ok(1)));
        assert!(checked_size(usize::MAX, DLDataType::FLOAT32).is_err());
        assert!(matches!(checked_size(3, DLDataType::FLOAT4_E2M1FN), Ok(2)));
    }
}
