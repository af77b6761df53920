//! Modules: named functions behind one object, with the modules that they import.
//! `object` has the module, and what it does is a [`ModuleImpl`]; `builder` has modules of functions in memory, `library` those of shared
//! and system libraries, `load` what makes modules of files and bytes, `imports` the graph, `lookup` what code finds there.
//! Modules of an external runtime are C++ objects behind global functions; `external` has those.
//! Header: `kTVMFFIModule`, `extra/module.h`.

#[cfg(not(feature = "external"))]
mod builder;
#[cfg(feature = "external")]
mod external;
#[cfg(not(feature = "external"))]
mod globals;
#[cfg(not(feature = "external"))]
mod implementation;
#[cfg(not(feature = "external"))]
mod imports;
#[cfg(not(feature = "external"))]
mod library;
#[cfg(not(feature = "external"))]
mod load;
#[cfg(not(feature = "external"))]
mod lookup;
#[cfg(not(feature = "external"))]
mod object;
mod property;
#[cfg(not(feature = "external"))]
mod reflection;

#[cfg(not(feature = "external"))]
pub use builder::ModuleBuilder;
#[cfg(feature = "external")]
pub use external::Module;
#[cfg(not(feature = "external"))]
pub(crate) use globals::globals;
#[cfg(not(feature = "external"))]
pub use implementation::ModuleImpl;
#[cfg(not(feature = "external"))]
pub(crate) use library::{register_context_symbol, register_system_symbol};
#[cfg(not(feature = "external"))]
pub use load::register_module_loader;
#[cfg(not(feature = "external"))]
pub use object::Module;
pub use property::PropertyMask;
#[cfg(not(feature = "external"))]
pub(crate) use reflection::types;
