//! The table of types: key to index, index to info, ancestors, reserved child slots, and what frontends register about types.
//! `external` stands for all of it where the runtime is not this crate's.
//! Header sections: `TVMFFITypeGetOrAllocIndex`, `TVMFFIGetTypeInfo`, `TVMFFITypeKeyToIndex`.

#[cfg(not(feature = "external"))]
mod attributes;
#[cfg(not(feature = "external"))]
mod columns;
#[cfg(not(feature = "external"))]
mod contents;
#[cfg(not(feature = "external"))]
mod definition;
#[cfg(feature = "external")]
mod external;
#[cfg(not(feature = "external"))]
mod publish;
#[cfg(not(feature = "external"))]
mod reflection;
mod request;
#[cfg(not(feature = "external"))]
mod table;

#[cfg(not(feature = "external"))]
pub(crate) use attributes::{AttrColumn, attr_column, attr_value, register_attr};
#[cfg(not(feature = "external"))]
pub(crate) use contents::{fields, is_instance, key_hash, metadata};
#[cfg(not(feature = "external"))]
pub(crate) use definition::{Definition, FieldDef};
#[cfg(feature = "external")]
pub(crate) use external::{AttrColumn, attr_value, register_attr, register_field, register_metadata, register_method};
#[cfg(feature = "external")]
pub use external::{get_or_alloc_index, key_to_index, type_info};
#[cfg(not(feature = "external"))]
pub(crate) use reflection::{register_field, register_metadata, register_method};
pub use request::{QUERY_ONLY, TypeRequest};
#[cfg(not(feature = "external"))]
pub use table::{get_or_alloc_index, key_to_index, type_info};
#[cfg(not(feature = "external"))]
pub(crate) use table::{keys, ready_type_info, required_index};
