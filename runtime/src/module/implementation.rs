//! The behaviour of a kind of module: the methods of upstream's `ModuleObj`, as a trait.

use super::property::PropertyMask;
use crate::error::{Result, runtime_error};
use crate::function::Function;
use crate::string::Bytes;

/// A kind of module. [`Module`](super::Module) adds the imports, and may call the methods from any thread.
///
/// ```
/// use tvm_ffi_runtime::module::{ModuleImpl, PropertyMask, register_module_loader};
/// use tvm_ffi_runtime::{Any, Bytes, Function, Module, Result};
///
/// /// Its bytes are what its function returns.
/// struct Constant(Bytes);
///
/// impl ModuleImpl for Constant {
///     fn kind(&self) -> &str {
///         "constant"
///     }
///
///     fn property_mask(&self) -> PropertyMask {
///         PropertyMask::RUNNABLE | PropertyMask::BINARY_SERIALIZABLE
///     }
///
///     fn get_function(&self, name: &str) -> Result<Option<Function>> {
///         let bytes = self.0.clone();
///         Ok((name == "get").then(|| Function::from_packed(move |_| Ok(Any::from(bytes.clone())))))
///     }
///
///     fn save_to_bytes(&self) -> Result<Option<Bytes>> {
///         Ok(Some(self.0.clone()))
///     }
/// }
///
/// // From now on libraries may carry such modules.
/// register_module_loader("constant", |bytes| Ok(Module::from_impl(Constant(bytes))))?;
/// # Ok::<(), tvm_ffi_runtime::Error>(())
/// ```
pub trait ModuleImpl: Send + Sync {
    /// The kind, which also names the loader of its bytes.
    fn kind(&self) -> &str;

    /// The function of that name.
    ///
    /// A function that uses data of the module must keep that data alive itself.
    ///
    /// # Errors
    /// If the function exists but can't be returned. A missing function isn't an error.
    fn get_function(&self, name: &str) -> Result<Option<Function>>;

    /// True if there is a function of that name, even one that can't be called before further compilation.
    ///
    /// # Errors
    /// As [`get_function`](Self::get_function).
    fn implements_function(&self, name: &str) -> Result<bool> {
        Ok(self.get_function(name)?.is_some())
    }

    /// The metadata of a function as a JSON string.
    ///
    /// # Errors
    /// If the metadata exists but can't be returned.
    fn function_metadata(&self, _name: &str) -> Result<Option<String>> {
        Ok(None)
    }

    /// The documentation of a function.
    ///
    /// # Errors
    /// If the documentation exists but can't be returned.
    fn function_doc(&self, _name: &str) -> Result<Option<String>> {
        Ok(None)
    }

    /// The names of all functions, if the module can list them.
    fn function_names(&self) -> Option<Vec<String>> {
        None
    }

    /// The uses of the module.
    fn property_mask(&self) -> PropertyMask {
        PropertyMask::NONE
    }

    /// Serializes the module to the bytes that the loader of its kind takes.
    ///
    /// # Errors
    /// If serializing fails. If the kind has no serialized form, return `Ok(None)` instead.
    fn save_to_bytes(&self) -> Result<Option<Bytes>> {
        Ok(None)
    }

    /// Returns the source in `format`, or in the default format if `format` is empty. The result is empty if the module
    /// has no source.
    ///
    /// # Errors
    /// If the source exists but can't be returned.
    fn inspect_source(&self, _format: &str) -> Result<String> {
        Ok(String::new())
    }

    /// The formats of [`write_to_file`](Self::write_to_file).
    fn write_formats(&self) -> Vec<String> {
        Vec::new()
    }

    /// Writes the module to a file, for further compilation.
    ///
    /// # Errors
    /// If writing fails. The default implementation always fails.
    fn write_to_file(&self, _file_name: &str, _format: &str) -> Result<()> {
        Err(runtime_error(&format!("Module[{}] does not support WriteToFile", self.kind())))
    }

    /// Allows unloading the module's code after its last use, and returns whether the module has anything to unload.
    ///
    /// # Safety
    /// As [`Module::unload_when_unused`](super::Module::unload_when_unused).
    unsafe fn unload_when_unused(&self) -> bool {
        false
    }
}
