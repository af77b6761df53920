use std::ffi::c_void;

use tvm_ffi_runtime::abi::*;
use tvm_ffi_runtime::capi::*;
use tvm_ffi_runtime::{
    Any, AnyView, Array, BigInt, Bytes, Dict, Error, Function, List, Map, Module, ObjectRef, Result, Shape, Str,
    Tensor, ToAnyView, TryFromAny,
};

use crate::support::*;

#[test]
fn numbers_convert_as_upstream() {
    let int = Any::from(3);
    assert_eq!(int.cast::<i64>().unwrap(), 3);
    assert_eq!(int.cast::<f64>().unwrap(), 3.0);
    assert!(int.cast::<bool>().unwrap());
    let boolean = Any::from(true);
    assert_eq!(boolean.cast::<u8>().unwrap(), 1);
    assert_eq!(boolean.cast::<f32>().unwrap(), 1.0);
    let float = Any::from(1.5);
    assert_eq!(float.cast::<f32>().unwrap(), 1.5);
    assert_eq!(float.cast::<i64>().unwrap_err().to_string(), "TypeError: expected int, got float");
    assert!(float.cast::<bool>().is_err());
}

#[test]
fn narrow_integers_are_checked() {
    assert_eq!(Any::from(300).cast::<u8>().unwrap_err().kind(), "ValueError");
    assert_eq!(Any::from(-1).cast::<u64>().unwrap_err().kind(), "ValueError");
    assert_eq!(Any::from(-128).cast::<i8>().unwrap(), -128);
}

#[test]
fn unsigned_integers_keep_their_value() {
    let echo = Function::from_packed(|args| args[0].to_owned());
    let largest = i64::MAX as u64;
    for value in [0, largest, largest + 1, u64::MAX] {
        for any in [Any::from(value), echo.call((value,)).unwrap(), Any::from(value as usize)] {
            assert_eq!(any.cast::<u64>().unwrap(), value);
            assert_eq!(any.cast::<u128>().unwrap(), value.into());
            assert_eq!(any.cast::<i64>().ok(), i64::try_from(value).ok());
            assert_eq!(any.type_index() == TypeIndex::INT, value <= largest);
        }
    }
    assert!(Any::from(u128::from(u64::MAX) + 1).cast::<u64>().is_err());
    let error = Any::from(BigInt::from(-1i128 << 64)).cast::<usize>().unwrap_err();
    assert_eq!(error.to_string(), "ValueError: -18446744073709551616 is out of range for usize");
    // A key above `i64::MAX` is compared by its value, as all keys.
    let map: Map<u64, i64> = [(u64::MAX, 1), (u64::MAX, 2), (5, 3)].into_iter().collect();
    assert_eq!((map.len(), map.get(&u64::MAX).unwrap(), map.get(&5).unwrap()), (2, Some(2), Some(3)));
}

#[test]
fn none_and_pointers() {
    assert_eq!(Any::none().cast::<Option<i32>>().unwrap(), None);
    assert_eq!(Any::from(4).cast::<Option<i32>>().unwrap(), Some(4));
    assert!(Any::none().cast::<*mut c_void>().unwrap().is_null());
    Any::none().cast::<()>().unwrap();
    assert!(Any::from(Option::<i32>::None).is_none());
    assert!(Any::none().cast::<Function>().is_err());
}

#[test]
fn padding_and_payload_are_written_whole() {
    for value in [Any::from(true), Any::from(DLDataType::FLOAT32), Any::from(1.0f32), Any::none()] {
        assert_eq!(value.as_raw().zero_padding, 0);
    }
    assert_eq!(Any::from(true).as_raw().bits(), 1);
    assert_eq!(Any::from(DLDataType::FLOAT32).as_raw().bits(), 0x0001_2002);
    let small = Any::from("ab");
    assert_eq!(small.as_raw().zero_padding, 2);
    assert_eq!(small.as_raw().bits(), u64::from(b'a') | u64::from(b'b') << 8);
}

#[test]
fn strings_cross_the_seven_byte_border() {
    for text in ["", "1234567", "12345678"] {
        let mut out = TVMFFIAny::none();
        // SAFETY: the input is valid and the output writable.
        let got = unsafe { TVMFFIStringFromByteArray(&bytes(text), &mut out) };
        assert_eq!(got, 0);
        // SAFETY: the value is owned.
        let value = unsafe { Any::from_raw(out) };
        let small = text.len() <= 7;
        let want = if small { TypeIndex::SMALL_STR } else { TypeIndex::STR };
        assert_eq!(value.type_index(), want);
        assert_eq!(value.as_str(), Some(text));
        assert_eq!(value.cast::<Str>().unwrap(), text);
        assert_eq!(text.to_arg().as_view().type_index(), want);
    }
}

