//! The crates whose types appear in this library's API, in the versions that it was built with.
//!
//! If your compiler uses these re-exports, it always has the same versions, and only one dependency to update. The
//! versions and when they change are covered by [stability](crate#stability).

pub use cranelift_entity;
#[cfg(feature = "_llvm")]
pub use inkwell;
pub use target_lexicon;
#[cfg(feature = "cranelift")]
pub use {cranelift_codegen, cranelift_frontend, cranelift_jit, cranelift_module, cranelift_native, cranelift_object};
