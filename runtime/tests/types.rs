use tvm_ffi_runtime::abi::*;
use tvm_ffi_runtime::capi::*;
use tvm_ffi_runtime::error::take_raised;
use tvm_ffi_runtime::{Function, ToAnyView};

use crate::support::*;

fn alloc(key: &str, depth: i32, slots: i32, overflow: bool, parent: i32) -> i32 {
    // SAFETY: the key is valid.
    unsafe { TVMFFITypeGetOrAllocIndex(&bytes(key), -1, depth, slots, i32::from(overflow), parent) }
}

fn info(index: i32) -> &'static TVMFFITypeInfo {
    // SAFETY: infos live forever.
    unsafe { TVMFFIGetTypeInfo(index).as_ref() }.unwrap()
}

#[test]
fn static_types_are_registered() {
    for &(index, key) in TypeIndex::STATIC_KEYS {
        if index == TypeIndex::ANY {
            continue;
        }
        let mut found = -9;
        // SAFETY: the key is valid and the output writable.
        assert_eq!(unsafe { TVMFFITypeKeyToIndex(&bytes(key), &mut found) }, 0);
        assert_eq!(found, index.0);
        // SAFETY: keys of types are never freed.
        assert_eq!(unsafe { info(found).type_key.as_slice() }, key.as_bytes());
        let depth = i32::from(index.is_object() && index != TypeIndex::OBJECT);
        assert_eq!(info(found).type_depth, depth);
    }
    let tensor = info(TypeIndex::TENSOR.0);
    // SAFETY: a type of depth one has one ancestor.
    let got = unsafe { (**tensor.type_ancestors).type_index };
    assert_eq!(got, TypeIndex::OBJECT.0);
    for unknown in [-1, 40, i32::MAX] {
        // C++ code dereferences the result without a check for NULL.
        let info = info(unknown);
        assert_eq!((info.type_index, info.type_depth, info.num_fields, info.num_methods), (-1, 0, 0, 0));
        // SAFETY: the key is never freed.
        assert_eq!(unsafe { info.type_key.as_slice() }, b"unknown type");
    }
}

#[test]
fn dynamic_types_use_their_parents_slots() {
    let root = TypeIndex::OBJECT.0;
    let parent = alloc("test.Parent", 1, 2, true, root);
    assert!(parent >= TypeIndex::DYN_OBJECT_BEGIN.0);
    assert_eq!(alloc("test.Parent", 1, 2, true, root), parent);
    let first = alloc("test.First", 2, 0, false, parent);
    let second = alloc("test.Second", 2, 0, false, parent);
    assert_eq!((first, second), (parent + 1, parent + 2));
    let third = alloc("test.Third", 2, 0, false, parent);
    assert!(third > second);
    let ancestors = info(third).type_ancestors;
    // SAFETY: a type of depth two has two ancestors.
    unsafe {
        assert_eq!((**ancestors).type_index, root);
        assert_eq!((**ancestors.add(1)).type_index, parent);
    }
    let code = alloc("test.Fourth", 3, 0, true, third);
    assert!(raised(code).message().contains("no more child types"));
}

#[test]
fn queries_and_errors() {
    assert_eq!(alloc("test.Unknown", 0, 0, false, -2), -2);
    assert_eq!(alloc("ffi.Tensor", 0, 0, false, -2), TypeIndex::TENSOR.0);
    for code in [
        alloc("test.NoParent", 1, 0, false, 9999),
        alloc("test.Root", 0, 0, false, -1),
        alloc("test.Depth", 5, 0, false, TypeIndex::OBJECT.0),
        alloc("test.Slots", 1, -1, false, TypeIndex::OBJECT.0),
        alloc("test.ManySlots", 1, i32::MAX, false, TypeIndex::OBJECT.0),
    ] {
        assert_eq!(code, -1);
    }
    assert!(take_raised().is_some());
    // SAFETY: the key is valid.
    let taken = unsafe {
        let parent = TypeIndex::OBJECT.0;
        TVMFFITypeGetOrAllocIndex(&bytes("test.Taken"), TypeIndex::STR.0, 1, 0, 0, parent)
    };
    assert!(raised(taken).message().contains("is taken"));
}

#[test]
fn reflection_is_stored() {
    let index = alloc("test.Reflected", 1, 0, false, TypeIndex::OBJECT.0);
    let function = Function::from_packed(|_| Ok(().into()));
    let arg = function.to_arg();
    let field = |name| field_with_default(name, 5.to_arg().as_view().as_raw(), TypeIndex::INT);
    let method = TVMFFIMethodInfo {
        name: bytes("m"),
        doc: bytes("doc"),
        metadata: TVMFFIByteArray::EMPTY,
        flags: 0,
        method: arg.as_view().as_raw(),
    };
    let metadata = TVMFFITypeMetadata {
        doc: bytes("a type"),
        creator: None,
        total_size: 32,
        structural_eq_hash_kind: kTVMFFISEqHashKindTreeNode,
    };
    // SAFETY: everything passed is filled, and everything read was registered.
    unsafe {
        assert_eq!(TVMFFITypeRegisterField(index, &field("x")), 0);
        assert_eq!(TVMFFITypeRegisterField(index, &field("y")), 0);
        raised(TVMFFITypeRegisterField(index, &field("x")));
        assert_eq!(TVMFFITypeRegisterMethod(index, &method), 0);
        assert_eq!(TVMFFITypeRegisterMetadata(index, &metadata), 0);
        raised(TVMFFITypeRegisterMetadata(index, &metadata));
        raised(TVMFFITypeRegisterMethod(9999, &method));
        let info = info(index);
        assert_eq!((info.num_fields, info.num_methods), (2, 1));
        assert_eq!((*info.fields.add(1)).name.as_slice(), b"y");
        assert_eq!((*info.fields).default_value_or_factory.bits(), 5);
        assert_eq!((*info.methods).doc.as_slice(), b"doc");
        assert_eq!((*info.metadata).total_size, 32);
    }
}

#[test]
fn attributes_are_columns() {
    let first = alloc("test.AttrA", 1, 0, false, TypeIndex::OBJECT.0);
    let second = alloc("test.AttrB", 1, 0, false, TypeIndex::OBJECT.0);
    let name = bytes("test.attr");
    let five = 5.to_arg().as_view().as_raw();
    // SAFETY: all arguments are valid; columns live forever.
    unsafe {
        assert!(TVMFFIGetTypeAttrColumn(&name).is_null());
        assert_eq!(TVMFFITypeRegisterAttr(TypeIndex::NONE.0, &name, &five), 0);
        let column = TVMFFIGetTypeAttrColumn(&name);
        assert_eq!((*column).size, 0);
        assert_eq!(TVMFFITypeRegisterAttr(first, &name, &five), 0);
        raised(TVMFFITypeRegisterAttr(first, &name, &five));
        assert_eq!(TVMFFITypeRegisterAttr(second, &name, &five), 0);
        assert_eq!(TVMFFIGetTypeAttrColumn(&name), column);
        assert!((*column).size > second);
        assert_eq!((*(*column).data.add(first as usize)).bits(), 5);
        raised(TVMFFITypeRegisterAttr(9999, &name, &five));
    }
}
