//! Linking objects into shared libraries.

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use target_lexicon::Triple;

use super::map::contents;
use super::output::OutputFolder;
use stated::{Input, Link, Run};
use undefined::FindLibrary;

mod c_library;
mod driver;
mod error;
mod imports;
mod machine;
mod objects;
mod plain;
mod position;
mod stated;
mod undefined;
mod whole;
#[cfg(feature = "libwild")]
mod wild;
mod windows;

pub use error::LinkError;

/// Links objects, archives and libraries into a shared library (`.so`, `.dylib`, `.dll`).
///
/// The runtime's symbols (`TVMFFI...`) stay undefined: the host's runtime defines them when it loads the library. The
/// C library's symbols may stay undefined too. Any other symbol is an error if neither an input nor a library loaded
/// with the output defines it, unless it is [allowed](Self::allow_undefined). On Windows no symbol can stay
/// undefined, so the runtime's symbols come from upstream's `tvm_ffi.dll`, unless [`runtime`](Self::runtime) names
/// another runtime. The shared library has no soname.
/// ```no_run
/// use tvm_ffi_codegen::artifact::Linker;
///
/// Linker::new("aarch64-unknown-linux-gnu".parse()?).file("wrappers.o").file("kernels.a").link("libkernels.so")?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub struct Linker {
    link: Link,
}

impl fmt::Debug for Linker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Linker")
            .field("target", &self.link.target)
            .field("inputs", &self.link.inputs)
            .field("folders", &self.link.folders)
            .field("runtime", &self.link.runtime)
            .field("args", &self.link.args)
            .field("allowed", &self.link.allowed)
            .finish_non_exhaustive()
    }
}

impl Linker {
    /// Starts a link for `target`, without inputs.
    pub fn new(target: Triple) -> Self {
        let (inputs, objects, folders, args, allowed) = Default::default();
        Linker { link: Link { target, inputs, objects, folders, runtime: None, args, allowed } }
    }

    /// Adds an object, a shared library, or an archive (the linker pulls in the members it needs).
    pub fn file(mut self, path: impl Into<PathBuf>) -> Self {
        self.link.inputs.push(Input::File(path.into()));
        self
    }

    /// Adds an object in memory, or an archive (the linker pulls in the members that earlier inputs need). Such
    /// inputs come before all others.
    pub fn object(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.link.objects.push(bytes.into());
        self
    }

    /// Adds an archive with all of its members, needed or not. Use this for wrappers in an archive, since nothing in
    /// the library calls them.
    pub fn whole_archive(mut self, path: impl Into<PathBuf>) -> Self {
        self.link.inputs.push(Input::WholeArchive(path.into()));
        self
    }

    /// Adds the library with that name, as `-l` does.
    pub fn library(mut self, name: impl Into<String>) -> Self {
        self.link.inputs.push(Input::Library(name.into()));
        self
    }

    /// Adds a directory to the search path for libraries, as `-L` does.
    pub fn library_folder(mut self, path: impl Into<PathBuf>) -> Self {
        self.link.folders.push(path.into());
        self
    }

    /// Sets the runtime (a `libtvm_ffi`) to link against, which is then loaded with the library.
    ///
    /// For Windows that is the runtime's import library, its DLL, or a program that contains the bundled runtime. A
    /// library linked against a program or a DLL finds it by its file name when it is loaded, so keep that name.
    pub fn runtime(mut self, path: impl Into<PathBuf>) -> Self {
        self.link.runtime = Some(path.into());
        self
    }

