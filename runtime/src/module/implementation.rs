//! What a kind of module does: the methods of upstream's `ModuleObj`, as a trait.

use super::property::PropertyMask;
use crate::error::{Result, runtime_error};
use crate::function::Function;
use crate::string::Bytes;

/// A kind of module. A [`Module`](super::Module) adds imports to it, and calls it from any thread.
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
    /// A function that uses what the module owns has to keep it alive itself.
    ///
    /// # Errors
    /// Where the function is there but can't be had. That there is none is no error.
    fn get_function(&self, name: &str) -> Result<Option<Function>>;

    /// Whether there is a function of that name, even one that can't be called before further compilation.
    ///
    /// # Errors
    /// As [`get_function`](Self::get_function).
    fn implements_function(&self, name: &str) -> Result<bool> {
        Ok(self.get_function(name)?.is_some())
    }

    /// The metadata of a function, a JSON text.
    ///
    /// # Errors
    /// Where it is there but can't be had.
    fn function_metadata(&self, _name: &str) -> Result<Option<String>> {
        Ok(None)
    }

    /// The doc text of a function.
    ///
    /// # Errors
    /// Where it is there but can't be had.
    fn function_doc(&self, _name: &str) -> Result<Option<String>> {
        Ok(None)
    }

    /// The names of all functions, where they are known.
    fn function_names(&self) -> Option<Vec<String>> {
        None
    }

    /// What the module can be used for.
    fn property_mask(&self) -> PropertyMask {
        PropertyMask::NONE
    }

    /// The module as bytes, which the loader of its kind takes.
    ///
    /// # Errors
    /// Where the bytes can't be made. That the kind has none is no error.
    fn save_to_bytes(&self) -> Result<Option<Bytes>> {
        Ok(None)
    }

    /// The source in some format, the usual one if that is empty; empty where there is none.
    ///
    /// # Errors
    /// Where the source can't be had.
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
    /// Where that fails or, as by default, isn't possible.
    fn write_to_file(&self, _file_name: &str, _format: &str) -> Result<()> {
        Err(runtime_error(&format!("Module[{}] does not support WriteToFile", self.kind())))
    }

    /// Lets what the module has loaded be unloaded with the last that uses it, and says whether there is such a thing.
    ///
    /// # Safety
    /// As [`Module::unload_when_unused`](super::Module::unload_when_unused).
    unsafe fn unload_when_unused(&self) -> bool {
        false
    }
}
