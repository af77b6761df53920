//! Errors: the `ffi.Error` object as a Rust error, and the thread's slot of the raised error.

mod backtrace;
#[cfg(feature = "external")]
mod external;
pub mod kind;
mod macros;
mod make;
mod object;
mod raised;
mod wrapper;

pub(crate) use backtrace::{c_backtrace, c_backtrace_at};
#[cfg(feature = "external")]
pub(crate) use external::{checked, checked_in_turn};
pub(crate) use make::{
    check_failed, from_panic, index_error, raised_error, range_error, runtime_error, type_error, type_mismatch,
    value_error,
};
pub use object::{Error, Result};
pub use raised::{set_raised, take_raised};
pub(crate) use wrapper::object_wrapper;
