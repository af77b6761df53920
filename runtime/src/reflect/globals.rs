//! The global functions of reflection.

use std::cmp::Ordering;
use std::ffi::c_void;
use std::mem::transmute;

use super::{accessors, compare, copy, create, hash, init, instance, json, repr, types};
use crate::abi::*;
use crate::any::{Any, AnyView};
use crate::container::Array;
use crate::error::{Result, runtime_error, value_error};
use crate::function::Function;
use crate::heap::ObjectRef;
use crate::object::kwargs;
use crate::registry::{Globals, with_args};
use crate::string::raw_str_from_bytes;
use crate::type_table::{is_instance, keys, register_attr};

/// The global functions of reflection.
pub(crate) fn globals(globals: &mut Globals) {
    values(globals);
    globals.fixed("ffi.GetKwargsObject", |[]| Ok(kwargs().into()));
    globals.fixed("ffi.GetRegisteredTypeKeys", |[]| {
        // SAFETY: each value is a new one.
        Ok(keys().iter().map(|key| unsafe { Any::from_raw(raw_str_from_bytes(key)) }).collect::<Array>().into())
    });
    globals.fixed("ffi.FunctionFromExternC", |[handle, call, deleter]| {
        let (handle, call, deleter): (_, *mut c_void, *mut c_void) = (handle.cast()?, call.cast()?, deleter.cast()?);
        // SAFETY: NULL is `None`. Passing pointers takes unsafe code, and that code is responsible for their validity.
        unsafe {
            let call = transmute::<*mut c_void, Option<TVMFFISafeCallType>>(call);
            let deleter = transmute::<*mut c_void, Option<unsafe extern "C" fn(*mut c_void)>>(deleter);
            let call = call.ok_or_else(|| value_error("ffi.FunctionFromExternC: the callable is NULL"))?;
            Ok(Function::from_extern_c(handle, call, deleter).into())
        }
    });
    globals.packed("ffi.MakeObjectFromPackedArgs", create::from_fields);
    globals.fixed("ffi.MakeFieldGetter", |[index]| accessors::make_getter(index.cast()?).map(Any::from));
    globals.fixed("ffi.MakeFieldSetter", |[index, converter, convert]| {
        // SAFETY: safe code can't get this function from the table. Any other code that calls it is responsible for the
        // addresses that it passes.
        unsafe { accessors::make_setter(index.cast()?, converter.cast()?, convert.cast()?) }.map(Any::from)
    });
    globals.fixed("ffi._RegisterFFIInit", |[index]| init::register(TypeIndex(index.cast()?)).map(Any::from));
    globals.fixed("ffi._PyClassRegisterTypeAttrColumns", |[index, size]| {
        register_class(TypeIndex(index.cast()?), size.cast()?).map(Any::from)
    });
    globals.fixed("ffi.VisitInterrupt", |[value]| types::visit_interrupt(value.to_owned()?).map(Any::from));
}

/// The global functions that take any value.
fn values(globals: &mut Globals) {
    globals.fixed("ffi.ReprPrint", |[value]| Ok(Any::from(repr::repr(&value.to_owned()?)?.as_str())));
    globals.fixed("ffi.DeepCopy", |[value]| copy::deep_copy(&value.to_owned()?));
    globals.fixed("ffi.RecursiveHash", |[value]| Ok(hash::hash(&value.to_owned()?)?.cast_signed().into()));
    globals.fixed("ffi.RecursiveEq", |[one, other]| Ok(compare::equal(&one.to_owned()?, &other.to_owned()?)?.into()));
    globals.fixed("ffi.RecursiveLt", |args| ordered(args, Ordering::is_lt));
    globals.fixed("ffi.RecursiveLe", |args| ordered(args, Ordering::is_le));
    globals.fixed("ffi.RecursiveGt", |args| ordered(args, Ordering::is_gt));
    globals.fixed("ffi.RecursiveGe", |args| ordered(args, Ordering::is_ge));
    globals.fixed("ffi.json.Parse", |[text]| json::parse(text));
    globals.fixed("ffi.json.Stringify", |[value, indent]| {
        json::stringify(&value.to_owned()?, indent.cast::<Option<i32>>()?.unwrap_or(0))
    });
}

fn ordered([one, other]: &[AnyView<'_>; 2], holds: fn(Ordering) -> bool) -> Result<Any> {
    Ok(holds(compare::order(&one.to_owned()?, &other.to_owned()?)?).into())
}

/// Registers the attributes that make and copy objects, for a type that another language defines by its fields.
fn register_class(index: TypeIndex, total_size: i32) -> Result<()> {
    // Make an object and drop it, to refuse fields outside of the object now.
    drop(instance::create(index, total_size)?);
    init::register(index)?;
    let new = with_args("() -> ffi.Object", move |[]| instance::create(index, total_size).map(Any::from));
    register_attr(index.0, b"__ffi_new__", Any::from(new).as_view())?;
    let copy = with_args("(ffi.Object) -> ffi.Object", move |[source]| {
        let source: ObjectRef = source.cast()?;
        if !is_instance(source.type_index(), index) {
            return Err(runtime_error(&format!(
                "a shallow copy of an object of another type, `{}`",
                source.type_key()
            )));
        }
        // SAFETY: an object of the type or a derived one has these fields.
        unsafe { instance::shallow_copy(index, total_size, &source).map(Any::from) }
    });
    register_attr(index.0, b"__ffi_shallow_copy__", Any::from(copy).as_view())
}
