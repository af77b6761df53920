//! Makes the library of `signatures.txt` that every host loads: `emit FOLDER [--backend NAME] [--target TRIPLE] [--prefix PREFIX] [--link FILE]...`.
//!
//! It writes `wrappers.o` and `bin.o`, which has the module that the library imports, and links them with the files to `library.so`.

use std::error::Error;
use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use tvm_ffi_codegen::artifact::{LibraryBinBuilder, LibraryBuilder, Linker, Payload, Triple};
use tvm_ffi_codegen::{Kernel, Signature};

const SIGNATURES: &str = include_str!("signatures.txt");
const PRICES: &[u8] = include_bytes!("prices.txt");

#[derive(Clone, Copy, ValueEnum)]
enum Backend {
    #[cfg(feature = "cranelift")]
    Cranelift,
    #[cfg(feature = "_llvm")]
    Llvm,
}

#[derive(Parser)]
struct Args {
    /// Where to write.
    folder: PathBuf,
    #[arg(long)]
    backend: Option<Backend>,
    #[arg(long)]
    target: Option<String>,
    /// Makes a system library.
    #[arg(long)]
    prefix: Option<String>,
    /// What has the kernels; without it nothing is linked.
    #[arg(long)]
    link: Vec<PathBuf>,
}

/// A function of the library.
struct Function {
    signature: Signature,
    kernel: Kernel,
    doc: Option<String>,
}

/// Lines `SIGNATURE @ KERNEL`, some with a doc above, `## ...`: what the command line reads too.
fn functions() -> Result<Vec<Function>, Box<dyn Error>> {
    let (mut all, mut doc) = (Vec::new(), None);
    for line in SIGNATURES.lines() {
        if let Some(text) = line.strip_prefix("## ") {
            doc = Some(text.to_owned());
        } else if let Some((signature, kernel)) = line.split_once(" @ ") {
            all.push(Function { signature: signature.parse()?, kernel: Kernel::symbol(kernel), doc: doc.take() });
        }
    }
    Ok(all)
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    let target = args.target.map_or(Ok(Triple::host()), |target| target.parse())?;
    let mut library = LibraryBuilder::new().target(target.clone());
    library = match args.backend {
        #[cfg(feature = "cranelift")]
        Some(Backend::Cranelift) => library.backend(tvm_ffi_codegen::Backend::Cranelift),
        #[cfg(feature = "_llvm")]
        Some(Backend::Llvm) => library.backend(tvm_ffi_codegen::Backend::Llvm),
        None => library,
    };
    for Function { signature, kernel, doc } in functions()? {
        library = match doc {
            None => library.function(&signature, &kernel),
            Some(doc) => library.documented(&signature, &kernel, doc),
        };
    }
    let mut bin = LibraryBinBuilder::new();
    let (root, prices) = (bin.library(), bin.module("hosts.prices", Payload::Bytes(PRICES.to_vec())));
    bin.import(root, prices);
    if let Some(prefix) = &args.prefix {
        library = library.system_library(prefix);
        bin.symbol_prefix(prefix);
    }
    std::fs::create_dir_all(&args.folder)?;
    let [wrappers, packed] = ["wrappers.o", "bin.o"].map(|name| args.folder.join(name));
    library.emit()?.write(&wrappers)?;
    bin.write_object(&target, &packed)?;
    if !args.link.is_empty() {
        let linker = Linker::new(target).file(wrappers).file(packed);
        args.link.into_iter().fold(linker, Linker::file).link(args.folder.join("library.so"))?;
    }
    Ok(())
}
