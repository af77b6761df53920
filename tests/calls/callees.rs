//! The functions that the bodies of these tests call.

use std::cell::RefCell;
use std::ffi::c_void;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use tvm_ffi_codegen::runtime::abi::{TVMFFIAny, TypeIndex};
use tvm_ffi_codegen::runtime::error::set_raised;
use tvm_ffi_codegen::runtime::registry::{get_global, set_global};
use tvm_ffi_codegen::runtime::{Any, AnyView, Array, AsObject, Dict, Error, Function, List, Map, Shape, Str, Tensor};

use crate::support::recording::note;
use crate::support::recording::real::{TVMFFIFunctionCall, TVMFFIObjectDecRef};
use crate::support::{allocator, modules};

/// Registers the functions as global functions, once.
pub fn register() {
    LazyLock::force(&NAMES);
}

/// A period in which no other thread calls these functions.
pub struct Alone {
    _lock: MutexGuard<'static, ()>,
}

/// Waits until no other test calls these functions.
pub fn alone() -> Alone {
    static LOCK: Mutex<()> = Mutex::new(());
    Alone { _lock: LOCK.lock().unwrap_or_else(PoisonError::into_inner) }
}

impl Alone {
    /// The functions with their reference counts.
    pub fn references(&self) -> Vec<(&'static str, u32)> {
        let references = |name| get_global(name).map_or(0, |function| function.as_object().strong_count());
        NAMES.iter().map(|&name| (name, references(name))).collect()
    }
}

/// The names of the functions. Reading them registers the functions.
static NAMES: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    allocator::install();
    functions().into_iter().map(|(name, function)| set_global(name, function, false).map(|()| name).unwrap()).collect()
});

fn functions() -> Vec<(&'static str, Function)> {
    let made = |name, value: fn() -> Any| (name, Function::from_packed(move |_| Ok(value())));
    let packed = |name, function: fn(&[AnyView<'_>]) -> Result<Any, Error>| (name, Function::from_packed(function));
    // SAFETY: the functions follow the convention.
    let extern_c = |name, function| (name, unsafe { Function::from_extern_c(std::ptr::null_mut(), function, None) });
    vec![
        made("calls.int", || Any::from(42)),
        made("calls.none", Any::none),
        made("calls.float", || Any::from(2.5)),
        made("calls.small", || Any::from("small")),
        made("calls.text", || Any::from("a text that is not small")),
        made("calls.bytes", || tvm_ffi_codegen::runtime::Bytes::new(b"bytes that are not small").into()),
        made("calls.shape", || Shape::new(&[2, 3]).into()),
        made("calls.tensor", tensor),
        made("calls.function", || Function::from_packed(|args| args[0].to_owned()).into()),
        made("calls.array", || Array::from(vec![Any::from(1), tensor()]).into()),
        made("calls.list", || List::from(vec![Any::from("a text that is not small")]).into()),
        made("calls.map", || Map::try_from_entries([("a", 1)]).unwrap().into()),
        made("calls.dict", || Dict::try_from_entries([("a", 1)]).unwrap().into()),
        made("calls.module", || modules::empty("calls").into()),
        packed("calls.echo", |args| args[0].to_owned()),
        packed("calls.get", |args| {
            let name = args[0].cast::<Str>()?;
            Ok(get_global(name.as_str()).map_or_else(Any::none, Any::from))
        }),
        packed("calls.fail", |_| Err(Error::new("KeyError", "the callee's own words"))),
        extern_c("calls.take", take),
        extern_c("calls.apply", apply),
        extern_c("calls.silent", silent),
        extern_c("calls.code", code),
    ]
}

fn tensor() -> Any {
    Tensor::from_slice(&[1f32, 2.0, 3.0], &[3]).map_or_else(|_| Any::none(), Any::from)
}

/// A symbol with its address.
type Symbol = (&'static str, fn() -> *const u8);

/// Functions that bodies call by symbol.
pub const SYMBOLS: &[Symbol] = &[("__tvm_ffi_calls_take", || take as *const u8)];

/// Takes every object that is passed by an rvalue reference, and returns their number.
unsafe extern "C" fn take(_: *mut c_void, args: *const TVMFFIAny, count: i32, result: *mut TVMFFIAny) -> i32 {
    let mut taken = 0;
    for i in 0..count as usize {
        // SAFETY: the array has that many arguments, and an rvalue reference leads to a pointer that its callee may
        // empty.
        unsafe {
            let arg = args.add(i).read();
            if arg.type_index == TypeIndex::OBJECT_RVALUE_REF.0 {
                let place = arg.ptr().cast::<*mut c_void>();
                assert_eq!(TVMFFIObjectDecRef(place.replace(std::ptr::null_mut())), 0);
                taken += 1;
            }
        }
    }
    note(|| format!("{taken} taken"));
    // SAFETY: `result` is a valid place for a value.
    unsafe { result.write(Any::from(taken).into_raw()) };
    0
}

thread_local! {
    /// The last error raised by `calls.code`.
    static RAISED: RefCell<Option<Error>> = const { RefCell::new(None) };
}

/// Takes the last error raised by `calls.code`.
pub fn take_raised_by_code() -> Option<Error> {
    RAISED.take()
}

/// (f: Function, ...): calls `f` with the other arguments
unsafe extern "C" fn apply(_: *mut c_void, args: *const TVMFFIAny, count: i32, result: *mut TVMFFIAny) -> i32 {
    // SAFETY: the array has that many arguments, and the first is a function.
    unsafe { TVMFFIFunctionCall(args.read().ptr(), args.add(1).cast_mut(), count - 1, result) }
}

/// (code: int64): returns the code, and raises nothing
unsafe extern "C" fn silent(_: *mut c_void, args: *const TVMFFIAny, _: i32, _: *mut TVMFFIAny) -> i32 {
    // SAFETY: there is one argument.
    unsafe { args.read().bits() as i32 }
}

/// (code: int64): returns the code, and raises an error
unsafe extern "C" fn code(_: *mut c_void, args: *const TVMFFIAny, _: i32, _: *mut TVMFFIAny) -> i32 {
    let error = Error::new("KeyError", "of a code");
    set_raised(error.clone());
    RAISED.set(Some(error));
    // SAFETY: there is one argument.
    unsafe { args.read().bits() as i32 }
}
