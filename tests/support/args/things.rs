//! Object types that are registered only by the tests.

use std::ffi::{c_int, c_void};
use std::sync::LazyLock;
use std::sync::atomic::AtomicU64;

use tvm_ffi_codegen::runtime::abi::{TVMFFIObject, TypeIndex, kTVMFFIObjectDeleterFlagBitMaskWeak};
use tvm_ffi_codegen::runtime::unstable::type_table::{TypeRequest, get_or_alloc_index};
use tvm_ffi_codegen::runtime::{Any, ObjectRef};

use crate::support::value::Thing;

fn register(thing: Thing, parent: i32, depth: i32) -> i32 {
    let request = TypeRequest {
        key: thing.key().as_bytes(),
        static_index: -1,
        depth,
        num_child_slots: 0,
        child_slots_can_overflow: true,
        parent,
    };
    get_or_alloc_index(request).unwrap()
}

/// The type index, which stays the same until the process ends.
pub fn type_index(thing: Thing) -> TypeIndex {
    static BASE: LazyLock<i32> = LazyLock::new(|| register(Thing::Base, TypeIndex::OBJECT.0, 1));
    static SUB: LazyLock<i32> = LazyLock::new(|| register(Thing::Sub, *BASE, 2));
    TypeIndex(match thing {
        Thing::Base => *BASE,
        Thing::Sub => *SUB,
    })
}

/// Registers both types, so the result of a lookup doesn't depend on earlier lookups.
pub fn register_types() {
    type_index(Thing::Sub);
}

/// A new object.
pub fn new_object(thing: Thing) -> Any {
    let header = TVMFFIObject {
        combined_ref_count: AtomicU64::new(1 | 1 << 32),
        type_index: type_index(thing).0,
        __padding: 0,
        deleter: Some(delete),
    };
    // SAFETY: the one reference moves into the result.
    Any::from(unsafe { ObjectRef::from_raw(Box::into_raw(Box::new(header))) })
}

unsafe extern "C" fn delete(object: *mut c_void, flags: c_int) {
    if flags & kTVMFFIObjectDeleterFlagBitMaskWeak != 0 {
        // SAFETY: the object came from a box, and has no references left.
        drop(unsafe { Box::from_raw(object.cast::<TVMFFIObject>()) });
    }
}
