//! The description of a link, in the same form for all linkers.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use target_lexicon::{BinaryFormat, Triple};

use super::error::LinkError;

/// A successful run of a linker.
pub(super) struct Run {
    /// The linker's command, in shell syntax.
    pub command: String,
    /// The linker's output.
    pub output: String,
}

/// An input of a link.
#[derive(Debug)]
pub(super) enum Input {
    File(PathBuf),
    WholeArchive(PathBuf),
    Library(String),
}

/// A link of objects, archives and libraries.
pub(super) struct Link {
    pub target: Triple,
    pub inputs: Vec<Input>,
    /// Objects in memory, which are written to temporary files.
    pub objects: Vec<Vec<u8>>,
    pub folders: Vec<PathBuf>,
    pub runtime: Option<PathBuf>,
    pub args: Vec<OsString>,
    /// Symbols that may stay undefined.
    pub allowed: Vec<String>,
}

impl Link {
    pub(super) fn unsupported(&self, problem: &str) -> LinkError {
        LinkError::Target { target: Box::new(self.target.clone()), problem: problem.to_owned() }
    }

    /// The arguments for the inputs, as ELF linkers take them. `option` turns a linker option into an argument.
    pub(super) fn elf_inputs(&self, objects: &[PathBuf], option: impl Fn(&str) -> OsString) -> Vec<OsString> {
        let mut args: Vec<OsString> = objects.iter().map(|path| as_file(path)).collect();
        args.extend(self.folders.iter().map(|folder| joined("-L", as_file(folder))));
        for input in &self.inputs {
            match input {
                Input::File(path) => args.push(as_file(path)),
                Input::WholeArchive(path) => {
                    args.extend([option("--whole-archive"), as_file(path), option("--no-whole-archive")]);
                }
                Input::Library(name) => args.push(format!("-l{name}").into()),
            }
        }
        args
    }

    /// The final arguments: the runtime, if there is one, and the caller's own arguments.
    pub(super) fn last(&self, runtime: Option<&Path>) -> Vec<OsString> {
        runtime.map(as_file).into_iter().chain(self.args.iter().cloned()).collect()
    }

    pub(super) fn format(&self) -> BinaryFormat {
        self.target.binary_format
    }
}

/// A path in a form that linkers and their drivers take for a file. `-` begins an option, `@` a response file, `/` an
/// option of Microsoft's tools, and `=` after `-L` the sysroot.
pub(super) fn as_file(path: &Path) -> OsString {
    match path.as_os_str().as_encoded_bytes().first() {
        Some(b'-' | b'@' | b'=') => Path::new(".").join(path).into(),
        // with the drive; if that fails, the linker reports an unknown option
        Some(b'/') if cfg!(windows) => std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).into(),
        _ => path.into(),
    }
}

pub(super) fn joined(option: &str, value: impl AsRef<OsStr>) -> OsString {
    let mut arg = OsString::from(option);
    arg.push(value);
    arg
}
