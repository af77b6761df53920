//! Values: [`Any`] owns what it holds, [`AnyView`] borrows it for the length of a call. Conversions follow upstream's
//! `TypeTraits`: [`ToAnyView`] creates arguments, [`TryFromAny`] reads arguments and results. The conversions of
//! functions, tensors, containers and modules are defined next to those types.

mod arg;
mod convert;
mod objects;
mod pointers;
mod strings;
mod value;

pub use arg::{Arg, ToAnyView};
pub(crate) use objects::{exact_objects, object_values, try_from_any};
pub(crate) use strings::text;
pub use value::{Any, AnyView, TryFromAny};
