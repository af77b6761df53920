//! Linking objects into a library that a host loads.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use target_lexicon::{BinaryFormat, Triple};

use super::output::OutputFolder;

mod driver;
#[cfg(feature = "libwild")]
mod wild;
mod windows;

/// Why nothing is linked. What was in the output's place before still is.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// Libraries of the target are not known here, or not to this linker.
    #[error("can't link for {target}: {problem}")]
    Target {
        /// The target.
        target: Box<Triple>,
        /// What is missing.
        problem: String,
    },
    /// No compiler driver for the target is found.
    #[error("no C compiler to link with for {target}: {problem}\n(set CC_{} or CC to one)", target.to_string().replace('-', "_"))]
    NoDriver {
        /// The target.
        target: Box<Triple>,
        /// What was looked for.
        problem: String,
    },
    /// A file can't be read or written, or a tool not be started.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The linker has failed.
    #[error("linking failed ({status}): {command}\n{output}")]
    Failed {
        /// What was run, as a shell takes it.
        command: String,
        /// How it ended.
        status: String,
        /// What it said.
        output: String,
    },
    /// The linker has succeeded, by its own account, and there is no library.
    #[error("the linker succeeded without writing a library: {command}{}{output}", if output.is_empty() { "" } else { "\n" })]
    NothingWritten {
        /// What was run, as a shell takes it.
        command: String,
        /// What it said.
        output: String,
    },
}

/// A linker's run that has succeeded.
struct Run {
    /// What was run, as a shell takes it.
    command: String,
    /// What it said.
    output: String,
}

/// Something to link, in the order in which it was added.
enum Input {
    File(PathBuf),
    WholeArchive(PathBuf),
    Library(String),
}

/// Links objects, archives and libraries into a shared library: `.so`, `.dylib`, `.dll`.
///
/// Symbols of the runtime (`TVMFFI...`) stay undefined, for the host's runtime to define when it loads the library; on Windows, where that
/// can't be, they are those of `tvm_ffi.dll`, upstream's runtime, unless [`runtime`](Self::runtime) names another's import library. The library has
/// no soname.
/// ```no_run
/// use tvm_ffi_codegen::artifact::Linker;
///
/// Linker::new("aarch64-unknown-linux-gnu".parse()?).file("wrappers.o").file("kernels.a").link("libkernels.so")?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Linker {
    target: Triple,
    inputs: Vec<Input>,
    /// Objects in memory, which go to files of their own.
    objects: Vec<Vec<u8>>,
    folders: Vec<PathBuf>,
    runtime: Option<PathBuf>,
    args: Vec<OsString>,
}

impl Linker {
    /// One for a target, without inputs.
    pub fn new(target: Triple) -> Self {
        let (inputs, objects, folders, args) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { target, inputs, objects, folders, runtime: None, args }
    }

    /// Links an object, an archive, of which what is needed is taken, or a shared library.
    pub fn file(mut self, path: impl Into<PathBuf>) -> Self {
        self.inputs.push(Input::File(path.into()));
        self
    }

    /// Links an object that is in memory. It comes before all other inputs.
    pub fn object(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.objects.push(bytes.into());
        self
    }

    /// Links all of an archive, needed or not: one that has wrappers, say, which nothing in the library calls.
    pub fn whole_archive(mut self, path: impl Into<PathBuf>) -> Self {
        self.inputs.push(Input::WholeArchive(path.into()));
        self
    }

    /// Links the library of that name, as `-l` does.
    pub fn library(mut self, name: impl Into<String>) -> Self {
        self.inputs.push(Input::Library(name.into()));
        self
    }

    /// Looks for libraries in that folder too, as `-L` does.
    pub fn library_folder(mut self, path: impl Into<PathBuf>) -> Self {
        self.folders.push(path.into());
        self
    }

    /// Links against that runtime (a `libtvm_ffi`), which is then loaded with the library.
    pub fn runtime(mut self, path: impl Into<PathBuf>) -> Self {
        self.runtime = Some(path.into());
        self
    }

    /// Gives the compiler driver (or, in this process, the linker) one more argument, behind all others.
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Links with the C compiler's driver for the target, and writes the library to `path`.
    ///
    /// It is the one that the variables `CC_<target>`, `TARGET_CC` and `CC` name, or else the usual one: `cc`; for another machine than
    /// this, one with the target's name before it such as `aarch64-linux-gnu-gcc`; `link.exe` of Visual Studio.
    ///
    /// # Errors
    /// There is none, it fails, or a file can't be read or written.
    pub fn link(&self, path: impl AsRef<Path>) -> Result<(), LinkError> {
        self.link_by(path.as_ref(), driver::link)
    }

    /// Links a library of Linux in this process, without a toolchain, and writes it to `path`.
    ///
    /// Libraries ([`library`](Self::library)) are looked for in [`library_folder`](Self::library_folder)s alone.
    ///
    /// # Errors
    /// The target isn't Linux on x86-64, aarch64 or riscv64; the linker fails; a file can't be read or written, or has a name that is no UTF-8.
    #[cfg(feature = "libwild")]
    pub fn link_in_process(&self, path: impl AsRef<Path>) -> Result<(), LinkError> {
        self.link_by(path.as_ref(), wild::link)
    }

    fn link_by(
        &self,
        path: &Path,
        link: impl FnOnce(&Self, &[PathBuf], &Path) -> Result<Run, LinkError>,
    ) -> Result<(), LinkError> {
        let failed = |source| LinkError::Io { path: path.to_owned(), source };
        let output = OutputFolder::create(path).map_err(failed)?;
        let mut objects = Vec::with_capacity(self.objects.len());
        for (index, bytes) in self.objects.iter().enumerate() {
            let object = output.path().join(format!("tvm-ffi-{index}.o"));
            fs::write(&object, bytes).map_err(|source| LinkError::Io { path: object.clone(), source })?;
            objects.push(object);
        }
        let Run { command, output: said } = link(self, &objects, &output.file())?;
        if !output.is_written() {
            return Err(LinkError::NothingWritten { command, output: said });
        }
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

    /// What comes last: the runtime if there is one, and what the caller wants besides.
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
