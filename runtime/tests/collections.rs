use std::collections::{BTreeMap, HashMap};

use tvm_ffi_runtime::registry::get_global;
use tvm_ffi_runtime::{Any, Array, Dict, Error, Function, List, Map, TypeIndex};

#[test]
fn vectors_and_tuples_are_arrays() {
    let any = Any::from(vec![1, 2, 3]);
    assert_eq!(any.type_index(), TypeIndex::ARRAY);
    assert_eq!(any.cast::<Vec<i64>>().unwrap(), [1, 2, 3]);
    assert_eq!(any.cast::<[i32; 3]>().unwrap(), [1, 2, 3]);
    assert_eq!(any.cast::<(i8, f64, Option<u64>)>().unwrap(), (1, 2.0, Some(3)));
    assert_eq!(Any::from(List::from_iter(["a", "b"])).cast::<Vec<String>>().unwrap(), ["a", "b"]);
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
    let dict = Dict::from_iter(names.clone());
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
