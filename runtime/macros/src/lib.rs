//! The macros of `tvm-ffi-runtime`. That crate re-exports them, and its documentation describes how to use them.
//! `object` has `derive(Object)`; `methods` and `export` have the attributes of these names. `params` converts
//! signatures for both attributes, and `options` parses arguments and doc comments.

mod export;
mod methods;
mod object;
mod options;
mod params;

use proc_macro::TokenStream;

/// Turns a struct into an object type: implements `Object`.
///
/// | attribute | meaning |
/// | --- | --- |
/// | `#[object(key = "my.Point")]` | the type key; required |
/// | `#[object(default)]` | allows making objects from `Default::default()`, as `ffi.MakeObjectFromPackedArgs` does |
/// | `#[object(crate = path)]` | the path of `tvm-ffi-runtime`, if it isn't `::tvm_ffi_runtime` |
/// | on a field: `#[object(parent)]` | the first field of a `#[repr(C)]` struct: the value of the type to extend |
/// | on a field: `#[object(skip)]` | reflection doesn't expose the field; its type may be any that is `Send + Sync` |
/// | on a field: `#[object(name = "x")]` | its name in reflection |
/// | on a field: `#[object(default = value)]` | its default, used when an object is made from its fields |
///
/// A field that reflection exposes must have a type that converts to `Any`; it is then read-only. To let other code
/// write it, wrap that type in `Mutable`. Doc comments of the struct and its fields become part of the reflection.
///
/// If you rename the dependency on `tvm-ffi-runtime`, pass `crate = path` to each macro. Alternatively, add
/// `extern crate my_name as tvm_ffi_runtime;` once to the root of your crate.
#[proc_macro_derive(Object, attributes(object))]
pub fn derive_object(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    object::derive(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}

/// Registers the public functions of an `impl` as methods of an object type. C++ and Python code finds them by name.
///
/// Functions with `&self` become methods, and others static methods. Mark the constructor, `__ffi_init__`, with
/// `#[init]`; it must return `Self`, `Obj<Self>` or a `Result` of one of these. Mark a function with `#[skip]` to leave
/// it out. A type can have only one `impl` with this attribute. The argument `crate = path` is as for `derive(Object)`.
///
/// Parameters and results are as for `export`.
#[proc_macro_attribute]
pub fn methods(args: TokenStream, input: TokenStream) -> TokenStream {
    methods::expand(args.into(), input.into()).unwrap_or_else(|error| error.to_compile_error()).into()
}

/// Exports a function as `__tvm_ffi_<name>` from the library that contains it. Any host that loads TVM FFI libraries
/// can call it.
///
/// The library also exports the function's metadata and doc comment (`__tvm_ffi__metadata_<name>`,
/// `__tvm_ffi__doc_<name>`). Each parameter's type must implement `TryFromAny`, or be a reference to such a type,
/// including `&str` and `&[u8]`. The result must convert to `Any`, or be a `Result` of a type that does. Errors and
/// panics are raised to the caller.
///
/// Arguments: `name = "other_name"`; `packed`, for functions of `&[AnyView<'_>]` that return a `Result<Any>`;
/// `crate = path`.
#[proc_macro_attribute]
pub fn export(args: TokenStream, input: TokenStream) -> TokenStream {
    export::expand(args.into(), input.into()).unwrap_or_else(|error| error.to_compile_error()).into()
}
