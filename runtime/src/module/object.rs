//! The module object: what it holds, and what its implementation does.
//! The header fixes only the type index; what is inside is this crate's own. Header: `kTVMFFIModule`.

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

/// What a module has handed out to code, which stays for as long as the module.
#[derive(Default)]
pub(super) struct Lookups {
    pub(super) found: HashMap<String, Function>,
    /// Functions that were found before `newer` came. Code may be about to call it.
    pub(super) retired: Vec<Function>,
    pub(super) newer: Option<WeakRef>,
}

/// What a module object holds. Fields drop in order: what may hold code of a library goes before the library.
pub(super) struct ModuleBody {
    pub(super) lookups: Mutex<Lookups>,
    pub(super) imports: RwLock<Vec<Module>>,
    implementation: Box<dyn ModuleImpl>,
}

impl Drop for ModuleBody {
    fn drop(&mut self) {
        let imports = std::mem::take(self.imports.get_mut().unwrap_or_else(PoisonError::into_inner));
        // However long a chain of imports is.
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
    /// A module that does what `implementation` does, without imports.
    pub fn from_impl(implementation: impl ModuleImpl + 'static) -> Self {
        Self(marked::new::<_, { TypeIndex::MODULE.0 }>(ModuleBody {
            lookups: Mutex::default(),
            imports: RwLock::default(),
            implementation: Box::new(implementation),
        }))
    }

    pub(super) fn body(&self) -> &ModuleBody {
        // SAFETY: a `Module` is made from marked objects only, whose body is this one.
        unsafe { marked::body_of(&self.0) }
    }

    /// The implementation, which does the module's work.
    pub(super) fn implementation(&self) -> &dyn ModuleImpl {
        &*self.body().implementation
    }

    /// The object's address, which tells modules apart.
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

    /// The names of all functions, sorted; `None` where the module doesn't know them, as a library.
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

    /// The module as bytes, which the loader of its kind takes; `None` where it can't be written so. Imports are not part of them.
    ///
    /// # Errors
    /// The error that the implementation raises.
    pub fn save_to_bytes(&self) -> Result<Option<Bytes>> {
        self.implementation().save_to_bytes()
    }

    /// The source in some format, the module's usual one if that is empty; empty where there is none.
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
    /// `RuntimeError` where the module can't be written; what the implementation raises.
    pub fn write_to_file(&self, file_name: &str, format: &str) -> Result<()> {
        self.implementation().write_to_file(file_name, format)
    }

    /// Lets the library of this module be closed when the module, its functions and the bytes that it carries are gone. Without this a
    /// library stays open for as long as the process lives. The library's destructors then run, and opening it again begins anew.
    ///
    /// # Errors
    /// `RuntimeError` where the module has no library of its own: a module that carries others may import the library's.
    ///
    /// # Safety
    /// When the last of those is dropped, nothing else may need the library's code or data: no value that its functions have made or
    /// kept (an object's destructor is code of what made it), no function, type attribute or other thing that its code has registered, no
    /// thread that it has started, no destructor of a thread-local variable of its own.
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
