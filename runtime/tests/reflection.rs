//! Operations on any object by its type: string forms, copies, comparison, hashes, JSON, creation. Also the types that
//! exist from the start.

use std::ffi::c_void;

use tvm_ffi_runtime::abi::*;
use tvm_ffi_runtime::capi::*;
use tvm_ffi_runtime::registry::{get_global, get_global_unchecked, list_global_names};
use tvm_ffi_runtime::unstable::type_table::{TypeRequest, get_or_alloc_index, key_to_index, type_info};
use tvm_ffi_runtime::{
    Any, AnyView, Array, Dict, Error, Function, List, Map, Obj, Object, ObjectRef, Result, Shape, Str,
};

use crate::hostile;
use crate::support::{DEEP, bytes, on_a_small_stack, own, raised, rounds};

fn call<A: tvm_ffi_runtime::CallArgs>(name: &str, args: A) -> Result<Any> {
    get_global(name).unwrap().call(args)
}

fn text(value: &Any) -> String {
    call("ffi.ReprPrint", (value,)).unwrap().as_str().unwrap().to_owned()
}

fn message(outcome: Result<Any>) -> String {
    outcome.unwrap_err().to_string()
}

/// A list nested to this depth.
fn nested(depth: usize) -> Any {
    (0..depth).fold(Any::from(<List>::default()), |inside, _| List::from(vec![inside]).into())
}

#[test]
#[cfg_attr(miri, ignore = "a hundred functions take long, and no unsafe code")]
fn every_function_of_fixed_arguments_has_a_signature() {
    const ANY_NUMBER: [&str; 7] =
        ["ffi.Array", "ffi.List", "ffi.Map", "ffi.Dict", "ffi.Shape", "ffi.SystemLib", "ffi.MakeObjectFromPackedArgs"];
    // Other tests register loaders of formats and kinds.
    let is_loader = |name: &str| name.starts_with("ffi.Module.load_from_") && !name.ends_with(".so");
    let is_built_in = |name: &String| name.starts_with("ffi.") && !is_loader(name);
    let names: Vec<String> = list_global_names().into_iter().filter(is_built_in).collect();
    assert!(names.len() > 60);
    // Other tests register kinds of modules.
    let is_fixed = |name: &&String| !ANY_NUMBER.contains(&name.as_str()) && !name.starts_with("ffi.Module.load_from_");
    for name in names.iter().filter(is_fixed) {
        // SAFETY: a wrong number of arguments is refused before they are used.
        let function = unsafe { get_global_unchecked(name) }.unwrap();
        let message = message(function.call_packed(&[AnyView::none(); 20]));
        assert!(
            message.starts_with(&format!("TypeError: Mismatched number of arguments when calling: `{name}(")),
            "{message}"
        );
        assert!(!message.contains("() -> Any`"), "{name} is not in the table");
        let metadata = call("ffi.GetGlobalFuncMetadata", (name.as_str(),)).unwrap();
        assert!(metadata.as_str().unwrap().contains("named_args"));
    }
    let error = message(call("ffi.ArrayGetItem", (<Array>::default(), "one")));
    assert_eq!(
        error,
        "TypeError: Mismatched type on argument #1 when calling: `ffi.ArrayGetItem(0: ffi.Array, 1: int) -> Any`. \
         Expected `int` but got `ffi.SmallStr`"
    );
}

