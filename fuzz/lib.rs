//! The fuzz targets as a crate, with the parts of the root crate's tests that they use.
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "../tests/dispatch_table"]
mod dispatch_table {
    pub mod expected;
}
#[allow(dead_code)]
#[path = "../tests/property"]
mod property {
    pub mod agreement;
    pub mod calls;
    pub mod signatures;
}
#[allow(dead_code, unused_imports)]
#[path = "../tests/support"]
mod support {
    pub mod accesses;
    pub mod args;
    pub mod by_convention;
    pub mod c_api;
    pub mod dice;
    pub mod element;
    pub mod exec;
    pub mod fence;
    pub mod half;
    pub mod kernels;
    pub mod layout;
    pub mod model;
    pub mod modules;
    pub mod names;
    pub mod owners;
    pub mod recorder;
    pub mod recording;
    pub mod show;
    pub mod states;
    pub mod streams;
    pub mod text;
    pub mod value;
    pub mod written;
}
// Only this crate has the C API, which can't be a dependency of the root crate, and an allocator for one target.
#[path = "src/c_api/mod.rs"]
pub mod c_api;
#[path = "src/fenced.rs"]
pub mod fenced;
#[path = "src/lib.rs"]
mod targets;

pub use targets::*;
