//! Modules from files and bytes, using loaders that are global functions. You can register more of them.

use std::path::Path;

use super::object::Module;
use crate::abi::symbol::LIBRARY_BIN;
use crate::any::Any;
use crate::error::{Result, runtime_error, value_error};
use crate::host::check_shared;
use crate::registry::{FILE_LOADER, find, get_global, set_global, with_args};
use crate::string::Bytes;

/// The prefix of the global functions that turn bytes into modules; the kind follows.
const FROM_BYTES: &str = "ffi.Module.load_from_bytes.";

/// Registers the loader that turns bytes into modules of `kind`: the global function
/// `ffi.Module.load_from_bytes.<kind>`. For a module embedded in a library, the loader gets a view of the library's
/// memory, not a copy. The library stays open for as long as these bytes live.
///
/// # Errors
/// `RuntimeError` if the kind already has a loader.
pub fn register_module_loader(
    kind: &str,
    load: impl Fn(Bytes) -> Result<Module> + Send + Sync + 'static,
) -> Result<()> {
    let function = with_args("(bytes) -> ffi.Module", move |[bytes]| load(bytes.cast()?).map(Any::from));
    set_global(&format!("{FROM_BYTES}{kind}"), function, false)
}

impl Module {
    /// Loads a file, as upstream's `Module::LoadFromFile`, using the global function
    /// `ffi.Module.load_from_file.<extension>`. The built-in loader of shared libraries has the extension `so`, and
    /// also handles `dll`, `dylib` and `dso`. It searches for a path without a directory where the system searches for
    /// libraries. A library stays open until the process ends, since the runtime can't know whether values that its
    /// code has made still exist. To change that, call [`unload_when_unused`](Self::unload_when_unused).
    ///
    /// # Errors
    /// `RuntimeError` for a path without extension, or an extension without loader; the error of the loader. If a
    /// library doesn't find symbols of this runtime, the message says how to export them from the executable.
    ///
    /// # Safety
    /// As for any library, its initialisers must be sound to run, and its functions must be sound to call with any
    /// arguments. Its symbols that begin with `__tvm_ffi_` must follow upstream's documents for compilers.
    pub unsafe fn load_from_file(path: impl AsRef<Path>) -> Result<Self> {
        load_from_file(path.as_ref())
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
        load_by("so", path.as_ref())
    }
}

pub(super) fn load_from_bytes(kind: &str, bytes: Bytes) -> Result<Module> {
    let name = format!("{FROM_BYTES}{kind}");
    let loader = get_global(&name).ok_or_else(|| {
        runtime_error(&format!(
            "The library has a module of kind `{kind}` in its {}, and no loader is registered for it: the global \
             function `{name}`",
            LIBRARY_BIN
        ))
    })?;
    loader.call((bytes,))?.cast()
}

pub(super) fn load_from_file(path: &Path) -> Result<Module> {
    let format = path
        .extension()
        .and_then(|extension| extension.to_str())
        .ok_or_else(|| runtime_error(&format!("Failed to get file format from {}", path.display())))?;
    load_by(format, path)
}

/// Loads a file with the loader of a format.
fn load_by(format: &str, path: &Path) -> Result<Module> {
    // Refuse to load anything if the process has another runtime, since a library might use that one.
    check_shared()?;
    let file = path.to_str().ok_or_else(|| value_error(&format!("file name is not UTF-8: {}", path.display())))?;
    let format = match format {
        "dll" | "dylib" | "dso" => "so",
        format => format,
    };
    let name = format!("{FILE_LOADER}{format}");
    let loader = find(name.as_bytes()).ok_or_else(|| {
        // The missing spaces are upstream's.
        runtime_error(&format!(
            "Loader for `.{format}` files is not registered, resolved to ({name}) in the global registry.Ensure that \
             you have loaded the correct runtime code, andthat you are on the correct hardware architecture."
        ))
    })?;
    loader.call((file, format))?.cast()
}
