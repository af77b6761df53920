//! Objects and libraries.

use std::io;
use std::path::Path;

use codegen::artifact::{ArchiveInput, Cache, CacheKey, LibraryBuilder, Linker, Triple, write_archive};
#[cfg(all(feature = "cranelift", target_os = "linux"))]
use codegen::embed::runtime_symbols;
#[cfg(all(feature = "cranelift", target_os = "linux"))]
use codegen::engine::{LibraryImage, SymbolResolver};
use codegen::runtime as tvm_ffi;
use codegen::runtime::{Any, Array, Bytes, Module, Obj, Object, Result, Str};
use serde::Deserialize;

use crate::compile::{backend_of, level_of};
#[cfg(not(feature = "_llvm"))]
use crate::error::without_llvm;
use crate::error::{bad_value, failure, other};
use crate::kernel::KernelObject;
use crate::program::ProgramObject;
use crate::signature::SignatureObject;

/// The options of an object.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct ObjectOptions {
    /// A target triple; by default this machine's.
    target: Option<String>,
    backend: Option<String>,
    opt_level: Option<String>,
    /// The minimum CPU, by the backend's name.
    cpu: Option<String>,
    /// Features of the CPU beyond the minimum.
    features: Vec<String>,
    /// The prefix of a system library.
    system_lib: Option<String>,
    /// The program also contains modules of the system library.
    carries_modules: bool,
    /// Functions to register as global functions while the library is loaded: `[function, global]`.
    globals: Vec<(String, String)>,
}

/// The options of a link.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct LinkOptions {
    target: Option<String>,
    /// `wild` or `cc`. By default `wild`, if this build includes it and it links for the target; otherwise `cc`.
    linker: Option<String>,
    /// Objects and archives by their paths.
    files: Vec<String>,
    /// Shared libraries by their names.
    libraries: Vec<String>,
    library_folders: Vec<String>,
    allow_undefined: Vec<String>,
    /// The runtime to link against.
    runtime: Option<String>,
    /// Further arguments for the linker.
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
    text.parse().map_err(|error| {
        bad_value("target", format!("expected a triple such as `x86_64-unknown-linux-gnu`, got `{text}`: {error}"))
    })
}

/// The library of functions, each an array of a signature, a kernel, and the documentation or None. An array of one
/// program stands for the functions of its text, with those that it registers as global functions.
fn library_of(functions: &Array<Array>, options: &str) -> Result<LibraryBuilder> {
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
        if let [program] = &parts[..] {
            let program: Obj<ProgramObject> = (*program).clone().cast()?;
            library = library.program(&program.program);
            continue;
        }
        let [signature, kernel, doc] = &parts[..] else {
            return Err(other("expected a signature, a kernel and a documentation or None"));
        };
        let (signature, kernel): (Obj<SignatureObject>, Obj<KernelObject>) =
            ((*signature).clone().cast()?, (*kernel).clone().cast()?);
        let doc: Option<String> = (*doc).clone().cast()?;
        let (signature, kernel) = (signature.signature.clone(), kernel.kernel());
        let signature = match doc {
            Some(doc) => signature.with_doc(doc),
            None => signature,
        };
        library = library.function(&signature, &kernel);
    }
    Ok(library)
}

/// Makes an object of functions, each an array of a signature, a kernel, and the documentation or None; or an array of
/// one program. `options` is a JSON object, or an empty string.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_object(functions: Array<Array>, options: &str) -> Result<Bytes> {
    Ok(Bytes::new(library_of(&functions, options)?.emit().map_err(failure)?.as_bytes()))
}

