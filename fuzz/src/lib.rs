//! The work of each fuzz target on an input: one module per target. Its `run` panics if it finds an error in the
//! library.
//!
//! The tests of the root crate include these modules, and run them on the committed inputs in `fuzz/corpus`.

// The tests of the root crate, which include these modules, have it too.
#[allow(clippy::duplicate_mod)]
#[path = "../../tests/support/accesses/mod.rs"]
mod accesses;
pub mod bodies;
pub mod cache;
pub mod calls;
pub mod dispatch;
pub mod files;
pub mod graphs;
pub mod host_text;
pub mod images;
pub mod listings;
pub mod live;
pub mod memory;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod objects;
// The tests of the root crate, which include these modules, have it too.
#[allow(clippy::duplicate_mod)]
#[path = "../../tests/support/owners/mod.rs"]
mod owners;
// The tests of the root crate, which include these modules, have it too.
#[allow(clippy::duplicate_mod)]
#[path = "../../tests/ir_text/same.rs"]
mod same;
pub mod signatures;
pub mod values;
