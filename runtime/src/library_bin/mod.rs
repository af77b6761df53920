//! `__tvm_ffi__library_bin`, the modules that a library carries: the format, read and written here only.
//!
//! ```text
//! <nbytes: u64> <indptr: vec<u64>> <child_indices: vec<u64>> { <kind: str> [<payload: bytes>] }...
//! ```
//!
//! All integers are little-endian; `nbytes` counts what follows it; a `vec`, `str` or `bytes` is its length as a u64 and then its items. Each
//! node is a module: kind `_lib` is the library that carries the bytes, and has no payload. Node 0 is the root. Node `i` imports the nodes
//! `child_indices[indptr[i]..indptr[i + 1]]`. Format: "Enable Export and Loading" in upstream's guide for compilers, `library_module.cc`.
//!
//! [`LibraryBin`] reads, [`Layout`] writes; both refuse the same things. A payload is never copied here.

mod error;
mod format;
mod read;
mod tree;
mod write;

pub use error::LibraryBinError;
pub use format::LIBRARY_KIND;
pub use read::{LibraryBin, Node};
pub use write::{Layout, NodeSpec, Segment};
