//! Modules: named functions behind one object, with the modules that they import.
//! `object` has the module, and what it does is a [`ModuleImpl`]; `builder` has modules of functions in memory, `library` those of shared
//! and system libraries, `load` what makes modules of files and bytes, `imports` the graph, `lookup` what code finds there.
//! Header: `kTVMFFIModule`, `extra/module.h`.

mod builder;
mod globals;
mod implementation;
mod imports;
mod library;
mod load;
mod lookup;
mod object;
mod reflection;

pub use builder::ModuleBuilder;
pub(crate) use globals::globals;
pub use implementation::{ModuleImpl, PropertyMask};
pub(crate) use library::{register_context_symbol, register_system_symbol};
pub use load::register_module_loader;
pub use object::Module;
pub(crate) use reflection::types;
