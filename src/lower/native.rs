//! The compiled code that is passed with a native kernel.

use std::sync::Arc;

/// Code that defines a kernel's symbol. Clones of a kernel share one copy of it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum NativeCode {
    /// A relocatable object, or an archive of such objects.
    Object(Arc<[u8]>),
    /// A module in LLVM's textual IR.
    #[cfg(feature = "_llvm")]
    LlvmIr(Arc<str>),
    /// A module in LLVM's bitcode.
    #[cfg(feature = "_llvm")]
    Bitcode(Arc<[u8]>),
}

/// Whether the bytes are an archive, regular or thin.
pub(crate) fn is_archive(bytes: &[u8]) -> bool {
    bytes.starts_with(&object::archive::MAGIC) || bytes.starts_with(&object::archive::THIN_MAGIC)
}

impl NativeCode {
    /// The kind of code, for messages.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            NativeCode::Object(bytes) if is_archive(bytes) => "archive",
            NativeCode::Object(_) => "object",
            #[cfg(feature = "_llvm")]
            NativeCode::LlvmIr(_) => "LLVM IR",
            #[cfg(feature = "_llvm")]
            NativeCode::Bitcode(_) => "LLVM bitcode",
        }
    }
}
