//! Checks that the rest of the process uses this crate's runtime. `external` replaces this file for an external
//! runtime.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Result, runtime_error};
use crate::process;

/// Checks that the runtime behind this crate exists, and that the rest of the process uses it too.
///
/// You need not call it: registering functions and types checks it, as do exported functions. Call it to find out at
/// the start of a program.
///
/// # Errors
/// `RuntimeError` with advice on what to do. With the feature `external`: the process has no runtime, or several.
/// Otherwise: the process has another runtime, so values would come with types, errors and streams that are unknown
/// here.
pub fn check_runtime() -> Result<()> {
    /// `process::changes()` plus one, when no other runtime was found.
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

/// Checks as [`check_runtime`], if other code can find this crate's symbols. A hidden runtime exports none, so other
/// runtimes don't disturb it. On Windows a library names the file of each symbol. A library that names another
/// runtime's file is refused at load.
pub(crate) fn check_shared() -> Result<()> {
    if cfg!(any(feature = "hidden", windows)) { Ok(()) } else { check_runtime() }
}

/// Raises an error in another runtime that the process uses, and returns whether there is one. A caller that uses that
/// runtime would not find the error here.
pub(crate) fn raise_elsewhere(kind: &str, message: &str) -> bool {
    check_runtime().is_err() && process::beside::raise_in_another(kind, message)
}
