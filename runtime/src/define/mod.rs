//! Types of objects that are defined in Rust: the trait that `derive(Object)` implements, references to such objects, and registration.
//! `object` has the references, `field` the types of fields, `registration` what a type states of itself, `register` puts types into the runtime's table, `slot` remembers their indices.
//! Header sections: `TVMFFITypeGetOrAllocIndex`, `TVMFFITypeRegister...`; upstream's is `reflection/registry.h`.

mod field;
mod object;
mod register;
mod registration;
mod slot;

pub use field::{Field, Mutable};
#[doc(hidden)]
pub use object::value_offset;
pub use object::{Ancestor, Obj, Object, Root};
#[doc(hidden)]
pub use register::{InitResult, Methods, MethodsOf, NoMethods};
#[doc(hidden)]
pub use registration::{FieldOptions, Registration};
#[doc(hidden)]
pub use slot::TypeSlot;
