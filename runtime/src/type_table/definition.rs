//! What the runtime itself registers about types, before anybody else can.
//! C++ code looks a column of attributes up once and keeps its absence, so all columns are there from the start.

use std::ffi::c_void;

use super::columns::Attributes;
use super::publish::append;
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

/// Makes the columns of attributes.
pub(super) fn make_columns(attributes: &mut Attributes) {
    for name in COLUMNS {
        attributes.column(name.as_bytes());
    }
}

/// What there is about a type from the start.
pub(crate) struct Definition {
    /// The type key: of a type with a static index, or of one that is allocated.
    pub(crate) key: &'static str,
    /// The parent of a type that is allocated.
    pub(crate) parent: &'static str,
    /// Whether there can be no child types.
    pub(crate) is_final: bool,
    pub(crate) metadata: Option<TVMFFITypeMetadata>,
    pub(crate) fields: Vec<TVMFFIFieldInfo>,
    pub(crate) methods: Vec<TVMFFIMethodInfo>,
    pub(crate) attributes: Vec<(&'static str, Any)>,
}

impl Definition {
    /// A type with nothing registered about it.
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

    /// A type with the metadata and attribute that upstream's `ObjectDef` registers about each.
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

    /// Adds a method; `metadata` is a JSON text.
    pub(crate) fn method(mut self, name: &'static str, metadata: &'static str, flags: i64, method: Any) -> Self {
        let text = |text: &'static str| TVMFFIByteArray::from_slice(text.as_bytes());
        self.methods.push(TVMFFIMethodInfo {
            name: text(name),
            doc: TVMFFIByteArray::EMPTY,
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

    /// Registers all but the type itself, of which nobody else has the info yet.
    pub(super) fn fill(self, info: *mut TVMFFITypeInfo, columns: &mut Attributes) {
        // SAFETY: the info is never freed, and nobody else has it yet. Attributes go to the same place that readers look at.
        unsafe {
            for field in self.fields {
                append(&raw mut (*info).fields, &raw mut (*info).num_fields, field);
            }
            for method in self.methods {
                append(&raw mut (*info).methods, &raw mut (*info).num_methods, method);
            }
            if let Some(metadata) = self.metadata {
                (*info).metadata = Box::leak(Box::new(metadata));
            }
            for (name, value) in self.attributes {
                // A new table has no other value of the type, and without memory there is no table.
                let _set = columns.column(name.as_bytes()).set((*info).type_index as usize, value);
            }
        }
    }
}

/// A field of a built-in type; `schema` is a JSON text.
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
    /// The field as the table has it.
    pub(crate) fn info(self) -> TVMFFIFieldInfo {
        let text = |text: &'static str| match text.is_empty() {
            true => TVMFFIByteArray::EMPTY,
            false => TVMFFIByteArray::from_slice(text.as_bytes()),
        };
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
