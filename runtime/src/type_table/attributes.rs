//! Attributes of types: a column for each, with the values of many types.
//! Header sections: `TVMFFITypeRegisterAttr`, `TVMFFIGetTypeAttrColumn`.

use super::columns::{Refused, read as read_column};
use super::reflection::registered_info;
use super::table::{read, write};
use crate::abi::*;
use crate::any::{Any, AnyView};
use crate::error::{Error, Result, kind, runtime_error};
use crate::process;

/// Sets one type's attribute; with type index None only makes sure that the column exists.
///
/// # Errors
/// `RuntimeError` when the type has this attribute already, or the index is negative or unknown; `MemoryError` when there is no memory.
pub(crate) fn register_attr(index: i32, name: &[u8], value: AnyView<'_>) -> Result<()> {
    // Made before the lock, since the allocator of objects may be somebody's code.
    let value = value.to_owned()?;
    let is_type = index != TypeIndex::NONE.0;
    if is_type {
        registered_info(index)?;
    }
    let mut table = write();
    let column = table.attributes.column(name);
    let outcome = if is_type { column.set(index as usize, value) } else { Ok(()) };
    drop(table);
    let Err((_value, refused)) = outcome else {
        return Ok(());
    };
    let name = String::from_utf8_lossy(name);
    Err(match refused {
        Refused::Taken => runtime_error(&process::registered_twice(format!(
            "TypeAttr `{name}` is already registered for type index {index}. To update the stored value, register a mutable \
             container (e.g., Dict/List) once and mutate it in place on subsequent calls."
        ))),
        Refused::NoMemory => Error::new(kind::MEMORY_ERROR, &format!("no memory for the attribute `{name}`")),
    })
}

/// The column of an attribute, if any type or frontend has registered it.
pub(crate) fn attr_column(name: &[u8]) -> Option<*const TVMFFITypeAttrColumn> {
    read().attributes.get(name).map(|column| column.header())
}

/// The column of an attribute, which is read without a lock.
#[derive(Copy, Clone)]
pub(crate) struct AttrColumn(*const TVMFFITypeAttrColumn);

// SAFETY: a column is never freed, and threads that read it see whole values.
unsafe impl Send for AttrColumn {}
// SAFETY: as above.
unsafe impl Sync for AttrColumn {}

impl AttrColumn {
    /// The column of that name, a new one if need be.
    pub(crate) fn named(name: &[u8]) -> Self {
        Self(write().attributes.column(name).header())
    }

    /// One type's attribute. What is registered stays.
    #[inline]
    pub(crate) fn value(self, index: TypeIndex) -> Option<AnyView<'static>> {
        // SAFETY: the header is a column's; the column owns the value for ever.
        let value = unsafe { AnyView::from_raw(read_column(self.0, usize::try_from(index.0).ok()?)) };
        if value.is_none() { None } else { Some(value) }
    }
}

/// One type's attribute.
pub(crate) fn attr_value(index: TypeIndex, name: &[u8]) -> Option<Any> {
    let table = read();
    let value = table.attributes.get(name)?.value(usize::try_from(index.0).ok()?);
    // A registered value is an owned one, which takes no allocation to own again.
    if value.is_none() { None } else { value.to_owned().ok() }
}
