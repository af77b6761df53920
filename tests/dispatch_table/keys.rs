//! Keys, arguments and messages.

use std::ffi::CStr;

use tvm_ffi_codegen::DLDataType;
use tvm_ffi_codegen::dispatch::DispatchTable;
use tvm_ffi_codegen::runtime::abi::{DLDevice, TVMFFIAny, TVMFFIByteArray};
use tvm_ffi_codegen::runtime::{Any, AnyView, AsObject, Bytes, Function, Str, Tensor, TypeIndex};

use super::{call, constant, counting, packed, table, text};

/// C20.3: values of different kinds are different keys, and each value is one key.
#[test]
fn values_are_keys_by_kind_and_content() {
    let (on_miss, _) = counting();
    let table = table(on_miss, None);
    let long = "a text of more than seven bytes";
    let values: Vec<Any> = vec![
        Any::none(),
        false.into(),
        true.into(),
        0.into(),
        1.into(),
        (-1).into(),
        i64::MAX.into(),
        0.0.into(),
        (-0.0).into(),
        1.0.into(),
        f64::NAN.into(),
        DLDataType::FLOAT32.into(),
        DLDataType::FLOAT16.into(),
        DLDevice::CPU.into(),
        DLDevice { device_id: 1, ..DLDevice::CPU }.into(),
        Str::new("").into(),
        Str::new("a").into(),
        Str::new("a\0").into(),
        Str::new("seven b").into(),
        Str::new("eight by").into(),
        Str::new(long).into(),
        Str::new("a text of more than seven bytez").into(),
        Bytes::new(b"").into(),
        Bytes::new(b"a").into(),
        Bytes::new(long.as_bytes()).into(),
    ];
    for round in 0..3 {
        for (place, value) in values.iter().enumerate() {
            let number: i64 = table.function().call_as((value,)).unwrap();
            assert_eq!(number, place as i64 + 1, "{value:?}, round {round}");
        }
    }
    assert_eq!(table.stats().misses, values.len() as u64);
    assert_eq!(table.stats().hits, 2 * values.len() as u64);
    for (entry, value) in table.entries().iter().zip(&values) {
        assert_eq!(entry.key[0].type_key(), value.type_key());
    }
}

/// C20.3: a text is one key, in whatever form it is passed.
#[test]
fn all_forms_of_a_text_are_one_key() {
    for content in [c"short", c"a text of more than seven bytes"] {
        let (on_miss, calls) = counting();
        let table = table(on_miss, None);
        let content: &CStr = content;
        let string = Str::new(content.to_str().unwrap());
        assert_eq!(table.function().call_as::<i64>((content,)).unwrap(), 1);
        assert_eq!(table.function().call_as::<i64>((&string,)).unwrap(), 1);
        let array = TVMFFIByteArray::from_slice(content.to_bytes());
        let array = TVMFFIAny::from_ptr(TypeIndex::BYTE_ARRAY_PTR, (&raw const array).cast_mut().cast());
        // SAFETY: the array lives for the calls.
        let array = unsafe { AnyView::from_raw(array) };
        assert_eq!(table.function().call_as::<i64>((array,)).unwrap(), 2);
        assert_eq!(table.function().call_as::<i64>((Bytes::new(content.to_bytes()),)).unwrap(), 2);
        assert_eq!(calls.load(std::sync::atomic::Ordering::SeqCst), 2);
        // an r-value reference to a string counts as the string, and the string stays the caller's
        let mut object = string.clone().to_arg_object();
        if let Some(object) = &mut object {
            let moved = TVMFFIAny::from_ptr(TypeIndex::OBJECT_RVALUE_REF, std::ptr::from_mut(object).cast());
            // SAFETY: the reference points at an object pointer that lives for the call.
            let moved = unsafe { AnyView::from_raw(moved) };
            assert_eq!(table.function().call_as::<i64>((moved,)).unwrap(), 1);
            assert!(!object.is_null());
        }
        drop(string);
    }
}

/// The object pointer of a string that is on the heap.
trait ToArgObject {
    fn to_arg_object(self) -> Option<*mut std::ffi::c_void>;
}

impl ToArgObject for Str {
    fn to_arg_object(self) -> Option<*mut std::ffi::c_void> {
        let raw = *Any::from(self).as_raw();
        TypeIndex(raw.type_index).is_object().then(|| raw.ptr())
    }
}

