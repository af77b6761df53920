//! The table of types: key to index, index to info, ancestors, reserved child slots, and the reflection that frontends
//! register. `external` replaces this file for an external runtime, with the same interface.
//! Header sections: `TVMFFITypeGetOrAllocIndex`, `TVMFFIGetTypeInfo`, `TVMFFITypeKeyToIndex`.

mod attributes;
mod columns;
mod contents;
mod definition;
mod publish;
mod reflection;
mod request;
mod table;

pub(crate) use attributes::{AttrColumn, attr_column, attr_value, register_attr};
pub(crate) use contents::{fields, is_instance, key_hash, metadata};
pub(crate) use definition::{Definition, FieldDef};
pub(crate) use reflection::{register_field, register_metadata, register_method};
pub use request::{QUERY_ONLY, TypeRequest};
pub(crate) use table::{fill, keep_layout, keys, layout_owner, ready_type_info, required_index};
pub use table::{get_or_alloc_index, key_to_index, type_info};
