//! The TVM FFI C API in Rust: values, objects, functions, tensors, containers and errors, without Python or C++.
//!
//! The crate has two faces. Rust code uses the types at the root. C code and generated machine code use the symbols in
//! [`capi`], which `tvm/ffi/c_api.h` declares. Both work on the same objects, and [`abi`] has their layouts.
//!
//! A [`Module`] is a set of functions. You make one in memory, write a kind of module in Rust (`ModuleImpl`), or load a
//! library that was compiled ahead of time ([`Module::load_from_file`]). A library may carry further modules. Libraries
//! find this runtime's symbols only if the executable exports them: let the build script of the final crate print
//! `cargo::rustc-link-arg-bins=-rdynamic`. On Windows every executable with this crate exports them, and you link
//! libraries against the executable. The crate `tvm-ffi-runtime-c` provides the symbols as a C library.
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
//! There is one Rust API over one of three runtimes. Features choose the runtime for the whole program:
//!
//! | feature | the runtime |
//! | --- | --- |
//! | none | this crate's own, whose C symbols every program and shared library that contains it exports |
//! | `hidden` | this crate's own, which exports nothing, neither from programs nor from shared libraries |
//! | `external` | the `libtvm_ffi` of the process (Python's, after `import tvm_ffi`), which is found at run time |
//!
//! With `external` the first call looks for the C symbols in the process. If they are missing, it opens the file that
//! the environment variable `TVM_FFI_LIBRARY` names, or else `libtvm_ffi` from the system's library path.
//! [`check_runtime`] does so at once, and its error says what is missing. With each runtime, Rust makes, counts and
//! frees objects, since their layouts are part of the ABI. Types, global functions, raised errors, streams and modules
//! belong to the runtime. `external` overrides `hidden`.
//!
//! An external runtime's modules are C++ objects. You can load and use them, but not make them in Rust: with `external`
//! the crate has neither `ModuleBuilder` nor `ModuleImpl`.

// The C functions and the unstable API use code that is unused without them.
#![cfg_attr(any(feature = "external", not(feature = "unstable")), allow(dead_code, unused_imports))]

pub mod abi;
pub mod any;
pub mod big_int;
#[cfg_attr(feature = "external", path = "capi/external.rs")]
pub mod capi;
pub mod container;
pub mod define;
pub mod dtype;
pub mod error;
pub mod function;
mod missing_allocator;
#[cfg_attr(feature = "external", path = "module/external.rs")]
pub mod module;
pub mod object;
#[cfg_attr(feature = "external", path = "registry/external.rs")]
pub mod registry;
pub mod shape;
pub mod string;
pub mod tensor;
pub mod typed;

mod boundary;
mod code_map;
mod cpu_allocator;
#[cfg_attr(feature = "external", path = "env/external.rs")]
mod env;
mod equality;
#[cfg_attr(not(feature = "external"), path = "external/none.rs")]
mod external;
mod heap;
#[cfg_attr(feature = "external", path = "host/external.rs")]
mod host;
mod library_bin;
mod once;
mod process;
#[cfg(not(feature = "external"))]
mod reflect;
mod stable_hash;
mod stream;
#[cfg(not(feature = "external"))]
mod structural;
mod type_info;

#[cfg_attr(feature = "external", path = "type_table/external.rs")]
mod type_table;

/// API that may change in any release: for `tvm-ffi-codegen`, and for experts who follow each release. Feature
/// `unstable`.
#[cfg(feature = "unstable")]
pub mod unstable {
    /// Names for code made at run time.
    pub mod code_map {
        pub use crate::code_map::*;
    }
    /// The seam to the C++ part of `runtime/clib/cxx`.
    #[cfg(not(feature = "external"))]
    pub mod cxx {
        pub use crate::module::cxx::attach;
    }
    /// The format of the modules that a library carries.
    pub mod library_bin {
        pub use crate::library_bin::*;
    }
    /// The table of types.
    pub mod type_table {
        pub use crate::type_table::*;
    }
}

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
pub use tvm_ffi_runtime_macros::{Object, export, methods};
pub use typed::TypeSchema;

/// Items that this crate's macros refer to in other crates.
#[doc(hidden)]
pub mod __private {
    pub use crate::define::{
        FieldOptions, InitResult, Methods, MethodsOf, NoMethods, Registration, TypeSlot, value_offset,
    };
    pub use crate::typed::export::{call, metadata_of, packed_metadata, run};
}

/// Items that lower modules need from upper ones; `layers.txt` says why.
#[cfg(not(feature = "external"))]
mod handed_down {
    pub(crate) use crate::capi::symbols as c_symbols;
    use crate::registry::Globals;
    use crate::type_table::Definition;
    use crate::{container, module, reflect, registry, structural};

    /// Each registers built-in global functions.
    pub(crate) const BUILTIN_FUNCTIONS: &[fn(&mut Globals)] =
        &[container::globals::globals, module::globals, reflect::globals, structural::globals, registry::builtins];

    /// Each returns definitions of built-in types. Types without a static index get theirs in this order.
    pub(crate) const BUILTIN_TYPES: &[fn() -> Vec<Definition>] =
        &[reflect::types, structural::types, module::types, reflect::big_int::types];
}
