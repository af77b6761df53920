//! Opaque objects: a foreign handle with a deleter that runs with the last strong reference. As upstream, their one
//! type index is `ffi.OpaquePyObject`. Header section: `TVMFFIObjectCreateOpaque`.

use std::ffi::c_void;

use crate::abi::*;
use crate::error::{Error, Result, kind};
use crate::heap::{ObjectLayout, ObjectRef, make_object};

#[repr(C)]
struct OpaqueObject {
    header: TVMFFIObject,
    cell: TVMFFIOpaqueObjectCell,
    deleter: Option<unsafe extern "C" fn(*mut c_void)>,
}

// SAFETY: repr(C) with the header first; the cell follows, as in the header file.
unsafe impl ObjectLayout for OpaqueObject {
    const TYPE_INDEX: TypeIndex = TypeIndex::OPAQUE_PY_OBJECT;

    unsafe fn drop_fields(object: *mut Self) {
        // SAFETY: the creator promised that the deleter takes this handle, once.
        unsafe {
            if let Some(deleter) = (*object).deleter {
                deleter((*object).cell.handle);
            }
        }
    }
}

/// An object that owns a foreign handle.
///
/// # Errors
/// `RuntimeError` if `type_index` is not [`TypeIndex::OPAQUE_PY_OBJECT`]. The deleter isn't called then.
///
/// # Safety
/// `deleter` must be safe to call once with `handle`, on any thread.
pub unsafe fn create_opaque(
    handle: *mut c_void,
    type_index: TypeIndex,
    deleter: Option<unsafe extern "C" fn(*mut c_void)>,
) -> Result<ObjectRef> {
    if type_index != TypeIndex::OPAQUE_PY_OBJECT {
        return Err(Error::new(kind::RUNTIME_ERROR, "Only kTVMFFIOpaquePyObject is supported for now"));
    }
    let object = make_object(0, |header, _| OpaqueObject { header, cell: TVMFFIOpaqueObjectCell { handle }, deleter });
    // SAFETY: `make_object` returns the object's one strong reference.
    Ok(unsafe { ObjectRef::from_non_null(object) })
}
