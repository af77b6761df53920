//! Finds and reports a second runtime in the same process as this crate's own.

use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::{Runtime, runtimes, system};

/// Another runtime that other code in this process uses instead of this one.
///
/// `None` if libraries find this runtime, since then they never reach another.
pub(crate) fn another() -> Option<Runtime> {
    /// The address of this file's `MARK`, after a global lookup has found it. It stays valid, since this code isn't
    /// unloaded while it runs.
    static OWN_MARK: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

    // Check this first: it nearly always holds, and searching all files takes some microseconds.
    let mark = system::global_mark();
    if !mark.is_null() && mark == OWN_MARK.load(Ordering::Relaxed) {
        return None;
    }
    let own = system::own_base();
    if system::global_runtime().is_some_and(|runtime| runtime.base == own) {
        OWN_MARK.store(mark, Ordering::Relaxed);
        return None;
    }
    runtimes().into_iter().find(|runtime| runtime.base != own)
}

/// The message that `file` has another runtime than this code's, with advice.
pub(crate) fn two_runtimes(file: &str) -> String {
    let own = system::own_file();
    format!(
        "this process has two TVM FFI runtimes: {file}, and the one of `tvm-ffi-runtime` inside {own}. Neither knows \
         the types, functions and errors of the other. Build {own} with the feature `external` of `tvm-ffi-runtime` \
         (`external-runtime` of `tvm-ffi-codegen`), which uses the process's runtime, or with `hidden` \
         (`hidden-runtime`) if it keeps to itself; or keep {file} out of the process"
    )
}

/// Extends the message for a duplicate registration. A second runtime may have been loaded later and bound to this
/// one's symbols. It then registers all its own functions and types here, and the message says so. This can't happen if
/// this runtime is hidden.
pub(crate) fn registered_twice(mut message: String) -> String {
    let own = system::own_base();
    let beside = || runtimes().into_iter().find(|runtime| runtime.base != own);
    if let Some(runtime) = (!cfg!(feature = "hidden")).then(beside).flatten() {
        message.push('\n');
        message.push_str(&two_runtimes(&runtime.file));
    }
    message
}

/// The file that contains a function, unless that is the file of this code. By the loader's rules, a reference to a C
/// symbol of this file may resolve to a file that was loaded earlier.
pub(crate) fn elsewhere(function: *const c_void) -> Option<String> {
    system::elsewhere(function)
}

/// Raises an error in the runtime that [`another`] finds, and returns whether there is one.
pub(crate) fn raise_in_another(kind: &str, message: &str) -> bool {
    type Raise = unsafe extern "C" fn(*const std::ffi::c_char, *const std::ffi::c_char);

    let text = |text: &str| std::ffi::CString::new(text.replace('\0', " ")).unwrap_or_default();
    let Some(address) = another().map(|runtime| runtime.symbol(c"TVMFFIErrorSetRaisedFromCStr")) else {
        return false;
    };
    // SAFETY: a pointer and an optional function pointer have the same size, and NULL is `None`. `Raise` is the
    // prototype in the C header.
    let raise = unsafe { std::mem::transmute::<*mut c_void, Option<Raise>>(address) };
    let (kind, message) = (text(kind), text(message));
    // SAFETY: both strings end with NUL.
    raise.map(|raise| unsafe { raise(kind.as_ptr(), message.as_ptr()) }).is_some()
}
