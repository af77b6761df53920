//! The work of each fuzz target on an input: one module per target. Its `run` panics if it finds an error in the
//! library.
//!
//! The tests of the root crate include these modules, and run them on the committed inputs in `fuzz/corpus`.

// The tests of the root crate, which include these modules, have it too.
#[allow(clippy::duplicate_mod)]
#[path = "../../tests/support/accesses/mod.rs"]
mod accesses;
pub mod bodies;
pub mod graphs;
pub mod host_text;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod objects;
pub mod values;
