//! Dispatch tables and their tests, apart from the code generators. Miri can't run what those generate, and
//! ThreadSanitizer would need a build of them all.
#![allow(missing_docs)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic))]

// The tests name the library, of which this crate has the part that they use.
#[cfg(test)]
extern crate self as tvm_ffi_codegen;

pub use tvm_ffi_runtime as runtime;
pub use tvm_ffi_runtime::abi::DLDataType;

#[path = "../../src/dispatch/mod.rs"]
pub mod dispatch;

#[cfg(test)]
#[path = "../dispatch_table/mod.rs"]
mod dispatch_table;

#[cfg(test)]
#[allow(dead_code)]
#[path = "../support"]
mod support {
    pub mod dice;
    pub mod random;
}
