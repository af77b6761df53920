//! Getters and setters of fields for each type of stored value. `ffi.MakeFieldGetter` and `ffi.MakeFieldSetter` provide
//! them to other languages for their own types.
//! Header sections: `TVMFFIFieldGetter`, `TVMFFIFieldSetter`.

use std::ffi::{c_int, c_void};
use std::mem::transmute;

use crate::abi::*;
use crate::any::{Any, AnyView, TryFromAny};
use crate::boundary::{guard, null_argument, required, required_out};
use crate::container::{Dict, List};
use crate::error::{Result, raised_error, runtime_error, type_error, value_error};
use crate::function::Function;
use crate::heap::ObjectRef;
use crate::registry::with_args;
use crate::string::Str;

/// The representation of a value in a field's memory.
///
/// # Safety
/// All bits zero must be a valid value, and `load` and `drop` must be sound for it. A field of a new object has this
/// value until it is set.
pub(crate) unsafe trait Stored: Clone {
    /// The type's name in messages.
    const NAME: &'static str;

    fn load(&self) -> Any;
    fn store(value: AnyView<'_>) -> Result<Self>;
}

macro_rules! stored {
    ($($ty:ty: $name:literal, $load:expr;)*) => {$(
        // SAFETY: all bits zero are a valid number, data type, device (of an unknown kind), None, or missing object.
        unsafe impl Stored for $ty {
            const NAME: &'static str = $name;

            fn load(&self) -> Any {
                let load: fn(&Self) -> Any = $load;
                load(self)
            }

            fn store(value: AnyView<'_>) -> Result<Self> {
                convert(value, Self::NAME)
            }
        }
    )*};
}

/// Converts the value to a `T`, which upstream calls `name` in its error message.
pub(crate) fn convert<T: TryFromAny>(value: AnyView<'_>, name: &str) -> Result<T> {
    value.cast().map_err(|_| type_error(&format!("Cannot convert from type `{}` to `{name}`", value.type_key())))
}

stored! {
    i32: "int", |&value| value.into();
    i64: "int", |&value| value.into();
    f64: "float", |&value| value.into();
    DLDataType: "DataType", |&value| value.into();
    DLDevice: "Device", |&value| value.into();
    Any: "Any", Any::clone;
    Option<ObjectRef>: "ffi.Object", |value| value.clone().into();
}

/// A string in a field, or None. A [`Str`] can't be stored directly, since all bits zero are not a valid one.
#[derive(Clone)]
#[repr(transparent)]
pub(crate) struct Text(Any);

// SAFETY: zero is None, which owns nothing.
unsafe impl Stored for Text {
    const NAME: &'static str = "str";

    fn load(&self) -> Any {
        self.0.clone()
    }

    fn store(value: AnyView<'_>) -> Result<Self> {
        convert::<Str>(value, Self::NAME).map(|text| Self(text.into()))
    }
}

/// A container in a field, or NULL.
macro_rules! stored_containers {
    ($($ty:ty: $name:literal;)*) => {$(
        // SAFETY: a container is a pointer that is never NULL, so zero is `None`.
        unsafe impl Stored for Option<$ty> {
            const NAME: &'static str = $name;

            fn load(&self) -> Any {
                self.clone().into()
            }

            fn store(value: AnyView<'_>) -> Result<Self> {
                convert::<$ty>(value, Self::NAME).map(Some)
            }
        }
    )*};
}

stored_containers! {
    List: "List<ffi.Object>";
    Dict: "Dict<Any, ffi.Object>";
}

/// A boolean in a field. Any nonzero byte is true.
#[derive(Clone)]
#[repr(transparent)]
pub(crate) struct Flag(u8);

// SAFETY: zero is false.
unsafe impl Stored for Flag {
    const NAME: &'static str = "bool";

    fn load(&self) -> Any {
        (self.0 != 0).into()
    }

    fn store(value: AnyView<'_>) -> Result<Self> {
        convert::<bool>(value, Self::NAME).map(|value| Self(value.into()))
    }
}

/// An untyped pointer in a field.
#[derive(Clone)]
#[repr(transparent)]
pub(crate) struct Pointer(*mut c_void);

// SAFETY: zero is NULL.
unsafe impl Stored for Pointer {
    const NAME: &'static str = "void*";

    fn load(&self) -> Any {
        // SAFETY: the code that stored the pointer is responsible for its validity.
        unsafe { Any::from_opaque_ptr(self.0) }
    }

