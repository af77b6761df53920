//! The TVM FFI runtimes in this process, found by a C symbol that each exports.
//! No header section: upstream takes it that there is one.

#[cfg(all(unix, not(miri)))]
#[path = "unix.rs"]
mod system;
#[cfg(windows)]
#[path = "windows.rs"]
mod system;
#[cfg(any(miri, not(any(unix, windows))))]
#[path = "none.rs"]
mod system;

#[cfg(feature = "external")]
pub(crate) use system::open;
pub(crate) use system::{changes, runtimes};

use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A function that every runtime has had since 0.1.0.
#[cfg_attr(
    any(miri, not(any(unix, windows))),
    expect(dead_code, reason = "nothing is looked up where there is no loader")
)]
const MARK: &std::ffi::CStr = c"TVMFFIErrorSetRaised";

/// A runtime whose C symbols can be looked up.
#[derive(Debug)]
pub(crate) struct Runtime {
    /// The loader's handle, which is never given back.
    handle: usize,
    /// Where the file begins that has [`MARK`].
    base: usize,
    /// The file, for messages.
    pub(crate) file: String,
    /// Whether libraries that don't name a runtime find this one.
    #[cfg_attr(not(feature = "external"), expect(dead_code, reason = "only a choice among several asks"))]
    pub(crate) is_global: bool,
}

impl Runtime {
    /// The address of one of its symbols; NULL where it has none of that name.
    pub(crate) fn symbol(&self, name: &std::ffi::CStr) -> *mut c_void {
        system::symbol(self.handle, name)
    }
}

/// The runtime that others in this process use in place of the one that this code is part of.
///
/// Where this one is what libraries find, another is never reached.
pub(crate) fn another() -> Option<Runtime> {
    /// The address of [`MARK`] in this file, once it was found globally. This code isn't unloaded while it runs.
    static OWN_MARK: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

    // Asked first, since it is nearly always so, and a look through all files takes some microseconds.
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

/// Says that a file has a runtime beside the one that this code is part of, and what to do.
#[cfg(not(feature = "external"))]
pub(crate) fn two_runtimes(file: &str) -> String {
    let own = system::own_file();
    format!(
        "this process has two TVM FFI runtimes: {file}, and the one of `tvm-ffi-runtime` inside {own}. Neither knows the types, functions and \
         errors of the other. Build {own} with the feature `external` of `tvm-ffi-runtime` (`external-runtime` of `tvm-ffi-codegen`), which uses \
         the process's runtime, or with `hidden` (`hidden-runtime`) if it keeps to itself; or keep {file} out of the process"
    )
}

/// The message for something that is registered twice. Another runtime that was bound to this one's symbols, as they were there before it, does
/// so with all that it has: then the message says so. No other is bound to a hidden one.
#[cfg(not(feature = "external"))]
pub(crate) fn registered_twice(mut message: String) -> String {
    let own = system::own_base();
    let beside = || runtimes().into_iter().find(|runtime| runtime.base != own);
    if let Some(runtime) = (!cfg!(feature = "hidden")).then(beside).flatten() {
        message.push('\n');
        message.push_str(&two_runtimes(&runtime.file));
    }
    message
}

/// The file that has a function, if that isn't the file that this code is part of: by the loader's rules a C symbol of this file may lead to
/// another that was loaded before.
#[cfg(not(feature = "external"))]
pub(crate) fn elsewhere(function: *const c_void) -> Option<String> {
    system::elsewhere(function)
}

/// Raises an error in the runtime that [`another`] finds, and says whether there is one.
#[cfg(not(feature = "external"))]
pub(crate) fn raise_in_another(kind: &str, message: &str) -> bool {
    type Raise = unsafe extern "C" fn(*const std::ffi::c_char, *const std::ffi::c_char);

    let text = |text: &str| std::ffi::CString::new(text.replace('\0', " ")).unwrap_or_default();
    let Some(address) = another().map(|runtime| runtime.symbol(c"TVMFFIErrorSetRaisedFromCStr")) else {
        return false;
    };
    // SAFETY: a pointer and an optional function pointer have the same size, and NULL is None; the C header gives the prototype.
    let raise = unsafe { std::mem::transmute::<*mut c_void, Option<Raise>>(address) };
    let (kind, message) = (text(kind), text(message));
    // SAFETY: both strings end with NUL.
    raise.map(|raise| unsafe { raise(kind.as_ptr(), message.as_ptr()) }).is_some()
}