/// C20.1: the function gets the arguments after the key; on_miss gets all of them.
#[test]
fn the_function_gets_the_arguments_after_the_key() {
    let on_miss = packed(|args| {
        let made_for = args.len();
        Ok(packed(move |args| {
            let sum = args.iter().map(|arg| arg.cast::<i64>()).sum::<Result<i64, _>>()?;
            Ok((sum * 100 + made_for as i64).into())
        })
        .into())
    });
    let table = DispatchTable::new("sum", ["a", "b"], on_miss, None).unwrap();
    for _ in 0..3 {
        assert_eq!(table.function().call_as::<i64>((1, 2, 3, 4)).unwrap(), 704);
    }
    // the first call of a key decides what on_miss gets
    assert_eq!(table.function().call_as::<i64>((1, 2)).unwrap(), 4);
    let error = table.function().call((1, 2, "x")).unwrap_err();
    assert_eq!(text(&error), "TypeError: expected int, got ffi.SmallStr");
}

/// C20.5: an argument that on_miss could take over stays for the function.
#[test]
fn on_miss_takes_over_no_argument() {
    let on_miss = packed(|args| {
        let taken: Tensor = args[1].cast()?;
        drop(taken);
        Ok(packed(|args| Ok(args[0].cast::<Tensor>()?.shape()[0].into())).into())
    });
    let table = table(on_miss, None);
    for _ in 0..2 {
        let tensor = Tensor::from_slice(&[1.0f32, 2.0, 3.0], &[3]).unwrap();
        let mut object = tensor.into_object().into_raw();
        let moved = TVMFFIAny::from_ptr(TypeIndex::OBJECT_RVALUE_REF, (&raw mut object).cast());
        // SAFETY: the reference points at an object pointer that owns a reference.
        let moved = unsafe { AnyView::from_raw(moved) };
        assert_eq!(table.function().call_as::<i64>((7, moved)).unwrap(), 3);
        assert!(object.is_null());
    }
}

/// C20.2 and C20.3: mistakes in calls.
#[test]
fn mistakes_in_calls_are_errors() {
    let (on_miss, _) = counting();
    let table = DispatchTable::new("grow", ["dtype", "n"], on_miss, None).unwrap();
    let message = |error: tvm_ffi_codegen::runtime::Error| text(&error);
    assert_eq!(
        message(table.function().call((1,)).unwrap_err()),
        "TypeError: Mismatched number of arguments when calling: `grow(dtype, n, ...)`, expected at least 2, got 1"
    );
    let tensor = Tensor::from_slice(&[1.0f32], &[1]).unwrap();
    assert_eq!(
        message(table.function().call((1, &tensor)).unwrap_err()),
        "TypeError: Mismatched type of n on argument #1 when calling: `grow(dtype, n, ...)`, expected None, bool, int, \
         float, dtype, device, str or bytes, got Tensor"
    );
    assert_eq!(
        message(table.insert((1,), constant(1)).unwrap_err()),
        "ValueError: Mismatched length of a key of `grow(dtype, n, ...)`, expected 2, got 1"
    );
    assert_eq!(
        message(table.remove((&tensor, 1)).unwrap_err()),
        "TypeError: Mismatched type of dtype in a key of `grow(dtype, n, ...)`, expected None, bool, int, float, dtype, \
         device, str or bytes, got Tensor"
    );
    let mut result = TVMFFIAny::none();
    let function = table.function();
    for count in [-1, 0, 2] {
        // SAFETY: the arguments are NULL, which the table must stand.
        let code =
            unsafe { function.as_safe_call()(function.as_raw_handle(), std::ptr::null(), count, &raw mut result) };
        assert_eq!(code, -1);
        assert!(tvm_ffi_codegen::runtime::error::take_raised().is_some());
    }
    assert_eq!(table.stats().misses, 0);
}

/// C20.2: a table without key values has one function.
#[test]
fn a_table_may_have_no_key() {
    let (on_miss, _) = counting();
    let table = DispatchTable::new("once", [""; 0], on_miss, None).unwrap();
    assert_eq!(table.function().call_as::<i64>(()).unwrap(), 1);
    assert_eq!(table.function().call_as::<i64>(("any",)).unwrap(), 1);
    assert_eq!(table.entries().len(), 1);
    table.insert((), constant(5)).unwrap();
    assert_eq!(table.function().call_as::<i64>(()).unwrap(), 5);
}