/// Loads the functions, with the objects and archives of their kernels, as a module of this process. No linker runs,
/// and nothing is written to disk: symbols are looked up in `objects` and then in the process.
///
/// Returns None if the functions can't be loaded this way and you have to [link](tfc_link) them. This is so on systems
/// other than Linux with glibc 2.28 or later, for another target than this machine, and for a system library. It is
/// also so if an object or a symbol is refused.
///
/// You guarantee that the kernels are sound, as for `tfc_compile`.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_load(functions: Array<Array>, options: &str, objects: Array<Bytes>) -> Result<Option<Module>> {
    #[cfg(all(feature = "cranelift", target_os = "linux"))]
    {
        let stated: ObjectOptions = self::options(options)?;
        if stated.target.is_some() || stated.system_lib.is_some() {
            return Ok(None);
        }
        let object = library_of(&functions, options)?.import_helpers().emit().map_err(failure)?;
        let objects: Vec<Bytes> = objects.iter().collect();
        let all = std::iter::once(object.as_bytes()).chain(objects.iter().map(|bytes| &**bytes));
        let mut symbols = SymbolResolver::new();
        symbols.add_all(runtime_symbols());
        symbols.search_process();
        // SAFETY: kernel objects refer to C symbols of the process, as they would through the dynamic linker, and the
        // process keeps these. The caller guarantees the rest, as the function's documentation says.
        let Ok(Some(image)) = (unsafe { LibraryImage::link(all, &symbols) }) else { return Ok(None) };
        // SAFETY: the library consists of code that this package generated, and of kernels, which the caller
        // guarantees. If the system's loader refuses it, the caller links it instead.
        Ok(unsafe { Module::load_library(image.path()) }.ok())
    }
    #[cfg(not(all(feature = "cranelift", target_os = "linux")))]
    {
        drop((functions, options, objects));
        Ok(None)
    }
}

/// The functions as textual LLVM IR, before or after LLVM's passes. Functions and options are those of `tfc_object`.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_llvm_ir(functions: Array<Array>, options: &str, is_optimized: bool) -> Result<String> {
    let library = library_of(&functions, options)?;
    #[cfg(feature = "_llvm")]
    {
        let ir = library.llvm_ir().map_err(failure)?;
        Ok(if is_optimized { ir.optimized } else { ir.translated })
    }
    #[cfg(not(feature = "_llvm"))]
    {
        drop((library, is_optimized));
        Err(without_llvm())
    }
}

/// A linker of a target with its inputs.
struct Link {
    linker: Linker,
    by_wild: bool,
}

impl Link {
    fn of(options: &LinkOptions) -> Result<Self> {
        let target = target_of(options.target.as_deref())?;
        let mut linker = Linker::new(target);
        let by_wild = match options.linker.as_deref() {
            Some("wild") => true,
            Some("cc") => false,
            Some(name) => return Err(bad_value("linker", format!("expected wild or cc, got `{name}`"))),
            None => linker.can_link_in_process(),
        };
        for file in &options.files {
            linker = linker.file(file);
        }
        for name in &options.libraries {
            linker = linker.library(name);
        }
        for folder in &options.library_folders {
            linker = linker.library_folder(folder);
        }
        for symbol in &options.allow_undefined {
            linker = linker.allow_undefined(symbol);
        }
        if let Some(runtime) = &options.runtime {
            linker = linker.runtime(runtime);
        }
        for arg in &options.args {
            linker = linker.arg(arg);
        }
        Ok(Link { linker, by_wild })
    }

    fn object(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.linker = self.linker.object(bytes);
        self
    }

    fn link(&self, path: &Path) -> Result<()> {
        if !self.by_wild {
            return self.linker.link(path).map_err(failure);
        }
        #[cfg(feature = "libwild")]
        return self.linker.link_in_process(path).map_err(failure);
        #[cfg(not(feature = "libwild"))]
        Err(other("this build of tvm-ffi-codegen has no linker of its own: use `cc`"))
    }
}

/// Links objects and archives into a shared library at `path`. `options` is a JSON object, or an empty string.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_link(objects: Array<Bytes>, path: &str, options: &str) -> Result<()> {
    let link = Link::of(&self::options(options)?)?;
    objects.iter().fold(link, |link, bytes| link.object(&*bytes)).link(Path::new(path))
}

