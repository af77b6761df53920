//! The seam to an optional C++ part (`runtime/clib/cxx`), which has upstream's class `ModuleObj`. With it, C++ modules
//! are modules of this crate, and this crate's modules are objects of a C++ class. `attached` has what the part gives,
//! `foreign` the modules that C++ code has made, and `services` what the part gets. Header: `extra/module.h`.

mod attached;
mod foreign;
mod services;

pub(super) use attached::{methods, vtable};
pub(super) use foreign::CxxModule;
pub use services::attach;
