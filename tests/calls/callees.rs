//! The functions that bodies of these tests call.

use std::cell::RefCell;
use std::ffi::c_void;
use std::sync::LazyLock;

use tvm_ffi_codegen::runtime::abi::{TVMFFIAny, TypeIndex};
use tvm_ffi_codegen::runtime::capi::TVMFFIObjectDecRef;
use tvm_ffi_codegen::runtime::error::set_raised;
use tvm_ffi_codegen::runtime::registry::{get_global, set_global};
use tvm_ffi_codegen::runtime::{Any, Array, Dict, Error, Function, List, Map, Module, Shape, Str, Tensor};

/// Registers them as global functions, once.
pub fn register() {
    static REGISTERED: LazyLock<()> = LazyLock::new(|| {
        let add = |name: &str, function: Function| set_global(name, function, false).unwrap();
        let made = |name: &str, value: fn() -> Any| add(name, Function::from_packed(move |_| Ok(value())));
        made("calls.int", || Any::from(42));
        made("calls.none", Any::none);
        made("calls.float", || Any::from(2.5));
        made("calls.small", || Any::from("small"));
        made("calls.text", || Any::from("a text that is not small"));
        made("calls.bytes", || tvm_ffi_codegen::runtime::Bytes::new(b"bytes that are not small").into());
        made("calls.shape", || Shape::new(&[2, 3]).into());
        made("calls.tensor", tensor);
        made("calls.function", || Function::from_packed(|args| args[0].to_owned()).into());
        made("calls.array", || Array::from(vec![Any::from(1), tensor()]).into());
        made("calls.list", || List::from(vec![Any::from("a text that is not small")]).into());
        made("calls.map", || Map::try_from_entries([("a", 1)]).unwrap().into());
        made("calls.dict", || Dict::try_from_entries([("a", 1)]).unwrap().into());
        made("calls.module", || Module::new("calls", []).into());
        add("calls.echo", Function::from_packed(|args| args[0].to_owned()));
        add("calls.apply", Function::from_packed(|args| args[0].cast::<Function>()?.call_packed(&args[1..])));
        add(
            "calls.get",
            Function::from_packed(|args| {
                let name = args[0].cast::<Str>()?;
                Ok(get_global(name.as_str()).map_or_else(Any::none, Any::from))
            }),
        );
        add("calls.fail", Function::from_packed(|_| Err(Error::new("KeyError", "the callee's own words"))));
        // SAFETY: the functions follow the convention.
        unsafe {
            add("calls.take", Function::from_extern_c(std::ptr::null_mut(), take, None));
            add("calls.silent", Function::from_extern_c(std::ptr::null_mut(), silent, None));
            add("calls.code", Function::from_extern_c(std::ptr::null_mut(), code, None));
        }
    });
    LazyLock::force(&REGISTERED);
}

fn tensor() -> Any {
    Tensor::from_slice(&[1f32, 2.0, 3.0], &[3]).map_or_else(|_| Any::none(), Any::from)
}

/// A module that other libraries import.
pub fn module() -> Module {
    let echo = Function::from_packed(|args| args[0].to_owned());
    let fail = Function::from_packed(|_| Err(Error::new("KeyError", "the import's own words")));
    Module::new("calls", [("echo".to_owned(), echo), ("fail".to_owned(), fail)])
}

/// The addresses of functions that bodies call by their symbols.
pub const SYMBOLS: &[(&str, fn() -> *const u8)] = &[("__tvm_ffi_calls_take", || take as *const u8)];

/// Takes every object that it gets by an rvalue reference, and returns how many there were.
unsafe extern "C" fn take(_: *mut c_void, args: *const TVMFFIAny, count: i32, result: *mut TVMFFIAny) -> i32 {
    let mut taken = 0;
    for i in 0..count as usize {
        // SAFETY: there are so many arguments, and an rvalue reference leads to a pointer that its callee may empty.
        unsafe {
            let arg = args.add(i).read();
            if arg.type_index == TypeIndex::OBJECT_RVALUE_REF.0 {
                let place = arg.ptr().cast::<*mut c_void>();
                assert_eq!(TVMFFIObjectDecRef(place.replace(std::ptr::null_mut())), 0);
                taken += 1;
            }
        }
    }
    // SAFETY: a result takes a value.
    unsafe { result.write(Any::from(taken).into_raw()) };
    0
}

thread_local! {
    /// The error that `calls.code` has raised last.
    static RAISED: RefCell<Option<Error>> = const { RefCell::new(None) };
}

/// Takes the error that `calls.code` has raised.
pub fn take_raised_by_code() -> Option<Error> {
    RAISED.take()
}

/// (code: int64), which it returns
unsafe extern "C" fn silent(_: *mut c_void, args: *const TVMFFIAny, _: i32, _: *mut TVMFFIAny) -> i32 {
    // SAFETY: there is one argument.
    unsafe { args.read().bits() as i32 }
}

/// (code: int64), which it returns, with an error raised
unsafe extern "C" fn code(_: *mut c_void, args: *const TVMFFIAny, _: i32, _: *mut TVMFFIAny) -> i32 {
    let error = Error::new("KeyError", "of a code");
    set_raised(error.clone());
    RAISED.set(Some(error));
    // SAFETY: there is one argument.
    unsafe { args.read().bits() as i32 }
}
