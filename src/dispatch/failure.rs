//! How a call of a table fails.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tvm_ffi_runtime::Error;
use tvm_ffi_runtime::error::{kind, set_raised, take_raised};

/// An error with the code of its call, or a code without an error, such as -2: the environment has an error set.
#[derive(Debug)]
pub enum Failure {
    Raised(Error, i32),
    Code(i32),
}

impl Failure {
    pub fn of_kind(kind: &str, message: &str) -> Self {
        Self::from(Error::new(kind, message))
    }

    /// The failure of a call that has just returned a code other than 0.
    pub fn of_call(code: i32) -> Self {
        match take_raised() {
            Some(error) => Self::Raised(error, code),
            None => Self::Code(code),
        }
    }

    /// Raises the error, and returns the code.
    pub fn raise(self) -> i32 {
        match self {
            Self::Raised(error, code) => {
                set_raised(error);
                code
            }
            Self::Code(code) => code,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Raised(error, -1)
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Raised(error, _) => error,
            Failure::Code(code) => Error::new(kind::RUNTIME_ERROR, &format!("the call failed with code {code}")),
        }
    }
}

/// Runs code that foreign code called. A panic is a failure.
pub fn guarded<T>(run: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("(no message)");
        Err(Failure::of_kind(kind::INTERNAL_ERROR, &format!("panic: {text}")))
    })
}
