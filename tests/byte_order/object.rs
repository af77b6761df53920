//! Writes an object for another machine, with a wrapper for each signature in a file. The kernels are named `kernel_`
//! plus the function's name.

use std::error::Error;
use std::{env, fs};

use target_lexicon::Triple;
use tvm_ffi_codegen::Signature;
use tvm_ffi_codegen::artifact::LibraryBuilder;
use tvm_ffi_codegen::lower::{Convention, Kernel};

/// `byte_order_object TRIPLE|host SIGNATURES OBJECT`
fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = env::args().skip(1).collect();
    let [triple, signatures, object] = &args[..] else { return Err("expected a triple and two files".into()) };
    let functions = read(&fs::read_to_string(signatures)?)?;
    let triple: Triple = match &**triple {
        "host" => Triple::host(),
        other => other.parse().map_err(|e| format!("{other}: {e}"))?,
    };
    let library = functions
        .iter()
        .fold(LibraryBuilder::new().target(triple), |library, (signature, kernel)| library.function(signature, kernel));
    fs::write(object, library.emit()?.as_bytes())?;
    Ok(())
}

/// Reads one signature per line. A convention other than `flat` precedes it.
fn read(text: &str) -> Result<Vec<(Signature, Kernel)>, Box<dyn Error>> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let wrapper = |line: &str| -> Result<_, Box<dyn Error>> {
        let (convention, signature) = match line.split_once(' ') {
            Some((word, rest)) if !word.contains('(') => (word.parse()?, rest),
            _ => (Convention::Flat, line),
        };
        let signature: Signature = signature.parse()?;
        let kernel = Kernel::symbol(format!("kernel_{}", signature.name())).convention(convention);
        Ok((signature, kernel))
    };
    lines.map(wrapper).collect()
}
