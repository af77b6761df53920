//! The type table of an external runtime.
//! Upstream ends the process on some invalid requests. This file refuses them first, where the C API lets it check.
//! Header sections: `TVMFFITypeGetOrAllocIndex`, `TVMFFIGetTypeInfo`, `TVMFFITypeRegister...`.

mod request;

pub use request::{QUERY_ONLY, TypeRequest};

use crate::abi::*;
use crate::any::{Any, AnyView};
use crate::error::external::checked_in_turn;
use crate::error::{Result, raised_error, runtime_error, take_raised};
use crate::external::{Api, api, in_turn};
use crate::heap::live;
use crate::type_info;

/// Records that the runtime keeps a value's object until the process ends.
fn kept(value: &TVMFFIAny) {
    if TypeIndex(value.type_index).is_object() {
        live::gone(value.ptr());
    }
}

/// Returns the index of a type, and registers the type if it is new.
///
/// # Errors
/// `RuntimeError` if there is no runtime, the parent is unknown, the depth isn't the parent's plus one, or the request
/// has a static index. Only the runtime itself registers types with static indices. If the parent allows no more child
/// types, upstream's runtime ends the process with a message; few types have such a limit.
pub fn get_or_alloc_index(request: TypeRequest<'_>) -> Result<i32> {
    let api = api()?;
    let TypeRequest { key, parent, .. } = request;
    let refused = |text: &str| Err(runtime_error(&format!("type `{}`: {text}", String::from_utf8_lossy(key))));
    if let Some(index) = key_to_index(key) {
        return Ok(index);
    }
    if parent == QUERY_ONLY {
        return Ok(QUERY_ONLY);
    }
    if request.static_index >= 0 {
        return refused("an external runtime has all static type indices itself");
    }
    let Some(info) = type_info::get(parent) else {
        return refused(&format!("no parent with type index {parent}"));
    };
    // SAFETY: infos are never freed, and a type's depth never changes.
    if request.depth != unsafe { (*info).type_depth } + 1 || !(0..1 << 20).contains(&request.num_child_slots) {
        return refused(&format!(
            "depth {} does not fit its parent's, or the number of its child slots is out of bounds",
            request.depth
        ));
    }
    let name = TVMFFIByteArray::from_slice(key);
    let overflow = i32::from(request.child_slots_can_overflow);
    // SAFETY: the key is alive; depth and parent were checked.
    let index = in_turn(|| unsafe {
        let slots = request.num_child_slots;
        (api.TVMFFITypeGetOrAllocIndex)(&raw const name, -1, request.depth, slots, overflow, parent)
    });
    // If the external runtime is this crate's, it raises an error where upstream ends the process.
    if index < 0 { Err(raised_error(index)) } else { Ok(known(index)) }
}

/// The index of a registered type.
pub fn key_to_index(key: &(impl AsRef<[u8]> + ?Sized)) -> Option<i32> {
    let api = api().ok()?;
    let name = TVMFFIByteArray::from_slice(key.as_ref());
    let mut index = -1;
    // SAFETY: the key is alive, and `index` is writable.
    let code = in_turn(|| unsafe { (api.TVMFFITypeKeyToIndex)(&raw const name, &raw mut index) });
    if code != 0 {
        drop(take_raised());
        return None;
    }
    Some(known(index))
}

/// Caches the info of a registered type, and returns its index.
fn known(index: i32) -> i32 {
    let _info = type_info::of_registered(index);
    index
}

/// The info of a registered type; its address stays valid for the life of the process.
pub fn type_info(index: i32) -> Option<*const TVMFFITypeInfo> {
    type_info::get(index).map(<*mut _>::cast_const)
}

fn check_registered(index: i32) -> Result<()> {
    match type_info::get(index) {
        Some(_) => Ok(()),
        None => Err(runtime_error(&format!("Cannot find type info for type_index={index}"))),
    }
}

/// Adds a field to a type.
///
/// # Errors
/// `RuntimeError` for an unknown type, or a field name that the type already has.
///
/// # Safety
/// `field` must be filled as the header says.
pub(crate) unsafe fn register_field(index: i32, field: &TVMFFIFieldInfo) -> Result<()> {
    check_registered(index)?;
    // SAFETY: promised by the caller.
    checked_in_turn(|api| unsafe { (api.TVMFFITypeRegisterField)(index, field) })?;
    kept(&field.default_value_or_factory);
    Ok(())
}

