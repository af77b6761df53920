//! Objects with reflected fields. Each sequence of names is a type, which inherits all fields but the last.

use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::sync::atomic::AtomicU64;
use std::sync::{LazyLock, Mutex};

use tvm_ffi_codegen::runtime::abi::{
    TVMFFIAny, TVMFFIByteArray, TVMFFIFieldInfo, TVMFFIObject, TypeIndex, kTVMFFIObjectDeleterFlagBitMaskWeak,
};
use tvm_ffi_codegen::runtime::error::set_raised;
use tvm_ffi_codegen::runtime::unstable::type_table::{TypeRequest, get_or_alloc_index};
use tvm_ffi_codegen::runtime::{Any, AnyView, Error, ObjectRef, Str};

use crate::support::c_api::TVMFFITypeRegisterField;
use crate::support::recording::real;

#[repr(C)]
struct Object {
    header: TVMFFIObject,
    /// An owned value for each field.
    fields: [TVMFFIAny; MOST],
}

const MOST: usize = 16;

/// The index of the type with fields of these names.
pub fn type_of_fields<'n>(names: impl IntoIterator<Item = &'n str>) -> TypeIndex {
    static TYPES: LazyLock<Mutex<HashMap<String, i32>>> = LazyLock::new(Mutex::default);
    let mut types = TYPES.lock().unwrap();
    let mut key = "test.Fields".to_owned();
    let mut parent = *types.entry(key.clone()).or_insert_with(|| new_type(&key, TypeIndex::OBJECT.0, 1));
    for (number, name) in names.into_iter().enumerate() {
        assert!(number < MOST, "{key}: too many fields");
        key = format!("{key}.{name}");
        parent = *types.entry(key.clone()).or_insert_with(|| register(&key, name, parent, number));
    }
    TypeIndex(parent)
}

fn new_type(key: &str, parent: i32, depth: i32) -> i32 {
    let request = TypeRequest {
        key: key.as_bytes(),
        static_index: -1,
        depth,
        num_child_slots: 0,
        child_slots_can_overflow: true,
        parent,
    };
    get_or_alloc_index(request).unwrap()
}

fn register(key: &str, name: &str, parent: i32, number: usize) -> i32 {
    let index = new_type(key, parent, number as i32 + 2);
    let empty = TVMFFIByteArray::from_slice(b"");
    let info = TVMFFIFieldInfo {
        name: TVMFFIByteArray::from_slice(name.as_bytes()),
        doc: empty,
        metadata: empty,
        flags: 0,
        size: 16,
        alignment: 8,
        offset: (size_of::<TVMFFIObject>() + 16 * number) as i64,
        getter: Some(get),
        setter: std::ptr::null_mut(),
        default_value_or_factory: TVMFFIAny::none(),
        field_static_type_index: TypeIndex::ANY.0,
    };
    // SAFETY: the strings outlive the call, which copies them, and the getter reads a field at that offset.
    assert_eq!(unsafe { TVMFFITypeRegisterField(index, &info) }, 0);
    index
}

/// Reads a field. A string on the heap is new each time, so only the reader owns it. An error is raised.
unsafe extern "C" fn get(field: *mut c_void, result: *mut TVMFFIAny) -> c_int {
    // SAFETY: the address is that of a field, which has an owned value.
    unsafe {
        let raw = *field.cast::<TVMFFIAny>();
        if let Ok(error) = AnyView::from_raw(raw).cast::<Error>() {
            set_raised(error);
            return -1;
        }
        match AnyView::from_raw(raw).str_bytes() {
            Some(text) if raw.type_index == TypeIndex::STR.0 => {
                result.write(Any::from(Str::new(std::str::from_utf8_unchecked(text))).into_raw());
                0
            }
            _ => real::TVMFFIAnyViewToOwnedAny(&raw, result),
        }
    }
}

/// A new object with these fields.
pub fn new_fields(fields: Vec<(String, Any)>) -> Any {
    let type_index = type_of_fields(fields.iter().map(|(name, _)| name.as_str())).0;
    let header = TVMFFIObject {
        combined_ref_count: AtomicU64::new(1 | 1 << 32),
        type_index,
        __padding: 0,
        deleter: Some(delete),
    };
    let mut object = Box::new(Object { header, fields: [TVMFFIAny::none(); MOST] });
    for (to, (_, value)) in object.fields.iter_mut().zip(fields) {
        *to = value.into_raw();
    }
    // SAFETY: the one reference moves into the result.
    Any::from(unsafe { ObjectRef::from_raw(Box::into_raw(object).cast()) })
}

unsafe extern "C" fn delete(object: *mut c_void, flags: c_int) {
    if flags & kTVMFFIObjectDeleterFlagBitMaskWeak != 0 {
        // SAFETY: the object came from a box, and has no references left; each field is owned.
        unsafe {
            let object = Box::from_raw(object.cast::<Object>());
            object.fields.iter().for_each(|field| drop(Any::from_raw(*field)));
        }
    }
}