#[test]
fn bytes_cross_the_seven_byte_border() {
    for len in [0, 7, 8] {
        let data = vec![0xff; len];
        let input = TVMFFIByteArray::from_slice(&data);
        let mut out = TVMFFIAny::none();
        // SAFETY: the input is valid and the output writable.
        assert_eq!(unsafe { TVMFFIBytesFromByteArray(&input, &mut out) }, 0);
        // SAFETY: the value is owned.
        let value = unsafe { Any::from_raw(out) };
        assert_eq!(value.as_bytes(), Some(&data[..]));
        assert_eq!(value.cast::<Bytes>().unwrap(), data[..]);
        assert!(value.cast::<Str>().is_err());
    }
}

#[test]
fn strings_that_are_not_utf8_stay_whole() {
    let mut out = TVMFFIAny::none();
    let input = TVMFFIByteArray::from_slice(&[0xff, 0xfe]);
    // SAFETY: the input is valid and the output writable.
    assert_eq!(unsafe { TVMFFIStringFromByteArray(&input, &mut out) }, 0);
    // SAFETY: the value is owned.
    let value = unsafe { Any::from_raw(out) };
    assert_eq!(value.as_str(), None);
    assert_eq!(value.as_view().str_bytes(), Some(&[0xff, 0xfe][..]));
    assert_eq!(value.cast::<Str>().unwrap_err().kind(), "ValueError");
}

fn to_owned_any(view: &TVMFFIAny) -> Any {
    let mut out = TVMFFIAny::none();
    // SAFETY: the view is valid and the output writable.
    assert_eq!(unsafe { TVMFFIAnyViewToOwnedAny(view, &mut out) }, 0);
    // SAFETY: the value is owned.
    unsafe { Any::from_raw(out) }
}

#[test]
fn views_become_owned() {
    let long = c"a longer string";
    let owned = to_owned_any(&long.to_arg().as_view().as_raw());
    assert_eq!(owned.type_index(), TypeIndex::STR);
    assert_eq!(owned.as_str(), Some("a longer string"));
    let owned = to_owned_any(&c"short".to_arg().as_view().as_raw());
    assert_eq!(owned.type_index(), TypeIndex::SMALL_STR);

    let mut array = bytes("12345678");
    let view = TVMFFIAny::from_ptr(TypeIndex::BYTE_ARRAY_PTR, (&raw mut array).cast());
    assert_eq!(to_owned_any(&view).as_bytes(), Some(&b"12345678"[..]));

    let shape = ObjectRef::from(Shape::new(&[1]));
    let owned = to_owned_any(&shape.to_arg().as_view().as_raw());
    assert_eq!(shape.strong_count(), 2);
    drop(owned);
    assert_eq!(shape.strong_count(), 1);
}

#[test]
fn rvalue_references_move_once() {
    let shape = ObjectRef::from(Shape::new(&[1]));
    let keep = shape.clone();
    let mut place = shape.into_raw();
    let view = TVMFFIAny::from_ptr(TypeIndex::OBJECT_RVALUE_REF, (&raw mut place).cast());
    // SAFETY: the place holds an owned reference.
    let typed = unsafe { AnyView::from_raw(view) };
    // A failed conversion moves nothing.
    assert!(typed.cast::<Function>().is_err());
    assert!(!place.is_null());
    let owned = to_owned_any(&view);
    assert!(place.is_null());
    assert_eq!(keep.strong_count(), 2);
    drop(owned);
    assert_eq!(keep.strong_count(), 1);
    let mut out = TVMFFIAny::none();
    // SAFETY: as above; the reference is gone.
    let code = unsafe { TVMFFIAnyViewToOwnedAny(&view, &mut out) };
    assert_eq!(raised(code).kind(), "RuntimeError");
}

#[test]
fn data_types_and_devices_read_their_names() {
    assert_eq!(Any::from("float16").cast::<DLDataType>().unwrap(), DLDataType::FLOAT16);
    assert_eq!(Any::from("cuda:1").cast::<DLDevice>().unwrap(), DLDevice::cuda(1));
    assert_eq!(Any::from("nope").cast::<DLDataType>().unwrap_err().kind(), "ValueError");
    assert_eq!(Any::from(DLDevice::CPU).cast::<DLDevice>().unwrap(), DLDevice::CPU);
    let mut dtype = DLDataType::VOID;
    let mut out = TVMFFIAny::none();
    // SAFETY: all pointers are valid.
    unsafe {
        assert_eq!(TVMFFIDataTypeFromString(&bytes("bf16x4"), &mut dtype), 0);
        assert_eq!(TVMFFIDataTypeToString(&dtype, &mut out), 0);
        assert_eq!(Any::from_raw(out).as_str(), Some("bfloat16x4"));
        assert_eq!(raised(TVMFFIDataTypeFromString(&bytes("x"), &mut dtype)).kind(), "ValueError");
    }
}

