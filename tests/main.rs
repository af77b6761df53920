//! Tests of the whole: signatures and kernels on every executor, from the outside.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

mod artifact;
mod bodies;
mod calls;
mod contract;
mod debug_info;
mod fixtures;
mod growth;
mod in_use;
mod link;
#[cfg(target_os = "linux")]
#[path = "../runtime/tests/live.rs"]
#[allow(dead_code)] // no test of this crate registers symbols of a system library
mod live;
mod lower_errors;
mod native;
#[cfg(not(debug_assertions))]
mod objects;
mod pack;
mod property;
mod prototypes;
mod runtime_closure;
mod spec;
mod support;
mod threads;
mod upstream;
