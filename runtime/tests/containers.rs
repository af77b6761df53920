use std::collections::HashSet;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tvm_ffi_runtime::abi::*;
use tvm_ffi_runtime::capi::*;
use tvm_ffi_runtime::registry::get_global;
use tvm_ffi_runtime::*;

use crate::support::*;

/// Calls a global function through the C symbols.
fn call(name: &str, args: &[Any]) -> Result<Any> {
    let raw: Vec<TVMFFIAny> = args.iter().map(|arg| *arg.as_raw()).collect();
    let mut function = std::ptr::null_mut();
    let mut result = TVMFFIAny::none();
    // SAFETY: all arguments are valid, and the result is None.
    unsafe {
        assert_eq!(TVMFFIFunctionGetGlobal(&bytes(name), &mut function), 0);
        assert!(!function.is_null(), "{name}");
        let code = TVMFFIFunctionCall(function, raw.as_ptr().cast_mut(), raw.len() as i32, &mut result);
        assert_eq!(TVMFFIObjectDecRef(function), 0);
        if code != 0 { Err(raised(code)) } else { Ok(Any::from_raw(result)) }
    }
}

macro_rules! call {
    ($name:literal $(, $arg:expr)* $(,)?) => { call($name, &[$(Any::from($arg)),*]) };
}

fn kind_of(result: Result<Any>) -> String {
    result.unwrap_err().kind().to_owned()
}

fn ints(values: &[Any]) -> Vec<i64> {
    values.iter().map(|value| value.cast().unwrap()).collect()
}

fn cell(object: &ObjectRef) -> *mut TVMFFISeqCell {
    // SAFETY: the cell follows the header of arrays and lists.
    unsafe { object.as_ptr().add(1).cast() }
}

/// A value that is alive while the token has more than one reference.
fn token() -> (Arc<()>, Function) {
    let token = Arc::new(());
    let kept = token.clone();
    let function = Function::from_packed(move |_| {
        let _kept = &kept;
        Ok(().into())
    });
    (token, function)
}

#[test]
fn arrays_have_the_abi_layout() {
    let array: Array = [1, 2, 3].into_iter().collect();
    assert_eq!(array.as_object().type_index(), TypeIndex::ARRAY);
    // SAFETY: the cell describes three values.
    unsafe {
        let cell = cell(array.as_object()).read();
        assert_eq!((cell.size, cell.capacity), (3, 3));
        // The elements are in the object.
        assert!(cell.data_deleter.is_none());
        assert_eq!(cell.data.addr(), array.as_object().as_ptr().addr() + 24 + 32);
        let second = cell.data.cast::<TVMFFIAny>().add(1).read();
        assert_eq!((second.type_index, second.v.v_int64), (TypeIndex::INT.0, 2));
    }
    assert_eq!(ints(&array), [1, 2, 3]);
    assert_eq!(format!("{array:?}"), "[1, 2, 3]");
    assert!(<Array>::default().is_empty());
}

#[test]
fn lists_have_the_abi_layout_and_a_block_that_grows() {
    let list: List = [1, 2].into_iter().collect();
    assert_eq!(list.as_object().type_index(), TypeIndex::LIST);
    list.push(3);
    // SAFETY: the cell describes three values.
    unsafe {
        let cell = cell(list.as_object()).read();
        assert_eq!((cell.size, cell.capacity), (3, 4));
        assert!(cell.data_deleter.is_some());
        assert_eq!(cell.data.cast::<TVMFFIAny>().add(2).read().v.v_int64, 3);
    }
    assert_eq!(format!("{list:?}"), "[1, 2, 3]");
    let empty = <List>::default();
    // Upstream frees the old block of an empty list too.
    // SAFETY: the cell is valid.
    assert!(unsafe { (*cell(empty.as_object())).data_deleter }.is_some());
    assert!(empty.pop().is_none());
}