#[test]
fn texts_are_as_upstreams() {
    let values: Array = [
        Any::none(),
        true.into(),
        1.5.into(),
        "é\n".into(),
        Any::from(Shape::new(&[1, 2])),
        DLDevice::cuda(3).into(),
        Array::from(vec![1.into()]).into(),
        [(Any::from("key"), Any::from(2))].into_iter().map(|(_, value)| ("key", value)).collect::<Map>().into(),
    ]
    .into_iter()
    .collect();
    assert_eq!(text(&values.into()), r#"(None, True, 1.5, "\u00e9\n", Shape(1, 2), cuda:3, (1,), {"key": 2})"#);
    let list = <List>::default();
    list.push(Any::from(list.clone()));
    assert_eq!(text(&list.clone().into()), "[...]");
    list.clear();
    assert_eq!(text(&call("ffi.GetKwargsObject", ()).unwrap()), "<KWARGS>");
    assert_eq!(text(&call("ffi.GetInvalidObject", ()).unwrap()), "<MISSING>");
}

#[test]
fn depth_takes_no_stack() {
    on_a_small_stack(|| {
        let deep = nested(DEEP);
        assert!(text(&nested(rounds(2_000))).starts_with("[[["));
        let copy = call("ffi.DeepCopy", (&deep,)).unwrap();
        assert!(call("ffi.RecursiveEq", (&deep, &copy)).unwrap().cast::<bool>().unwrap());
        let hash = |value: &Any| call("ffi.RecursiveHash", (value,)).unwrap().cast::<i64>().unwrap();
        assert_eq!(hash(&deep), hash(&copy));
        let written = call("ffi.json.Stringify", (&deep, ())).unwrap();
        let parsed = call("ffi.json.Parse", (&written,)).unwrap();
        let rewritten = call("ffi.json.Stringify", (&parsed, ())).unwrap();
        assert_eq!(rewritten.as_str(), written.as_str());
    });
}

#[test]
fn copies_keep_cycles_and_what_is_shared() {
    let (list, shared) = (<List>::default(), Any::from(List::from(vec![1.into()])));
    // An array with a list that contains the array: the array's copy exists only after the list's.
    let array = Array::from(vec![Any::from(list.clone()), shared.clone(), shared.clone()]);
    list.push(Any::from(array.clone()));
    let copy: Array = call("ffi.DeepCopy", (&array,)).unwrap().cast().unwrap();
    let inner: List = copy[0].cast().unwrap();
    let object = |value: &Any| value.cast::<ObjectRef>().unwrap();
    assert!(object(&inner.get(0).unwrap()).ptr_eq(&object(&copy.clone().into())));
    assert!(object(&copy[1]).ptr_eq(&object(&copy[2])) && !object(&copy[1]).ptr_eq(&object(&shared)));
    let dict: Dict = [("self", Any::none())].into_iter().collect();
    dict.insert("self", dict.clone()).unwrap();
    let copy: Dict = call("ffi.DeepCopy", (&dict,)).unwrap().cast().unwrap();
    assert!(object(&copy.get("self").unwrap().unwrap()).ptr_eq(&object(&copy.clone().into())));
    // Cycles are never freed automatically.
    [dict, copy].iter().for_each(<Dict>::clear);
    [list, inner].iter().for_each(<List>::clear);
    let function = Function::from_packed(|_| Ok(Any::none()));
    assert!(message(call("ffi.DeepCopy", (function,))).contains("not copy-constructible"));
}

#[test]
fn orders_and_their_limits() {
    let holds =
        |name: &str, one: Any, other: Any| call(name, (&one, &other)).map(|value| value.cast::<bool>().unwrap());
    assert!(
        holds(
            "ffi.RecursiveLt",
            Array::from(vec![1.into(), 2.into()]).into(),
            Array::from(vec![1.into(), 3.into()]).into()
        )
        .unwrap()
    );
    assert!(holds("ffi.RecursiveLt", <Array>::default().into(), Array::from(vec![1.into()]).into()).unwrap());
    assert!(holds("ffi.RecursiveGe", "b".into(), "a longer string".into()).unwrap());
    assert!(!holds("ffi.RecursiveEq", 1.into(), 1.0.into()).unwrap());
    assert!(holds("ffi.RecursiveEq", f64::NAN.into(), f64::NAN.into()).unwrap());
    let error = holds("ffi.RecursiveLe", f64::NAN.into(), 1.0.into()).unwrap_err();
    assert_eq!(error.to_string(), "TypeError: Cannot order NaN values");
    let map = |value: i64| Any::from([("key", value)].into_iter().collect::<Map>());
    assert!(holds("ffi.RecursiveEq", map(1), map(1)).unwrap());
    let error = holds("ffi.RecursiveLt", map(1), map(2)).unwrap_err();
    assert_eq!(error.to_string(), "TypeError: Cannot order Map/Dict values");
}

#[test]
fn json_is_read_and_written_as_upstream_does() {
    let parsed = call("ffi.json.Parse", ("{\"a\": [1, 2.0, -Infinity, null], \"é\": {}}",)).unwrap();
    let written = call("ffi.json.Stringify", (&parsed, ())).unwrap();
    assert_eq!(written.as_str(), Some("{\"a\":[1,2.0,-Infinity,null],\"é\":{}}"));
    let indented = call("ffi.json.Stringify", (&parsed, 2)).unwrap();
    assert_eq!(
        indented.as_str(),
        Some("{\n  \"a\": [\n    1,\n    2.0,\n    -Infinity,\n    null\n  ],\n  \"é\": {\n  }\n}")
    );
    let error = message(call("ffi.json.Parse", ("[1,\n 2,,]",)));
    assert_eq!(error, "ValueError: Expecting value: line 2 column 4 (char 7)");
    let list = <List>::default();
    list.push(Any::from(list.clone()));
    let error = message(call("ffi.json.Stringify", (&list, ())));
    assert_eq!(error, "ValueError: Cycle detected: List contains itself");
    list.clear();
}

#[test]
fn numbers_of_json_are_read_as_they_were_written() {
    let read = |text: &str| call("ffi.json.Parse", (text,));
    let text_of = |value: Any| call("ffi.json.Stringify", (value, ())).unwrap().as_str().unwrap().to_owned();
    assert_eq!(text_of(read("-888888888e8").unwrap()), "-88888888800000000.0");
    assert_eq!(text_of(read("1e16").unwrap()), "10000000000000000.0");
    let mut bits = 0x2545_f491_4f6c_dd1d_u64;
    for round in 0..rounds(10_000) {
        bits ^= bits << 13;
        bits ^= bits >> 7;
        bits ^= bits << 17;
        // Any bits; whole numbers of every size, which could be written as integers; subnormal numbers; few digits.
        let value = match round % 4 {
            0 => f64::from_bits(bits),
            1 => (bits >> (bits % 64)) as f64,
            2 => f64::from_bits(bits >> 12),
            _ => (bits % 1_000_000) as f64 / 1000.0,
        };
        let text = text_of(value.into());
        let again = read(&text).unwrap();
        assert_eq!(again.type_index(), TypeIndex::FLOAT, "{text}");
        let again: f64 = again.cast().unwrap();
        assert!(again.to_bits() == value.to_bits() || value.is_nan() && again.is_nan(), "{value:?} as {text}");
        let whole = bits.cast_signed() >> (bits % 64);
        assert_eq!(text_of(whole.into()), whole.to_string());
        let again = read(&whole.to_string()).unwrap();
        assert_eq!((again.type_index(), again.cast::<i64>().unwrap()), (TypeIndex::INT, whole));
    }
    // As upstream, a number that overflows to infinity or underflows to zero is an error.
    for text in ["1e309", "-1e309", "1e-400", "1e", "-", "1-2", "e5", "0x10", "1_0"] {
        assert!(read(text).is_err(), "{text}");
    }
}

#[test]
fn columns_of_built_in_attributes_are_there_from_the_start() {
    for name in ["__any_hash__", "__any_equal__", "__ffi_enum__", "__ffi_repr__", "__s_visit__", "__ffi_type_final__"] {
        // SAFETY: the name is valid.
        assert!(!unsafe { TVMFFIGetTypeAttrColumn(&bytes(name)) }.is_null(), "{name}");
    }
    let keys: Array = call("ffi.GetRegisteredTypeKeys", ()).unwrap().cast().unwrap();
    let place = |key: &str| keys.iter().position(|known| known.as_str() == Some(key)).unwrap();
    assert!(place("ffi.Object") < place("ffi.Array") && place("ffi.Dict") < place("ffi.Enum"));
    let made = call("ffi.MakeObjectFromPackedArgs", ("ffi.VisitInterrupt", "value", nested(1))).unwrap();
    assert_eq!(text(&made), "ffi.VisitInterrupt(value=[[]])");
    let copy = call("ffi.DeepCopy", (&made,)).unwrap();
    assert!(call("ffi.RecursiveEq", (&made, &copy)).unwrap().cast::<bool>().unwrap());
    let error = message(call("ffi.MakeObjectFromPackedArgs", ("ffi.VisitInterrupt", "other", 1)));
    assert_eq!(error, "TypeError: Type `ffi.VisitInterrupt` does not have field `other`");
    assert_eq!(text(&call("ffi.VisitInterrupt", ("stop",)).unwrap()), r#"ffi.VisitInterrupt(value="stop")"#);
}

#[test]
fn functions_that_trust_numbers_are_not_for_safe_code() {
    for name in ["ffi.MakeFieldSetter", "ffi._PyClassRegisterTypeAttrColumns"] {
        let error = message(call(name, (1, 8, 8)));
        assert!(error.contains("only unsafe code can answer"), "{error}");
    }
    // Only unsafe code can pass pointers.
    assert!(message(call("ffi.FunctionFromExternC", ((), (), ()))).contains("the callable is NULL"));
    assert!(message(call("ffi.FunctionFromExternC", (8, 8, 8))).contains("Expected `void*` but got `int`"));
}

/// A conversion that keeps any value unchanged.
unsafe extern "C" fn keep(_converter: *mut c_void, value: *const TVMFFIAny, result: *mut TVMFFIAny) -> i32 {
    // SAFETY: the setter passes a valid value and a place for an owned one.
    unsafe { TVMFFIAnyViewToOwnedAny(value, result) }
}

/// Adds a field to a type, as Python does for a class of its own.
fn add_field(index: i32, name: &str, kind: TypeIndex, size: i64, offset: i64, flags: i64) {
    let getter = call("ffi.MakeFieldGetter", (kind.0,)).unwrap().cast::<i64>().unwrap();
    // SAFETY: the conversion follows its convention.
    let setter = unsafe { get_global_unchecked("ffi.MakeFieldSetter") }.unwrap();
    let setter: Function =
        setter.call((kind.0, 0, (keep as *const c_void).expose_provenance() as i64)).unwrap().cast().unwrap();
    let info = TVMFFIFieldInfo {
        name: bytes(name),
        doc: TVMFFIByteArray::EMPTY,
        metadata: TVMFFIByteArray::EMPTY,
        flags: flags | kTVMFFIFieldFlagBitSetterIsFunctionObj,
        size,
        alignment: 8,
        offset,
        // SAFETY: the function returns the address of a getter.
        getter: unsafe {
            std::mem::transmute::<*const c_void, Option<TVMFFIFieldGetter>>(std::ptr::with_exposed_provenance(
                getter as usize,
            ))
        },
        setter: setter.as_raw_handle(),
        default_value_or_factory: TVMFFIAny::none(),
        field_static_type_index: kind.0,
    };
    // SAFETY: the info is filled.
    assert_eq!(unsafe { TVMFFITypeRegisterField(index, &info) }, 0);
}

/// The index of a new type that derives from `ffi.Object`.
fn object_type(key: &str) -> Result<i32> {
    child_type(key, TypeIndex::OBJECT.0)
}

/// The index of a new type that derives from another one.
fn child_type(key: &str, parent: i32) -> Result<i32> {
    get_or_alloc_index(TypeRequest {
        key: key.as_bytes(),
        static_index: -1,
        depth: info(parent).type_depth + 1,
        num_child_slots: 0,
        child_slots_can_overflow: true,
        parent,
    })
}

fn info(index: i32) -> &'static TVMFFITypeInfo {
    // SAFETY: infos are never freed.
    unsafe { &*type_info(index).unwrap() }
}

/// A function that is an attribute of a type.
fn attribute(name: &str, index: i32) -> Function {
    // SAFETY: the column exists, and the type has the attribute.
    unsafe {
        let column = &*TVMFFIGetTypeAttrColumn(&bytes(name));
        AnyView::from_raw(*column.data.add(index as usize)).cast().unwrap()
    }
}

/// The fields of a type, those of its ancestors first.
fn fields(index: i32) -> Vec<&'static TVMFFIFieldInfo> {
    let own = |info: &'static TVMFFITypeInfo| {
        // SAFETY: infos and their fields are never freed.
        (0..info.num_fields as usize).map(move |i| unsafe { &*info.fields.add(i) })
    };
    // SAFETY: a type of depth n has n ancestors, which are never freed.
    let ancestors = (1..info(index).type_depth as usize).map(|i| unsafe { &**info(index).type_ancestors.add(i) });
    ancestors.chain([info(index)]).flat_map(own).collect()
}

