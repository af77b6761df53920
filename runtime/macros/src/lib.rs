//! The macros of `tvm-ffi-runtime`, which re-exports them. Its pages say how they are used.
//! `object` has `derive(Object)`, `methods` and `export` the attributes of these names, `params` what both make of a signature,
//! `options` their arguments and doc texts.

mod export;
mod methods;
mod object;
mod options;
mod params;

use proc_macro::TokenStream;

/// Makes the values of a struct objects: implements `Object`.
///
/// | attribute | meaning |
/// | --- | --- |
/// | `#[object(key = "my.Point")]` | the type key; required |
/// | `#[object(default)]` | objects may be made of `Default::default()`, as `ffi.MakeObjectFromPackedArgs` does |
/// | `#[object(crate = path)]` | where `tvm-ffi-runtime` is, if not at `::tvm_ffi_runtime` |
/// | on a field: `#[object(parent)]` | the first field of a `#[repr(C)]` struct: the value of the type that this one extends |
/// | on a field: `#[object(skip)]` | reflection doesn't show the field, whose type may be any that is `Send + Sync` |
/// | on a field: `#[object(name = "x")]` | its name in reflection |
/// | on a field: `#[object(default = value)]` | its default, for what makes objects of fields |
///
/// Fields that reflection shows are of types that become an `Any`, and are read-only, or `Mutable`s of such types, which others may write.
/// Doc comments of the struct and its fields are kept.
#[proc_macro_derive(Object, attributes(object))]
pub fn derive_object(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    object::derive(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}

/// Makes the public functions of an `impl` methods of an object type, which C++ and Python code finds by their names.
///
/// Those with `&self` are methods, others static ones. `#[init]` marks the constructor, `__ffi_init__`, which returns `Self`, `Obj<Self>` or a
/// `Result` of one of these. `#[skip]` leaves a function out. A type has one such `impl`. The argument `crate = path` is as for
/// `derive(Object)`.
///
/// Parameters and results are as for `export`.
#[proc_macro_attribute]
pub fn methods(args: TokenStream, input: TokenStream) -> TokenStream {
    methods::expand(args.into(), input.into()).unwrap_or_else(|error| error.to_compile_error()).into()
}

/// Exports a function from the library that contains it, as `__tvm_ffi_<name>`, for every host that loads TVM FFI libraries.
///
/// The library also has the function's metadata and doc comment (`__tvm_ffi__metadata_<name>`, `__tvm_ffi__doc_<name>`). Parameters are of types
/// that `TryFromAny` reads, or references to such (`&str` and `&[u8]` among them); the result becomes an `Any`, or is a `Result` of what does.
/// Errors and panics are raised to the caller.
///
/// Arguments: `name = "other_name"`; `packed`, for functions of `&[AnyView<'_>]` that return a `Result<Any>`; `crate = path`.
#[proc_macro_attribute]
pub fn export(args: TokenStream, input: TokenStream) -> TokenStream {
    export::expand(args.into(), input.into()).unwrap_or_else(|error| error.to_compile_error()).into()
}
