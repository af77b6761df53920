//! Attribute columns: one attribute of many types.
//! Header sections: `TVMFFITypeRegisterAttr`, `TVMFFIGetTypeAttrColumn`.

use super::columns::Column;
use super::publish::publish;
use super::table::{read, write};
use crate::abi::*;
use crate::any::{Any, AnyView};
use crate::error::{Result, runtime_error};

/// Sets one type's attribute; with type index None only makes sure that the column exists.
///
/// # Errors
/// `RuntimeError` when the type has this attribute already, or the index is negative or unknown.
pub(crate) fn register_attr(index: i32, name: &[u8], value: AnyView<'_>) -> Result<()> {
    let value = value.to_owned()?;
    let mut table = write();
    if index != TypeIndex::NONE.0 {
        table.registered_info(index)?;
    }
    let column = table.attributes.columns.entry(name.to_vec()).or_insert_with(|| Column {
        header: Box::leak(Box::new(TVMFFITypeAttrColumn { data: std::ptr::null(), size: 0, begin_index: 0 })),
        values: Vec::new(),
    });
    if index == TypeIndex::NONE.0 {
        return Ok(());
    }
    let slot = index as usize;
    if slot >= column.values.len() {
        // The old array stays where it is: a reader may be in it. Its values are owned by it and
        // leaked with it; the new array has references of its own.
        let mut values = Vec::with_capacity((slot + 1).next_power_of_two());
        values.extend_from_slice(&column.values);
        values.resize_with(slot + 1, Any::default);
        std::mem::forget(std::mem::replace(&mut column.values, values));
    }
    if let Some(place) = column.values.get_mut(slot) {
        if place.type_index() != TypeIndex::NONE {
            return Err(runtime_error(&format!(
                "TypeAttr `{}` is already registered for type index {index}",
                String::from_utf8_lossy(name)
            )));
        }
        *place = value;
    }
    let len = column.values.len() as i32;
    let array = column.values.as_mut_ptr().cast::<TVMFFIAny>();
    // SAFETY: the header is leaked and changed under the write lock only; `Any` is a transparent
    // `TVMFFIAny`, and the array has `len` of them.
    unsafe {
        publish(&raw mut (*column.header).data, &raw mut (*column.header).size, array, len);
    }
    Ok(())
}

/// The column of an attribute, if any type or frontend has registered it.
pub(crate) fn attr_column(name: &[u8]) -> Option<*const TVMFFITypeAttrColumn> {
    let table = read();
    let column = table.attributes.columns.get(name)?;
    Some(column.header.cast_const())
}

/// One type's attribute.
pub(crate) fn attr_value(index: TypeIndex, name: &[u8]) -> Option<Any> {
    let table = read();
    let value = table.attributes.columns.get(name)?.values.get(usize::try_from(index.0).ok()?)?;
    (!value.is_none()).then(|| value.clone())
}
