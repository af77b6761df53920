//! Whether this crate's runtime is the one that the rest of the process uses.
//! `external` is the twin of this file for an external runtime.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Result, runtime_error};
use crate::process;

/// Checks that the runtime behind this crate is there, and is the one that others in this process use.
///
/// Nothing has to call it: what registers functions and types does, as far as it can fail, and so do exported
/// functions. It is for programs that want to know at their start.
///
/// # Errors
/// `RuntimeError` that says what to do. With the feature `external`: the process has no runtime, or several. Else:
/// another runtime is in the process, from which values would come whose types, errors and streams are not known here.
pub fn check_runtime() -> Result<()> {
    /// The loader's changes when this runtime was found to be alone, and one more.
    static ALONE_AT: AtomicU64 = AtomicU64::new(0);

    let changes = process::changes();
    if changes.is_some_and(|changes| ALONE_AT.load(Ordering::Acquire) == changes + 1) {
        return Ok(());
    }
    if let Some(runtime) = process::beside::another() {
        return Err(runtime_error(&process::beside::two_runtimes(&runtime.file)));
    }
    if let Some(changes) = changes {
        ALONE_AT.store(changes + 1, Ordering::Release);
    }
    Ok(())
}

/// Where others find this crate's symbols, checks as [`check_runtime`]. A hidden runtime keeps to itself, so
/// others don't disturb it. On Windows a library names the file of each symbol, and one that names another's is refused
/// when it is loaded.
pub(crate) fn check_shared() -> Result<()> {
    if cfg!(any(feature = "hidden", windows)) { Ok(()) } else { check_runtime() }
}

/// Raises an error in another runtime that the process uses, and returns whether there is one: a caller that uses that
/// runtime would not find the error here.
pub(crate) fn raise_elsewhere(kind: &str, message: &str) -> bool {
    check_runtime().is_err() && process::beside::raise_in_another(kind, message)
}
