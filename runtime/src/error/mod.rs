//! Errors: the `ffi.Error` object as a Rust error, and the thread's slot of the raised error.

mod backtrace;
pub mod kind;
mod macros;
mod make;
mod object;
mod raised;
mod wrapper;

pub(crate) use backtrace::{c_backtrace, frame_line};
pub(crate) use make::{from_panic, index_error, raised_error, runtime_error, type_error, type_mismatch, value_error};
pub use object::{Error, Result};
pub use raised::{set_raised, take_raised};
pub(crate) use wrapper::object_wrapper;
