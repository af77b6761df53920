//! Modules: objects that hold named functions, and import other modules.
//! `object` defines the module, and a [`ModuleImpl`] its behaviour. `builder` makes modules of functions in memory,
//! `library` those of shared and system libraries, and `load` turns files and bytes into modules. `imports` has the
//! graph, and `lookup` the search that a module's code makes in it. `layout` has the fields that C++ code reads, and
//! `cxx` lets C++ code define modules. `external` replaces this file for an external runtime, where modules are C++
//! objects used through global functions. Header: `kTVMFFIModule`, `extra/module.h`.

mod builder;
pub(crate) mod cxx;
mod globals;
mod implementation;
mod imports;
mod kinds;
mod layout;
mod library;
mod load;
mod lookup;
mod object;
mod property;
mod reflection;

pub use builder::ModuleBuilder;
pub(crate) use globals::globals;
pub use implementation::ModuleImpl;
pub(crate) use layout::object_of_context;
pub(crate) use library::{register_context_symbol, register_system_symbol};
pub use load::register_module_loader;
pub use object::Module;
pub use property::PropertyMask;
pub(crate) use reflection::types;
