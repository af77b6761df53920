use std::collections::{BTreeMap, HashMap};

use tvm_ffi_runtime::registry::get_global;
use tvm_ffi_runtime::{Any, Array, AsObject, Dict, Error, Function, List, Map, TypeIndex, TypeSchema};

#[test]
fn vectors_and_tuples_are_arrays() {
    let any = Any::from(vec![1, 2, 3]);
    assert_eq!(any.type_index(), TypeIndex::ARRAY);
    assert_eq!(any.cast::<Vec<i64>>().unwrap(), [1, 2, 3]);
    assert_eq!(any.cast::<[i32; 3]>().unwrap(), [1, 2, 3]);
    assert_eq!(any.cast::<(i8, f64, Option<u64>)>().unwrap(), (1, 2.0, Some(3)));
    assert_eq!(Any::from(<List>::from_iter(["a", "b"])).cast::<Vec<String>>().unwrap(), ["a", "b"]);
    let nested = vec![(1, "one".to_owned(), vec![1.5]), (2, "two".to_owned(), vec![])];
    assert_eq!(Any::from(nested.clone()).cast::<Vec<(i64, String, Vec<f64>)>>().unwrap(), nested);
    assert_eq!(Any::from(vec![Some(1), None]).cast::<Vec<Option<i64>>>().unwrap(), [Some(1), None]);
    for (error, message) in [
        (Any::from(vec!["a"]).cast::<Vec<i64>>().unwrap_err(), "element 0: expected int, got ffi.SmallStr"),
        (any.cast::<(i64, i64)>().unwrap_err(), "expected an array of 2 elements, got 3"),
        (any.cast::<[i64; 4]>().unwrap_err(), "expected an array of 4 elements, got 3"),
        (any.cast::<(i64, i64, String)>().unwrap_err(), "element 2: expected ffi.String, got int"),
        (Any::from(1).cast::<Vec<i64>>().unwrap_err(), "expected ffi.Array, got int"),
    ] {
        assert_eq!((error.kind(), error.message()), ("TypeError", message));
    }
    assert_eq!(Any::from(vec![300]).cast::<Vec<u8>>().unwrap_err().kind(), "ValueError");
}

#[test]
fn maps_of_rust_are_maps() {
    let squares: BTreeMap<i64, i64> = (0..20).map(|i| (i, i * i)).collect();
    let any = Any::from(squares.clone());
    assert_eq!(any.type_index(), TypeIndex::MAP);
    assert_eq!(any.cast::<BTreeMap<i64, i64>>().unwrap(), squares);
    let names: HashMap<String, Vec<i64>> =
        any.cast::<Map>().unwrap().iter().map(|(key, _)| (format!("{key:?}"), vec![1])).collect();
    let dict = <Dict>::from_iter(names.clone());
    assert_eq!(Any::from(dict).cast::<HashMap<String, Vec<i64>>>().unwrap(), names);
    let error = any.cast::<HashMap<String, i64>>().unwrap_err();
    assert_eq!(error.to_string(), "TypeError: key 0: expected ffi.String, got int");
    let error = any.cast::<HashMap<i64, String>>().unwrap_err();
    assert_eq!(error.to_string(), "TypeError: value 0: expected ffi.String, got int");
}

#[test]
fn they_are_arguments_and_results() {
    let scaled = Function::from_packed(|args| match args {
        [numbers, pair] => {
            let (numbers, (scale, name)) = (numbers.cast::<Vec<i64>>()?, pair.cast::<(i64, String)>()?);
            Ok((numbers.iter().map(|number| number * scale).collect::<Vec<_>>(), name).into())
        }
        _ => Err(Error::new("TypeError", "expected two arguments")),
    });
    let result = scaled.call((vec![1, 2, 3], (10, "tens"))).unwrap();
    assert_eq!(result.cast::<(Vec<i64>, String)>().unwrap(), (vec![10, 20, 30], "tens".to_owned()));
    let array = get_global("ffi.Array").unwrap().call((vec![1, 2], (3, "three"), HashMap::from([("k", 4)]))).unwrap();
    let array: Array = array.cast().unwrap();
    assert_eq!(array[0].cast::<Vec<i64>>().unwrap(), [1, 2]);
    assert_eq!(array[1].cast::<(i64, String)>().unwrap(), (3, "three".to_owned()));
    assert_eq!(array[2].cast::<HashMap<String, i64>>().unwrap(), HashMap::from([("k".to_owned(), 4)]));
}

#[test]
fn typed_containers_check_every_element() {
    let untyped: Array = [1, 2].into_iter().collect();
    let numbers: Array<i64> = Any::from(untyped.clone()).cast().unwrap();
    assert!(numbers.as_untyped().as_object().ptr_eq(untyped.as_object()), "stored as they are read: the same object");
    assert_eq!((numbers.len(), numbers.get(1), numbers.get(2), numbers.to_vec()), (2, Some(2), None, vec![1, 2]));
    let floats = untyped.into_typed::<f64>().unwrap();
    assert_eq!(floats.as_untyped()[0].type_index(), TypeIndex::FLOAT, "a copy with converted elements");
    assert_eq!(floats.iter().rev().collect::<Vec<_>>(), [2.0, 1.0]);

    let mixed = Any::from((1, "x"));
    for (error, message) in [
        (mixed.cast::<Array<i64>>().unwrap_err(), "element 1: expected int, got ffi.SmallStr"),
        (mixed.cast::<List<i64>>().unwrap_err(), "element 1: expected int, got ffi.SmallStr"),
        (Any::from(1).cast::<Array<i64>>().unwrap_err(), "expected ffi.Array, got int"),
        (
            Any::from(vec![("k", 1)]).cast::<Array<Map<String, i64>>>().unwrap_err(),
            "element 0: expected ffi.Map, got ffi.Array",
        ),
    ] {
        assert_eq!((error.kind(), error.message()), ("TypeError", message));
    }
    assert_eq!(Any::from(vec![300]).cast::<Array<u8>>().unwrap_err().kind(), "ValueError");

    let names: Array<String> = Any::from(<List>::from_iter(["a", "a longer text"])).cast().unwrap();
    assert_eq!(names.to_vec(), ["a", "a longer text"]);
    let nested: Array<Array<i64>> = [numbers.clone(), Array::default()].into_iter().collect();
    let again = Any::from(nested.clone()).cast::<Array<Array<i64>>>().unwrap();
    assert!(again.as_untyped().as_object().ptr_eq(nested.as_untyped().as_object()));
    assert_eq!(again.iter().map(|inner| inner.len()).collect::<Vec<_>>(), [2, 0]);
}

