//! Errors that LLVM reports.

use std::ffi::{CStr, c_char, c_void};
use std::ptr;

use inkwell::context::{AsContextRef, Context};
use inkwell::llvm_sys::LLVMDiagnosticSeverity;
use inkwell::llvm_sys::core::{
    LLVMContextSetDiagnosticHandler, LLVMDisposeMessage, LLVMGetDiagInfoDescription, LLVMGetDiagInfoSeverity,
};
use inkwell::llvm_sys::prelude::LLVMDiagnosticInfoRef;
use inkwell::module::Module as LlvmModule;

use super::error::Error;

/// The error for a module that LLVM rejected, with its listing.
pub(super) fn refused(message: &str, module: &LlvmModule<'_>) -> Error {
    Error::Codegen { message: message.to_owned(), listing: module.print_to_string().to_string() }
}

/// Errors that LLVM reports through a handler instead of a return value. Without a handler, LLVM prints them and ends
/// the process.
pub(super) struct Diagnostics {
    errors: Box<std::cell::RefCell<Vec<String>>>,
}

impl Diagnostics {
    /// Collects the errors reported in `context`. Declare it after the context, so it is dropped first.
    pub(super) fn of(context: &Context) -> Self {
        let errors = Box::<std::cell::RefCell<Vec<String>>>::default();
        // SAFETY: the handler gets the address of the boxed cell, which doesn't move, and runs on the thread that
        // compiles. Nothing is compiled in the context after this value is dropped: both are locals of one function.
        unsafe {
            LLVMContextSetDiagnosticHandler(
                context.as_ctx_ref(),
                Some(note),
                ptr::from_ref(&*errors).cast_mut().cast(),
            );
        }
        Diagnostics { errors }
    }

    pub(super) fn first_error(&self) -> Option<String> {
        self.errors.borrow().first().cloned()
    }
}

extern "C" fn note(info: LLVMDiagnosticInfoRef, errors: *mut c_void) {
    // SAFETY: LLVM calls this with a live diagnostic and with the pointer that `Diagnostics::of` registered.
    unsafe {
        if !matches!(LLVMGetDiagInfoSeverity(info), LLVMDiagnosticSeverity::LLVMDSError) {
            return;
        }
        let errors = &*errors.cast::<std::cell::RefCell<Vec<String>>>();
        errors.borrow_mut().push(take_message(LLVMGetDiagInfoDescription(info)));
    }
}

/// Returns a text that LLVM has copied for its caller, and frees that copy.
///
/// # Safety
/// The text is NUL-terminated, and LLVM's documentation says to free it with `LLVMDisposeMessage`.
pub(super) unsafe fn take_message(text: *mut c_char) -> String {
    // SAFETY: as promised to this function.
    unsafe {
        let message = CStr::from_ptr(text).to_string_lossy().into_owned();
        LLVMDisposeMessage(text);
        message
    }
}
