//! Launches on devices. They run on a stand-in driver, or on real devices with `cargo xtask gpu`.

mod attributes;
mod bodies;
mod calls;
mod code_objects;
#[cfg(target_os = "linux")]
mod cpu;
#[cfg(target_os = "linux")]
mod cpu_threads;
mod descriptions;
mod devices;
mod explained;
mod globals;
mod graph_calls;
mod graphs;
mod headers;
#[cfg(target_os = "linux")]
mod hook_variables;
mod hooks;
mod image_hooks;
mod images;
mod large;
mod launches;
mod libraries;
mod made;
mod nvfatbin;
mod on_devices;
mod python;
mod questions;
mod real;
mod refusals;
mod rtc;
mod sequences;
mod shared;
mod standin;
mod streams;
mod tensor_maps;

use tvm_ffi_codegen::{Backend, Engine};

/// An engine of each backend.
fn engines() -> Vec<Engine> {
    Backend::ALL.iter().map(|backend| Engine::builder().backend(*backend).build().unwrap()).collect()
}

/// A path that the test step `gpu` provides. Without it, the calling test is skipped.
fn brought(variable: &str) -> Option<std::path::PathBuf> {
    let value = std::env::var_os(variable).map(Into::into);
    if value.is_none() {
        eprintln!("skipped: {variable} is not set; `cargo xtask test --only gpu` sets it");
    }
    value
}