/// C20.2: the mistakes that a table can't be made with.
#[test]
fn mistakes_in_tables_are_errors() {
    let make = |keys: &[&str], most| {
        DispatchTable::new("grow", keys.iter().copied(), counting().0, most).map(drop).map_err(|error| text(&error))
    };
    let wrong = |message: &str| Err(format!("ValueError: table `grow`: {message}"));
    assert_eq!(make(&["n"], Some(0)), wrong("max_entries: expected at least 1, got 0"));
    assert_eq!(make(&["n", "m", "n"], None), wrong("two keys have the name \"n\""));
    assert_eq!(make(&["n", ""], None), wrong("the name of key 1 is empty"));
    assert_eq!(make(&["n"], Some(1)), Ok(()));
}

/// More than the first slots hold, with keys that are found again.
#[test]
fn a_table_grows() {
    // slots grow from 16
    let count = if cfg!(miri) { 20 } else { 1000 };
    let (on_miss, calls) = counting();
    let table = table(on_miss, None);
    for round in 0..3 {
        for key in 0..count {
            assert_eq!(call(&table, key * key).unwrap(), key + 1, "round {round}");
        }
    }
    assert_eq!(calls.load(std::sync::atomic::Ordering::SeqCst), count);
    let stats = table.stats();
    assert_eq!(
        (stats.hits, stats.misses, stats.entries, stats.evictions),
        (2 * count as u64, count as u64, count as usize, 0)
    );
}

/// All functions of a table, as other languages call them.
#[test]
fn functions_for_other_languages() {
    let (on_miss, _) = counting();
    let table = DispatchTable::new("grow", ["n", "name"], on_miss, Some(2)).unwrap();
    let functions = table.functions();
    let function = |name: &str| functions.get(name).unwrap().unwrap();
    let array =
        |n: i64, name: &str| tvm_ffi_codegen::runtime::Array::from(vec![Any::from(n), Any::from(Str::new(name))]);
    assert_eq!(function("call").call_as::<i64>((1, "a")).unwrap(), 1);
    function("insert").call((array(2, "b"), constant(70))).unwrap();
    assert_eq!(function("call").call_as::<i64>((2, "b")).unwrap(), 70);
    let keys = tvm_ffi_codegen::runtime::Array::from(vec![array(2, "b").into(), array(3, "c").into()]);
    function("prewarm").call((keys,)).unwrap();
    assert_eq!(function("call").call_as::<i64>((3, "c")).unwrap(), 2);
    let entries: tvm_ffi_codegen::runtime::Array = function("entries").call_as(()).unwrap();
    let shown: Vec<(i64, String, i64)> = entries
        .as_slice()
        .iter()
        .map(|pair| {
            let pair: tvm_ffi_codegen::runtime::Array = pair.cast().unwrap();
            let key: tvm_ffi_codegen::runtime::Array = pair.as_slice()[0].cast().unwrap();
            let made: Function = pair.as_slice()[1].cast().unwrap();
            let (n, name) = (key.as_slice()[0].cast().unwrap(), key.as_slice()[1].cast().unwrap());
            (n, name, made.call_as(()).unwrap())
        })
        .collect();
    assert_eq!(shown, [(2, "b".to_owned(), 70), (3, "c".to_owned(), 2)]);
    let stats: tvm_ffi_codegen::runtime::Map<String, i64> = function("stats").call_as(()).unwrap();
    let number = |name: &str| stats.get(name).unwrap().unwrap();
    assert_eq!((number("misses"), number("evictions"), number("entries"), number("errors")), (2, 1, 2, 0));
    assert!(number("on_miss_ns") > 0);
    assert!(function("remove").call_as::<bool>((array(2, "b"),)).unwrap());
    assert!(!function("remove").call_as::<bool>((array(2, "b"),)).unwrap());
    function("clear").call(()).unwrap();
    assert!(table.entries().is_empty());
    let error = function("insert").call((array(1, "a").as_slice()[0].clone(), constant(1))).unwrap_err();
    assert_eq!(error.kind(), "TypeError");
    let error = function("prewarm").call((1, 2)).unwrap_err();
    assert_eq!(text(&error), "TypeError: prewarm: expected 1 argument, an array of keys, got 2");
}
