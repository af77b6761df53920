//! Constructors made from a type's fields, the attribute `__ffi_init__`. `ffi._RegisterFFIInit` registers them; C++
//! definitions of types call it. Rules: upstream's `BindFieldArgs`.

use std::collections::HashMap;

use super::create::empty_object;
use super::field;
use crate::abi::*;
use crate::any::{Any, AnyView};
use crate::error::{Error, Result, type_error};
use crate::function::Function;
use crate::heap::{AsObject, ObjectRef};
use crate::object::kwargs;
use crate::string::Str;
use crate::type_info::key_of;
use crate::type_table::{fields, register_attr};

/// Registers the constructor of a type.
///
/// # Errors
/// `RuntimeError` for an unknown type, or one that already has a constructor.
pub(super) fn register(index: TypeIndex) -> Result<()> {
    let init = Init::new(index)?;
    let function = Function::from_packed(move |args| init.call(args));
    register_attr(index.0, b"__ffi_init__", Any::from(function).as_view())
}

/// The parameters of a type's constructor.
struct Init {
    index: TypeIndex,
    fields: Vec<&'static TVMFFIFieldInfo>,
    /// Indices of fields that may be passed without a name. Those without a default come first.
    positional: Vec<usize>,
    by_name: HashMap<&'static [u8], usize>,
}

// SAFETY: the fields belong to the type table, and don't change after they are registered. Their contract allows use of
// their contents on any thread.
unsafe impl Send for Init {}
// SAFETY: as above.
unsafe impl Sync for Init {}

/// An object that is being constructed. `is_set` records which fields are set.
struct Construction<'a> {
    init: &'a Init,
    object: ObjectRef,
    is_set: Vec<bool>,
}

impl Init {
    fn new(index: TypeIndex) -> Result<Self> {
        let fields = fields(index)?;
        let takes = |info: &TVMFFIFieldInfo| !field::has(info, kTVMFFIFieldFlagBitMaskInitOff);
        let taken = || fields.iter().enumerate().filter(|(_, info)| takes(info));
        let mut positional: Vec<usize> =
            taken().filter(|(_, info)| !field::has(info, kTVMFFIFieldFlagBitMaskKwOnly)).map(|(i, _)| i).collect();
        positional.sort_by_key(|&i| field::has(fields[i], kTVMFFIFieldFlagBitMaskHasDefault));
        let by_name = taken().map(|(i, info)| (field::name(info), i)).collect();
        Ok(Self { index, positional, by_name, fields })
    }

    fn error(&self, message: &str) -> Error {
        type_error(&format!("{}.__ffi_init__() {message}", key_of(self.index)))
    }

    fn call(&self, args: &[AnyView<'_>]) -> Result<Any> {
        let object = empty_object(self.index)?;
        let mut construction = Construction { init: self, object, is_set: vec![false; self.fields.len()] };
        let marker = kwargs();
        let begin = args.iter().position(|arg| arg.shared_object().is_some_and(|object| object.ptr_eq(&marker)));
        let (positional, named) = match begin {
            Some(begin) => (&args[..begin], &args[begin + 1..]),
            None => (args, &args[..0]),
        };
        let too_many = positional.len() > self.positional.len();
        if too_many && begin.is_none() {
            return Err(self.too_many(positional.len()));
        }
        for (&place, value) in self.positional.iter().zip(positional) {
            construction.set(place, *value)?;
        }
        if too_many {
            return Err(self.too_many(positional.len()));
        }
        construction.set_named(named)?;
        construction.finish()
    }

    fn too_many(&self, given: usize) -> Error {
        self.error(&format!("takes at most {} positional argument(s), but {given} were given", self.positional.len()))
    }
}

impl Construction<'_> {
    /// Prefixes a setter's error with the name of the field.
    fn wrap(&self, error: Error, place: usize, what: &str) -> Error {
        let name = String::from_utf8_lossy(field::name(self.init.fields[place])).into_owned();
        let message = error.message().replace('\n', "\n  ");
        let message = format!("{}.__ffi_init__() {what} '{name}':\n  {message}", key_of(self.init.index));
        let (kind, backtrace) = (error.kind().to_owned(), error.backtrace());
        Error::from_bytes(kind.as_bytes(), message.as_bytes(), backtrace.as_bytes(), Some(error.into_object()), None)
    }

    fn set(&mut self, place: usize, value: AnyView<'_>) -> Result<()> {
        // SAFETY: the field is one of the object's type, and no other code has the object.
        let outcome = unsafe { field::set(self.init.fields[place], &self.object, value) };
        outcome.map_err(|error| self.wrap(error, place, "field"))?;
        self.is_set[place] = true;
        Ok(())
    }

    /// Sets fields from alternating names and values.
    fn set_named(&mut self, args: &[AnyView<'_>]) -> Result<()> {
        let (pairs, []) = args.as_chunks::<2>() else {
            return Err(self.init.error("KWARGS requires an even number of key-value arguments"));
        };
        for [name, value] in pairs {
            let name: Str = name.cast()?;
            let shown = String::from_utf8_lossy(name.as_bytes());
            let Some(&place) = self.init.by_name.get(name.as_bytes()) else {
                return Err(self.init.error(&format!("got an unexpected keyword argument '{shown}'")));
            };
            if self.is_set[place] {
                return Err(self.init.error(&format!("got multiple values for argument '{shown}'")));
            }
            self.set(place, *value)?;
        }
        Ok(())
    }

    /// Sets the other fields to their defaults.
    fn finish(self) -> Result<Any> {
        for (place, info) in self.init.fields.iter().enumerate().filter(|(place, _)| !self.is_set[*place]) {
            if field::has(info, kTVMFFIFieldFlagBitMaskHasDefault) {
                // SAFETY: the field is one of the object's type, and no other code has the object.
                let outcome = unsafe { field::set_default(info, &self.object) };
                outcome.map_err(|error| self.wrap(error, place, "default for field"))?;
            } else if !field::has(info, kTVMFFIFieldFlagBitMaskInitOff) {
                let kind = if field::has(info, kTVMFFIFieldFlagBitMaskKwOnly) { " keyword-only" } else { "" };
                let name = String::from_utf8_lossy(field::name(info));
                return Err(self.init.error(&format!("missing required{kind} argument: '{name}'")));
            }
        }
        Ok(self.object.into())
    }
}
