//! Modules of an external runtime: C++ objects with global functions as methods.
//! No header section: upstream registers the functions in `extra/module.cc`.

mod kinds;
mod property;

pub use property::PropertyMask;

use std::fmt;
use std::path::Path;

use crate::abi::TypeIndex;
use crate::abi::symbol::{FIRST_VERSION, min_version};
use crate::any::{Any, exact_objects};
use crate::container::{Array, ContainerItem};
use crate::error::{Error, Result, object_wrapper, raised_error, runtime_error, value_error};
use crate::function::{CallArgs, Function};
use crate::heap::ObjectRef;
use crate::registry::{LOAD_FROM_FILE, find};
use crate::string::Bytes;

/// A set of functions, `ffi.Module`. Cloning adds a reference.
///
/// This one belongs to the external runtime. You can't implement such a module in Rust, since its methods are virtual
/// functions of a C++ class.
#[derive(Clone)]
#[repr(transparent)]
pub struct Module(ObjectRef);

object_wrapper!(Module, TypeIndex::MODULE);

impl ContainerItem for Module {}
exact_objects!(Module);

/// Calls a global function of the runtime.
fn call(name: &str, args: impl CallArgs) -> Result<Any> {
    let function = find(name.as_bytes()).ok_or_else(|| match crate::external::api() {
        Ok(_) => runtime_error(&format!("the external runtime has no global function `{name}`")),
        Err(why) => why.into(),
    })?;
    function.call(args)
}

/// Adds the version that a library needs to the error of a system's loader, which only tells the missing symbol.
fn name_version(error: Error) -> Error {
    let message = error.message();
    match min_version(message.split(|c: char| !c.is_ascii_alphanumeric())) {
        Some(version) if message.contains("symbol") && version > FIRST_VERSION => {
            Error::new(error.kind(), &format!("{message}. The library needs TVM FFI {version} or newer"))
        }
        _ => error,
    }
}

impl Module {
    /// Loads a file, as upstream's `Module::LoadFromFile`, using the global function
    /// `ffi.Module.load_from_file.<extension>`.
    ///
    /// # Errors
    /// `RuntimeError` without a runtime; the errors of the external runtime. If it lacks a C function that the library
    /// needs, the message names the version that has it.
    ///
    /// # Safety
    /// As for any library, its initialisers must be sound to run, and its functions must be sound to call with any
    /// arguments. Its symbols that begin with `__tvm_ffi_` must follow upstream's documents for compilers. Upstream
    /// closes the library with its module. So no value that its code has made, and no thread that it has started, may
    /// outlive the module and its functions.
    pub unsafe fn load_from_file(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let file = path.to_str().ok_or_else(|| value_error(&format!("file name is not UTF-8: {}", path.display())))?;
        call(LOAD_FROM_FILE, (file,)).map_err(name_version)?.cast()
    }

    /// Loads a shared library, as [`load_from_file`](Self::load_from_file), but ignores the path's extension. The path
    /// of an image in memory has none.
    ///
    /// # Errors
    /// As `load_from_file`.
    ///
    /// # Safety
    /// As `load_from_file`.
    pub unsafe fn load_library(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let file = path.to_str().ok_or_else(|| value_error(&format!("file name is not UTF-8: {}", path.display())))?;
        call("ffi.Module.load_from_file.so", (file, "so")).map_err(name_version)?.cast()
    }

    /// The module of this process's system library: the functions registered under names that begin with
    /// `__tvm_ffi_`, optionally followed by `prefix`.
    ///
    /// # Errors
    /// `RuntimeError` without a runtime; the errors of the external runtime.
    pub fn system_lib(prefix: &str) -> Result<Self> {
        call("ffi.SystemLib", (prefix,))?.cast()
    }

    /// The kind, such as `library`; empty if the runtime doesn't report one.
    pub fn kind(&self) -> &str {
        let kind = call("ffi.ModuleGetKind", (self,)).and_then(|kind| kind.cast());
        kind.map_or("", kinds::interned)
    }

    /// The uses of the module.
    pub fn property_mask(&self) -> PropertyMask {
        let mask = call("ffi.ModuleGetPropertyMask", (self,)).and_then(|mask| mask.cast());
        mask.map_or(PropertyMask::NONE, PropertyMask)
    }

    /// Always `None`: an external runtime doesn't list the names of a module's functions.
    pub fn function_names(&self) -> Option<Vec<String>> {
        None
    }

    /// The module's own function of that name, if it has one.
    ///
    /// # Errors
    /// The error that the module raises.
    pub fn get_function(&self, name: &str) -> Result<Option<Function>> {
        self.get_function_from(name, false)
    }

