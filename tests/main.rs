//! Tests of the whole library, from the outside: signatures and kernels on every executor.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

// On a runtime other than the bundled one, only the tests of bodies that make calls run. The code that the other tests
// cover is independent of the runtime.
#[cfg(not(feature = "external-runtime"))]
mod accesses;
#[cfg(not(feature = "external-runtime"))]
mod artifact;
#[cfg(generated_code_asan)]
mod asan;
#[cfg(not(feature = "external-runtime"))]
mod bodies;
#[cfg(not(feature = "external-runtime"))]
mod c_functions;
mod calls;
#[cfg(not(feature = "external-runtime"))]
mod contract;
#[cfg(not(feature = "external-runtime"))]
mod debug_info;
#[cfg(not(feature = "external-runtime"))]
mod declarations;
#[cfg(not(feature = "external-runtime"))]
mod dispatch_table;
#[cfg(not(feature = "external-runtime"))]
mod example_compilers;
#[cfg(not(feature = "external-runtime"))]
mod explain;
#[path = "../runtime/tests/faults.rs"]
#[cfg_attr(feature = "external-runtime", allow(dead_code))]
mod faults;
#[cfg(not(feature = "external-runtime"))]
mod fixtures;
#[cfg(not(feature = "external-runtime"))]
mod front_doors;
#[cfg(not(feature = "external-runtime"))]
mod fuzz;
#[cfg(all(any(target_os = "linux", windows), not(feature = "external-runtime")))]
mod gpu;
#[cfg(not(feature = "external-runtime"))]
mod growth;
#[cfg(not(feature = "external-runtime"))]
mod host_text;
#[cfg(not(feature = "external-runtime"))]
mod in_use;
#[cfg(not(feature = "external-runtime"))]
mod ir_text;
#[cfg(all(target_os = "linux", target_arch = "x86_64", not(feature = "external-runtime")))]
mod kept_libraries;
#[cfg(not(feature = "external-runtime"))]
mod library_image;
#[cfg(not(feature = "external-runtime"))]
mod link;
#[cfg(not(feature = "external-runtime"))]
mod listings;
#[cfg(all(target_os = "linux", not(feature = "external-runtime")))]
#[path = "../runtime/tests/live.rs"]
mod live;
#[cfg(not(feature = "external-runtime"))]
mod lives;
#[cfg(not(feature = "external-runtime"))]
mod locations;
#[cfg(not(feature = "external-runtime"))]
mod lower_errors;
#[cfg(not(feature = "external-runtime"))]
mod native;
#[cfg(not(feature = "external-runtime"))]
mod native_code;
#[cfg(not(feature = "external-runtime"))]
mod objects;
#[cfg(not(feature = "external-runtime"))]
mod owners;
#[cfg(not(feature = "external-runtime"))]
mod pack;
#[cfg(not(feature = "external-runtime"))]
mod property;
#[cfg(not(feature = "external-runtime"))]
mod prototypes;
#[cfg(not(feature = "external-runtime"))]
mod records;
#[cfg(not(feature = "external-runtime"))]
mod runtime_closure;
#[cfg(not(feature = "external-runtime"))]
mod spec;
#[cfg(not(feature = "external-runtime"))]
mod stated_args;
#[cfg_attr(feature = "external-runtime", allow(dead_code, unused_imports))]
mod support;
#[cfg(not(feature = "external-runtime"))]
mod threads;
#[cfg(not(feature = "external-runtime"))]
mod upstream;
#[cfg(not(feature = "external-runtime"))]
mod variants;
#[cfg(not(feature = "external-runtime"))]
mod without_memory;
