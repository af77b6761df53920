//! The global functions of an external runtime.
//! Header sections: `TVMFFIFunctionGetGlobal`, `...SetGlobal`, `...SetGlobalFromMethodInfo`.

mod guard;
mod lookup;

pub(crate) use guard::LOAD_FROM_FILE;
pub use lookup::{
    get_global, get_global_unchecked, list_global_names, remove_global, set_global, set_global_with_metadata,
};

use std::ffi::c_int;

use crate::abi::*;
use crate::any::ToAnyView;
use crate::error::external::checked_in_turn;
use crate::error::{Result, take_raised};
use crate::external::in_turn;
use crate::function::Function;
use crate::heap::ObjectRef;
use crate::string::Str;

/// The global function of that name. The name need not be UTF-8. The function may be one that loads code, so the caller
/// is responsible for its use.
pub(crate) fn find(name: &[u8]) -> Option<Function> {
    let name = TVMFFIByteArray::from_slice(name);
    let mut handle = std::ptr::null_mut();
    // SAFETY: the name is alive, and `handle` is writable.
    let found = checked_in_turn(|api| unsafe { (api.TVMFFIFunctionGetGlobal)(&raw const name, &raw mut handle) });
    found.ok()?;
    // SAFETY: the handle is NULL, or a new reference to a function.
    unsafe { ObjectRef::from_raw(handle.cast()) }?.downcast().ok()
}

/// As [`set_global_with_metadata`](set_global_with_metadata), for a name that need not be UTF-8. The runtime has its
/// own messages, so `_causes` is unused.
pub(crate) fn register(
    name: &[u8],
    function: Function,
    metadata: Str,
    allow_override: bool,
    _causes: &str,
) -> Result<()> {
    let name = TVMFFIByteArray::from_slice(name);
    let allow_override = c_int::from(allow_override);
    if metadata.as_str().is_empty() {
        let handle = function.as_raw_handle();
        // SAFETY: name and function are alive; the runtime takes a reference of its own.
        return checked_in_turn(|api| unsafe {
            (api.TVMFFIFunctionSetGlobal)(&raw const name, handle, allow_override)
        });
    }
    let method = function.to_arg();
    let info = TVMFFIMethodInfo {
        name,
        doc: TVMFFIByteArray::EMPTY,
        metadata: TVMFFIByteArray::from_slice(metadata.as_str().as_bytes()),
        flags: kTVMFFIFieldFlagBitMaskIsStaticMethod,
        method: method.as_view().as_raw(),
    };
    // SAFETY: all of the info is alive; the runtime copies it.
    checked_in_turn(|api| unsafe { (api.TVMFFIFunctionSetGlobalFromMethodInfo)(&raw const info, allow_override) })
}

/// Removes a global function, and returns whether it existed.
fn remove(name: &[u8]) -> bool {
    // SAFETY: the value is new and owned. Its bytes need not be UTF-8.
    let name = unsafe { crate::any::Any::from_raw(crate::string::raw_str_from_bytes(name)) };
    let remove = find(b"ffi.FunctionRemoveGlobal");
    let removed = remove.and_then(|remove| in_turn(|| remove.call((name,))).ok());
    removed.and_then(|removed| removed.cast().ok()).unwrap_or(false)
}

/// The names of all global functions, sorted.
fn names() -> Vec<Vec<u8>> {
    let mut names = list().unwrap_or_else(|_| {
        drop(take_raised());
        Vec::new()
    });
    names.sort_unstable();
    names
}

fn list() -> Result<Vec<Vec<u8>>> {
    let Some(list) = find(b"ffi.FunctionListGlobalNamesFunctor") else { return Ok(Vec::new()) };
    let functor: Function = in_turn(|| list.call(()))?.cast()?;
    let len: i64 = functor.call((-1,))?.cast()?;
    (0..len)
        .map(|index| {
            let name = functor.call((index,))?;
            Ok(name.as_view().str_bytes().unwrap_or_default().to_vec())
        })
        .collect()
}
