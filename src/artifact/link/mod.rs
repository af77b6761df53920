//! Linking objects into shared libraries.

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use target_lexicon::{BinaryFormat, Triple};

use super::output::OutputFolder;
use undefined::FindLibrary;

mod c_library;
mod driver;
mod imports;
mod plain;
mod undefined;
#[cfg(feature = "libwild")]
mod wild;
mod windows;

pub use undefined::UndefinedSymbol;

/// The error of [`Linker::link`] and `Linker::link_in_process`. A file that was at the library's path before is unchanged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// The linker can't make libraries for the target.
    #[error("can't link for {target}: {problem}")]
    Target {
        /// The target.
        target: Box<Triple>,
        /// The reason, or what is expected instead.
        problem: String,
    },
    /// There is no C compiler's driver for the target.
    #[error("no C compiler to link with for {target}: {problem}\n(set CC_{} or CC to one)", target.to_string().replace('-', "_"))]
    NoDriver {
        /// The target.
        target: Box<Triple>,
        /// The programs that were looked for.
        problem: String,
    },
    /// A file can't be read or written, or a program can't be started.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or program.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The runtime to link against, a program or a DLL for Windows, can't be the one that the library uses.
    #[error("{}: {problem}", path.display())]
    Runtime {
        /// The program or DLL.
        path: PathBuf,
        /// The reason.
        problem: String,
    },
    /// The linker failed.
    #[error("linking failed ({status}): {command}\n{output}")]
    Failed {
        /// The linker's command, as a shell takes it.
        command: String,
        /// The linker's exit status.
        status: String,
        /// The text that the linker printed.
        output: String,
    },
    /// The linked library needs symbols that nobody would define when it is loaded: all of them.
    #[error(
        "undefined symbol{s}: {list}; link what defines {them}, or allow {them} (`Linker::allow_undefined`, `--allow-undefined`) where the program that \
         loads the library does",
        s = if symbols.len() == 1 { "" } else { "s" },
        them = if symbols.len() == 1 { "it" } else { "them" },
        list = symbols.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    )]
    Undefined {
        /// The symbols, by name.
        symbols: Vec<UndefinedSymbol>,
    },
    /// The linker reported success, and there is no library.
    #[error("the linker succeeded without writing a library: {command}{}{output}", if output.is_empty() { "" } else { "\n" })]
    NothingWritten {
        /// The linker's command, as a shell takes it.
        command: String,
        /// The text that the linker printed.
        output: String,
    },
}

/// A linker's run that has succeeded.
struct Run {
    /// The linker's command, as a shell takes it.
    command: String,
    /// The text that the linker printed.
    output: String,
}

/// An input of a [`Linker`].
#[derive(Debug)]
enum Input {
    File(PathBuf),
    WholeArchive(PathBuf),
    Library(String),
}

/// A link of objects, archives and libraries into a shared library (`.so`, `.dylib`, `.dll`).
///
/// The runtime's symbols (`TVMFFI...`) stay undefined: the host's runtime defines them when it loads the library. So may those of the C library. Any
/// other symbol that neither an input nor a library which is loaded with the output defines is an error, unless it is
/// [allowed](Self::allow_undefined). On Windows, where no symbol can stay
/// undefined, they come from upstream's runtime `tvm_ffi.dll`, unless [`runtime`](Self::runtime) names another. The shared library has no
/// soname.
/// ```no_run
/// use tvm_ffi_codegen::artifact::Linker;
///
/// Linker::new("aarch64-unknown-linux-gnu".parse()?).file("wrappers.o").file("kernels.a").link("libkernels.so")?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Linker {
    target: Triple,
    inputs: Vec<Input>,
    /// Objects in memory, which are written to temporary files.
    objects: Vec<Vec<u8>>,
    folders: Vec<PathBuf>,
    runtime: Option<PathBuf>,
    args: Vec<OsString>,
    /// Symbols that may stay undefined.
    allowed: Vec<String>,
}

impl fmt::Debug for Linker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Linker")
            .field("target", &self.target)
            .field("inputs", &self.inputs)
            .field("folders", &self.folders)
            .field("runtime", &self.runtime)
            .field("args", &self.args)
            .field("allowed", &self.allowed)
            .finish_non_exhaustive()
    }
}

impl Linker {
    /// A link for `target`, without inputs yet.
    pub fn new(target: Triple) -> Self {
        let (inputs, objects, folders, args, allowed) = Default::default();
        Self { target, inputs, objects, folders, runtime: None, args, allowed }
    }

    /// Adds an object, a shared library, or an archive, of which the linker takes the members that are needed.
    pub fn file(mut self, path: impl Into<PathBuf>) -> Self {
        self.inputs.push(Input::File(path.into()));
        self
    }

    /// Adds an object in memory, or an archive, of which the linker takes the members that are needed by what was added before. Such inputs come before
    /// all others.
    pub fn object(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.objects.push(bytes.into());
        self
    }

    /// Adds an archive with all of its members, needed or not. Wrappers in an archive want this, as nothing in the library calls them.
    pub fn whole_archive(mut self, path: impl Into<PathBuf>) -> Self {
        self.inputs.push(Input::WholeArchive(path.into()));
        self
    }

