//! `tvm-ffi-codegen pack`

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use clap::Args;
use target_lexicon::{HOST, Triple};
use tvm_ffi_codegen::artifact::{NodeId, PackBuilder, Payload};

use crate::error::{CliError, MessageFormat, failure};
use crate::io::{copy_to_stdout, is_stream, read_stdin};
use crate::progress::Bar;

/// Packs modules into an object that a library carries: `__tvm_ffi__library_bin`
///
/// Each --import is a module: a kind, and a file of any size with its bytes. When the library is loaded, a loader of
/// that kind (`ffi.Module.load_from_bytes.KIND`) gets the bytes. TVM FFI itself has no such loaders. The library
/// imports all modules, unless you name other importers:
///
///     --import weights=model.bin                      imported by the library
///     --import all:net=net.bin --import w@all=w.bin   `w.bin` is imported by `net.bin`, which is named `all`
///     --import b:net=b.bin --import w@_lib,b=w.bin    `w.bin` is imported by both the library (`_lib`) and `b`
///
/// Kernels for GPUs need no module: use `wrap --image k.cubin` with a launch after the signature.
///
/// Link the object with others: `tvm-ffi-codegen wrap ... --object bin.o -o out.so`.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct Pack {
    /// A module: `[NAME:]KIND[@IMPORTER,...]=FILE`. FILE `-` is stdin
    #[arg(long = "import", value_name = "IMPORT", required = true)]
    imports: Vec<Import>,
    /// The name of the root module, which you get when you load the library, and which imports the library; by default
    /// the library itself is the root
    #[arg(long, value_name = "NAME")]
    root: Option<String>,
    /// The target's triple
    #[arg(long, value_name = "TRIPLE", default_value_t = HOST)]
    target: Triple,
    /// The prefix of a system library's symbols
    #[arg(long, value_name = "PREFIX", default_value = "")]
    system_lib: String,
    /// The object to write; `-` is stdout
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

/// The library's name in lists of importers.
const LIBRARY: &str = "_lib";

/// One `--import`.
#[derive(Clone)]
struct Import {
    name: Option<String>,
    kind: String,
    importers: Vec<String>,
    file: PathBuf,
}

impl std::str::FromStr for Import {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (what, file) = text.split_once('=').ok_or("expected [NAME:]KIND[@IMPORTER,...]=FILE, there is no `=`")?;
        let (what, importers) = match what.split_once('@') {
            Some((what, importers)) => (what, importers.split(',').map(str::to_owned).collect()),
            None => (what, Vec::new()),
        };
        let (name, kind) = match what.split_once(':') {
            Some((name, kind)) => (Some(name.to_owned()), kind),
            None => (None, what),
        };
        if kind.is_empty() || file.is_empty() || name.as_deref() == Some("") || importers.iter().any(String::is_empty) {
            return Err("expected [NAME:]KIND[@IMPORTER,...]=FILE, a part is empty".to_owned());
        }
        if name.as_deref() == Some(LIBRARY) {
            return Err(format!("`{LIBRARY}` is the library's own name"));
        }
        Ok(Import { name, kind: kind.to_owned(), importers, file: file.into() })
    }
}

impl Pack {
    pub fn run(&self, format: MessageFormat) -> Result<(), CliError> {
        let mut bin = PackBuilder::new();
        bin.symbol_prefix(&self.system_lib);
        // the first node is the root
        let root = self.root.as_deref().map(|root| self.index_of(root)).transpose()?;
        let mut stdin = None;
        let mut nodes = vec![None; self.imports.len()];
        if let Some(root) = root {
            nodes[root] = Some(self.add(&mut bin, root, &mut stdin)?);
        }
        let library = bin.library();
        for (index, node) in nodes.iter_mut().enumerate() {
            if node.is_none() {
                *node = Some(self.add(&mut bin, index, &mut stdin)?);
            }
        }
        if let Some(root) = root.and_then(|root| nodes[root]) {
            bin.import(root, library);
        }
        for (index, (import, node)) in self.imports.iter().zip(&nodes).enumerate() {
            let Some(node) = *node else { continue };
            for importer in &import.importers {
                let importer = match importer.as_str() {
                    LIBRARY => Some(library),
                    name => nodes[self.index_of(name)?],
                };
                if let Some(importer) = importer {
                    bin.import(importer, node);
                }
            }
            if import.importers.is_empty() && root != Some(index) {
                bin.import(library, node);
            }
        }
        let write = |path: &Path| {
            let bar = Bar::new(format);
            bin.write_object_with_progress(&self.target, path, &|progress| bar.note(progress)).map_err(failure)
        };
        if !is_stream(&self.output) {
            return write(&self.output);
        }
        // write through a file, since the object may be larger than memory
        let folder = tempfile::tempdir().map_err(|error| CliError::at("temporary folder", error))?;
        let path = folder.path().join("packed.o");
        write(&path)?;
        copy_to_stdout(&mut File::open(&path).map_err(|error| CliError::at_path(&path, error))?)
    }

    /// The index of the import with a name.
    fn index_of(&self, name: &str) -> Result<usize, CliError> {
        let mut by_name = HashMap::new();
        for (index, import) in self.imports.iter().enumerate() {
            if let Some(known) = import.name.as_deref()
                && by_name.insert(known, index).is_some()
            {
                return Err(CliError::Usage(format!("two imports have the name `{known}`")));
            }
        }
        by_name.get(name).copied().ok_or_else(|| CliError::Usage(format!("no import has the name `{name}`")))
    }

    fn add(&self, bin: &mut PackBuilder, index: usize, stdin: &mut Option<()>) -> Result<NodeId, CliError> {
        let import = &self.imports[index];
        let payload = match is_stream(&import.file) {
            false => Payload::File(import.file.clone()),
            true if stdin.replace(()).is_some() => {
                return Err(CliError::Usage("only one --import can read from stdin".to_owned()));
            }
            true => Payload::Bytes(read_stdin()?),
        };
        Ok(bin.module(&import.kind, payload))
    }
}
