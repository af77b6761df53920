//! Tests of the runtime through its public Rust API and its C symbols.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]
// Miri opens no libraries and starts no processes.
#![cfg_attr(miri, allow(dead_code, unused_imports))]

mod big_int;
mod collections;
mod containers;
mod define;
mod errors;
mod faults;
mod functions;
#[path = "../../tests/hosts/rust_three_ways/src/hostile.rs"]
mod hostile;
#[cfg(not(miri))]
mod libraries;
mod library_bin;
#[cfg(all(target_os = "linux", not(miri)))]
mod live;
mod modules;
mod null_arguments;
mod objects;
mod reflection;
mod registry;
mod sound;
mod structural_walk;
mod structures;
mod support;
mod system_lib;
mod tensors;
mod typed;
mod types;
mod values;