    fn store(value: AnyView<'_>) -> Result<Self> {
        convert(value, Self::NAME).map(Self)
    }
}

/// The getter of fields that store a `T`.
///
/// # Safety
/// As [`TVMFFIFieldGetter`]: `field` must point at a `T`.
pub(crate) unsafe extern "C" fn getter<T: Stored>(field: *mut c_void, result: *mut TVMFFIAny) -> c_int {
    guard(|| {
        let result = required_out(result, "result")?;
        // SAFETY: promised by the caller.
        let value = unsafe { required(field.cast::<T>(), "field")? }.load();
        // SAFETY: the result is readable, and this reads only its type index.
        if TypeIndex(unsafe { (*result).type_index }).is_object() {
            return Err(runtime_error("result must be initialised to None"));
        }
        // SAFETY: as above; the result is also writable, and owns nothing that would leak.
        unsafe { result.write(value.into_raw()) };
        Ok(())
    })
}

/// The setter of fields that store a `T`.
///
/// # Safety
/// As [`TVMFFIFieldSetter`]: `field` must point at a `T`, and no other code may use the field meanwhile.
pub(crate) unsafe extern "C" fn setter<T: Stored>(field: *mut c_void, value: *const TVMFFIAny) -> c_int {
    guard(|| {
        if field.is_null() {
            return Err(null_argument("field"));
        }
        // SAFETY: promised by the caller.
        let new = T::store(unsafe { AnyView::from_raw(*required(value, "value")?) })?;
        // SAFETY: promised by the caller. The old value is dropped after the new one is stored.
        drop(unsafe { field.cast::<T>().replace(new) });
        Ok(())
    })
}

/// The getter and setter of fields of a declared type.
fn of_type(index: TypeIndex) -> Option<(TVMFFIFieldGetter, TVMFFIFieldSetter)> {
    Some(match index {
        TypeIndex::INT => (getter::<i64>, setter::<i64>),
        TypeIndex::FLOAT => (getter::<f64>, setter::<f64>),
        TypeIndex::BOOL => (getter::<Flag>, setter::<Flag>),
        TypeIndex::OPAQUE_PTR => (getter::<Pointer>, setter::<Pointer>),
        TypeIndex::DATA_TYPE => (getter::<DLDataType>, setter::<DLDataType>),
        TypeIndex::DEVICE => (getter::<DLDevice>, setter::<DLDevice>),
        TypeIndex::ANY | TypeIndex::NONE => (getter::<Any>, setter::<Any>),
        index if index.is_object() => (getter::<Option<ObjectRef>>, setter::<Option<ObjectRef>>),
        _ => return None,
    })
}

/// `ffi.MakeFieldGetter`: the address of the getter of fields of a declared type.
///
/// # Errors
/// `ValueError` for a type that a field can't have.
pub(crate) fn make_getter(index: i32) -> Result<i64> {
    let (getter, _) = of_type(TypeIndex(index))
        .ok_or_else(|| value_error(&format!("Unsupported field type index for getter: {index}")))?;
    Ok((getter as *const c_void).expose_provenance() as i64)
}

/// A function that converts a value for a field. It returns 0 on success.
type Convert = unsafe extern "C" fn(converter: *mut c_void, value: *const TVMFFIAny, result: *mut TVMFFIAny) -> c_int;

/// `ffi.MakeFieldSetter`: makes a function that takes the address of a field and a value, converts the value, and sets
/// the field.
///
/// # Errors
/// `ValueError` if `convert` is NULL.
///
/// # Safety
/// `convert` must be the address of a [`Convert`] that may be called on any thread with `converter`, for as long as the
/// function lives. The code that calls the function is responsible for the address of the field. Passing an address
/// takes unsafe code.
pub(crate) unsafe fn make_setter(index: i32, converter: i64, convert: i64) -> Result<Function> {
    let address = |number: i64| std::ptr::with_exposed_provenance_mut::<c_void>(number as usize);
    // SAFETY: promised by the caller; NULL is `None`.
    let convert = unsafe { transmute::<*mut c_void, Option<Convert>>(address(convert)) };
    let convert = convert.ok_or_else(|| value_error("ffi.MakeFieldSetter: the conversion is NULL"))?;
    Ok(with_args("(void*, Any) -> void", move |[place, value]| {
        let place: *mut c_void = place.cast()?;
        let (raw, mut converted) = (value.as_raw(), TVMFFIAny::none());
        // SAFETY: promised by the caller of `make_setter`.
        let code = unsafe { convert(address(converter), &raw const raw, &raw mut converted) };
        // SAFETY: the conversion writes an owned value, or leaves None.
        let converted = unsafe { Any::from_raw(converted) };
        if code != 0 {
            return Err(raised_error(code));
        }
        let Some((_, setter)) = of_type(TypeIndex(index)) else {
            return Err(value_error(&format!("Unsupported field type index for setter: {index}")));
        };
        // SAFETY: the code that passes the address of a field is responsible for it.
        match unsafe { setter(place, converted.as_raw()) } {
            0 => Ok(Any::none()),
            code => Err(raised_error(code)),
        }
    }))
}
