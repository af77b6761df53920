//! Modules from files and bytes: by global functions, which anybody may add.

use std::path::Path;

use super::object::Module;
use crate::abi::symbol::LIBRARY_BIN;
use crate::any::Any;
use crate::error::{Result, runtime_error, value_error};
use crate::host::check_shared;
use crate::registry::{FILE_LOADER, find, get_global, set_global, with_args};
use crate::string::Bytes;

/// Begins the name of the global function that makes modules of a kind; the kind follows.
const FROM_BYTES: &str = "ffi.Module.load_from_bytes.";

/// Registers what makes modules of `kind` of their bytes: the global function `ffi.Module.load_from_bytes.<kind>`. A library that carries
/// such modules passes bytes that lie in the library, which is open for as long as they are there; they are not copied.
///
/// # Errors
/// `RuntimeError` when the kind has a loader already.
pub fn register_module_loader(
    kind: &str,
    load: impl Fn(Bytes) -> Result<Module> + Send + Sync + 'static,
) -> Result<()> {
    let function = with_args("(bytes) -> ffi.Module", move |[bytes]| load(bytes.cast()?).map(Any::from));
    set_global(&format!("{FROM_BYTES}{kind}"), function, false)
}

impl Module {
    /// Loads a file, as upstream's `Module::LoadFromFile`: the global function `ffi.Module.load_from_file.<extension>` does it. The
    /// extensions `dll`, `dylib` and `dso` stand for `so`, the loader of shared libraries, which is built in; it looks for a path without a
    /// directory where the system looks for libraries. A library stays open for as long as the process lives, since nothing tells whether
    /// values that its code has made are still there; [`unload_when_unused`](Self::unload_when_unused) changes that.
    ///
    /// # Errors
    /// `RuntimeError` for a path without extension, or an extension without loader; the error of the loader. Where a library misses
    /// symbols of this runtime, the message says how the executable exports them.
    ///
    /// # Safety
    /// As for any library: what its initialisers do, its functions with any arguments, and its symbols that begin with `__tvm_ffi_`, must be
    /// as upstream's documents for compilers say.
    pub unsafe fn load_from_file(path: impl AsRef<Path>) -> Result<Self> {
        load_from_file(path.as_ref())
    }
}

pub(super) fn load_from_bytes(kind: &str, bytes: Bytes) -> Result<Module> {
    let name = format!("{FROM_BYTES}{kind}");
    let loader = get_global(&name).ok_or_else(|| {
        runtime_error(&format!(
            "The library has a module of kind `{kind}` in its {}, and no loader is registered for it: the global function `{name}`",
            LIBRARY_BIN
        ))
    })?;
    loader.call((bytes,))?.cast()
}

pub(super) fn load_from_file(path: &Path) -> Result<Module> {
    // A library would find another runtime, where there is one.
    check_shared()?;
    let shown = path.display();
    let file = path.to_str().ok_or_else(|| value_error(&format!("file name is not UTF-8: {shown}")))?;
    let format = path
        .extension()
        .and_then(|extension| extension.to_str())
        .ok_or_else(|| runtime_error(&format!("Failed to get file format from {shown}")))?;
    let format = match format {
        "dll" | "dylib" | "dso" => "so",
        format => format,
    };
    let name = format!("{FILE_LOADER}{format}");
    let loader = find(name.as_bytes()).ok_or_else(|| {
        // The two words without a space between them are upstream's.
        runtime_error(&format!(
            "Loader for `.{format}` files is not registered, resolved to ({name}) in the global registry.Ensure that you have \
             loaded the correct runtime code, andthat you are on the correct hardware architecture."
        ))
    })?;
    loader.call((file, format))?.cast()
}