    /// The function of that name in this module or, if `query_imports`, in its imports, searched depth-first.
    ///
    /// # Errors
    /// The error that a module raises.
    pub fn get_function_from(&self, name: &str, query_imports: bool) -> Result<Option<Function>> {
        call("ffi.ModuleGetFunction", (self, name, query_imports))?.cast()
    }

    /// True if there is a function of that name. The search is that of
    /// [`get_function_from`](Self::get_function_from).
    ///
    /// # Errors
    /// The error that a module raises.
    pub fn implements_function(&self, name: &str, query_imports: bool) -> Result<bool> {
        call("ffi.ModuleImplementsFunction", (self, name, query_imports))?.cast()
    }

    /// The metadata of a function as a JSON string. The search is that of
    /// [`get_function_from`](Self::get_function_from).
    ///
    /// # Errors
    /// The error that a module raises.
    pub fn function_metadata(&self, name: &str, query_imports: bool) -> Result<Option<String>> {
        call("ffi.ModuleGetFunctionMetadata", (self, name, query_imports))?.cast()
    }

    /// The documentation of a function. The search is that of [`get_function_from`](Self::get_function_from).
    ///
    /// # Errors
    /// The error that a module raises.
    pub fn function_doc(&self, name: &str, query_imports: bool) -> Result<Option<String>> {
        call("ffi.ModuleGetFunctionDoc", (self, name, query_imports))?.cast()
    }

    /// Always fails: the external runtime has no function that returns a module as bytes.
    ///
    /// # Errors
    /// Always a `RuntimeError`.
    pub fn save_to_bytes(&self) -> Result<Option<Bytes>> {
        Err(runtime_error("an external runtime can't save its modules as bytes"))
    }

    /// Returns the source in `format`, or in the module's default format if `format` is empty. The result is empty if
    /// the module has no source.
    ///
    /// # Errors
    /// The error that the module raises.
    pub fn inspect_source(&self, format: &str) -> Result<String> {
        call("ffi.ModuleInspectSource", (self, format))?.cast()
    }

    /// The formats of [`write_to_file`](Self::write_to_file).
    pub fn write_formats(&self) -> Vec<String> {
        let formats = call("ffi.ModuleGetWriteFormats", (self,)).and_then(|formats| formats.cast::<Array>());
        formats.map_or_else(|_| Vec::new(), |formats| formats.iter().filter_map(|format| format.cast().ok()).collect())
    }

    /// Writes the module to a file, for further compilation.
    ///
    /// # Errors
    /// The error that the module raises.
    pub fn write_to_file(&self, file_name: &str, format: &str) -> Result<()> {
        call("ffi.ModuleWriteToFile", (self, file_name, format)).map(drop)
    }

    /// The imported modules, in the order of their import; empty if the runtime doesn't expose them.
    pub fn imports(&self) -> Vec<Module> {
        self.try_imports().unwrap_or_default()
    }

    fn try_imports(&self) -> Result<Vec<Module>> {
        let info = crate::type_info::of_registered(TypeIndex::MODULE.0);
        let info = info.ok_or_else(|| runtime_error("no type ffi.Module"))?;
        // SAFETY: infos are never freed, and `num_fields` is their number of fields. The getter gets the address of a
        // field of this object.
        let imports = unsafe {
            let fields = (*info).fields;
            let mut all = (0..(*info).num_fields.max(0) as usize).map(|index| &*fields.add(index));
            let field = all.find(|field| field.name.as_slice() == b"imports_");
            let field = field.ok_or_else(|| runtime_error("ffi.Module has no field `imports_`"))?;
            let getter = field.getter.ok_or_else(|| runtime_error("the field `imports_` can't be read"))?;
            let mut value = crate::abi::TVMFFIAny::none();
            let place = self.0.as_ptr().wrapping_byte_offset(field.offset as isize);
            match getter(place.cast(), &raw mut value) {
                0 => Any::from_raw(value),
                code => return Err(raised_error(code)),
            }
        };
        imports.cast::<Array>()?.iter().map(|module| module.cast()).collect()
    }

    /// Appends a module to the imports.
    ///
    /// # Errors
    /// `RuntimeError` if `other` is this module, or imports it directly or through other modules.
    pub fn import_module(&self, other: &Module) -> Result<()> {
        call("ffi.ModuleImportModule", (self, other)).map(drop)
    }

    /// Removes all imports.
    pub fn clear_imports(&self) {
        drop(call("ffi.ModuleClearImports", (self,)));
    }
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Module").field("kind", &self.kind()).finish_non_exhaustive()
    }
}
