//! Structural equality, hashes and keys, graphs as JSON, and access paths. `tests/hosts/on_both/structures.py` compares
//! them with upstream's on generated values; these tests have what upstream can't stand or Python can't make.

use std::sync::{Arc, Mutex};

use tvm_ffi_runtime::abi::*;
use tvm_ffi_runtime::capi::*;
use tvm_ffi_runtime::registry::{get_global, get_global_unchecked};
use tvm_ffi_runtime::unstable::type_table::{TypeRequest, get_or_alloc_index};
use tvm_ffi_runtime::{Any, Array, Dict, Error, Function, List, Map, ObjectRef, Result, Tensor, ToAnyView};

use crate::support::{DEEP, bytes, on_a_small_stack};

fn call<A: tvm_ffi_runtime::CallArgs>(name: &str, args: A) -> Result<Any> {
    get_global(name).unwrap().call(args)
}

fn equal(one: &Any, other: &Any) -> Result<bool> {
    call("ffi.StructuralEqual", (one, other, false, false))?.cast()
}

fn hash(value: &Any) -> Result<i64> {
    call("ffi.StructuralHash", (value, false, false))?.cast()
}

fn mismatch(one: &Any, other: &Any) -> String {
    let paths = call("ffi.GetFirstStructuralMismatch", (one, other, false, false)).unwrap();
    call("ffi.ReprPrint", (&paths,)).unwrap().as_str().unwrap().to_owned()
}

fn to_json(value: &Any) -> Result<Any> {
    call("ffi.ToJSONGraphString", (value, ()))
}

fn from_json(text: &str) -> Result<Any> {
    call("ffi.FromJSONGraphString", (text,))
}

fn message(error: Error) -> String {
    error.to_string()
}

/// Lists in lists, to a depth.
fn nested(depth: usize, innermost: Any) -> Any {
    (0..depth).fold(innermost, |inside, _| List::from(vec![inside]).into())
}

/// Access steps in the keys of access steps, to a depth: objects with fields.
fn nested_objects(depth: usize) -> Any {
    (0..depth).fold(Any::from(7), |inside, _| {
        call("ffi.MakeObjectFromPackedArgs", ("ffi.reflection.AccessStep", "kind", 1, "key", &inside)).unwrap()
    })
}

#[test]
fn deep_values_cause_no_recursion() {
    on_a_small_stack(|| {
        for (one, same, other) in [
            (nested(DEEP, 1.into()), nested(DEEP, 1.into()), nested(DEEP, 2.into())),
            (nested_objects(DEEP), nested_objects(DEEP), nested_objects(DEEP - 1)),
        ] {
            assert!(equal(&one, &same).unwrap());
            assert!(!equal(&one, &other).unwrap());
            assert_eq!(hash(&one).unwrap(), hash(&same).unwrap());
            assert_ne!(hash(&one).unwrap(), hash(&other).unwrap());
            let paths = call("ffi.GetFirstStructuralMismatch", (&one, &other, false, false)).unwrap();
            assert_eq!(paths.cast::<Array>().unwrap().len(), 2);
        }
        for value in [nested(DEEP, 1.into()), nested_objects(DEEP)] {
            let text = to_json(&value).unwrap();
            let read = from_json(text.as_str().unwrap()).unwrap();
            assert_eq!(to_json(&read).unwrap().as_str(), text.as_str());
        }
    });
}

