//! The work of each fuzz target on an input: one module per target. Its `run` panics if it finds an error in the
//! library.
//!
//! The tests of the root crate include these modules, and run them on the committed inputs in `fuzz/corpus`.

pub mod bodies;
pub mod graphs;
pub mod host_text;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod objects;
pub mod values;
