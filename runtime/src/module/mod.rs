//! Modules: named functions behind one object, with the modules that they import.
//! What a module does is a [`ModuleImpl`]; `builder` has modules of functions in memory, `library` those of shared and system
//! libraries, `load` what makes modules of files and bytes, `imports` the graph, `lookup` what code finds there.
//! The header fixes only the type index; what is inside is this crate's own. Header: `kTVMFFIModule`, `extra/module.h`.

use std::fmt;
use std::path::Path;
use std::sync::{Mutex, PoisonError, RwLock};

use crate::abi::TypeIndex;
use crate::error::Result;
use crate::function::Function;
use crate::object::{ObjectRef, marked, object_wrapper};
use crate::string::Bytes;

mod builder;
mod globals;
mod implementation;
mod imports;
mod library;
mod load;
mod lookup;
mod reflection;

pub use builder::ModuleBuilder;
pub(crate) use globals::globals;
pub use implementation::{ModuleImpl, PropertyMask};
pub(crate) use library::{register_context_symbol, register_system_symbol};
pub use load::register_module_loader;
use lookup::Lookups;
pub(crate) use reflection::fields;

/// What a module object holds. Fields drop in order: what may hold code of a library goes before the library.
struct ModuleBody {
    lookups: Mutex<Lookups>,
    imports: RwLock<Vec<Module>>,
    implementation: Box<dyn ModuleImpl>,
}

impl Drop for ModuleBody {
    fn drop(&mut self) {
        let imports = std::mem::take(self.imports.get_mut().unwrap_or_else(PoisonError::into_inner));
        // However long a chain of imports is.
        crate::container::release(imports.into_iter().map(Into::into));
    }
}

/// A set of functions, `ffi.Module`. Cloning adds a reference.
#[derive(Clone)]
#[repr(transparent)]
pub struct Module(ObjectRef);

object_wrapper!(Module, TypeIndex::MODULE, marked::is_marked);

impl Module {
    /// A module of functions in memory; a later function of the same name wins.
    pub fn new(kind: &str, functions: impl IntoIterator<Item = (String, Function)>) -> Self {
        let add = |builder: ModuleBuilder, (name, function): (String, _)| builder.function(&name, function);
        functions.into_iter().fold(Self::builder(kind), add).build()
    }

    /// A builder of a module of functions in memory.
    pub fn builder(kind: &str) -> ModuleBuilder {
        ModuleBuilder::new(kind)
    }

    /// A module that does what `implementation` does, without imports.
    pub fn from_impl(implementation: impl ModuleImpl + 'static) -> Self {
        Self(marked::new::<_, { TypeIndex::MODULE.0 }>(ModuleBody {
            lookups: Mutex::default(),
            imports: RwLock::default(),
            implementation: Box::new(implementation),
        }))
    }

    /// Loads a file, as upstream's `Module::LoadFromFile`: the global function `ffi.Module.load_from_file.<extension>` does it. The
    /// extensions `dll`, `dylib` and `dso` stand for `so`, the loader of shared libraries, which is built in; it looks for a path without a
    /// directory where the system looks for libraries.
    ///
    /// # Errors
    /// `RuntimeError` for a path without extension, or an extension without loader; the error of the loader. Where a library misses
    /// symbols of this runtime, the message says how the executable exports them.
    ///
    /// # Safety
    /// As for any library: what its initialisers do, its functions with any arguments, and its symbols that begin with `__tvm_ffi_`, must be
    /// as upstream's documents for compilers say.
    pub unsafe fn load_from_file(path: impl AsRef<Path>) -> Result<Self> {
        load::load_from_file(path.as_ref())
    }

    /// The module of the functions that [`TVMFFIEnvModRegisterSystemLibSymbol`](crate::capi::TVMFFIEnvModRegisterSystemLibSymbol) has
    /// registered under names that begin with `__tvm_ffi_`, then maybe `prefix`. There is one for each prefix in the process.
    ///
    /// # Errors
    /// As for a shared library: where the registered `__tvm_ffi__library_bin` is broken, or needs a loader that isn't there.
    pub fn system_lib(prefix: &str) -> Result<Self> {
        library::system_lib(prefix)
    }

    fn body(&self) -> &ModuleBody {
        // SAFETY: a `Module` is made from marked objects only, whose body is this one.
        unsafe { marked::body_of(&self.0) }
    }

    /// What the module does.
    fn implementation(&self) -> &dyn ModuleImpl {
        &*self.body().implementation
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
    /// What the implementation raises.
    pub fn get_function(&self, name: &str) -> Result<Option<Function>> {
        self.implementation().get_function(name)
    }

    /// The function of that name, here or, if `query_imports`, in the imported modules and theirs, in depth-first order.
    ///
    /// # Errors
    /// What an implementation raises.
    pub fn get_function_from(&self, name: &str, query_imports: bool) -> Result<Option<Function>> {
        self.first_of(query_imports, |module| module.get_function(name))
    }

    /// Whether there is a function of that name, looked for as by [`get_function_from`](Self::get_function_from).
    ///
    /// # Errors
    /// What an implementation raises.
    pub fn implements_function(&self, name: &str, query_imports: bool) -> Result<bool> {
        let found = self
            .first_of(query_imports, |module| Ok(module.implementation().implements_function(name)?.then_some(())))?;
        Ok(found.is_some())
    }

    /// The metadata of a function, a JSON text, looked for as by [`get_function_from`](Self::get_function_from).
    ///
    /// # Errors
    /// What an implementation raises.
    pub fn function_metadata(&self, name: &str, query_imports: bool) -> Result<Option<String>> {
        self.first_of(query_imports, |module| module.implementation().function_metadata(name))
    }

    /// The doc text of a function, looked for as by [`get_function_from`](Self::get_function_from).
    ///
    /// # Errors
    /// What an implementation raises.
    pub fn function_doc(&self, name: &str, query_imports: bool) -> Result<Option<String>> {
        self.first_of(query_imports, |module| module.implementation().function_doc(name))
    }

    /// The module as bytes, which the loader of its kind takes; `None` where it can't be written so. Imports are not part of them.
    ///
    /// # Errors
    /// What the implementation raises.
    pub fn save_to_bytes(&self) -> Result<Option<Bytes>> {
        self.implementation().save_to_bytes()
    }

    /// The source in some format, the module's usual one if that is empty; empty where there is none.
    ///
    /// # Errors
    /// What the implementation raises.
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
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Module").field("kind", &self.kind()).field("functions", &self.function_names()).finish()
    }
}
