//! Errors of the library as errors of TVM FFI.

use codegen::diagnostic::Diagnostic;
use codegen::runtime::{Any, Error, ObjectRef, Result};

/// An error with its parts as JSON in the extra context.
pub fn raised(diagnostic: &Diagnostic) -> Error {
    let error = Error::new(&format!("tvm_ffi_codegen.{}", diagnostic.kind.name()), &diagnostic.message);
    let json: Result<ObjectRef> = Any::from(diagnostic.to_json()).cast();
    match json {
        Ok(json) => error.with_extra_context(json),
        // without JSON parts the error still has its message
        Err(_) => error,
    }
}

/// The `ValueError` for an argument that is an unknown name or number.
pub fn bad_value(argument: &str, error: impl std::fmt::Display) -> Error {
    Error::new("ValueError", &format!("{argument}: {error}"))
}

/// An error of the library.
pub fn failure(error: impl std::error::Error + 'static) -> Error {
    raised(&Diagnostic::of(&error))
}

/// The error of a function that needs LLVM, in a build without it.
#[cfg(not(feature = "_llvm"))]
pub fn without_llvm() -> Error {
    other("this build of tvm-ffi-codegen has no LLVM")
}

/// An error of another origin, such as inconsistent options or an unreadable file.
pub fn other(message: impl Into<String>) -> Error {
    raised(&Diagnostic::text(message))
}
