//! Objects and libraries.

use codegen::artifact::{ArchiveInput, LibraryBuilder, Linker, Triple, write_archive};
use codegen::runtime as tvm_ffi;
use codegen::runtime::{Any, Array, Bytes, Obj, Result, Str};
use serde::Deserialize;
use target_lexicon::OperatingSystem;

use crate::compile::{backend_of, level_of};
use crate::error::{failure, other};
use crate::kernel::KernelObject;
use crate::signature::SignatureObject;

/// The options of an object.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct ObjectOptions {
    /// A triple; this machine's unless given.
    target: Option<String>,
    backend: Option<String>,
    opt_level: Option<String>,
    /// The least CPU, by the backend's name.
    cpu: Option<String>,
    /// Features of the CPU beyond that.
    features: Vec<String>,
    /// The prefix of a system library.
    system_lib: Option<String>,
    /// The program has modules of the system library, too.
    carries_modules: bool,
    /// Functions that are global functions while the library is loaded: `[function, global]`.
    globals: Vec<(String, String)>,
}

/// The options of a link.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct LinkOptions {
    target: Option<String>,
    /// `wild`, `cc`, or unless given wild where this build has it and the target is Linux.
    linker: Option<String>,
    /// Objects and archives by their paths.
    files: Vec<String>,
    /// Shared libraries by their names.
    libraries: Vec<String>,
    library_folders: Vec<String>,
    allow_undefined: Vec<String>,
    /// The runtime to link against.
    runtime: Option<String>,
    /// More arguments of the linker.
    args: Vec<String>,
}

fn options<'a, T: Deserialize<'a> + Default>(json: &'a str) -> Result<T> {
    if json.is_empty() {
        return Ok(T::default());
    }
    serde_json::from_str(json).map_err(|error| other(format!("options: {error}")))
}

fn target_of(triple: Option<&str>) -> Result<Triple> {
    let Some(text) = triple else { return Ok(Triple::host()) };
    text.parse().map_err(|error| other(format!("`{text}` is no target: {error}")))
}

/// Makes an object of functions, each an array of a signature, a kernel, and the documentation or None. `options` is a JSON object, or an empty text.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_object(functions: Array<Array>, options: &str) -> Result<Bytes> {
    let options: ObjectOptions = self::options(options)?;
    let mut library = LibraryBuilder::new().target(target_of(options.target.as_deref())?);
    library =
        library.backend(backend_of(options.backend.as_deref())?).opt_level(level_of(options.opt_level.as_deref())?);
    if let Some(cpu) = options.cpu {
        library = library.cpu(cpu);
    }
    for feature in options.features {
        library = library.feature(feature);
    }
    if let Some(prefix) = options.system_lib {
        library = library.system_library(prefix);
    }
    if options.carries_modules {
        library = library.carries_modules();
    }
    for (function, global) in options.globals {
        library = library.register_global(function, global);
    }
    for function in functions.iter() {
        let parts: Vec<&Any> = function.iter().collect();
        let [signature, kernel, doc] = &parts[..] else {
            return Err(other("expected a signature, a kernel and a documentation or None"));
        };
        let (signature, kernel): (Obj<SignatureObject>, Obj<KernelObject>) =
            ((*signature).clone().cast()?, (*kernel).clone().cast()?);
        let doc: Option<String> = (*doc).clone().cast()?;
        let (signature, kernel) = (&signature.signature, kernel.kernel());
        library = match doc {
            Some(doc) => library.documented(signature, &kernel, doc),
            None => library.function(signature, &kernel),
        };
    }
    Ok(Bytes::new(library.emit().map_err(failure)?.as_bytes()))
}

/// Links objects and archives into a shared library at `path`. `options` is a JSON object, or an empty text.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_link(objects: Array<Bytes>, path: &str, options: &str) -> Result<()> {
    let options: LinkOptions = self::options(options)?;
    let target = target_of(options.target.as_deref())?;
    let by_wild = match options.linker.as_deref() {
        Some("wild") => true,
        Some("cc") => false,
        Some(name) => return Err(other(format!("expected the linker `wild` or `cc`, got `{name}`"))),
        None => cfg!(feature = "libwild") && target.operating_system == OperatingSystem::Linux,
    };
    let mut linker = Linker::new(target);
    for bytes in objects.iter() {
        linker = linker.object(&*bytes);
    }
    for file in options.files {
        linker = linker.file(file);
    }
    for name in options.libraries {
        linker = linker.library(name);
    }
    for folder in options.library_folders {
        linker = linker.library_folder(folder);
    }
    for symbol in options.allow_undefined {
        linker = linker.allow_undefined(symbol);
    }
    if let Some(runtime) = options.runtime {
        linker = linker.runtime(runtime);
    }
    for arg in options.args {
        linker = linker.arg(arg);
    }
    if !by_wild {
        return linker.link(path).map_err(failure);
    }
    #[cfg(feature = "libwild")]
    return linker.link_in_process(path).map_err(failure);
    #[cfg(not(feature = "libwild"))]
    Err(other("this build of tvm-ffi-codegen has no linker of its own: use `cc`"))
}

/// Writes an archive of objects and archives for a target, each an array of a name and bytes, to `path`.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_archive(target: Option<String>, objects: Array<Array>, path: &str) -> Result<()> {
    let input = |object: Array| {
        let parts: Vec<&Any> = object.iter().collect();
        let [name, bytes] = &parts[..] else { return Err(other("expected a name and bytes")) };
        let (name, bytes): (Str, Bytes) = ((*name).clone().cast()?, (*bytes).clone().cast()?);
        Ok(ArchiveInput::Object { name: name.as_str().to_owned(), bytes: bytes.to_vec() })
    };
    let inputs = objects.iter().map(input).collect::<Result<Vec<_>>>()?;
    write_archive(&target_of(target.as_deref())?, &inputs, path).map_err(failure)
}