/// A cache of libraries.
#[derive(Object)]
#[object(key = "tvm_ffi_codegen.Cache", crate = tvm_ffi)]
pub struct CacheObject {
    #[object(skip)]
    cache: Cache,
}

/// The cache in a directory, which many processes share. It holds about `max_bytes`.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_cache(folder: &str, max_bytes: i64) -> Result<Obj<CacheObject>> {
    let max_bytes = u64::try_from(max_bytes)
        .map_err(|_| bad_value("max_bytes", format!("expected at least 0, got {max_bytes}")))?;
    let cache = Cache::open(folder, max_bytes).map_err(|error| other(format!("{folder}: {error}")))?;
    Obj::new(CacheObject { cache })
}

/// An error of the temporary directory, or of generating an artifact.
enum Failed {
    Folder(io::Error),
    Making(tvm_ffi::Error),
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Failed::Folder(error)
    }
}

/// The key that a caller states, in place of one that is computed from a library's contents.
fn stated_key(parts: &Array<String>) -> CacheKey {
    parts.iter().fold(CacheKey::builder(), |key, part| key.part("stated", part)).finish()
}

/// The key of everything that decides a library's bytes.
fn contents_key(
    library: &LibraryBuilder,
    objects: &Array<Bytes>,
    inputs: &LinkOptions,
    link_options: &str,
) -> Result<CacheKey> {
    let mut key = CacheKey::builder().library(library).map_err(failure)?.part("link", link_options);
    for bytes in objects.iter() {
        key = key.part("object", &*bytes);
    }
    for file in &inputs.files {
        let bytes = std::fs::read(file).map_err(|error| other(format!("{file}: {error}")))?;
        key = key.part("file", bytes);
    }
    Ok(key.finish())
}

/// The path of the library that [`tfc_cached_library`] stored in a cache under a stated key, or None.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_cache_find(cache: &Obj<CacheObject>, key: Array<String>) -> Result<Option<String>> {
    // a cache that can't be read is without the library, as in `tfc_cached_library`
    let Ok(Some(path)) = cache.cache.get(&stated_key(&key), ".so") else { return Ok(None) };
    Ok(path.to_str().map(str::to_owned))
}

/// Returns the path of a linked library of functions in a cache, and None. On a miss, builds the library. Functions and
/// options are those of `tfc_object` and `tfc_link`.
///
/// With a `stated_key`, the strings in it decide which library is found. Without one, the contents do.
///
/// If the cache can't store the library, the second value is the reason instead of None. The library is then alone in a
/// temporary directory, which the caller removes.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_cached_library(
    cache: &Obj<CacheObject>,
    functions: Array<Array>,
    options: &str,
    objects: Array<Bytes>,
    link_options: &str,
    stated_key: Option<Array<String>>,
) -> Result<Array> {
    let library = library_of(&functions, options)?;
    let inputs: LinkOptions = self::options(link_options)?;
    let key = match stated_key {
        Some(parts) => self::stated_key(&parts),
        None => contents_key(&library, &objects, &inputs, link_options)?,
    };
    let make = |path: &Path| {
        let link = Link::of(&inputs).map_err(Failed::Making)?;
        let object = library.emit().map_err(|error| Failed::Making(failure(error)))?;
        let link = objects.iter().fold(link.object(object.into_bytes()), |link, bytes| link.object(&*bytes));
        link.link(path).map_err(Failed::Making)
    };
    let artifact = cache.cache.get_or_make(&key, ".so", make).map_err(|failed| match failed {
        Failed::Making(error) => error,
        Failed::Folder(error) => other(format!("the temporary folder: {error}")),
    })?;
    let text =
        |path: &Path| path.to_str().map(Any::from).ok_or_else(|| other(format!("{} isn't UTF-8", path.display())));
    let found = Array::from(vec![text(artifact.path())?, Any::from(artifact.not_cached().map(ToString::to_string))]);
    artifact.keep();
    Ok(found)
}

/// Writes a static library of objects and archives for a target to `path`. Each member is an array of a name and bytes.
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
