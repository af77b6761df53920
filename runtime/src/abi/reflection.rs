//! Types of the reflection tables: fields, methods, metadata, attributes, type info. The runtime stores these as a
//! frontend registers them, and doesn't interpret them. Header section: "Type reflection support APIs".
#![allow(non_upper_case_globals)]

use std::ffi::{c_int, c_void};
use std::mem::offset_of;

use super::any::{TVMFFIAny, TVMFFIByteArray};
use super::object::TVMFFIObjectHandle;

/// Reads the field at an address into `result`.
pub type TVMFFIFieldGetter = unsafe extern "C" fn(field: *mut c_void, result: *mut TVMFFIAny) -> c_int;
/// Writes a value to the field at an address.
pub type TVMFFIFieldSetter = unsafe extern "C" fn(field: *mut c_void, value: *const TVMFFIAny) -> c_int;
/// Creates a new object of a type.
pub type TVMFFIObjectCreator = unsafe extern "C" fn(result: *mut TVMFFIObjectHandle) -> c_int;

macro_rules! flags {
    ($ty:ty: $($(#[$doc:meta])* $name:ident = $value:expr;)*) => {
        $($(#[$doc])* pub const $name: $ty = $value;)*
    };
}

flags! { i64:
    /// Field flag: writable.
    kTVMFFIFieldFlagBitMaskWritable = 1 << 0;
    /// Field flag: has a default.
    kTVMFFIFieldFlagBitMaskHasDefault = 1 << 1;
    /// Method flag: static.
    kTVMFFIFieldFlagBitMaskIsStaticMethod = 1 << 2;
    /// Field flag: left out of structural equality and hash.
    kTVMFFIFieldFlagBitMaskSEqHashIgnore = 1 << 3;
    /// Field flag: enters a pattern definition region.
    kTVMFFIFieldFlagBitMaskSEqHashDefPattern = 1 << 4;
    /// Field flag: the default is a factory function.
    kTVMFFIFieldFlagBitMaskDefaultFromFactory = 1 << 5;
    /// Field flag: left out of repr.
    kTVMFFIFieldFlagBitMaskReprOff = 1 << 6;
    /// Field flag: left out of recursive comparison.
    kTVMFFIFieldFlagBitMaskCompareOff = 1 << 7;
    /// Field flag: left out of recursive hashing.
    kTVMFFIFieldFlagBitMaskHashOff = 1 << 8;
    /// Field flag: left out of the generated constructor.
    kTVMFFIFieldFlagBitMaskInitOff = 1 << 9;
    /// Field flag: keyword-only in the generated constructor.
    kTVMFFIFieldFlagBitMaskKwOnly = 1 << 10;
    /// Field flag: `setter` is a function object.
    kTVMFFIFieldFlagBitSetterIsFunctionObj = 1 << 11;
    /// Field flag: enters a simple definition region.
    kTVMFFIFieldFlagBitMaskSEqHashDefSimple = 1 << 12;
}

flags! { i32:
    /// Structural equality kind: not supported.
    kTVMFFISEqHashKindUnsupported = 0;
    /// Structural equality kind: tree node.
    kTVMFFISEqHashKindTreeNode = 1;
    /// Structural equality kind: free variable.
    kTVMFFISEqHashKindFreeVar = 2;
    /// Structural equality kind: node of a directed acyclic graph.
    kTVMFFISEqHashKindDAGNode = 3;
    /// Structural equality kind: constant tree node.
    kTVMFFISEqHashKindConstTreeNode = 4;
    /// Structural equality kind: unique instance.
    kTVMFFISEqHashKindUniqueInstance = 5;
    /// Definition region: none.
    kTVMFFIDefRegionKindNone = 0;
    /// Definition region: pattern.
    kTVMFFIDefRegionKindPattern = 1;
    /// Definition region: simple.
    kTVMFFIDefRegionKindSimple = 2;
}

/// A field of an object type.
#[repr(C)]
#[derive(Copy, Clone, Debug)]
pub struct TVMFFIFieldInfo {
    /// Name.
    pub name: TVMFFIByteArray,
    /// Doc string.
    pub doc: TVMFFIByteArray,
    /// Metadata as JSON text.
    pub metadata: TVMFFIByteArray,
    /// `kTVMFFIFieldFlag...` flags.
    pub flags: i64,
    /// Size in bytes.
    pub size: i64,
    /// Alignment in bytes.
    pub alignment: i64,
    /// Offset in bytes.
    pub offset: i64,
    /// Reads the field.
    pub getter: Option<TVMFFIFieldGetter>,
    /// A [`TVMFFIFieldSetter`], or a function object if the flag says so.
    pub setter: *mut c_void,
    /// Default value, or a factory if the flag says so.
    pub default_value_or_factory: TVMFFIAny,
    /// Declared type of the field, as a hint.
    pub field_static_type_index: i32,
}

/// A method of an object type.
#[repr(C)]
#[derive(Copy, Clone, Debug)]
pub struct TVMFFIMethodInfo {
    /// Name.
    pub name: TVMFFIByteArray,
    /// Doc string.
    pub doc: TVMFFIByteArray,
    /// Metadata as JSON text.
    pub metadata: TVMFFIByteArray,
    /// `kTVMFFIFieldFlag...` flags.
    pub flags: i64,
    /// The function, viewed.
    pub method: TVMFFIAny,
}

/// Extra information about an object type.
#[repr(C)]
#[derive(Copy, Clone, Debug)]
pub struct TVMFFITypeMetadata {
    /// Doc string.
    pub doc: TVMFFIByteArray,
    /// Creates an empty instance; may be NULL.
    pub creator: Option<TVMFFIObjectCreator>,
    /// Size of the object in bytes, or zero.
    pub total_size: i32,
    /// A `kTVMFFISEqHashKind...` number.
    pub structural_eq_hash_kind: i32,
}

/// One attribute across many types: entry `i` belongs to type index `begin_index + i`.
#[repr(C)]
#[derive(Copy, Clone, Debug)]
pub struct TVMFFITypeAttrColumn {
    /// The entries; None for a type without the attribute.
    pub data: *const TVMFFIAny,
    /// Number of entries.
    pub size: i32,
    /// Type index of the first entry.
    pub begin_index: i32,
}

/// The runtime's record of an object type.
#[repr(C)]
#[derive(Copy, Clone, Debug)]
pub struct TVMFFITypeInfo {
    /// The type index.
    pub type_index: i32,
    /// Number of ancestors.
    pub type_depth: i32,
    /// The type key.
    pub type_key: TVMFFIByteArray,
    /// `type_depth` ancestors, root first.
    pub type_ancestors: *mut *const TVMFFITypeInfo,
    /// Hash of the type key.
    pub type_key_hash: u64,
    /// Number of fields.
    pub num_fields: i32,
    /// Number of methods.
    pub num_methods: i32,
    /// The fields.
    pub fields: *const TVMFFIFieldInfo,
    /// The methods.
    pub methods: *const TVMFFIMethodInfo,
    /// Extra information, or NULL.
    pub metadata: *const TVMFFITypeMetadata,
}

const _: () = assert!(size_of::<TVMFFIFieldInfo>() == 120);
const _: () = assert!(offset_of!(TVMFFIFieldInfo, flags) == 48);
const _: () = assert!(offset_of!(TVMFFIFieldInfo, getter) == 80);
const _: () = assert!(offset_of!(TVMFFIFieldInfo, setter) == 88);
const _: () = assert!(offset_of!(TVMFFIFieldInfo, default_value_or_factory) == 96);
const _: () = assert!(offset_of!(TVMFFIFieldInfo, field_static_type_index) == 112);
const _: () = assert!(size_of::<TVMFFIMethodInfo>() == 72);
const _: () = assert!(offset_of!(TVMFFIMethodInfo, method) == 56);
const _: () = assert!(size_of::<TVMFFITypeMetadata>() == 32);
const _: () = assert!(offset_of!(TVMFFITypeMetadata, total_size) == 24);
const _: () = assert!(size_of::<TVMFFITypeAttrColumn>() == 16);
const _: () = assert!(size_of::<TVMFFITypeInfo>() == 72);
const _: () = assert!(offset_of!(TVMFFITypeInfo, type_ancestors) == 24);
const _: () = assert!(offset_of!(TVMFFITypeInfo, type_key_hash) == 32);
const _: () = assert!(offset_of!(TVMFFITypeInfo, num_fields) == 40);
const _: () = assert!(offset_of!(TVMFFITypeInfo, fields) == 48);
const _: () = assert!(offset_of!(TVMFFITypeInfo, metadata) == 64);
