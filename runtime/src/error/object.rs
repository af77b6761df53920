//! The error object as a Rust error. The backtrace is text that any C reader may read, so it is written with the error.
//! Header section: `TVMFFIErrorCell`.

use std::ffi::c_void;
use std::fmt;
use std::panic::Location;
use std::ptr::NonNull;

use super::backtrace::capture;
use super::memory::{copied, out_of_memory};
use super::wrapper::object_wrapper;
use crate::abi::*;
use crate::heap::{AsObject, ObjectLayout, ObjectRef, release, try_make_object};

/// Result with an [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

#[repr(C)]
struct ErrorObject {
    header: TVMFFIObject,
    /// Kind and message follow the object.
    cell: TVMFFIErrorCell,
    backtrace: Vec<u8>,
}

// SAFETY: repr(C) with the header first; the cell follows, as in the header file.
unsafe impl ObjectLayout for ErrorObject {
    const TYPE_INDEX: TypeIndex = TypeIndex::ERROR;

    unsafe fn drop_fields(object: *mut Self) {
        // SAFETY: a handle in the cell, which C code may have filled since, is NULL or owns a strong reference. Each is
        // released here, once.
        let objects = unsafe {
            (&raw mut (*object).backtrace).drop_in_place();
            let cell = (*object).cell;
            [cell.cause_chain, cell.extra_context].map(|handle| ObjectRef::from_raw(handle.cast()))
        };
        // Releases chains of causes of any length without recursion.
        release(objects.into_iter().flatten());
    }
}

/// An error: kind, message, backtrace, and an optional cause. Cloning adds a reference.
///
/// **Without memory** for an error, you get a preallocated `MemoryError` "out of memory" in its place.
///
/// **Backtrace.** Making an error is cheap by default. `backtrace()` then holds the line of the Rust caller that made
/// it, and is empty for errors that come from C. The whole stack is captured if the environment variable
/// `TVM_FFI_BACKTRACE` is set and not `0` at the first error. If it isn't set, `RUST_BACKTRACE` decides in the same
/// way. The stack is written out as text at once, because the ABI's backtrace is a plain byte array that C code reads
/// directly.
#[derive(Clone)]
#[repr(transparent)]
pub struct Error(ObjectRef);

object_wrapper!(Error, TypeIndex::ERROR);

impl Error {
    /// An error of `kind` (such as `"ValueError"`), with a backtrace by the policy of [`Error`].
    #[track_caller]
    #[cold]
    pub fn new(kind: &str, message: &str) -> Self {
        let backtrace = capture(Location::caller());
        Self::from_parts(kind, message, &backtrace, None, None)
    }

    /// An error from all its parts, without capturing a backtrace.
    #[cold]
    pub fn from_parts(
        kind: &str,
        message: &str,
        backtrace: &str,
        cause: Option<Error>,
        context: Option<ObjectRef>,
    ) -> Self {
        Self::from_bytes(
            kind.as_bytes(),
            message.as_bytes(),
            backtrace.as_bytes(),
            cause.map(AsObject::into_object),
            context,
        )
    }