    /// Adds an argument for the compiler's driver (or for the in-process linker), after all others.
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.link.args.push(arg.into());
        self
    }

    /// Allows a symbol to stay undefined; the program that loads the library must define it. This is a C name, or a
    /// prefix followed by `*`. `*` alone allows every symbol. It has no effect on Windows, where no symbol can stay
    /// undefined.
    pub fn allow_undefined(mut self, symbol: impl Into<String>) -> Self {
        self.link.allowed.push(symbol.into());
        self
    }

    /// Links with the C compiler's driver for the target, and writes the library to `path`.
    ///
    /// The variables `CC_<target>`, `TARGET_CC` or `CC` name the driver. The default is `cc`. For another machine it
    /// is a driver with a target prefix, such as `aarch64-linux-gnu-gcc`. For Windows' MSVC targets it is always
    /// Visual Studio's `link.exe`.
    ///
    /// # Errors
    /// There is no driver, it fails or writes no library, symbols are undefined, or a file can't be read or written.
    pub fn link(&self, path: impl AsRef<Path>) -> Result<(), LinkError> {
        self.link_by(path.as_ref(), driver::link, &|name| driver::find_library(&self.link, name))
    }

    /// Links a library for Linux in this process, without a toolchain, and writes it to `path`.
    ///
    /// Only the [`library_folder`](Self::library_folder)s are searched for libraries ([`library`](Self::library)).
    ///
    /// # Errors
    /// The target isn't Linux on x86-64, aarch64 or riscv64. The linker fails or writes no library, or symbols are
    /// undefined. A file can't be read or written, or its name isn't UTF-8.
    #[cfg(feature = "libwild")]
    pub fn link_in_process(&self, path: impl AsRef<Path>) -> Result<(), LinkError> {
        self.link_by(path.as_ref(), wild::link, &|_| None)
    }

    /// Whether `link_in_process` is available (feature `libwild`) and supports the target.
    pub fn can_link_in_process(&self) -> bool {
        #[cfg(feature = "libwild")]
        return wild::emulation(&self.link.target).is_some();
        #[cfg(not(feature = "libwild"))]
        false
    }

    fn link_by(
        &self,
        path: &Path,
        link: impl FnOnce(&Link, &[PathBuf], &Path) -> Result<Run, LinkError>,
        find: FindLibrary<'_>,
    ) -> Result<(), LinkError> {
        machine::check(&self.link)?;
        self.check_libraries()?;
        let failed = |source| LinkError::Io { path: path.to_owned(), source };
        let output = OutputFolder::create(path).map_err(failed)?;
        let mut objects = Vec::with_capacity(self.link.objects.len());
        for (index, bytes) in self.link.objects.iter().enumerate() {
            // Microsoft's linker decides by the extension
            let extension = if bytes.starts_with(&object::archive::MAGIC) { "a" } else { "o" };
            let object = output.path().join(format!("tvm-ffi-{index}.{extension}"));
            fs::write(&object, bytes).map_err(|source| LinkError::Io { path: object.clone(), source })?;
            objects.push(object);
        }
        position::check(&self.link)?;
        let run = link(&self.link, &objects, &output.file());
        let run = run.map_err(|error| position::explained(&self.link, error))?;
        if !output.is_written() {
            return Err(LinkError::NothingWritten { command: run.command, output: run.output });
        }
        let written = contents(&output.file()).map_err(failed)?;
        whole::check(&written, &run)?;
        undefined::check(&self.link, &written, find).map_err(|error| failed(io::Error::other(error)))??;
        output.commit().map_err(failed)
    }

    /// Checks that libraries are names, and neither paths nor options of Microsoft's linker. After a bare `-l`, the
    /// next argument would be taken for the name.
    fn check_libraries(&self) -> Result<(), LinkError> {
        let is_name =
            |name: &str| !name.is_empty() && !name.starts_with(['-', '@']) && !name.contains(['/', '\\', '\0', '\n']);
        let named = self
            .link
            .inputs
            .iter()
            .filter_map(|input| if let Input::Library(name) = input { Some(name) } else { None });
        match named.clone().find(|name| !is_name(name)) {
            Some(name) => Err(LinkError::LibraryName { name: name.clone() }),
            None => Ok(()),
        }
    }
}
