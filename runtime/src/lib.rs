//! The TVM FFI C API in Rust: values, objects, functions, tensors, containers and errors, needing
//! neither Python nor C++.
//!
//! The crate has two faces. Rust code uses the types at the root; C code and generated machine
//! code use the symbols in [`capi`], which are the ones that `tvm/ffi/c_api.h` declares. Both work
//! on the same objects, whose layouts are in [`abi`].
//!
//! A [`Module`] is a set of functions: in memory, of a kind written in Rust ([`ModuleImpl`]), or of a library that was compiled ahead of
//! time ([`Module::load_from_file`]), which may carry further modules ([`library_bin`]). Libraries find this runtime's symbols only where
//! the executable exports them: let the build script of the final crate print `cargo::rustc-link-arg-bins=-rdynamic`. On Windows every
//! executable with this crate exports them, and libraries are linked against the executable. The crate `tvm-ffi-runtime-c` gives the symbols as
//! a C library.
//!
//! ```
//! use tvm_ffi_runtime::{Any, Error, Function};
//!
//! let divide = Function::from_packed(|args| {
//!     let (x, y): (i64, i64) = match args {
//!         [x, y] => (x.cast()?, y.cast()?),
//!         _ => return Err(Error::new("TypeError", "expected two arguments")),
//!     };
//!     if y == 0 {
//!         return Err(Error::new("ValueError", "division by zero"));
//!     }
//!     Ok(Any::from(x / y))
//! });
//!
//! let result: i64 = divide.call((7, 2))?.try_into()?;
//! assert_eq!(result, 3);
//!
//! let error = divide.call((1, 0)).err().ok_or(Error::new("RuntimeError", "no error"))?;
//! assert_eq!(error.to_string(), "ValueError: division by zero");
//! # Ok::<(), Error>(())
//! ```
//!
//! # Which runtime
//!
//! There is one Rust API, and one of three runtimes behind it, chosen by features for the whole program:
//!
//! | feature | the runtime |
//! | --- | --- |
//! | none | this crate's own, whose C symbols every program and shared library that contains it exports |
//! | `hidden` | this crate's own, which exports nothing, neither from programs nor from shared libraries |
//! | `external` | the `libtvm_ffi` of the process, which is Python's after `import tvm_ffi`. It is found at run time: nothing is linked against it |
//!
//! With `external` the first call looks for the C symbols in the process, then opens the file that the environment variable
//! `TVM_FFI_LIBRARY` names, or else `libtvm_ffi` where the system looks for libraries. [`check_runtime`] does so at once, and its error says
//! what is missing. Objects are made, counted and freed by Rust in each of them, since their layouts are part of the ABI; types, global
//! functions, raised errors, streams and modules are the runtime's. `external` goes before `hidden`, which has nothing to hide then.
//!
//! An external runtime's modules are C++ objects. They can be loaded and used, not made in Rust: with `external` the crate has neither
//! `ModuleBuilder` nor `ModuleImpl`.

// Much of what C functions need is used by nothing else.
#![cfg_attr(feature = "external", allow(dead_code, unused_imports))]

pub mod abi;
pub mod any;
pub mod big_int;
pub mod capi;
pub mod code_map;
pub mod container;
pub mod define;
pub mod dtype;
pub mod error;
pub mod function;
pub mod library_bin;
mod missing_allocator;
pub mod module;
pub mod object;
pub mod registry;
pub mod shape;
pub mod string;
pub mod tensor;
pub mod type_table;
pub mod typed;

mod boundary;
mod cpu_allocator;
#[cfg(not(feature = "external"))]
mod env;
#[cfg(feature = "external")]
#[path = "env/external.rs"]
mod env;
mod equality;
#[cfg(feature = "external")]
mod external;
mod heap;
mod host;
#[cfg(not(feature = "external"))]
mod once;
mod process;
#[cfg(not(feature = "external"))]
mod reflect;
mod stable_hash;
mod stream;
mod type_info;

pub use abi::{DLDataType, DLDevice, DLDeviceType, DLTensor, TypeIndex};
pub use any::{Any, AnyView, Arg, ToAnyView, TryFromAny};
pub use big_int::BigInt;
pub use container::{Array, ContainerItem, Dict, List, Map};
pub use cpu_allocator::install_cpu_allocator;
pub use define::{Mutable, Obj, Object};
pub use dtype::DTypeParseError;
pub use error::{Error, Result};
pub use function::{CallArgs, Function};
pub use host::check_runtime;
pub use missing_allocator::explain_missing_allocator;
pub use module::Module;
#[cfg(not(feature = "external"))]
pub use module::{ModuleBuilder, ModuleImpl};
pub use object::{AsObject, ObjectRef, WeakRef};
pub use shape::Shape;
pub use stream::{StreamGuard, current_stream, with_stream};
pub use string::{Bytes, Str};
pub use tensor::{Element, Tensor, TensorView};
#[cfg(feature = "macros")]
pub use tvm_ffi_macros::{Object, export, methods};
pub use typed::TypeSchema;

/// What macros of this crate write into others.
#[doc(hidden)]
pub mod __private {
    pub use crate::define::{
        FieldOptions, InitResult, Methods, MethodsOf, NoMethods, Registration, TypeSlot, value_offset,
    };
    pub use crate::typed::export::{call, metadata_of, packed_metadata, run};
}

// Lists that lower modules take from here, of functions that upper modules have; `layers.txt` tells why.

/// The built-in global functions, by what registers them.
#[cfg(not(feature = "external"))]
const BUILTIN_FUNCTIONS: &[fn(&mut registry::Globals)] =
    &[container::globals, module::globals, reflect::globals, registry::builtins];

/// What is registered about types from the start, in the order in which types that have no static index get one.
#[cfg(not(feature = "external"))]
const BUILTIN_TYPES: &[fn() -> Vec<type_table::Definition>] = &[reflect::types, module::types, big_int::types];

/// The C symbols of this crate.
#[cfg(not(feature = "external"))]
use capi::symbols as c_symbols;
