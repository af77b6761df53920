//! The reflection that the runtime registers for built-in types, before any frontend registers its own.
//! C++ code looks up an attribute's column once, and caches the result even if the column is missing. So the table
//! creates all columns at the start.

use std::ffi::c_void;

use super::columns::Attributes;
use super::publish::leak_array;
use crate::abi::*;
use crate::any::Any;

/// The names of the attributes that upstream's library has columns for.
const COLUMNS: &[&str] = &[
    "__any_equal__",
    "__any_hash__",
    "__data_from_json__",
    "__data_to_json__",
    "__ffi_compare__",
    "__ffi_convert__",
    "__ffi_enum__",
    "__ffi_eq__",
    "__ffi_hash__",
    "__ffi_init__",
    "__ffi_new__",
    "__ffi_repr__",
    "__ffi_shallow_copy__",
    "__ffi_type_final__",
    "__s_equal__",
    "__s_hash__",
    "__s_maybe_inplace_mutate__",
    "__s_mutate__",
    "__s_visit__",
];

/// Creates the columns of upstream's attributes.
pub(super) fn make_columns(attributes: &mut Attributes) {
    for name in COLUMNS {
        attributes.built_in(name);
    }
}

/// A built-in type's initial reflection.
pub(crate) struct Definition {
    /// The type key. The type has a static index, or its index is allocated.
    pub(crate) key: &'static str,
    /// The parent's key, used if the type's index is allocated.
    pub(crate) parent: &'static str,
    /// True if the type refuses child types.
    pub(crate) is_final: bool,
    pub(crate) metadata: Option<TVMFFITypeMetadata>,
    pub(crate) fields: Vec<TVMFFIFieldInfo>,
    pub(crate) methods: Vec<TVMFFIMethodInfo>,
    pub(crate) attributes: Vec<(&'static str, Any)>,
}

impl Definition {
    /// A type without any reflection.
    pub(crate) const fn new(key: &'static str, parent: &'static str) -> Self {
        Self {
            key,
            parent,
            is_final: false,
            metadata: None,
            fields: Vec::new(),
            methods: Vec::new(),
            attributes: Vec::new(),
        }
    }

    /// A type with the metadata and attribute that upstream's `ObjectDef` registers for every type.
    pub(crate) fn object(key: &'static str, parent: &'static str, total_size: usize, is_final: bool) -> Self {
        Self {
            is_final,
            metadata: Some(TVMFFITypeMetadata {
                doc: TVMFFIByteArray::EMPTY,
                creator: None,
                total_size: total_size as i32,
                structural_eq_hash_kind: kTVMFFISEqHashKindUnsupported,
            }),
            ..Self::new(key, parent)
        }
        .attribute("__ffi_type_final__", is_final)
    }

    /// Sets the kind of structural equality.
    pub(crate) fn kind(mut self, kind: i32) -> Self {
        if let Some(metadata) = &mut self.metadata {
            metadata.structural_eq_hash_kind = kind;
        }
        self
    }

    /// Sets the function that makes an empty object.
    pub(crate) fn creator(mut self, creator: TVMFFIObjectCreator) -> Self {
        if let Some(metadata) = &mut self.metadata {
            metadata.creator = Some(creator);
        }
        self
    }

    /// Adds a field.
    pub(crate) fn field(mut self, field: TVMFFIFieldInfo) -> Self {
        self.fields.push(field);
        self
    }

    /// Adds a method; `metadata` is a JSON string.
    pub(crate) fn method(
        mut self,
        name: &'static str,
        doc: &'static str,
        metadata: &'static str,
        flags: i64,
        method: Any,
    ) -> Self {
        self.methods.push(TVMFFIMethodInfo {
            name: text(name),
            doc: text(doc),
            metadata: text(metadata),
            flags,
            method: method.into_raw(),
        });
        self
    }

    /// Adds an attribute.
    pub(crate) fn attribute(mut self, name: &'static str, value: impl Into<Any>) -> Self {
        self.attributes.push((name, value.into()));
        self
    }

    /// Registers all reflection of a type. The type's info must not be shared with other threads yet.
    pub(super) fn fill(self, info: *mut TVMFFITypeInfo, columns: &mut Attributes) {
        // SAFETY: the info is never freed, and no other code has it yet.
        unsafe {
            (*info).num_fields = self.fields.len() as i32;
            (*info).fields = leak_array(self.fields);
            (*info).num_methods = self.methods.len() as i32;
            (*info).methods = leak_array(self.methods);
            if let Some(metadata) = self.metadata {
                (*info).metadata = Box::leak(Box::new(metadata));
            }
            for (name, value) in self.attributes {
                columns.built_in(name).add_built_in((*info).type_index as usize, value);
            }
        }
    }
}

fn text(text: &'static str) -> TVMFFIByteArray {
    match text.is_empty() {
        true => TVMFFIByteArray::EMPTY,
        false => TVMFFIByteArray::from_slice(text.as_bytes()),
    }
}

/// A field of a built-in type; `schema` is a JSON string.
pub(crate) struct FieldDef {
    pub(crate) name: &'static str,
    pub(crate) doc: &'static str,
    pub(crate) schema: &'static str,
    pub(crate) flags: i64,
    pub(crate) size: usize,
    pub(crate) offset: usize,
    pub(crate) getter: TVMFFIFieldGetter,
    pub(crate) setter: Option<TVMFFIFieldSetter>,
    pub(crate) static_index: TypeIndex,
}

impl FieldDef {
    /// Converts the field to the form in which the table stores it.
    pub(crate) fn info(self) -> TVMFFIFieldInfo {
        TVMFFIFieldInfo {
            name: text(self.name),
            doc: text(self.doc),
            metadata: text(self.schema),
            flags: self.flags,
            size: self.size as i64,
            alignment: self.size.min(align_of::<TVMFFIAny>()) as i64,
            offset: self.offset as i64,
            getter: Some(self.getter),
            setter: self.setter.map_or(std::ptr::null_mut(), |setter| setter as *mut c_void),
            default_value_or_factory: TVMFFIAny::none(),
            field_static_type_index: self.static_index.0,
        }
    }
}
