//! Checks that the external runtime exists.

use crate::error::Result;
use crate::external::api;

/// Checks that the external runtime exists. You need not call it: operations that need a runtime check it, if they can
/// fail.
///
/// # Errors
/// `RuntimeError` with advice on what to do: the process has no runtime, or several.
pub fn check_runtime() -> Result<()> {
    api()?;
    Ok(())
}

/// Checks as [`check_runtime`] before a registration.
pub(crate) fn check_shared() -> Result<()> {
    check_runtime()
}

/// Raises no error elsewhere: this process has one runtime, and all its users find the error there.
pub(crate) fn raise_elsewhere(_kind: &str, _message: &str) -> bool {
    false
}
