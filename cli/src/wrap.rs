//! `tvm-ffi-codegen wrap`

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use target_lexicon::{HOST, Triple};
use tvm_ffi_codegen::artifact::{ArchiveInput, LibraryBuilder, Linker, ObjectFile, defines_symbol, write_archive};
use tvm_ffi_codegen::runtime::abi::symbol::LIBRARY_BIN;
use tvm_ffi_codegen::{Backend, OptLevel, UnknownName};

use crate::error::{CliError, MessageFormat, failure, failure_in};
use crate::io::{input_name, is_stream, print_bytes};
use crate::progress::Bar;
use crate::signatures::Functions;

/// Makes checked functions around kernels: an object, an archive or a shared library, chosen by the output's extension
#[derive(Args)]
pub struct Wrap {
    #[command(flatten)]
    functions: Functions,
    /// cranelift or llvm, if this build has it
    #[arg(long, default_value_t, hide_default_value = true)]
    backend: BackendName,
    /// The target's triple
    #[arg(long, value_name = "TRIPLE", default_value_t = HOST)]
    target: Triple,
    /// The minimum CPU that the code runs on, by the backend's name; by default any of the architecture
    #[arg(long, value_name = "NAME")]
    cpu: Option<String>,
    /// The optimisation level: none, speed or full
    #[arg(long, value_name = "LEVEL", default_value = "speed")]
    opt_level: OptLevel,
    /// Makes a system library with that prefix: its functions are registered when the program that contains it starts
    #[arg(long, value_name = "PREFIX")]
    system_lib: Option<String>,
    /// The program also has modules of the system library, from `pack --system-lib PREFIX`: they are registered with
    /// the functions. By default, true if a --object file has them
    #[arg(long, requires = "system_lib")]
    carries_modules: bool,
    /// An object, archive or library to link, or to put into the archive: kernels, or an output of `pack`
    #[arg(long, value_name = "FILE")]
    object: Vec<PathBuf>,
    /// The runtime to link a shared library against (for Windows: its import library, its DLL, or the program that
    /// contains it); by default its symbols stay undefined for the host to define, or on Windows come from tvm_ffi.dll
    #[arg(long, value_name = "FILE")]
    runtime: Option<PathBuf>,
    /// A symbol that may stay undefined in a shared library, because the program that loads it defines it; with `*` at
    /// its end, all symbols with that prefix
    #[arg(long, value_name = "SYMBOL")]
    allow_undefined: Vec<String>,
    /// The linker of a shared library: `cc`, the C compiler's driver (`CC_<target>` or `CC`, or the usual one), or, for
    /// Linux, the built-in `wild`; by default `wild`, if this build has it and it links for the target
    #[arg(long, value_enum)]
    linker: Option<LinkerName>,
    /// The file to write: an object (.o, .obj), an archive (.a, .lib) or a shared library (.so, .dylib, .dll); `-`
    /// writes an object to stdout
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

/// A backend; by default the build's default one.
#[derive(Clone, Copy, Default)]
struct BackendName(Backend);

impl std::str::FromStr for BackendName {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        text.parse().map(BackendName)
    }
}

impl std::fmt::Display for BackendName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum LinkerName {
    Cc,
    #[cfg(feature = "libwild")]
    Wild,
}

/// The kind of an output, determined by its extension.
#[derive(Clone, Copy, PartialEq)]
enum OutputKind {
    Object,
    Archive,
    Library,
}

impl OutputKind {
    fn of(path: &Path) -> Result<Self, CliError> {
        if is_stream(path) {
            return Ok(OutputKind::Object);
        }
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("o" | "obj") => Ok(OutputKind::Object),
            Some("a" | "lib") => Ok(OutputKind::Archive),
            Some("so" | "dylib" | "dll") => Ok(OutputKind::Library),
            _ => {
                let problem = "expected an output that ends in .o, .obj, .a, .lib, .so, .dylib or .dll";
                Err(CliError::Usage(format!("{}: {problem}", path.display())))
            }
        }
    }
}

impl Wrap {
    pub fn run(&self, format: MessageFormat) -> Result<(), CliError> {
        let kind = OutputKind::of(&self.output)?;
        if kind == OutputKind::Object && !self.object.is_empty() {
            return Err(CliError::Usage("--object is for archives and shared libraries, not for an object".to_owned()));
        }
        let object = self.object(format)?;
        match kind {
            OutputKind::Object if is_stream(&self.output) => print_bytes(object.as_bytes()),
            OutputKind::Object => object.write(&self.output).map_err(|error| CliError::at_path(&self.output, error)),
            OutputKind::Archive => self.archive(object),
            OutputKind::Library => self.library(object),
        }
    }

    fn object(&self, format: MessageFormat) -> Result<ObjectFile, CliError> {
        let mut builder = LibraryBuilder::new().target(self.target.clone());
        builder = builder.backend(self.backend.0).opt_level(self.opt_level);
        if let Some(cpu) = &self.cpu {
            builder = builder.cpu(cpu);
        }
        if let Some(prefix) = &self.system_lib {
            builder = builder.system_library(prefix);
            if self.carries_modules || self.links_modules(prefix)? {
                builder = builder.carries_modules();
            }
        }
        builder = self.functions.add_to(builder)?;
        let bar = Bar::new(format);
        builder.emit_with_progress(&|progress| bar.note(progress)).map_err(|error| match self.functions.host() {
            Some(path) => failure_in(input_name(path), error),
            None => failure(error),
        })
    }

    /// True if a linked file contains the modules of the system library.
    fn links_modules(&self, prefix: &str) -> Result<bool, CliError> {
        let symbol = format!("{prefix}{LIBRARY_BIN}");
        for path in &self.object {
            if defines_symbol(path, &symbol).map_err(failure)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn archive(&self, object: ObjectFile) -> Result<(), CliError> {
        // name the object after the archive, so you can trace members after merging several archives
        let name = Path::new(self.output.file_name().unwrap_or_default()).with_extension("o").display().to_string();
        let mut inputs = vec![ArchiveInput::Object { name, bytes: object.into_bytes() }];
        inputs.extend(self.object.iter().cloned().map(ArchiveInput::File));
        write_archive(&self.target, &inputs, &self.output).map_err(failure)
    }

    fn library(&self, object: ObjectFile) -> Result<(), CliError> {
        let mut linker = Linker::new(self.target.clone()).object(object.into_bytes());
        for path in &self.object {
            linker = linker.file(path);
        }
        for symbol in &self.allow_undefined {
            linker = linker.allow_undefined(symbol);
        }
        if let Some(runtime) = &self.runtime {
            linker = linker.runtime(runtime);
        }
        let linked = match self.linker {
            #[cfg(feature = "libwild")]
            None if linker.can_link_in_process() => linker.link_in_process(&self.output),
            #[cfg(feature = "libwild")]
            Some(LinkerName::Wild) => linker.link_in_process(&self.output),
            None | Some(LinkerName::Cc) => linker.link(&self.output),
        };
        linked.map_err(failure)
    }
}
