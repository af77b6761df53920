//! Calls to an external runtime's functions that return codes.

use std::ffi::c_int;

use super::make::{raised_error, runtime_error};
use super::object::{Error, Result};
use crate::external::{Api, Unavailable, api, in_turn};

/// Makes a call and returns the error that it raises.
pub(crate) fn checked(call: impl FnOnce(&Api) -> c_int) -> Result<()> {
    match call(api()?) {
        0 => Ok(()),
        code => Err(raised_error(code)),
    }
}

/// As [`checked`], for a call that uses the runtime's table of types or functions. Such calls take turns.
pub(crate) fn checked_in_turn(call: impl FnOnce(&Api) -> c_int) -> Result<()> {
    checked(|api| in_turn(|| call(api)))
}

/// The error of a missing external runtime.
impl From<Unavailable> for Error {
    #[track_caller]
    #[cold]
    fn from(why: Unavailable) -> Self {
        runtime_error(&why.to_string())
    }
}