#[test]
fn values_that_contain_themselves_are_errors() {
    let list = List::new();
    list.push(Array::from(vec![list.clone().into()]));
    let dict = Dict::new();
    dict.insert("a", List::from(vec![dict.clone().into()])).unwrap();
    let object = call("ffi.MakeObjectFromPackedArgs", ("ffi.VisitInterrupt",)).unwrap();
    for (value, kind) in [(Any::from(list.clone()), "a List"), (dict.clone().into(), "a Dict")] {
        let error = message(to_json(&value).unwrap_err());
        assert_eq!(error, format!("ValueError: Cycle detected during serialization: {kind} contains itself"));
    }
    // The other walks go on until they are too deep.
    #[cfg(not(miri))]
    {
        let other = List::new();
        other.push(Array::from(vec![other.clone().into()]));
        let too_deep = "maximum stack depth (1048576) exceeded";
        let (one, other): (Any, Any) = (list.clone().into(), other.clone().into());
        assert_eq!(message(equal(&one, &other).unwrap_err()), format!("ValueError: StructuralEqual: {too_deep}"));
        assert_eq!(message(hash(&one).unwrap_err()), format!("ValueError: StructuralHash: {too_deep}"));
        other.cast::<List>().unwrap().clear();
    }
    list.clear();
    dict.clear();
    drop(object);
    let error =
        from_json(r#"{"root_index":0,"nodes":[{"type":"ffi.Array","data":[1]},{"type":"ffi.List","data":[0]}]}"#);
    let error = message(error.unwrap_err());
    assert_eq!(error, "ValueError: Invalid JSON Object Graph: node 0 contains itself");
}

#[test]
fn shared_values_stay_shared() {
    let shared: Any = List::from(vec![1.into()]).into();
    let graph: Any = Array::from(vec![shared.clone(), shared.clone(), List::from(vec![1.into()]).into()]).into();
    let text = to_json(&graph).unwrap();
    assert_eq!(
        text.as_str().unwrap(),
        concat!(
            r#"{"root_index":3,"nodes":[{"type":"int","data":1},{"type":"ffi.List","data":[0]},"#,
            r#"{"type":"ffi.List","data":[0]},{"type":"ffi.Array","data":[1,1,2]}]}"#
        )
    );
    let read: Array = from_json(text.as_str().unwrap()).unwrap().cast().unwrap();
    let lists: Vec<ObjectRef> = read.as_slice().iter().map(|list| list.cast().unwrap()).collect();
    assert!(lists[0].ptr_eq(&lists[1]) && !lists[0].ptr_eq(&lists[2]));
}

#[test]
fn maps_differ_by_keys_and_values() {
    let map = |entries: &[(&str, i64)]| Any::from(entries.iter().copied().collect::<Map>());
    let (one, other) = (map(&[("a", 1), ("b", 2)]), map(&[("b", 2), ("a", 1)]));
    assert!(equal(&one, &other).unwrap());
    assert_eq!(hash(&one).unwrap(), hash(&other).unwrap());
    assert_eq!(mismatch(&one, &other), "None");
    assert_eq!(mismatch(&one, &map(&[("a", 1), ("b", 3)])), r#"(<root>["b"], <root>["b"])"#);
    assert_eq!(mismatch(&one, &map(&[("a", 1)])), r#"(<root>["b"], <root>[<missing:"b">])"#);
    assert_eq!(mismatch(&map(&[("a", 1)]), &one), r#"(<root>[<missing:"b">], <root>["b"])"#);
    let lists = |values: &[i64]| Any::from(values.iter().copied().collect::<List>());
    assert_eq!(mismatch(&lists(&[1, 2]), &lists(&[1])), "(<root>[1], <root>[<missing:1>])");
}

/// A type of objects without fields, whose function for structural equality is `hook`.
fn hooked(key: &'static str, attribute: &'static str, hook: Function) -> Any {
    let request = TypeRequest {
        key: key.as_bytes(),
        static_index: -1,
        depth: 1,
        num_child_slots: 0,
        child_slots_can_overflow: false,
        parent: 64,
    };
    let index = get_or_alloc_index(request).unwrap();
    let metadata = TVMFFITypeMetadata {
        doc: TVMFFIByteArray::EMPTY,
        creator: None,
        total_size: 24,
        structural_eq_hash_kind: kTVMFFISEqHashKindTreeNode,
    };
    let value = hook.to_arg().as_view().as_raw();
    // SAFETY: all arguments are valid for the calls.
    unsafe {
        assert_eq!(TVMFFITypeRegisterMetadata(index, &metadata), 0);
        assert_eq!(TVMFFITypeRegisterAttr(index, &bytes(attribute), &value), 0);
    }
    // SAFETY: the type has no fields, and its objects have the size of a header.
    let register = unsafe { get_global_unchecked("ffi._PyClassRegisterTypeAttrColumns") }.unwrap();
    register.call((index, 24)).unwrap();
    call("ffi.MakeObjectFromPackedArgs", (key,)).unwrap()
}

#[test]
fn functions_that_hooks_keep_give_errors_at_worst() {
    let kept: Arc<Mutex<Option<Function>>> = Arc::default();
    let keep = Arc::clone(&kept);
    let hook = Function::from_packed(move |args| {
        let inner: Function = args[2].cast()?;
        // A number that is no kind of region.
        assert!(inner.call((1, 1, 9, "field")).unwrap_err().message().contains("no such kind of definition region: 9"));
        assert!(inner.call((1, 1, 0, "field"))?.cast::<bool>()?);
        *keep.lock().unwrap() = Some(inner);
        Ok(true.into())
    });
    let one = hooked("structures.Kept", "__s_equal__", hook);
    let other = call("ffi.MakeObjectFromPackedArgs", ("structures.Kept",)).unwrap();
    assert!(equal(&one, &other).unwrap());
    // The walk is over, and the function compares by itself.
    let inner = kept.lock().unwrap().take().unwrap();
    assert!(!inner.call((1, 2, 0, "field")).unwrap().cast::<bool>().unwrap());
}

#[test]
fn errors_of_hooks_pass_through() {
    let failing = Function::from_packed(|_| Err(Error::new("KeyError", "from the hook")));
    let one = hooked("structures.Failing", "__s_hash__", failing);
    assert_eq!(message(hash(&Array::from(vec![one]).into()).unwrap_err()), "KeyError: from the hook");
    let wrong = Function::from_packed(|_| Ok("no number".into()));
    let one = hooked("structures.Wrong", "__s_hash__", wrong);
    assert!(hash(&one).unwrap_err().message().contains("expected int"));
}

#[test]
fn elements_of_tensors_count_unless_they_are_skipped() {
    let tensor = |elements: &[f32]| Any::from(Tensor::from_slice(elements, &[2, 2]).unwrap());
    let (one, same, other) =
        (tensor(&[1.0, 2.0, 3.0, 4.0]), tensor(&[1.0, 2.0, 3.0, 4.0]), tensor(&[1.0, 2.0, 3.0, 5.0]));
    assert!(equal(&one, &same).unwrap() && !equal(&one, &other).unwrap());
    assert_eq!(hash(&one).unwrap(), hash(&same).unwrap());
    assert_ne!(hash(&one).unwrap(), hash(&other).unwrap());
    assert!(call("ffi.StructuralEqual", (&one, &other, false, true)).unwrap().cast::<bool>().unwrap());
    // Two rows of one tensor differ by their offsets alone.
    let (extents, strides, source): (_, _, Tensor) = ([1, 2], [2, 1], one.cast().unwrap());
    let row = |byte_offset| {
        let (shape, strides) = (extents.as_ptr().cast_mut(), strides.as_ptr().cast_mut());
        let row = DLTensor { byte_offset, shape, strides, ..*source.as_dl_tensor() };
        // SAFETY: the row is inside the source's memory.
        Any::from(unsafe { Tensor::create_unsafe_view(&source, &row) }.unwrap())
    };
    assert!(!equal(&row(0), &row(8)).unwrap());
    assert_ne!(hash(&row(0)).unwrap(), hash(&row(8)).unwrap());
}

#[test]
fn keys_are_found_in_maps_by_structure() {
    let key = |text: &str| call("ffi.StructuralKey", (&Any::from(Array::from(vec![text.into()])),)).unwrap();
    let map = Map::try_from_entries([(key("a"), 1), (key("b"), 2), (key("a"), 3)]).unwrap();
    assert_eq!(map.len(), 2);
    assert_eq!(map.get(&key("a")).unwrap().unwrap().cast::<i64>().unwrap(), 3);
    assert!(map.get(&key("c")).unwrap().is_none());
    let error = call("ffi.StructuralKeyEqual", (&key("a"), 1)).unwrap_err();
    assert_eq!(message(error), "InternalError: Check not null: rhs_obj ");
    // Keys that another language makes are empty until their fields are set.
    let empty = call("ffi.MakeObjectFromPackedArgs", ("ffi.StructuralKey", "key", (), "hash_i64", 0));
    let _ = empty.map(|empty| call("ffi.StructuralKeyEqual", (&empty, &key("a"))).unwrap());
}

#[test]
fn paths_of_other_objects_are_refused() {
    let step = call("ffi.MakeObjectFromPackedArgs", ("ffi.reflection.AccessStep", "kind", 9, "key", 1)).unwrap();
    let error = call("ffi.ReprPrint", (&step,)).unwrap_err();
    assert!(error.message().contains("no such kind of step: 9"), "{error}");
}
