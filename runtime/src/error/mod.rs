//! Errors: the `ffi.Error` object as a Rust error, and the thread's slot of the raised error. `memory` has the error
//! that is used when an error can't be allocated.

mod backtrace;
#[cfg(feature = "external")]
pub(crate) mod external;
pub mod kind;
mod macros;
mod make;
mod memory;
mod object;
mod raised;
mod wrapper;

pub(crate) use backtrace::{c_backtrace, c_backtrace_at};
pub(crate) use make::{
    check_failed, from_panic, index_error, memory_error, no_memory_for, raised_error, range_error, runtime_error,
    type_error, type_mismatch, value_error,
};
pub use object::{Error, Result};
pub use raised::{set_raised, take_raised};
pub(crate) use wrapper::object_wrapper;