#[test]
fn lists_change_for_every_handle() {
    let list = <List>::default();
    let other = list.clone();
    list.extend([1, 2, 3, 4]);
    other.insert(0, 0).unwrap();
    other.insert(5, 5).unwrap();
    assert_eq!(ints(&list.to_vec()), [0, 1, 2, 3, 4, 5]);
    list.set(2, "two").unwrap();
    assert_eq!(other.get(2).unwrap().as_str(), Some("two"));
    assert_eq!(list.remove(2).unwrap().as_str(), Some("two"));
    assert_eq!(list.pop().unwrap().cast::<i64>().unwrap(), 5);
    list.replace_range(1..3, [7, 8, 9]).unwrap();
    assert_eq!(ints(&list.to_vec()), [0, 7, 8, 9, 4]);
    list.replace_range(0..4, [6]).unwrap();
    list.reverse();
    assert_eq!(ints(&list.into_iter().collect::<Vec<_>>()), [4, 6]);
    for error in [
        list.set(2, 0).unwrap_err(),
        list.insert(3, 0).unwrap_err(),
        list.set(usize::MAX, 0).unwrap_err(),
        list.remove(2).unwrap_err(),
        list.replace_range(1..3, [0]).unwrap_err(),
        #[allow(clippy::reversed_empty_ranges)]
        list.replace_range(2..1, [0]).unwrap_err(),
    ] {
        assert_eq!(error.kind(), "IndexError");
    }
    assert!(list.get(2).is_none());
    list.reserve(100).unwrap();
    assert_eq!(list.reserve(usize::MAX).unwrap_err().kind(), "MemoryError");
    list.clear();
    assert!(other.is_empty());
}

#[test]
fn containers_own_what_they_hold() {
    let (token, value) = token();
    let held = |count| assert_eq!(Arc::strong_count(&token), count);
    let count = || value.as_object().strong_count();
    let array: Array = [value.clone(), value.clone()].into_iter().collect();
    let list = List::from(array.to_vec());
    let map: Map = [("a", value.clone()), ("b", value.clone()), ("a", value.clone())].into_iter().collect();
    let dict = Dict::from(&map);
    assert_eq!(count(), 1 + 2 + 2 + 2 + 2);
    list.set(0, 1).unwrap();
    list.remove(1).unwrap();
    assert_eq!(count(), 1 + 2 + 2 + 2);
    assert!(dict.insert("a", 1).unwrap().is_some());
    // The dict has its own entries.
    assert_eq!(count(), 1 + 2 + 2 + 1);
    assert!(dict.remove("b").unwrap().is_some());
    drop(map);
    assert_eq!(count(), 1 + 2);
    dict.insert("c", value.clone()).unwrap();
    dict.clear();
    drop((array, dict));
    assert_eq!(count(), 1);
    list.extend([value.clone(), value.clone()]);
    list.replace_range(9..9, [value.clone()]).unwrap_err();
    list.insert(9, value.clone()).unwrap_err();
    list.clear();
    assert_eq!(count(), 1);
    list.push(value);
    held(2);
    drop(list);
    held(1);
}

#[test]
fn destructors_may_use_the_container_they_leave() {
    struct Pushes(WeakRef);
    impl Drop for Pushes {
        fn drop(&mut self) {
            if let Some(Ok(list)) = self.0.upgrade().map(List::try_from) {
                list.push("dropped");
            }
        }
    }
    let list = <List>::default();
    let pushes = || {
        let pushes = Pushes(list.as_object().downgrade());
        Function::from_packed(move |_| {
            let _kept = &pushes;
            Ok(().into())
        })
    };
    list.push(pushes());
    list.set(0, 1).unwrap();
    list.insert(9, pushes()).unwrap_err();
    list.push(pushes());
    list.clear();
    assert_eq!(format!("{list:?}"), "[\"dropped\"]");
    let dict: Dict = [(1, pushes())].into_iter().collect();
    dict.insert(1, pushes()).unwrap();
    dict.insert(1, pushes()).unwrap();
    dict.remove(&1).unwrap();
    dict.insert(1, pushes()).unwrap();
    dict.clear();
    assert_eq!(list.len(), 5);
}