    pub(crate) fn from_bytes(
        kind: &[u8],
        message: &[u8],
        backtrace: &[u8],
        cause: Option<ObjectRef>,
        context: Option<ObjectRef>,
    ) -> Self {
        let Some(backtrace) = copied(backtrace) else { return Self(out_of_memory()) };
        let handle = |object: Option<ObjectRef>| object.map_or(std::ptr::null_mut(), |o| o.into_raw().cast::<c_void>());
        let object = try_make_object(kind.len() + message.len(), |header, tail| {
            let text = |bytes: &[u8], place: *mut u8| {
                // SAFETY: the tail is new and has room for both texts, one after the other.
                unsafe { place.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
                TVMFFIByteArray { data: place.cast(), size: bytes.len() }
            };
            let cell = TVMFFIErrorCell {
                kind: text(kind, tail),
                message: text(message, tail.wrapping_add(kind.len())),
                backtrace: TVMFFIByteArray::from_slice(&backtrace),
                update_backtrace: Some(update_backtrace),
                cause_chain: handle(cause),
                extra_context: handle(context),
            };
            ErrorObject { header, cell, backtrace }
        });
        // SAFETY: `try_make_object` returns the object's one strong reference.
        Self(object.map_or_else(out_of_memory, |object| unsafe { ObjectRef::from_non_null(object) }))
    }

    fn cell_ptr(&self) -> NonNull<TVMFFIErrorCell> {
        // The cell follows the header in every error object (header: `TVMFFIErrorCell`).
        // SAFETY: the object is an error, so the cell lies within it and is not NULL.
        unsafe { NonNull::new_unchecked(self.0.as_ptr().add(1).cast()) }
    }

    fn cell(&self) -> TVMFFIErrorCell {
        // SAFETY: the reference keeps the object, and the cell in it, alive.
        unsafe { self.cell_ptr().read() }
    }

    /// The kind, such as `TypeError`. A foreign kind that is not UTF-8 is cut at its first invalid byte.
    pub fn kind(&self) -> &str {
        // SAFETY: kind and message are fixed when an error is made and live as long as it.
        valid_prefix(unsafe { self.cell().kind.as_slice() })
    }

    /// The message. A foreign message that is not UTF-8 is cut at its first invalid byte.
    pub fn message(&self) -> &str {
        // SAFETY: as for `kind`.
        valid_prefix(unsafe { self.cell().message.as_slice() })
    }

    /// The backtrace, most recent call first, one call a line (header: `TVMFFIErrorCell`).
    pub fn backtrace(&self) -> String {
        // SAFETY: Rust code changes the text of unshared errors only. C code that changes it during a read breaks the
        // header's rule for errors.
        String::from_utf8_lossy(unsafe { self.cell().backtrace.as_slice() }).into_owned()
    }

    /// The error that caused this one.
    pub fn cause(&self) -> Option<Error> {
        // SAFETY: the cell owns the cause, which is an error or NULL.
        let cause = unsafe { ObjectRef::clone_from_raw(self.cell().cause_chain.cast()) }?;
        cause.downcast().ok()
    }

    /// Further context that a frontend has attached.
    pub fn extra_context(&self) -> Option<ObjectRef> {
        // SAFETY: the cell owns the context, an object or NULL.
        unsafe { ObjectRef::clone_from_raw(self.cell().extra_context.cast()) }
    }

    /// The same error with `cause` as its cause.
    #[must_use]
    pub fn with_cause(self, cause: Error) -> Self {
        self.copy_with(Some(cause.into_object()), self.extra_context())
    }

    /// The same error with further context. The context is an object for the code that catches the error, such as a
    /// string with the error's parts.
    #[must_use]
    pub fn with_extra_context(self, context: ObjectRef) -> Self {
        self.copy_with(self.cause().map(AsObject::into_object), Some(context))
    }

    /// Attaches further context. A shared error is copied first, so its other owners don't see the change.
    pub(crate) fn attach_context(&mut self, context: ObjectRef) {
        if !self.0.is_unique() {
            *self = self.copy_with(self.cause().map(AsObject::into_object), Some(context));
            return;
        }
        let place = self.cell_ptr().as_ptr();
        // SAFETY: `self` is the only reference to the error, so no other code uses its cell. The cell owns the context.
        let old = unsafe {
            let old = (*place).extra_context;
            (*place).extra_context = context.into_raw().cast();
            ObjectRef::from_raw(old.cast())
        };
        drop(old);
    }

    fn copy_with(&self, cause: Option<ObjectRef>, context: Option<ObjectRef>) -> Self {
        let (kind, message) = (self.kind().as_bytes(), self.message().as_bytes());
        // SAFETY: as for `backtrace`.
        Self::from_bytes(kind, message, unsafe { self.cell().backtrace.as_slice() }, cause, context)
    }

    /// Replaces the backtrace. A shared error is copied first, so its other owners don't see the change.
    pub fn update_backtrace(&mut self, text: &str) {
        self.change_backtrace(text, kTVMFFIBacktraceUpdateModeReplace);
    }

    /// Appends older calls to the backtrace. A shared error is copied first.
    pub fn append_backtrace(&mut self, text: &str) {
        self.change_backtrace(text, kTVMFFIBacktraceUpdateModeAppend);
    }

    fn change_backtrace(&mut self, text: &str, mode: i32) {
        if !self.0.is_unique() {
            *self = self.copy_with(self.cause().map(AsObject::into_object), self.extra_context());
        }
        if let Some(update) = self.cell().update_backtrace {
            let text = TVMFFIByteArray::from_slice(text.as_bytes());
            // SAFETY: the function belongs to this error, and `self` is its only reference.
            unsafe { update(self.0.as_ptr().cast(), &raw const text, mode) };
        }
    }
}

/// The error's `update_backtrace` function (header: `TVMFFIErrorCell`).
unsafe extern "C" fn update_backtrace(error: TVMFFIObjectHandle, backtrace: *const TVMFFIByteArray, update_mode: i32) {
    if error.is_null() || backtrace.is_null() {
        return;
    }
    let error = error.cast::<ErrorObject>();
    // SAFETY: only errors that this module made have this function. By the header's contract the caller ensures that no
    // thread reads the text meanwhile. The new text may be the old one, so it is copied before anything changes.
    unsafe {
        let stored = &mut (*error).backtrace;
        // Without memory the text stays unchanged.
        let Some(text) = copied((*backtrace).as_slice()) else { return };
        if update_mode == kTVMFFIBacktraceUpdateModeReplace {
            *stored = text;
        } else if stored.try_reserve(text.len()).is_ok() {
            stored.extend_from_slice(&text);
        }
        (*error).cell.backtrace = TVMFFIByteArray::from_slice(stored);
    }
}

fn valid_prefix(bytes: &[u8]) -> &str {
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind(), self.message())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.kind())
            .field("message", &self.message())
            .field("backtrace", &self.backtrace())
            .field("causes", &Causes(self))
            .finish()
    }
}

