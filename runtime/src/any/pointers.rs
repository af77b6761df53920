//! Reads pointers: `void*` and `DLTensor*`. To pass a pointer as an argument, use the `unsafe` constructors of
//! [`AnyView`]. Rules: upstream's `TypeTraits<void*>` and `TypeTraits<DLTensor*>`.

use std::ffi::c_void;

use super::objects::try_from_any;
use super::value::{AnyView, TryFromAny};
use crate::abi::*;
use crate::error::{Result, type_mismatch};

impl TryFromAny for *mut c_void {
    #[track_caller]
    fn try_from_view(view: AnyView<'_>) -> Result<Self> {
        match view.type_index() {
            TypeIndex::OPAQUE_PTR => Ok(view.as_raw().ptr()),
            TypeIndex::NONE => Ok(std::ptr::null_mut()),
            other => Err(type_mismatch("void*", other)),
        }
    }
}

impl TryFromAny for *mut DLTensor {
    #[track_caller]
    fn try_from_view(view: AnyView<'_>) -> Result<Self> {
        view.as_dl_tensor().ok_or_else(|| type_mismatch("DLTensor*", view.type_index()))
    }
}

try_from_any!(*mut c_void);
