//! The table of types of an external runtime.
//! What upstream would end the process for is refused before it is asked, as far as the C API shows it.
//! Header sections: `TVMFFITypeGetOrAllocIndex`, `TVMFFIGetTypeInfo`, `TVMFFITypeRegister...`.

use super::request::{QUERY_ONLY, TypeRequest};
use crate::abi::*;
use crate::any::{Any, AnyView};
use crate::error::{Result, checked_in_turn, raised_error, runtime_error, take_raised};
use crate::external::{Api, api, in_turn};
use crate::heap::live;
use crate::type_info;

/// Says that the runtime holds the object in a value for as long as the process lives.
fn kept(value: &TVMFFIAny) {
    if TypeIndex(value.type_index).is_object() {
        live::gone(value.ptr());
    }
}

/// The index of a type, which is registered when it is new.
///
/// # Errors
/// `RuntimeError` when there is no runtime, the parent is unknown, the depth does not follow from the parent, or a static index is asked
/// for: those are the runtime's own. A parent that takes no more children, as few types do, ends the process: its runtime says so.
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
    // SAFETY: infos are never freed and a type's depth never changes.
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
    // This crate's own runtime, as an external one, raises an error where upstream ends the process.
    if index < 0 { Err(raised_error(index)) } else { Ok(known(index)) }
}

/// The index of a registered type.
pub fn key_to_index(key: &(impl AsRef<[u8]> + ?Sized)) -> Option<i32> {
    let api = api().ok()?;
    let name = TVMFFIByteArray::from_slice(key.as_ref());
    let mut index = -1;
    // SAFETY: the key is alive, and the place writable.
    let code = in_turn(|| unsafe { (api.TVMFFITypeKeyToIndex)(&raw const name, &raw mut index) });
    if code != 0 {
        drop(take_raised());
        return None;
    }
    Some(known(index))
}

/// Remembers the info of a type that is registered.
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
/// `RuntimeError` for an unknown type or a field name that the type has already.
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

/// Sets a type's extra information, once.
///
/// # Errors
/// `RuntimeError` for an unknown type, or one that has such information already.
///
/// # Safety
/// `metadata` must be filled as the header says.
pub(crate) unsafe fn register_metadata(index: i32, metadata: &TVMFFITypeMetadata) -> Result<()> {
    check_registered(index)?;
    // SAFETY: promised by the caller.
    checked_in_turn(|api| unsafe { (api.TVMFFITypeRegisterMetadata)(index, metadata) })
}

/// Sets one type's attribute; with type index None only makes sure that the column exists.
///
/// # Errors
/// `RuntimeError` when the type has this attribute already, or the index is unknown.
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

/// The column of an attribute; NULL where there is no runtime.
#[derive(Copy, Clone)]
pub(crate) struct AttrColumn(*const TVMFFITypeAttrColumn);

// SAFETY: a column is never freed, and is read in turn alone.
unsafe impl Send for AttrColumn {}
// SAFETY: as above.
unsafe impl Sync for AttrColumn {}

impl AttrColumn {
    /// The column of that name, a new one if need be.
    pub(crate) fn named(name: &[u8]) -> Self {
        // Makes the column where there is none; an error says that there is no runtime, and so no column.
        drop(register_attr(TypeIndex::NONE.0, name, AnyView::default()));
        let name = TVMFFIByteArray::from_slice(name);
        // SAFETY: the name is alive.
        let find = |api: &Api| in_turn(|| unsafe { (api.TVMFFIGetTypeAttrColumn)(&raw const name) });
        Self(api().map_or(std::ptr::null(), find))
    }

    /// One type's attribute. What is registered stays.
    pub(crate) fn value(self, index: TypeIndex) -> Option<AnyView<'static>> {
        in_turn(|| {
            // SAFETY: a column is NULL, or stays valid and has `size` values from `begin_index` on, which others change in their turn
            // alone. It owns each value for ever.
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
