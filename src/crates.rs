//! The crates whose types this library takes and gives, in the versions that it was built with.
//!
//! A compiler that names them through here has the same versions by itself, and one dependency to keep up to date. Which versions those are,
//! and when they change, is a part of [what is stable](crate#stability).

pub use cranelift_entity;
#[cfg(feature = "_llvm")]
pub use inkwell;
pub use target_lexicon;
#[cfg(feature = "cranelift")]
pub use {cranelift_codegen, cranelift_frontend, cranelift_jit, cranelift_module, cranelift_native, cranelift_object};