    /// Adds the library of that name, as `-l` does.
    pub fn library(mut self, name: impl Into<String>) -> Self {
        self.inputs.push(Input::Library(name.into()));
        self
    }

    /// Adds a folder in which libraries are looked for, as `-L` does.
    pub fn library_folder(mut self, path: impl Into<PathBuf>) -> Self {
        self.folders.push(path.into());
        self
    }

    /// Sets the runtime (a `libtvm_ffi`) to link against, which is then loaded with the library.
    ///
    /// For Windows that is the runtime's import library, its DLL, or a program that has the bundled runtime in it. A library that is linked against a
    /// program or a DLL asks for it by its file name when it is loaded, so that the file has to keep its name.
    pub fn runtime(mut self, path: impl Into<PathBuf>) -> Self {
        self.runtime = Some(path.into());
        self
    }

    /// Adds an argument for the compiler's driver (or for the linker in this process), behind all others.
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Lets a symbol stay undefined, which the program that loads the library has to define then: a name in C, or with `*` at its end all names that
    /// begin so. `*` alone allows every symbol. On Windows no symbol can stay undefined, and this changes nothing.
    pub fn allow_undefined(mut self, symbol: impl Into<String>) -> Self {
        self.allowed.push(symbol.into());
        self
    }

    /// Links with the C compiler's driver for the target, and writes the library to `path`.
    ///
    /// The driver is named by the variables `CC_<target>`, `TARGET_CC` or `CC`. Without them it is `cc`; for another machine than this one, a driver
    /// with the target's name before it, such as `aarch64-linux-gnu-gcc`; for Windows' MSVC targets always Visual Studio's `link.exe`.
    ///
    /// # Errors
    /// There is no driver, it fails or writes nothing, symbols are undefined, or a file can't be read or written.
    pub fn link(&self, path: impl AsRef<Path>) -> Result<(), LinkError> {
        self.link_by(path.as_ref(), driver::link, &|name| driver::find_library(self, name))
    }

    /// Links a library for Linux in this process, without a toolchain, and writes it to `path`.
    ///
    /// Libraries ([`library`](Self::library)) are looked for in [`library_folder`](Self::library_folder)s alone.
    ///
    /// # Errors
    /// The target isn't Linux on x86-64, aarch64 or riscv64; the linker fails or writes nothing; symbols are undefined; a file can't be read or written, or its name isn't UTF-8.
    #[cfg(feature = "libwild")]
    pub fn link_in_process(&self, path: impl AsRef<Path>) -> Result<(), LinkError> {
        self.link_by(path.as_ref(), wild::link, &|_| None)
    }

    /// True where `link_in_process` is there (the feature `libwild`) and links for the target.
    pub fn can_link_in_process(&self) -> bool {
        #[cfg(feature = "libwild")]
        return wild::emulation(&self.target).is_some();
        #[cfg(not(feature = "libwild"))]
        false
    }

    fn link_by(
        &self,
        path: &Path,
        link: impl FnOnce(&Self, &[PathBuf], &Path) -> Result<Run, LinkError>,
        find: FindLibrary<'_>,
    ) -> Result<(), LinkError> {
        let failed = |source| LinkError::Io { path: path.to_owned(), source };
        let output = OutputFolder::create(path).map_err(failed)?;
        let mut objects = Vec::with_capacity(self.objects.len());
        for (index, bytes) in self.objects.iter().enumerate() {
            // Microsoft's linker goes by the name
            let extension = if bytes.starts_with(&object::archive::MAGIC) { "a" } else { "o" };
            let object = output.path().join(format!("tvm-ffi-{index}.{extension}"));
            fs::write(&object, bytes).map_err(|source| LinkError::Io { path: object.clone(), source })?;
            objects.push(object);
        }
        let Run { command, output: said } = link(self, &objects, &output.file())?;
        if !output.is_written() {
            return Err(LinkError::NothingWritten { command, output: said });
        }
        undefined::check(self, &objects, &output.file(), find)?;
        output.commit().map_err(failed)
    }

    fn unsupported(&self, problem: &str) -> LinkError {
        LinkError::Target { target: Box::new(self.target.clone()), problem: problem.to_owned() }
    }

    /// The arguments that stand for the inputs, as linkers of ELF take them: `option` makes one for the linker itself.
    fn elf_inputs(&self, objects: &[PathBuf], option: impl Fn(&str) -> OsString) -> Vec<OsString> {
        let mut args: Vec<OsString> = objects.iter().map(|path| path.into()).collect();
        args.extend(self.folders.iter().map(|folder| joined("-L", folder)));
        for input in &self.inputs {
            match input {
                Input::File(path) => args.push(path.into()),
                Input::WholeArchive(path) => {
                    args.extend([option("--whole-archive"), path.into(), option("--no-whole-archive")]);
                }
                Input::Library(name) => args.push(format!("-l{name}").into()),
            }
        }
        args
    }

    /// The last arguments: the runtime if there is one, and those that the caller adds.
    fn last(&self, runtime: Option<&Path>) -> Vec<OsString> {
        runtime.map(OsString::from).into_iter().chain(self.args.iter().cloned()).collect()
    }

    fn format(&self) -> BinaryFormat {
        self.target.binary_format
    }
}

fn joined(option: &str, path: &Path) -> OsString {
    let mut arg = OsString::from(option);
    arg.push(path);
    arg
}
