//! Object types defined in Rust: the trait that `derive(Object)` implements, references to such objects, and
//! registration. `object` defines the references and `field` the field types. `registration` collects what a type
//! declares about itself, `register` adds types to the runtime's table, and `slot` stores their indices.
//!
//! Types that can't be objects don't compile. Examples are a struct with a field that other code can't read,
//!
//! ```compile_fail,E0277
//! #[derive(tvm_ffi_runtime::Object)]
//! #[object(key = "docs.Cell")]
//! struct Unshared {
//!     value: std::cell::Cell<i64>,
//! }
//! ```
//!
//! or that can't be shared between threads,
//!
//! ```compile_fail,E0277
//! #[derive(tvm_ffi_runtime::Object)]
//! #[object(key = "docs.Rc")]
//! struct Unshared {
//!     #[object(skip)]
//!     value: std::rc::Rc<i64>,
//! }
//! ```
//!
//! a struct with misaligned fields,
//!
//! ```compile_fail
//! #[derive(tvm_ffi_runtime::Object)]
//! #[repr(C, packed)]
//! #[object(key = "docs.Packed")]
//! struct Packed {
//!     first: u8,
//!     value: i64,
//! }
//! ```
//!
//! a parent that isn't an object type, or that is at a different offset than in its own objects,
//!
//! ```compile_fail,E0277
//! #[derive(tvm_ffi_runtime::Object)]
//! #[repr(C)]
//! #[object(key = "docs.Child")]
//! struct Child {
//!     #[object(parent)]
//!     parent: i64,
//! }
//! ```
//!
//! ```compile_fail,E0080
//! #[derive(tvm_ffi_runtime::Object)]
//! #[object(key = "docs.Parent")]
//! struct Parent {
//!     value: i64,
//! }
//!
//! #[derive(tvm_ffi_runtime::Object)]
//! #[repr(C, align(64))]
//! #[object(key = "docs.AlignedChild")]
//! struct Child {
//!     #[object(parent)]
//!     parent: Parent,
//! }
//! ```
//!
//! ```compile_fail
//! #[derive(tvm_ffi_runtime::Object)]
//! #[object(key = "docs.First")]
//! struct Parent {
//!     value: i64,
//! }
//!
//! #[derive(tvm_ffi_runtime::Object)]
//! #[object(key = "docs.RustOrder")]
//! struct Child {
//!     #[object(parent)]
//!     parent: Parent,
//! }
//! ```
//!
//! and a method that would change a shared object:
//!
//! ```compile_fail
//! #[derive(tvm_ffi_runtime::Object)]
//! #[object(key = "docs.Counter")]
//! struct Counter {
//!     value: i64,
//! }
//!
//! #[tvm_ffi_runtime::methods]
//! impl Counter {
//!     pub fn count(&mut self) {
//!         self.value += 1;
//!     }
//! }
//! ```
//!
//! Header sections: `TVMFFITypeGetOrAllocIndex`, `TVMFFITypeRegister...`; upstream's C++ counterpart is
//! `reflection/registry.h`.

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