/// The causes of an error, one line each, for chains of any length.
struct Causes<'a>(&'a Error);

impl fmt::Debug for Causes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let causes = std::iter::successors(self.0.cause(), Error::cause);
        f.debug_list().entries(causes.map(|cause| cause.to_string())).finish()
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        let cell = self.cell_ptr().as_ptr();
        // SAFETY: the cell owns its cause for as long as this error lives, and never changes it. `Error` is a
        // transparent non-NULL pointer to an object. So a non-NULL handle to an error object is a valid `Error`, which
        // is only borrowed here.
        unsafe {
            let handle = (*cell).cause_chain.cast::<TVMFFIObject>();
            if handle.is_null() || (*handle).type_index != TypeIndex::ERROR.0 {
                return None;
            }
            Some(&*(&raw const (*cell).cause_chain).cast::<Error>())
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::error::Error as _;

    #[test]
    fn parts_are_readable() {
        let error = Error::new("ValueError", "no");
        assert_eq!(error.kind(), "ValueError");
        assert_eq!(error.message(), "no");
        assert_eq!(error.to_string(), "ValueError: no");
        assert!(error.backtrace().contains("object.rs"));
        assert!(error.source().is_none());
    }

    #[test]
    fn cause_is_the_source() {
        let error = Error::new("A", "a").with_cause(Error::new("B", "b"));
        assert_eq!(error.source().unwrap().to_string(), "B: b");
        assert_eq!(error.cause().unwrap().kind(), "B");
    }

    #[test]
    fn changing_a_shared_backtrace_copies() {
        let mut error = Error::from_parts("A", "a", "one\n", None, None);
        error.append_backtrace("two\n");
        let shared = error.clone();
        error.update_backtrace("three\n");
        assert_eq!(shared.backtrace(), "one\ntwo\n");
        assert_eq!(error.backtrace(), "three\n");
    }
}
