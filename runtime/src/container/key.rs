//! When two values are the same key, and their hash.
//! Strings and bytes are compared by content, whether small or on the heap; all other values by
//! type and bits: `1`, `true` and `1.0` differ, so do `0.0` and `-0.0`, and an object equals itself
//! only, unless its type has the attributes `__any_hash__` and `__any_equal__`.
//! Rules: upstream's `AnyHash` and `AnyEqual` in any.h.

use std::ffi::c_void;
use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

use crate::abi::{TVMFFIAny, TypeIndex};
use crate::any::{Any, TryFromAny};
use crate::error::{Error, Result, runtime_error};
use crate::function::Function;
use crate::string::{Bytes, Str, bytes_of};
use crate::type_table::attr_value;

mod sealed {
    pub trait Sealed {}
}

/// A Rust value that is compared by its content as a key, so that making a map of such keys cannot
/// fail. Only this crate implements it; other keys go through
/// [`Map::try_from_entries`](super::Map::try_from_entries).
pub trait PlainKey: Into<Any> + sealed::Sealed {}

macro_rules! plain_keys {
    ($($ty:ty),*) => {$(
        impl sealed::Sealed for $ty {}
        impl PlainKey for $ty {}
    )*};
}
plain_keys!(i8, i16, i32, i64, u8, u16, u32, u64, isize, usize, bool, f32, f64, &str, String, Str, &[u8], Bytes);

/// The content of a string or bytes, with the type index that both of its forms share here.
fn content(value: &Any) -> Option<(TypeIndex, &[u8])> {
    let index = match value.type_index() {
        TypeIndex::SMALL_STR | TypeIndex::STR => TypeIndex::STR,
        TypeIndex::SMALL_BYTES | TypeIndex::BYTES => TypeIndex::BYTES,
        _ => return None,
    };
    // SAFETY: the type index was checked, and `value` keeps a heap object alive.
    Some((index, unsafe { bytes_of(value.as_raw()) }))
}

/// The hash of a value by content or bits.
pub(super) fn plain_hash(value: &Any) -> u64 {
    // Seeded anew in each process, so that nobody can prepare keys that collide.
    static STATE: OnceLock<RandomState> = OnceLock::new();
    let state = STATE.get_or_init(RandomState::new);
    match content(value) {
        Some(content) => state.hash_one(content),
        None => state.hash_one((value.type_index(), value.as_raw().bits())),
    }
}

/// Whether two values are equal by content or bits.
pub(super) fn plain_equal(a: &Any, b: &Any) -> bool {
    match (content(a), content(b)) {
        (None, None) => a.type_index() == b.type_index() && a.as_raw().bits() == b.as_raw().bits(),
        (a, b) => a == b,
    }
}

/// The hash of a key.
///
/// # Errors
/// What the type's `__any_hash__` raises; `RuntimeError` when that attribute is not callable.
pub(super) fn hash(key: &Any) -> Result<u64> {
    let Some(hook) = hook(key, b"__any_hash__") else {
        return Ok(plain_hash(key));
    };
    let code: i64 = call_hook(&hook, &[key])?;
    Ok(plain_hash(&Any::from(code)))
}

/// Whether two values are the same key.
///
/// # Errors
/// What the type's `__any_equal__` raises; `RuntimeError` when that attribute is not callable.
pub(super) fn equal(a: &Any, b: &Any) -> Result<bool> {
    if plain_equal(a, b) {
        return Ok(true);
    }
    if a.type_index() != b.type_index() {
        return Ok(false);
    }
    hook(a, b"__any_equal__").map_or(Ok(false), |hook| call_hook(&hook, &[a, b]))
}

/// Whether `value` is among `values`.
///
/// # Errors
/// As [`equal`].
pub(super) fn contains(values: &[Any], value: &Any) -> Result<bool> {
    for candidate in values {
        if equal(candidate, value)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// An attribute of the type of an object that is not a string or bytes.
fn hook(value: &Any, name: &[u8]) -> Option<Any> {
    let index = value.type_index();
    if !index.is_object() || matches!(index, TypeIndex::STR | TypeIndex::BYTES) {
        return None;
    }
    attr_value(index, name)
}

/// Calls an attribute, a function object or the address of C code, with one or two values.
fn call_hook<T: TryFromAny>(hook: &Any, args: &[&Any]) -> Result<T> {
    if hook.type_index() == TypeIndex::FUNCTION {
        let args: Vec<_> = args.iter().map(|arg| arg.as_view()).collect();
        return hook.cast::<Function>()?.call_packed(&args)?.cast();
    }
    let address = if hook.type_index() == TypeIndex::OPAQUE_PTR { hook.as_raw().ptr() } else { std::ptr::null_mut() };
    if address.is_null() {
        return Err(runtime_error("an attribute for keys must be a function or the address of one"));
    }
    // SAFETY: an address in these attributes is that of a function which takes pointers to that
    // many values and returns an owned value (upstream's `NativeFunctionView`); whoever registered
    // the attribute, through the C API, promised that.
    let result = unsafe { Any::from_raw(call_address(address, args)) };
    if result.type_index() == TypeIndex::ERROR {
        return Err(result.cast::<Error>()?);
    }
    result.cast()
}

/// # Safety
/// `address` must be that of a function that takes pointers to as many values as there are `args`.
unsafe fn call_address(address: *mut c_void, args: &[&Any]) -> TVMFFIAny {
    type Unary = unsafe extern "C" fn(*const TVMFFIAny) -> TVMFFIAny;
    type Binary = unsafe extern "C" fn(*const TVMFFIAny, *const TVMFFIAny) -> TVMFFIAny;
    // SAFETY: promised by the caller; the values are alive for the call.
    unsafe {
        match args {
            [value] => std::mem::transmute::<*mut c_void, Unary>(address)(value.as_raw()),
            [a, b] => std::mem::transmute::<*mut c_void, Binary>(address)(a.as_raw(), b.as_raw()),
            _ => TVMFFIAny::none(),
        }
    }
}