/// Tests use one of so many values and types. Miri would take half an hour for all.
const SHARE: usize = if cfg!(miri) { 32 } else { 1 };

/// Reads a field of an object, then sets it to values of every kind, and reads it after each one.
fn use_field(object: &ObjectRef, field: &TVMFFIFieldInfo) {
    let address = object.as_ptr().wrapping_byte_offset(field.offset as isize).cast::<c_void>();
    let read = || {
        let mut value = TVMFFIAny::none();
        // SAFETY: the field is one of the object's type.
        assert_eq!(unsafe { field.getter.unwrap()(address, &raw mut value) }, 0);
        // SAFETY: a getter writes an owned value.
        unsafe { Any::from_raw(value) }
    };
    drop(read());
    // Each kind of field gets other values.
    let first = (field.field_static_type_index as usize).rem_euclid(SHARE);
    for value in hostile::values().into_iter().skip(first).step_by(SHARE) {
        let raw = *value.as_raw();
        // SAFETY: the field is one of the object's type. Its setter has this type if the flag isn't set.
        unsafe {
            if field.flags & kTVMFFIFieldFlagBitSetterIsFunctionObj != 0 {
                let setter = Function::try_from(ObjectRef::clone_from_raw(field.setter.cast()).unwrap()).unwrap();
                let _set = setter.call_packed(&[AnyView::from_opaque_ptr(address), value.as_view()]);
            } else {
                let setter = std::mem::transmute::<*mut c_void, TVMFFIFieldSetter>(field.setter);
                if setter(address, &raw const raw) != 0 {
                    drop(raised(-1));
                }
            }
        }
        drop(read());
    }
}

