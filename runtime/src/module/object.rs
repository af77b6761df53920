//! The handle of a module, and the calls that it forwards to its implementation. Header: `kTVMFFIModule`.

use std::fmt;
use std::sync::atomic::AtomicPtr;

use super::cxx::CxxModule;
use super::implementation::ModuleImpl;
use super::layout::{self, ModuleBody};
use super::property::PropertyMask;
use crate::abi::{TVMFFIObject, TypeIndex};
use crate::any::exact_objects;
use crate::container::ContainerItem;
use crate::error::{Result, object_wrapper, runtime_error};
use crate::function::Function;
use crate::heap::{AsObject, ObjectRef};
use crate::string::Bytes;

/// A set of functions, `ffi.Module`. Cloning adds a reference.
#[derive(Clone)]
#[repr(transparent)]
pub struct Module(ObjectRef);

object_wrapper!(Module, TypeIndex::MODULE, layout::is_module);

impl ContainerItem for Module {}
exact_objects!(Module);

impl Module {
    /// Makes a module from its implementation, without imports.
    pub fn from_impl(implementation: impl ModuleImpl + 'static) -> Self {
        Self(layout::new(Box::new(implementation)))
    }

    /// The Rust part of a module that this crate made; `None` for a C++ module.
    pub(super) fn body(&self) -> Option<&ModuleBody> {
        layout::body_of(&self.0)
    }

    /// The field `imports_`: NULL or an array.
    pub(super) fn imports_field(&self) -> &AtomicPtr<TVMFFIObject> {
        // SAFETY: a handle is made only of objects for which `is_module` holds.
        unsafe { layout::imports_of(&self.0) }
    }

    /// The module as one that C++ code has made.
    pub(super) fn as_cxx(&self) -> Option<&CxxModule> {
        self.body().is_none().then(|| CxxModule::of(&self.0))
    }

    pub(super) fn implementation(&self) -> &dyn ModuleImpl {
        match self.body() {
            Some(body) => &*body.implementation,
            None => CxxModule::of(&self.0),
        }
    }

    /// The object's address, which identifies the module.
    pub(super) fn address(&self) -> usize {
        self.as_object().as_ptr().addr()
    }

    /// The kind, such as `library`.
    pub fn kind(&self) -> &str {
        self.implementation().kind()
    }

    /// The uses of the module.
    pub fn property_mask(&self) -> PropertyMask {
        self.implementation().property_mask()
    }

    /// The names of all functions, sorted; `None` if the module can't list them, as is the case for a library.
    pub fn function_names(&self) -> Option<Vec<String>> {
        let mut names = self.implementation().function_names()?;
        names.sort_unstable();
        Some(names)
    }

    /// The module's own function of that name, if it has one.
    ///
    /// # Errors
    /// The error that the implementation raises.
    pub fn get_function(&self, name: &str) -> Result<Option<Function>> {
        self.implementation().get_function(name)
    }

    /// Serializes the module to the bytes that the loader of its kind takes; `None` if its kind has no such form. The
    /// bytes don't include imports.
    ///
    /// # Errors
    /// The error that the implementation raises.
    pub fn save_to_bytes(&self) -> Result<Option<Bytes>> {
        self.implementation().save_to_bytes()
    }

    /// Returns the source in `format`, or in the module's default format if `format` is empty. The result is empty if
    /// the module has no source.
    ///
    /// # Errors
    /// The error that the implementation raises.
    pub fn inspect_source(&self, format: &str) -> Result<String> {
        self.implementation().inspect_source(format)
    }

    /// The formats of [`write_to_file`](Self::write_to_file).
    pub fn write_formats(&self) -> Vec<String> {
        self.implementation().write_formats()
    }

    /// Writes the module to a file, for further compilation.
    ///
    /// # Errors
    /// `RuntimeError` if the module can't be written; any error that the implementation raises.
    pub fn write_to_file(&self, file_name: &str, format: &str) -> Result<()> {
        self.implementation().write_to_file(file_name, format)
    }

    /// Requests closing this module's library after the module, its functions and the bytes embedded in the library are
    /// dropped. Unless you call this, a library stays open until the process ends. Closing runs the library's
    /// destructors, and opening it again starts from its initial state.
    ///
    /// # Errors
    /// `RuntimeError` if the module has no library of its own. For a library that carries other modules, the library's
    /// own module may be an import of the one that you loaded.
    ///
    /// # Safety
    /// When the last of these is dropped, nothing else may need the library's code or data. This includes values that
    /// its functions have made or kept, since an object's destructor is code of the library that made the object. It
    /// also includes functions, type attributes and anything else that its code has registered, threads that it has
    /// started, and destructors of its thread-local variables.
    pub unsafe fn unload_when_unused(&self) -> Result<()> {
        // SAFETY: promised by the caller.
        if unsafe { self.implementation().unload_when_unused() } {
            return Ok(());
        }
        Err(runtime_error(&format!("a module of kind `{}` has nothing to unload", self.kind())))
    }
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Module").field("kind", &self.kind()).field("functions", &self.function_names()).finish()
    }
}
