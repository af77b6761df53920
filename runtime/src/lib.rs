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

pub mod abi;
pub mod any;
pub mod big_int;
pub mod capi;
pub mod container;
pub mod dtype;
pub mod error;
pub mod function;
pub mod library_bin;
pub mod module;
pub mod object;
pub mod registry;
pub mod shape;
pub mod string;
pub mod tensor;
pub mod type_table;

mod boundary;
mod env;
mod equality;
mod heap;
mod reflect;
mod stable_hash;
mod type_info;

pub use abi::{DLDataType, DLDevice, DLDeviceType, DLTensor, TypeIndex};
pub use any::{Any, AnyView, Arg, ToAnyView, TryFromAny};
pub use big_int::BigInt;
pub use container::{Array, Dict, List, Map};
pub use dtype::DTypeParseError;
pub use error::{Error, Result};
pub use function::{CallArgs, Function};
pub use module::{Module, ModuleBuilder, ModuleImpl};
pub use object::{AsObject, ObjectRef, WeakRef};
pub use shape::Shape;
pub use string::{Bytes, Str};
pub use tensor::{Element, Tensor, TensorView};

// Lists that lower modules take from here, of functions that upper modules have; `layers.txt` tells why.

/// The built-in global functions, by what registers them.
const BUILTIN_FUNCTIONS: &[fn(&mut registry::Globals)] =
    &[container::globals, module::globals, reflect::globals, registry::builtins];

/// What is registered about types from the start, in the order in which types that have no static index get one.
const BUILTIN_TYPES: &[fn() -> Vec<type_table::Definition>] = &[reflect::types, module::types, big_int::types];

/// The C symbols of this crate.
use capi::symbols as c_symbols;