/// Uses every field of an object, and every operation on any object.
fn use_object(object: &ObjectRef) {
    let all = || {
        let _text = call("ffi.ReprPrint", (object,)).map(|text| assert!(text.as_str().is_some()));
        let _hash = call("ffi.RecursiveHash", (object,));
        let _equal = call("ffi.RecursiveEq", (object, object));
        drop(call("ffi.DeepCopy", (object,)));
    };
    all();
    for field in fields(object.type_index().0) {
        use_field(object, field);
    }
    all();
}

#[test]
fn fields_of_new_objects_are_values_for_every_type() -> Result<()> {
    let keys = call("ffi.GetRegisteredTypeKeys", ())?.cast::<Array>()?;
    let built_in = keys.iter().map(|key| key.cast::<String>().unwrap()).filter(|key| key.starts_with("ffi."));
    let mut with_fields = Vec::new();
    // SAFETY: the types are laid out here, with their fields inside.
    let register = unsafe { get_global_unchecked("ffi._PyClassRegisterTypeAttrColumns") }.unwrap();
    for key in built_in {
        let index = key_to_index(&key).unwrap();
        let fields = fields(index);
        // As safe code makes an object: without fields, then with each field alone, set to a value of each kind.
        drop(call("ffi.MakeObjectFromPackedArgs", (key.as_str(),)));
        for field in &fields {
            // SAFETY: names of fields are never freed.
            let name = std::str::from_utf8(unsafe { field.name.as_slice() }).unwrap();
            for value in hostile::values().into_iter().step_by(SHARE) {
                if let Ok(made) = call("ffi.MakeObjectFromPackedArgs", (key.as_str(), name, value)) {
                    drop(text(&made));
                }
            }
        }
        // As the type's own creator makes it.
        // SAFETY: metadata is never freed.
        if let Some(creator) = unsafe { info(index).metadata.as_ref() }.and_then(|metadata| metadata.creator) {
            let mut handle = std::ptr::null_mut();
            // SAFETY: a creator takes a place for an object.
            assert_eq!(unsafe { creator(&raw mut handle) }, 0, "{key}");
            let object: ObjectRef = own(handle);
            if !fields.is_empty() {
                with_fields.push(key.clone());
                use_object(&object);
            }
        }
        // As Python makes objects of a class that extends the type with a field.
        if index < TypeIndex::DYN_OBJECT_BEGIN.0 {
            continue;
        }
        let Ok(child) = child_type(&format!("reflection.Child.{key}"), index) else { continue };
        let end = fields.iter().map(|field| (field.offset + field.size + 7) & !7).max().unwrap_or(24);
        add_field(child, "own", TypeIndex::ANY, 16, end, 0);
        if key == "ffi.StructuralVisitor" || key == "ffi.StructuralMutator" {
            // Their objects have a table of functions, which isn't a field.
            assert_eq!(register.call((child, end + 16)).unwrap_err().kind(), "ValueError");
            continue;
        }
        register.call((child, end + 16))?;
        use_object(&attribute("__ffi_new__", child).call(())?.cast()?);
    }
    for key in ["ffi.Enum", "ffi.IntEnum", "ffi.StrEnum", "ffi.EnumState", "ffi.VisitInterrupt"] {
        assert!(with_fields.iter().any(|with_fields| with_fields == key), "{key}: {with_fields:?}");
    }
    Ok(())
}

