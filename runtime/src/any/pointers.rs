//! Conversions of tensors that are not owned, `DLTensor*`.
//! Rules: upstream's `TypeTraits<DLTensor*>` in container/tensor.h.

use super::arg::{Arg, ToAnyView};
use super::value::{AnyView, TryFromAny};
use crate::abi::*;
use crate::error::{Result, type_mismatch};

impl ToAnyView for DLTensor {
    #[inline]
    fn to_arg(&self) -> Arg<'_> {
        let tensor: *const DLTensor = self;
        Arg::pointer(TypeIndex::DL_TENSOR_PTR, tensor.cast_mut().cast())
    }
}

impl ToAnyView for *mut DLTensor {
    #[inline]
    fn to_arg(&self) -> Arg<'_> {
        Arg::pointer(TypeIndex::DL_TENSOR_PTR, self.cast())
    }
}

impl TryFromAny for *mut DLTensor {
    #[track_caller]
    fn try_from_view(view: AnyView<'_>) -> Result<Self> {
        view.as_dl_tensor().ok_or_else(|| type_mismatch("DLTensor*", view.type_index()))
    }
}