#[test]
fn deep_nests_are_freed_on_a_small_stack() {
    let (token, value) = token();
    on_a_small_stack(|| {
        let mut nest = Any::from(value);
        for depth in 0..DEEP {
            nest = match depth % 4 {
                0 => Array::from(vec![nest]).into(),
                1 => List::from(vec![1.into(), nest]).into(),
                2 => <Map>::from_iter([("inner", nest)]).into(),
                _ => <Dict>::from_iter([("inner", nest)]).into(),
            };
        }
    });
    assert_eq!(Arc::strong_count(&token), 1);
}

#[test]
fn maps_keep_the_order_of_insertion() {
    let map: Map = (0..100).rev().map(|i| (format!("key number {i}"), i)).collect();
    let values: Vec<i64> = map.values().map(|value| value.cast().unwrap()).collect();
    assert_eq!(values, (0..100).rev().collect::<Vec<_>>());
    assert_eq!(map.iter().next_back().unwrap().0.as_str(), Some("key number 0"));
    assert_eq!(map.keys().len(), 100);
    assert_eq!(map.get("key number 42").unwrap().unwrap().cast::<i64>().unwrap(), 42);
    assert!(!map.contains_key("no key").unwrap());

    let dict: Dict = [("a", 1), ("b", 2), ("c", 3)].into_iter().collect();
    dict.insert("a", 4).unwrap();
    dict.remove("b").unwrap();
    dict.insert("b", 5).unwrap();
    assert_eq!(format!("{dict:?}"), r#"{"a": 4, "c": 3, "b": 5}"#);
    let iterator = dict.into_iter();
    dict.clear();
    assert_eq!(iterator.len(), 3);
    assert_eq!(iterator.last().unwrap().0.as_str(), Some("b"));
    assert!(dict.is_empty() && dict.remove("a").unwrap().is_none());
}

#[test]
fn keys_are_equal_as_upstream_says() {
    let small = Any::from("short");
    let heap_text = "longer than seven bytes";
    // A short string in a heap object, as C++ code makes it.
    let object = {
        let mut heap = Any::from(heap_text).into_raw();
        // SAFETY: only the string's length shrinks; its bytes stay in place.
        unsafe { (*heap.v.v_obj.add(1).cast::<TVMFFIByteArray>()).size = 4 };
        heap.zero_padding = 0;
        // SAFETY: an owned string.
        unsafe { Any::from_raw(heap) }
    };
    let map = Map::try_from_entries([(object, 1), (small, 2), (Any::from(heap_text), 3)]).unwrap();
    let value = |key: &dyn Fn() -> Any| map.get(&key()).unwrap().map(|value| value.cast::<i64>().unwrap());
    assert_eq!(value(&|| "long".into()), Some(1));
    assert_eq!(value(&|| "short".into()), Some(2));
    assert_eq!(value(&|| heap_text.into()), Some(3));
    assert_eq!(map.get(c"long").unwrap().unwrap().cast::<i64>().unwrap(), 1);
    assert_eq!(value(&|| (&b"long"[..]).into()), None);
    assert_eq!(value(&|| heap_text.as_bytes().into()), None);

    let nan = f64::NAN;
    let shape = Shape::new(&[1]);
    let keys: [Any; 11] = [
        1.into(),
        true.into(),
        1.0.into(),
        0.0.into(),
        (-0.0).into(),
        nan.into(),
        nan.into(),
        ().into(),
        shape.clone().into(),
        Shape::new(&[1]).into(),
        shape.into(),
    ];
    let map = Map::try_from_entries(keys.iter().cloned().map(|key| (key, ()))).unwrap();
    // NaN and the shape occur twice.
    assert_eq!(map.len(), 9);
    let array: Array = keys.into_iter().take(2).collect();
    assert!(array.contains(&true.into()).unwrap());
    assert!(!array.contains(&1.0.into()).unwrap());
}

fn register(index: TypeIndex, name: &str, value: &Any) {
    // SAFETY: all arguments are valid.
    assert_eq!(unsafe { TVMFFITypeRegisterAttr(index.0, &bytes(name), value.as_raw()) }, 0);
}

unsafe extern "C" fn same_hash(_value: *const TVMFFIAny) -> TVMFFIAny {
    Any::from(7).into_raw()
}

/// Objects are equal if their opaque handles are; NULL is an error.
unsafe extern "C" fn same_handle(a: *const TVMFFIAny, b: *const TVMFFIAny) -> TVMFFIAny {
    // SAFETY: both values are opaque objects, and the handle follows the header.
    let handle = |value: *const TVMFFIAny| unsafe { (*value).v.v_obj.add(1).cast::<*mut c_void>().read() };
    if handle(a).is_null() {
        return Any::from(Error::new("ValueError", "no handle")).into_raw();
    }
    Any::from(handle(a) == handle(b)).into_raw()
}

fn opaque(handle: *mut c_void) -> Any {
    let mut out = std::ptr::null_mut();
    // SAFETY: there is no deleter.
    let code = unsafe { TVMFFIObjectCreateOpaque(handle, TypeIndex::OPAQUE_PY_OBJECT.0, None, &mut out) };
    assert_eq!(code, 0);
    own(out)
}

#[test]
fn types_may_bring_their_own_equality() {
    // No other test uses modules or opaque objects as keys.
    let kind = |view: &AnyView<'_>| Ok::<_, Error>(view.cast::<Module>()?.kind().to_owned());
    let hash = Function::from_packed(move |args| match kind(&args[0])?.as_str() {
        "bad" => Err(Error::new("ValueError", "unhashable")),
        kind => Ok(kind.len().into()),
    });
    let equal = Function::from_packed(move |args| Ok((kind(&args[0])? == kind(&args[1])?).into()));
    register(TypeIndex::MODULE, "__any_hash__", &hash.into());
    register(TypeIndex::MODULE, "__any_equal__", &equal.into());
    let module = |kind: &str| Any::from(Module::new(kind, []));
    let dict = Dict::try_from_entries([(module("one"), 1), (module("two"), 2), (module("one"), 3)]).unwrap();
    assert_eq!(dict.len(), 2);
    assert_eq!(dict.get(&module("one")).unwrap().unwrap().cast::<i64>().unwrap(), 3);
    // As upstream, up to four keys are not hashed.
    assert!(dict.get(&module("bad")).unwrap().is_none());
    let kinds = if cfg!(miri) { 12 } else { 60 };
    for i in 0..kinds {
        dict.insert(module(&format!("{i:0width$}", width = 5 + i % 3)), i).unwrap();
    }
    assert_eq!(dict.get(&module("000007")).unwrap().unwrap().cast::<i64>().unwrap(), 7);
    for i in 4..kinds {
        assert!(dict.remove(&module(&format!("{i:0width$}", width = 5 + i % 3))).unwrap().is_some());
    }
    let before = dict.len();
    for error in [
        dict.insert(module("bad"), 1).unwrap_err(),
        dict.get(&module("bad")).unwrap_err(),
        dict.remove(&module("bad")).unwrap_err(),
        Map::try_from_entries((0..5).map(|i| (Any::from(i), i)).chain([(module("bad"), 1)])).unwrap_err(),
    ] {
        assert_eq!(error.to_string(), "ValueError: unhashable");
    }
    assert_eq!((dict.len(), before), (6, 6));

    // SAFETY: the attributes below take addresses of functions of this kind.
    let address = |function: *const c_void| unsafe { Any::from_opaque_ptr(function.cast_mut()) };
    register(TypeIndex::OPAQUE_PY_OBJECT, "__any_hash__", &address(same_hash as *const c_void));
    register(TypeIndex::OPAQUE_PY_OBJECT, "__any_equal__", &address(same_handle as *const c_void));
    let handles = [8, 16, 8].map(|handle| (opaque(std::ptr::without_provenance_mut(handle)), handle));
    let map = Map::try_from_entries(handles).unwrap();
    assert_eq!(map.len(), 2);
    let array: Array = [opaque(std::ptr::null_mut())].into_iter().collect();
    let error = array.contains(&opaque(std::ptr::null_mut())).unwrap_err();
    assert_eq!(error.to_string(), "ValueError: no handle");
}

#[test]
fn array_functions() {
    let array = call!("ffi.Array", 1, "two", 3.0).unwrap();
    assert_eq!(array.type_index(), TypeIndex::ARRAY);
    assert_eq!(call!("ffi.ArraySize", array.clone()).unwrap().cast::<i64>().unwrap(), 3);
    assert_eq!(call!("ffi.ArrayGetItem", array.clone(), 1).unwrap().as_str(), Some("two"));
    assert!(call!("ffi.ArrayContains", array.clone(), "two").unwrap().cast::<bool>().unwrap());
    assert!(!call!("ffi.ArrayContains", array.clone(), 3).unwrap().cast::<bool>().unwrap());
    for i in [3, -1] {
        assert_eq!(kind_of(call!("ffi.ArrayGetItem", array.clone(), i)), "IndexError");
    }
    assert_eq!(kind_of(call!("ffi.ArrayGetItem", array.clone())), "TypeError");
    assert_eq!(kind_of(call!("ffi.ArrayGetItem", array.clone(), "0")), "TypeError");
    assert_eq!(kind_of(call!("ffi.ArraySize", <List>::default())), "TypeError");
    assert_eq!(kind_of(call!("ffi.ArraySize", ())), "TypeError");
    // A raw string becomes an owned one.
    let owned = get_global("ffi.Array").unwrap().call((c"raw and longer",)).unwrap().cast::<Array>().unwrap();
    assert_eq!(owned[0].type_index(), TypeIndex::STR);
}

#[test]
fn list_functions() {
    let list = call!("ffi.List", 1, 2, 3).unwrap();
    let now = || ints(&list.cast::<List>().unwrap().to_vec());
    call!("ffi.ListAppend", list.clone(), 4).unwrap();
    call!("ffi.ListSetItem", list.clone(), 0, 10).unwrap();
    call!("ffi.ListInsert", list.clone(), 4, 5).unwrap();
    assert_eq!(now(), [10, 2, 3, 4, 5]);
    assert_eq!(call!("ffi.ListPop", list.clone(), 1).unwrap().cast::<i64>().unwrap(), 2);
    call!("ffi.ListErase", list.clone(), 0).unwrap();
    assert_eq!(call!("ffi.ListSize", list.clone()).unwrap().cast::<i64>().unwrap(), 3);
    assert_eq!(call!("ffi.ListGetItem", list.clone(), 2).unwrap().cast::<i64>().unwrap(), 5);
    assert!(call!("ffi.ListContains", list.clone(), 4).unwrap().cast::<bool>().unwrap());
    call!("ffi.ListReplaceSlice", list.clone(), 1, 2, list.clone()).unwrap();
    assert_eq!(now(), [3, 3, 4, 5, 5]);
    call!("ffi.ListReplaceSlice", list.clone(), 0, 0, <Array>::from_iter([9])).unwrap();
    call!("ffi.ListReverse", list.clone()).unwrap();
    call!("ffi.ListEraseRange", list.clone(), 1, 3).unwrap();
    assert_eq!(now(), [5, 3, 3, 9]);
    call!("ffi.ListReserve", list.clone(), 64).unwrap();
    call!("ffi.ListReserve", list.clone(), -1).unwrap();
    assert_eq!(kind_of(call!("ffi.ListReserve", list.clone(), i64::MAX)), "MemoryError");
    call!("ffi.ListEraseRange", list.clone(), -1, -1).unwrap();
    for result in [
        call!("ffi.ListGetItem", list.clone(), 4),
        call!("ffi.ListSetItem", list.clone(), -1, 0),
        call!("ffi.ListInsert", list.clone(), 5, 0),
        call!("ffi.ListPop", list.clone(), 4),
        call!("ffi.ListErase", list.clone(), -1),
        call!("ffi.ListEraseRange", list.clone(), 3, 1),
        call!("ffi.ListEraseRange", list.clone(), 1, 9),
        call!("ffi.ListReplaceSlice", list.clone(), -2, 1, <List>::default()),
        call!("ffi.ListReplaceSlice", list.clone(), 9, 9, list.clone()),
    ] {
        assert_eq!(kind_of(result), "IndexError");
    }
    // Upstream changes a copy of the array, without effect.
    assert_eq!(kind_of(call!("ffi.ListAppend", <Array>::default(), 1)), "TypeError");
    assert_eq!(now(), [5, 3, 3, 9]);
    call!("ffi.ListClear", list.clone()).unwrap();
    assert!(now().is_empty());
}

#[test]
fn map_and_dict_functions() {
    let missing = call!("ffi.GetInvalidObject").unwrap();
    assert_eq!(missing.type_index(), TypeIndex::OBJECT);
    let int = |value: Result<Any>| value.unwrap().cast::<i64>().unwrap();
    let is_missing = |value: Result<Any>| value.unwrap().as_raw().ptr() == missing.as_raw().ptr();

    let map = call!("ffi.Map", "a", 1, "b", 2, "a", 3).unwrap();
    assert_eq!(map.type_index(), TypeIndex::MAP);
    assert_eq!(int(call!("ffi.MapSize", map.clone())), 2);
    assert_eq!(int(call!("ffi.MapGetItem", map.clone(), "a")), 3);
    assert_eq!(int(call!("ffi.MapCount", map.clone(), "b")), 1);
    assert_eq!(int(call!("ffi.MapCount", map.clone(), "c")), 0);
    assert_eq!(int(call!("ffi.MapGetItemOrMissing", map.clone(), "b")), 2);
    assert!(is_missing(call!("ffi.MapGetItemOrMissing", map.clone(), "c")));
    assert_eq!(kind_of(call!("ffi.MapGetItem", map.clone(), "c")), "KeyError");
    assert_eq!(kind_of(call!("ffi.Map", 1)), "InternalError");
    assert_eq!(kind_of(call!("ffi.MapSize", <Dict>::default())), "TypeError");

    let dict = call!("ffi.Dict", "a", 1).unwrap();
    assert_eq!(dict.type_index(), TypeIndex::DICT);
    call!("ffi.DictSetItem", dict.clone(), "b", 2).unwrap();
    call!("ffi.DictErase", dict.clone(), "a").unwrap();
    call!("ffi.DictErase", dict.clone(), "a").unwrap();
    assert_eq!(int(call!("ffi.DictSize", dict.clone())), 1);
    assert_eq!(int(call!("ffi.DictGetItem", dict.clone(), "b")), 2);
    assert_eq!(int(call!("ffi.DictCount", dict.clone(), "a")), 0);
    assert!(is_missing(call!("ffi.DictGetItemOrMissing", dict.clone(), "a")));
    assert_eq!(int(call!("ffi.DictGetItemOrMissing", dict.clone(), "b")), 2);
    assert_eq!(kind_of(call!("ffi.DictGetItem", dict.clone(), "a")), "KeyError");
    assert_eq!(kind_of(call!("ffi.DictSetItem", map, "a", 1)), "TypeError");
    call!("ffi.DictClear", dict.clone()).unwrap();
    assert_eq!(int(call!("ffi.DictSize", dict)), 0);
    assert_eq!(kind_of(call!("ffi.Dict", 1, 2, 3)), "InternalError");
}

#[test]
fn forward_iterators_follow_upstreams_commands() {
    let map = call!("ffi.Map", "a", 1, "b", 2).unwrap();
    let iterator: Function = call!("ffi.MapForwardIterFunctor", map.clone()).unwrap().cast().unwrap();
    // The iterator keeps the map.
    drop(map);
    let ask = |command: i64| iterator.call((command,));
    assert_eq!(ask(0).unwrap().as_str(), Some("a"));
    assert_eq!(ask(1).unwrap().cast::<i64>().unwrap(), 1);
    assert!(ask(2).unwrap().cast::<bool>().unwrap());
    assert_eq!(ask(0).unwrap().as_str(), Some("b"));
    for _ in 0..2 {
        assert!(!ask(2).unwrap().cast::<bool>().unwrap());
    }
    assert_eq!(kind_of(ask(0)), "IndexError");
    assert_eq!(kind_of(iterator.call(("x",))), "TypeError");

    let empty: Function = call!("ffi.MapForwardIterFunctor", <Map>::default()).unwrap().cast().unwrap();
    assert_eq!(kind_of(empty.call((1,))), "IndexError");
    assert!(!empty.call((2,)).unwrap().cast::<bool>().unwrap());

    let dict: Dict = [("a", 1), ("b", 2)].into_iter().collect();
    let iterator: Function = call!("ffi.DictForwardIterFunctor", dict.clone()).unwrap().cast().unwrap();
    dict.clear();
    assert!(iterator.call((2,)).unwrap().cast::<bool>().unwrap());
    assert_eq!(iterator.call((0,)).unwrap().as_str(), Some("b"));
}

#[test]
fn devices_are_found_inside_containers() {
    let find = |value: Any| call("ffi.ContainerFindFirstNonCPUDevice", &[value]).unwrap().cast::<DLDevice>().unwrap();
    let cpu = DLDevice { device_type: DLDeviceType::CPU, device_id: 0 };
    let list = <List>::default();
    list.push(list.clone());
    let tensor = Tensor::from_slice(&[1.0f32], &[1]).unwrap();
    list.push(<Map>::from_iter([("t", tensor)]));
    assert_eq!(find(list.clone().into()), cpu);
    assert_eq!(find(1.into()), cpu);
    let mut cell = 0u8;
    let (mut extent, mut stride) = (1i64, 1i64);
    let prototype = DLTensor {
        data: (&raw mut cell).cast(),
        device: DLDevice { device_type: DLDeviceType::CUDA, device_id: 3 },
        ndim: 1,
        dtype: DLDataType::UINT8,
        shape: &raw mut extent,
        strides: &raw mut stride,
        byte_offset: 0,
    };
    let source = Tensor::from_slice(&[1u8], &[1]).unwrap();
    let mut view = std::ptr::null_mut();
    // SAFETY: the view's memory, which is never read, and its source outlive it.
    let code = unsafe {
        TVMFFITensorCreateUnsafeView(source.as_object().as_ptr().cast(), &raw const prototype, &raw mut view)
    };
    assert_eq!(code, 0);
    let view: Tensor = own(view);
    list.push(<Dict>::from_iter([("inner", <Array>::from_iter([view]))]));
    assert_eq!(find(list.clone().into()), prototype.device);
    // Ends the cycle.
    list.clear();
}

#[test]
fn containers_convert_as_upstream() {
    let array: Array = [1, 2].into_iter().collect();
    let any = Any::from(array.clone());
    assert!(any.cast::<Array>().unwrap().as_object().ptr_eq(array.as_object()));
    let list: List = any.cast().unwrap();
    list.push(3);
    assert_eq!(ints(&Any::from(list.clone()).cast::<Array>().unwrap()), [1, 2, 3]);
    assert_eq!(array.len(), 2);
    let map: Map = [("a", 1)].into_iter().collect();
    let dict: Dict = Any::from(map.clone()).cast().unwrap();
    dict.insert("b", 2).unwrap();
    assert_eq!(Any::from(dict).cast::<Map>().unwrap().len(), 2);
    assert_eq!(map.len(), 1);
    assert_eq!(any.cast::<Map>().unwrap_err().to_string(), "TypeError: expected ffi.Map, got ffi.Array");
    assert_eq!(Any::from(map.clone()).cast::<List>().unwrap_err().kind(), "TypeError");
    assert!(List::try_from(ObjectRef::from(array)).is_err());
    assert!(ObjectRef::from(map).downcast::<Map>().is_ok());

    assert_eq!(*any.cast::<Shape>().unwrap(), [1, 2]);
    assert_eq!(*Any::from(list).cast::<Shape>().unwrap(), [1, 2, 3]);
    let error = Any::from(<Array>::from_iter([1.into(), Any::from(2.0)])).cast::<Shape>().unwrap_err();
    assert_eq!(error.to_string(), "TypeError: expected ffi.Shape, got a sequence with float at index 1");
    assert_eq!(Any::from(1).cast::<Shape>().unwrap_err().kind(), "TypeError");
}

/// An object as C++ code allocates it.
#[repr(C)]
struct Foreign<T> {
    alloc: TVMFFIObjectAllocHeader,
    header: TVMFFIObject,
    body: T,
}

/// Frees a foreign object when the test is over.
struct Freed<T>(*mut Foreign<T>);

impl<T> Drop for Freed<T> {
    fn drop(&mut self) {
        // SAFETY: the object came out of a box, and is not used any more.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

fn foreign<T>(index: TypeIndex, body: T) -> (Freed<T>, ObjectRef) {
    let header = TVMFFIObject {
        combined_ref_count: AtomicU64::new(2 | 1 << 32),
        type_index: index.0,
        __padding: 0,
        deleter: None,
    };
    let alloc = TVMFFIObjectAllocHeader { delete_space: None };
    let object = Box::into_raw(Box::new(Foreign { alloc, header, body }));
    // SAFETY: one of the two references is the test's own, the other moves into the handle.
    let handle = unsafe { ObjectRef::from_raw(&raw mut (*object).header) }.unwrap();
    (Freed(object), handle)
}

static BLOCKS_FREED: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn free_foreign_block(_block: *mut c_void) {
    BLOCKS_FREED.fetch_add(1, Ordering::SeqCst);
}

#[test]
fn lists_of_other_implementations_can_grow() {
    let mut block = [Any::from(1).into_raw(), Any::from(Shape::new(&[2])).into_raw()];
    let cell =
        TVMFFISeqCell { data: block.as_mut_ptr().cast(), size: 2, capacity: 2, data_deleter: Some(free_foreign_block) };
    let (object, handle) = foreign(TypeIndex::LIST, cell);
    let list = List::try_from(handle).unwrap();
    list.set(0, 5).unwrap();
    assert_eq!(BLOCKS_FREED.load(Ordering::SeqCst), 0);
    list.push(7);
    assert_eq!(BLOCKS_FREED.load(Ordering::SeqCst), 1);
    list.remove(1).unwrap();
    assert_eq!(ints(&list.to_vec()), [5, 7]);
    // As the foreign destructor would.
    list.clear();
    drop(list);
    // SAFETY: the block goes to the deleter that came with it, once.
    unsafe { (*object.0).body.data_deleter.unwrap()((*object.0).body.data) };
}

#[test]
fn threads_share_lists_and_dicts() {
    let each = rounds(250);
    let (list, dict) = (<List>::default(), <Dict>::default());
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (list, dict) = (list.clone(), dict.clone());
            scope.spawn(move || {
                for i in 0..each as i64 {
                    list.push(format!("element {thread} {i}"));
                    dict.insert(thread * 1000 + i, "value on the heap").unwrap();
                    if i % 50 == 0 {
                        assert!(list.to_vec().iter().all(|value| value.as_str().is_some()));
                        assert!(dict.into_iter().all(|(_, value)| value.as_str().is_some()));
                    }
                }
                list.remove(0).unwrap();
                dict.remove(&(thread * 1000)).unwrap().unwrap();
            });
        }
    });
    assert_eq!((list.len(), dict.len()), (4 * each - 4, 4 * each - 4));
    let distinct: HashSet<String> = list.into_iter().map(|value| value.cast().unwrap()).collect();
    assert_eq!(distinct.len(), 4 * each - 4);
}