#[test]
fn typed_lists_check_what_they_read() {
    let list: List<i64> = [1i64, 2].into_iter().collect();
    let other = Any::from(list.clone()).cast::<List<i64>>().unwrap();
    other.push(3);
    other.set(0, 7).unwrap();
    list.insert(0, 5).unwrap();
    list.extend([8, 9]);
    list.replace_range(4..6, [4]).unwrap();
    assert_eq!(list.to_vec().unwrap(), [5, 7, 2, 3, 4]);
    assert_eq!((list.remove(0).unwrap(), list.pop().unwrap(), list.get(9).unwrap()), (5, Some(4), None));
    list.as_untyped().push("text");
    let message = "element 3: expected int, got ffi.SmallStr";
    assert_eq!(list.get(3).unwrap_err().message(), message);
    assert_eq!(list.to_vec().unwrap_err().message(), message);
    assert_eq!(list.pop().unwrap_err().message(), "last element: expected int, got ffi.SmallStr");
    assert_eq!((list.len(), list.is_empty()), (3, false));
    list.clear();
    assert_eq!(list.pop().unwrap(), None);
}

#[test]
fn typed_maps_and_dicts_check_every_entry() {
    let ages: Map<String, i64> = [("ann".to_owned(), 30), ("bob".to_owned(), 40)].into_iter().collect();
    assert_eq!((ages.get("bob").unwrap(), ages.get("eve").unwrap()), (Some(40), None));
    assert_eq!(ages.iter().next_back(), Some(("bob".to_owned(), 40)));
    assert_eq!(ages.keys().zip(ages.values()).collect::<Vec<_>>(), [("ann".to_owned(), 30), ("bob".to_owned(), 40)]);
    let any = Any::from(ages);
    let error = any.cast::<Map<i64, i64>>().unwrap_err();
    assert_eq!(error.to_string(), "TypeError: key 0: expected int, got ffi.SmallStr");
    let error = any.cast::<Dict<String, String>>().unwrap_err();
    assert_eq!(error.to_string(), "TypeError: value 0: expected ffi.String, got int");
    assert_eq!(any.cast::<Map<String, f64>>().unwrap().get("ann").unwrap(), Some(30.0));

    let dict: Dict<String, Any> = any.cast().unwrap();
    assert!(dict.insert("carl".to_owned(), "young".into()).unwrap().is_none());
    assert_eq!(dict.to_map().unwrap().get("ann").unwrap().unwrap().cast::<i64>().unwrap(), 30);
    let numbers: Dict<String, i64> = Dict::default();
    numbers.insert("one".to_owned(), 1).unwrap();
    numbers.as_untyped().insert("two", "2").unwrap();
    assert_eq!((numbers.get("one").unwrap(), numbers.len()), (Some(1), 2));
    assert_eq!(numbers.get("two").unwrap_err().message(), "expected int, got ffi.SmallStr");
    assert!(numbers.to_map().is_err());
    assert!(numbers.remove("two").unwrap().is_some() && !numbers.contains_key("two").unwrap());
}

#[test]
fn typed_containers_are_parameters() {
    let f = Function::from_typed_named("test.f", |lists: Array<List<i64>>, map: Map<String, Option<f64>>| {
        let sum: i64 = lists.iter().flat_map(|list| list.to_vec().unwrap_or_default()).sum();
        [(sum, map.values().flatten().sum::<f64>())].into_iter().collect::<Map<i64, f64>>()
    });
    let result: Map<i64, f64> = f.call_as((vec![vec![1, 2], vec![3]], HashMap::from([("x", Some(0.5))]))).unwrap();
    assert_eq!(result.get(&6).unwrap(), Some(0.5));
    let signature = "test.f(0: Array<List<int>>, 1: Map<str, Optional<float>>) -> Map<int, float>";
    for (error, place, expected, got) in [
        (f.call((vec![(1, "x")], ())), 0, "Array<List<int>>", "Array[index 0: List[index 1: ffi.SmallStr]]"),
        (f.call((1, ())), 0, "Array<List<int>>", "int"),
        (
            f.call((vec![[0; 0]], HashMap::from([("x", "y")]))),
            1,
            "Map<str, Optional<float>>",
            "Map[K, some value is ffi.SmallStr]",
        ),
        (f.call((vec![[0; 0]], HashMap::from([(1, 2)]))), 1, "Map<str, Optional<float>>", "Map[some key is int, V]"),
    ] {
        let message = format!(
            "Mismatched type on argument #{place} when calling: `{signature}`. Expected `{expected}` but got `{got}`"
        );
        assert_eq!(error.unwrap_err().message(), message);
    }
    assert_eq!(
        <Map<String, Array<i64>>>::type_schema(),
        r#"{"type":"ffi.Map","args":[{"type":"ffi.String"},{"type":"ffi.Array","args":[{"type":"int"}]}]}"#
    );
}
