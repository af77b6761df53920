//! What each fuzz target does with an input: a module a target, whose `run` panics where the library is wrong.
//!
//! The tests of the root crate include these modules, and run them on the committed inputs of `fuzz/corpus`.

pub mod bodies;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod objects;
