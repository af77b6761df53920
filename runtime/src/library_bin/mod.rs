//! `__tvm_ffi__library_bin`, the modules that are embedded in a library. Only this code reads and writes the format.
//!
//! ```text
//! <nbytes: u64> <indptr: vec<u64>> <child_indices: vec<u64>> { <kind: str> [<payload: bytes>] }...
//! ```
//!
//! All integers are little-endian. `nbytes` is the number of bytes after itself. A `vec`, `str` or `bytes` is its
//! length as a u64, followed by its items. Each node is a module. Kind `_lib` is the library that carries the bytes,
//! and has no payload. Node 0 is the root. Node `i` imports the nodes `child_indices[indptr[i]..indptr[i + 1]]`.
//! Format: "Enable Export and Loading" in upstream's guide for compilers, `library_module.cc`.
//!
//! [`LibraryBin`] reads and [`Layout`] writes; both enforce the same rules. Neither copies a payload.

mod error;
mod format;
mod read;
mod tree;
mod write;

pub use error::LibraryBinError;
pub use format::LIBRARY_KIND;
pub use read::{LibraryBin, Node};
pub use write::{Layout, NodeSpec, Segment};
