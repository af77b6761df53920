//! Whether the external runtime is there.

use crate::error::Result;
use crate::external::api;

/// Checks that the external runtime is there. You need not call it: what needs a runtime does, as far as it can fail.
///
/// # Errors
/// `RuntimeError` that says what to do: the process has no runtime, or several.
pub fn check_runtime() -> Result<()> {
    api()?;
    Ok(())
}

/// Checks as [`check_runtime`] before something is registered.
pub(crate) fn check_shared() -> Result<()> {
    check_runtime()
}

/// Raises no error elsewhere: all users of this process's runtime find it there.
pub(crate) fn raise_elsewhere(_kind: &str, _message: &str) -> bool {
    false
}