#[test]
fn version_is_reported() {
    let mut version = TVMFFIVersion { major: 9, minor: 9, patch: 9 };
    // SAFETY: writable.
    unsafe { TVMFFIGetVersion(&mut version) };
    assert_eq!(version, TVMFFIVersion { major: 0, minor: 1, patch: 16 });
}

/// Reads a value as a `T`. NULL isn't one.
fn read<T: TryFromAny>(view: AnyView<'_>) {
    let is_null_object = view.type_index().is_object();
    let by_view = view.cast::<T>().is_ok();
    let by_value = view.to_owned().is_ok_and(|value| value.cast::<T>().is_ok());
    assert!(!is_null_object || (!by_view && !by_value), "{}: {}", view.type_key(), std::any::type_name::<T>());
}

#[test]
fn null_is_no_value_of_any_type_of_objects() {
    // Miri takes minutes for all views: it reads the NULLs of built-in objects, and every eighth of the other views.
    let step = if cfg!(miri) { 8 } else { 1 };
    let is_built_in = |index: TypeIndex| index.is_object() && TypeIndex::STATIC_KEYS.iter().any(|key| key.0 == index);
    for (number, view) in crate::hostile::views().into_iter().enumerate() {
        if number % step != 0 && !is_built_in(view.type_index()) {
            continue;
        }
        let (is_object, has_bytes) = (view.type_index().is_object(), view.str_bytes().or(view.as_bytes()).is_some());
        assert!(!is_object || !has_bytes, "{}", view.type_key());
        assert!(view.as_dl_tensor().is_none() && (view.as_str().is_none() || has_bytes));
        assert!(!format!("{view:?}").is_empty());
        if let Ok(value) = view.to_owned() {
            let again = value.clone();
            let bytes = again.as_str().map(str::as_bytes).or(again.as_bytes());
            assert!(!is_object || bytes.is_none());
        }
        read::<i64>(view);
        read::<f64>(view);
        read::<bool>(view);
        read::<Str>(view);
        read::<String>(view);
        read::<Bytes>(view);
        read::<BigInt>(view);
        read::<i128>(view);
        read::<DLDataType>(view);
        read::<DLDevice>(view);
        read::<*mut DLTensor>(view);
        read::<ObjectRef>(view);
        read::<Error>(view);
        read::<Function>(view);
        read::<Shape>(view);
        read::<Tensor>(view);
        read::<Array>(view);
        read::<Array<Str>>(view);
        read::<List>(view);
        read::<Map>(view);
        read::<Map<Str, i64>>(view);
        read::<Dict>(view);
        read::<Module>(view);
    }
    // As C code passes the argument of a function.
    let typed = Function::from_typed(|text: String, bytes: Bytes, more: Option<Str>| {
        text.len() + bytes.len() + more.map_or(0, |more| more.len())
    });
    assert_eq!(typed.call_as::<usize>(("a", b"b".as_slice(), ())).unwrap(), 2);
    let null = |index| TVMFFIAny::from_ptr(index, std::ptr::null_mut());
    // SAFETY: nothing is behind the pointer.
    let (text, bytes) = unsafe { (AnyView::from_raw(null(TypeIndex::STR)), AnyView::from_raw(null(TypeIndex::BYTES))) };
    let message = |outcome: Result<Any>| outcome.unwrap_err().message().to_owned();
    for (number, outcome) in [
        (0, typed.call((text, b"b".as_slice(), ()))),
        (1, typed.call(("a", bytes, ()))),
        (2, typed.call(("a", b"b".as_slice(), text))),
    ] {
        assert!(message(outcome).starts_with(&format!("Mismatched type on argument #{number}")));
    }
    // Containers, and operations that read their contents.
    for view in [text, bytes] {
        let value = view.to_owned().unwrap();
        let array: Array = [value.clone()].into_iter().collect();
        assert!(Map::try_from_entries([(value.clone(), 1)]).unwrap().get(&value).unwrap().is_some());
        assert!(!format!("{array:?}").is_empty());
    }
}
