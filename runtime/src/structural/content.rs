//! The contents of values that have no inner values: strings, bytes, shapes, and the elements of tensors.

use crate::abi::*;
use crate::any::Any;
use crate::error::{Error, Result, check_failed, kind};
use crate::string::bytes_of;
use crate::tensor::Tensor;

/// The content of a string or of bytes.
pub(super) fn text(value: &Any) -> &[u8] {
    // SAFETY: `value` keeps a heap object alive.
    unsafe { bytes_of(value.as_raw()) }.unwrap_or_default()
}

/// The use of a tensor's elements, for error messages.
#[derive(Copy, Clone)]
pub(super) enum Use {
    Compare,
    Hash,
}

impl Use {
    fn verb(self) -> &'static str {
        match self {
            Self::Compare => "compare",
            Self::Hash => "hash",
        }
    }
}

/// The bytes of a tensor's elements. `name` is the tensor's in upstream's messages.
///
/// # Errors
/// `InternalError` for a tensor that isn't on the CPU or has gaps; as [`Tensor::content`].
pub(super) fn elements(tensor: &Tensor, name: &str, used: Use) -> Result<Vec<u8>> {
    let (device, verb) = (tensor.device().device_type, used.verb());
    if device != DLDeviceType::CPU {
        let (is, wanted) = (device.0, DLDeviceType::CPU.0);
        let message = format!(
            "Check failed: {name}.device().device_type == kDLCPU ({is} vs. {wanted}) : can only {verb} CPU tensor"
        );
        return Err(Error::new(kind::INTERNAL_ERROR, &message));
    }
    if !tensor.is_contiguous() {
        return Err(check_failed(&format!("{name}.IsContiguous()"), &format!("Can only {verb} contiguous tensor")));
    }
    tensor.content()
}
