//! Parts of tensors that expressions refer to by name.

use crate::spec::{Dim, Layout, Signature, TensorType, dim};

/// A part of a tensor that expressions refer to by name: `x.shape[0]`, `x.strides[0]`, `x.ndim` or `x.byte_offset`.
pub(in crate::lower) enum ExtentOf<'a> {
    /// An expression over the signature's variables.
    Known(Dim),
    /// The number of dimensions of a tensor of any rank, by its name.
    Rank(&'a str),
    /// The byte offset relative to a tensor's opaque handle, by the tensor's name.
    ByteOffset(&'a str),
}

impl<'a> ExtentOf<'a> {
    /// The part that a name refers to; `None` if the signature has no such part.
    pub(in crate::lower) fn named(name: &'a str, signature: &Signature) -> Option<Self> {
        let (tensor_name, part) = name.rsplit_once('.')?;
        let tensor = tensor_of(signature, tensor_name)?;
        let (part, number) = match part.strip_suffix(']').and_then(|part| part.split_once('[')) {
            Some((part, number)) => (part, number.parse::<usize>().ok()),
            None => (part, None),
        };
        match (part, number) {
            ("shape", Some(number)) => tensor.shape.dims()?.get(number).cloned().map(ExtentOf::Known),
            ("strides", Some(number)) => stride_of(tensor, number).map(ExtentOf::Known),
            ("ndim", None) => Some(match tensor.shape.rank() {
                Some(rank) => ExtentOf::Known(dim(rank as i64)),
                None => ExtentOf::Rank(tensor_name),
            }),
            // for other tensors, the passed address already includes it
            ("byte_offset", None) if tensor.is_opaque() => Some(ExtentOf::ByteOffset(tensor_name)),
            _ => None,
        }
    }
}

/// The tensor type of a parameter, or of a value inside one, by its path.
pub(in crate::lower) fn tensor_of<'s>(signature: &'s Signature, name: &str) -> Option<&'s TensorType> {
    signature.type_at(name)?.as_tensor()
}

/// A stride of a tensor, as an expression.
pub(in crate::lower) fn stride_of(tensor: &TensorType, number: usize) -> Option<Dim> {
    match &tensor.layout {
        Layout::Strides(strides) => strides.get(number).cloned(),
        Layout::Contiguous => {
            let sizes = tensor.shape.dims()?.get(number + 1..)?;
            Some(sizes.iter().cloned().reduce(|x, y| x * y).unwrap_or_else(|| dim(1)))
        }
        _ => None,
    }
}