#[test]
fn fields_of_new_objects_are_values_for_every_declared_type() -> Result<()> {
    // SAFETY: no other code lays out objects of these types.
    let register = unsafe { get_global_unchecked("ffi._PyClassRegisterTypeAttrColumns") }.unwrap();
    let kinds = (-1..=TypeIndex::DYN_OBJECT_BEGIN.0).map(TypeIndex);
    let mut types = 0;
    for kind in kinds.filter(|kind| call("ffi.MakeFieldGetter", (kind.0,)).is_ok()).step_by(SHARE) {
        // A type for each field: using an object takes time in proportion to the square of its fields.
        let index = object_type(&format!("reflection.Kind{}", kind.0))?;
        let size = if matches!(kind, TypeIndex::ANY | TypeIndex::NONE) { 16 } else { 8 };
        add_field(index, "field", kind, size, 24, 0);
        register.call((index, 24 + size))?;
        use_object(&attribute("__ffi_new__", index).call(())?.cast()?);
        types += 1;
    }
    assert!(types > 70 / SHARE);
    Ok(())
}

#[test]
fn types_of_rust_are_not_laid_out_by_others() -> Result<()> {
    /// Has a value that is not all bits zero.
    #[derive(Object)]
    #[object(key = "reflection.Rust")]
    struct Rust {
        name: String,
    }
    let rust = Obj::new(Rust { name: "a text".to_owned() })?;
    assert_eq!(rust.name, "a text");
    let index = rust.as_object().type_index().0;
    let child = child_type("reflection.ChildOfRust", index)?;
    // SAFETY: no other code lays out objects of this type.
    let register = unsafe { get_global_unchecked("ffi._PyClassRegisterTypeAttrColumns") }.unwrap();
    for index in [child, index] {
        let error = register.call((index, 64)).unwrap_err();
        assert_eq!(error.kind(), "ValueError");
        assert!(error.message().ends_with("Rust code lays out objects of `reflection.Rust`"), "{error}");
    }
    Ok(())
}

