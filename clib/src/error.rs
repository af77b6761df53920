//! Errors of the library as errors of TVM FFI.

use codegen::diagnostic::Diagnostic;
use codegen::runtime::{Any, Error, ObjectRef, Result};

/// An error with its parts as JSON in the extra context.
pub fn raised(diagnostic: &Diagnostic) -> Error {
    let error = Error::new(&format!("tvm_ffi_codegen.{}", diagnostic.kind.name()), &diagnostic.message);
    let json: Result<ObjectRef> = Any::from(diagnostic.to_json()).cast();
    match json {
        Ok(json) => error.with_extra_context(json),
        // without its parts the error still has its text
        Err(_) => error,
    }
}

/// An error of the library.
pub fn failure(error: impl std::error::Error + 'static) -> Error {
    raised(&Diagnostic::of(&error))
}

/// The error of what needs LLVM, in a build without it.
#[cfg(not(feature = "_llvm"))]
pub fn without_llvm() -> Error {
    other("this build of tvm-ffi-codegen has no LLVM")
}

/// An error of another origin: options that make no sense, a file that can't be read.
pub fn other(message: impl Into<String>) -> Error {
    raised(&Diagnostic::text(message))
}