/// Adds a method to a type.
///
/// # Errors
/// `RuntimeError` for an unknown type.
///
/// # Safety
/// `method` must be filled as the header says.
pub(crate) unsafe fn register_method(index: i32, method: &TVMFFIMethodInfo) -> Result<()> {
    check_registered(index)?;
    // SAFETY: promised by the caller.
    checked_in_turn(|api| unsafe { (api.TVMFFITypeRegisterMethod)(index, method) })?;
    kept(&method.method);
    Ok(())
}

/// Sets a type's metadata. This works once per type.
///
/// # Errors
/// `RuntimeError` for an unknown type, or one that already has metadata.
///
/// # Safety
/// `metadata` must be filled as the header says.
pub(crate) unsafe fn register_metadata(index: i32, metadata: &TVMFFITypeMetadata) -> Result<()> {
    check_registered(index)?;
    // SAFETY: promised by the caller.
    checked_in_turn(|api| unsafe { (api.TVMFFITypeRegisterMetadata)(index, metadata) })
}

/// Sets one type's attribute. With type index None it only creates the column if that doesn't exist.
///
/// # Errors
/// `RuntimeError` if the type already has this attribute, or the index is unknown.
pub(crate) fn register_attr(index: i32, name: &[u8], value: AnyView<'_>) -> Result<()> {
    if index != TypeIndex::NONE.0 {
        check_registered(index)?;
    }
    let (name, value) = (TVMFFIByteArray::from_slice(name), value.as_raw());
    // SAFETY: name and value are alive.
    checked_in_turn(|api| unsafe { (api.TVMFFITypeRegisterAttr)(index, &raw const name, &raw const value) })?;
    kept(&value);
    Ok(())
}

/// Does nothing: an external runtime has no way to reserve a type's layout for the code that registered it.
pub(crate) fn keep_layout(_index: i32) {}

/// The column of an attribute; NULL without a runtime.
#[derive(Copy, Clone)]
pub(crate) struct AttrColumn(*const TVMFFITypeAttrColumn);

// SAFETY: a column is never freed, and this crate reads it only inside `in_turn`.
unsafe impl Send for AttrColumn {}
// SAFETY: as above.
unsafe impl Sync for AttrColumn {}

impl AttrColumn {
    /// Returns the column of that name, and creates it if it doesn't exist.
    pub(crate) fn named(name: &[u8]) -> Self {
        // Create the column if it doesn't exist. An error means that there is no runtime, and so no column.
        drop(register_attr(TypeIndex::NONE.0, name, AnyView::default()));
        let name = TVMFFIByteArray::from_slice(name);
        // SAFETY: the name is alive.
        let find = |api: &Api| in_turn(|| unsafe { (api.TVMFFIGetTypeAttrColumn)(&raw const name) });
        Self(api().map_or(std::ptr::null(), find))
    }

    /// One type's attribute. Registered values are never removed.
    pub(crate) fn value(self, index: TypeIndex) -> Option<AnyView<'static>> {
        in_turn(|| {
            // SAFETY: a column is NULL, or stays valid and has `size` values from `begin_index` on. Other threads
            // change them only inside `in_turn`. The column owns each value forever.
            let value = unsafe {
                let column = self.0.as_ref()?;
                let place = index.0.checked_sub(column.begin_index).filter(|place| (0..column.size).contains(place))?;
                AnyView::from_raw(*column.data.add(place as usize))
            };
            if value.is_none() { None } else { Some(value) }
        })
    }
}

/// One type's attribute.
pub(crate) fn attr_value(index: TypeIndex, name: &[u8]) -> Option<Any> {
    let api = api().ok()?;
    let name = TVMFFIByteArray::from_slice(name);
    // SAFETY: the name is alive.
    let column = AttrColumn(in_turn(|| unsafe { (api.TVMFFIGetTypeAttrColumn)(&raw const name) }));
    column.value(index)?.to_owned().ok()
}