#[test]
fn objects_are_made_of_the_fields_of_their_type() -> Result<()> {
    let index = object_type("reflection.Class")?;
    add_field(index, "number", TypeIndex::INT, 8, 24, 0);
    add_field(index, "value", TypeIndex::ANY, 16, 32, kTVMFFIFieldFlagBitMaskHasDefault);
    add_field(index, "list", TypeIndex::LIST, 8, 48, kTVMFFIFieldFlagBitMaskHasDefault | kTVMFFIFieldFlagBitMaskKwOnly);
    // SAFETY: no other code lays out objects of this type.
    let register = unsafe { get_global_unchecked("ffi._PyClassRegisterTypeAttrColumns") }.unwrap();
    let error = register.call((index, 48)).unwrap_err();
    assert!(error.message().contains("the field `list` of type `reflection.Class` is outside"), "{error}");
    register.call((index, 56))?;
    assert_eq!(key_to_index("reflection.Class"), Some(index));

    let init = attribute("__ffi_init__", index);
    let kwargs = call("ffi.GetKwargsObject", ())?;
    let list = List::from(vec!["inside".into()]);
    let made = init.call((1, "a value of many bytes", &kwargs, "list", &list))?;
    assert_eq!(text(&made), r#"reflection.Class(number=1, value="a value of many bytes", list=["inside"])"#);
    let copy = call("ffi.DeepCopy", (&made,))?;
    assert!(call("ffi.RecursiveEq", (&made, &copy))?.cast::<bool>()?);
    let counted: ObjectRef = list.clone().into();
    assert_eq!(counted.strong_count(), 3);
    drop(made);
    assert_eq!(counted.strong_count(), 2);
    drop(copy);
    assert_eq!(counted.strong_count(), 2);
    assert_eq!(
        message(init.call(())),
        "TypeError: reflection.Class.__ffi_init__() missing required argument: 'number'"
    );
    let error: Error = init.call(("one",)).unwrap_err();
    assert!(error.message().starts_with("reflection.Class.__ffi_init__() field 'number':\n  "), "{error}");
    assert!(error.cause().is_some());
    Ok(())
}

#[test]
fn a_type_may_bring_its_own_text() -> Result<()> {
    let index = object_type("reflection.Text")?;
    // SAFETY: no other code lays out objects of this type.
    unsafe { get_global_unchecked("ffi._PyClassRegisterTypeAttrColumns") }.unwrap().call((index, 24))?;
    let hook = Function::from_packed(|args| {
        let print: Function = args[1].cast()?;
        let inner: Str = print.call((nested(2),))?.cast()?;
        Ok(Any::from(format!("<{}>", inner.as_str()).as_str()))
    });
    let hook = Any::from(hook);
    // SAFETY: the arguments are valid.
    unsafe {
        let set = || TVMFFITypeRegisterAttr(index, &bytes("__ffi_repr__"), hook.as_raw());
        assert_eq!(set(), 0);
        assert!(raised(set()).message().starts_with("TypeAttr `__ffi_repr__` is already registered"));
    }
    let made = call("ffi.MakeObjectFromPackedArgs", (index,))?;
    assert_eq!(text(&made), "<[[[]]]>");
    assert_eq!(text(&Array::from(vec![made.clone(), made]).into()), "(<[[[]]]>, <[[[]]]>)");
    Ok(())
}
