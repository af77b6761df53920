//! The module object: its contents, and the calls that it forwards to its implementation.
//! The header fixes only the type index; this crate chooses the layout. Header: `kTVMFFIModule`.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError, RwLock};

use super::implementation::ModuleImpl;
use super::property::PropertyMask;
use crate::abi::TypeIndex;
use crate::any::exact_objects;
use crate::container::ContainerItem;
use crate::error::{Result, object_wrapper, runtime_error};
use crate::function::Function;
use crate::heap::{AsObject, ObjectRef, WeakRef, marked, release};
use crate::string::Bytes;

/// The functions that lookups by a module's code have returned. The module keeps them for its whole lifetime.
#[derive(Default)]
pub(super) struct Lookups {
    pub(super) found: HashMap<String, Function>,
    /// Functions that were found before `newer` was set. Code may be about to call one of them.
    pub(super) retired: Vec<Function>,
    pub(super) newer: Option<WeakRef>,
}

/// The body of a module object. Fields drop in order: those that may refer to a library's code drop before the library.
pub(super) struct ModuleBody {
    pub(super) lookups: Mutex<Lookups>,
    pub(super) imports: RwLock<Vec<Module>>,
    implementation: Box<dyn ModuleImpl>,
}

impl Drop for ModuleBody {
    fn drop(&mut self) {
        let imports = std::mem::take(self.imports.get_mut().unwrap_or_else(PoisonError::into_inner));
        // Not recursive, so a long chain of imports doesn't overflow the stack.
        release(imports.into_iter().map(Into::into));
    }
}

/// A set of functions, `ffi.Module`. Cloning adds a reference.
#[derive(Clone)]
#[repr(transparent)]
pub struct Module(ObjectRef);

object_wrapper!(Module, TypeIndex::MODULE, marked::is_marked);

impl ContainerItem for Module {}
exact_objects!(Module);

impl Module {
    /// Makes a module from its implementation, without imports.
    pub fn from_impl(implementation: impl ModuleImpl + 'static) -> Self {
        Self(marked::new::<_, { TypeIndex::MODULE.0 }>(ModuleBody {
            lookups: Mutex::default(),
            imports: RwLock::default(),
            implementation: Box::new(implementation),
        }))
    }

    pub(super) fn body(&self) -> &ModuleBody {
        // SAFETY: a `Module` is made from marked objects only, and they have this body.
        unsafe { marked::body_of(&self.0) }
    }

    pub(super) fn implementation(&self) -> &dyn ModuleImpl {
        &*self.body().implementation
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
