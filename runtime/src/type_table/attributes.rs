//! Attributes of types: one column per attribute, with a value per type.
//! Header sections: `TVMFFITypeRegisterAttr`, `TVMFFIGetTypeAttrColumn`.

use super::columns::{Column, Refused, read as read_column};
use super::reflection::registered_info;
use super::table::{read, write};
use crate::abi::*;
use crate::any::{Any, AnyView};
use crate::error::{Error, Result, kind, runtime_error};
use crate::process;

/// Sets one type's attribute. With type index None it only creates the column if that doesn't exist.
///
/// # Errors
/// `RuntimeError` if the type already has this attribute, or the index is negative or unknown; `MemoryError` if memory
/// can't be allocated.
pub(crate) fn register_attr(index: i32, name: &[u8], value: AnyView<'_>) -> Result<()> {
    // Own the value before taking the lock, since the allocator of objects may run a user's code.
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
        Refused::Taken => runtime_error(&process::beside::registered_twice(format!(
            "TypeAttr `{name}` is already registered for type index {index}. To update the stored value, register a \
             mutable container (e.g., Dict/List) once and mutate it in place on subsequent calls."
        ))),
        Refused::NoMemory => Error::new(kind::MEMORY_ERROR, &format!("no memory for the attribute `{name}`")),
    })
}

/// The column of an attribute, if any type or frontend has registered it.
pub(crate) fn attr_column(name: &[u8]) -> Option<*const TVMFFITypeAttrColumn> {
    with_column(name, Column::header)
}

/// Calls `look` with a column and all its values, if the column exists.
fn with_column<R>(name: &[u8], look: impl FnOnce(&Column) -> R) -> Option<R> {
    let table = read();
    let column = table.attributes.get(name)?;
    if column.is_placed() {
        return Some(look(column));
    }
    drop(table);
    Some(look(write().attributes.column(name)))
}

/// The column of an attribute, for reading without a lock.
#[derive(Copy, Clone)]
pub(crate) struct AttrColumn(*const TVMFFITypeAttrColumn);

// SAFETY: a column is never freed, and threads that read it see whole values.
unsafe impl Send for AttrColumn {}
// SAFETY: as above.
unsafe impl Sync for AttrColumn {}

impl AttrColumn {
    /// Returns the column of that name, and creates it if it doesn't exist.
    pub(crate) fn named(name: &[u8]) -> Self {
        Self(write().attributes.column(name).header())
    }

    /// One type's attribute. Registered values are never removed.
    #[inline]
    pub(crate) fn value(self, index: TypeIndex) -> Option<AnyView<'static>> {
        // SAFETY: the header is that of a column, and the column owns its values forever.
        let value = unsafe { AnyView::from_raw(read_column(self.0, usize::try_from(index.0).ok()?)) };
        if value.is_none() { None } else { Some(value) }
    }
}

/// One type's attribute.
pub(crate) fn attr_value(index: TypeIndex, name: &[u8]) -> Option<Any> {
    let index = usize::try_from(index.0).ok()?;
    // A registered value is already owned, so taking another reference doesn't allocate.
    with_column(name, |column| column.value(index).to_owned().ok())?.filter(|value| !value.is_none())
}
