//! Signatures, and the kernels behind them, from the command line or a file.

use std::path::PathBuf;

use clap::Args;
use tvm_ffi_codegen::{Convention, Kernel, KernelReturn, Signature};

use crate::error::CliError;
use crate::io::read_text;

/// Where the functions come from.
#[derive(Args)]
pub struct Functions {
    /// The function's signature, such as 'add_one(x: Tensor([n], float32), y: Tensor([n], float32))'; `-` reads it from stdin
    #[arg(long, value_name = "TEXT", required_unless_present = "signatures")]
    signature: Option<String>,
    /// A file of signatures, one a line, each maybe with its kernel behind it: `SIGNATURE @ SYMBOL [CONVENTION] [status]`. `# ...` is a
    /// comment; `## ...` above a signature is its documentation. `-` is stdin
    #[arg(long, value_name = "FILE", conflicts_with_all = ["signature", "kernel", "doc"])]
    signatures: Option<PathBuf>,
    /// The symbol of the C function to call once the arguments are checked. Without it the wrapper only checks them
    #[arg(long, value_name = "SYMBOL")]
    kernel: Option<String>,
    /// How kernels are called, unless their lines say it: flat, dltensor, memref or packed
    #[arg(long, default_value_t)]
    convention: Convention,
    /// Kernels return a status, an int32_t that is 0 for success. A scalar that the signature returns they write through a last parameter
    #[arg(long)]
    status: bool,
    /// The function's documentation
    #[arg(long, value_name = "TEXT")]
    doc: Option<String>,
}

/// A function to wrap.
#[derive(Debug)]
pub struct Function {
    /// Its signature.
    pub signature: Signature,
    /// What is behind it.
    pub kernel: Kernel,
    /// Its documentation.
    pub doc: Option<String>,
}

impl Functions {
    /// Reads them all; there is at least one.
    pub fn read(&self) -> Result<Vec<Function>, CliError> {
        if let Some(path) = &self.signatures {
            let functions = self.of_file(&read_text(path)?, &path.display().to_string())?;
            return match functions.is_empty() {
                true => Err(CliError::at(path.display(), "it has no signature")),
                false => Ok(functions),
            };
        }
        let (place, text) = match self.signature.as_deref().unwrap_or_default() {
            "-" => ("stdin", read_text("-".as_ref())?),
            text => ("--signature", text.to_owned()),
        };
        let signature = parse(text.trim_end(), place)?;
        let kernel = self.kernel.as_deref().map(|symbol| (symbol, self.convention, self.status));
        Ok(vec![Function { kernel: kernel_of(kernel), signature, doc: self.doc.clone() }])
    }

    fn of_file(&self, text: &str, path: &str) -> Result<Vec<Function>, CliError> {
        let mut functions = Vec::new();
        let mut doc: Vec<&str> = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if let Some(text) = line.strip_prefix("##") {
                doc.push(text.strip_prefix(' ').unwrap_or(text));
            } else if line.is_empty() {
                doc.clear();
            } else if !line.starts_with('#') {
                let (text, kernel) = self.split(line);
                let signature = parse(text, &format!("{path}:{number}"))?;
                let lines = std::mem::take(&mut doc);
                let doc = (!lines.is_empty()).then(|| lines.join("\n"));
                functions.push(Function { kernel: kernel_of(kernel), signature, doc });
            }
        }
        Ok(functions)
    }

    /// The signature of a line, and its kernel. An `@` may also be inside a signature, in a string.
    fn split<'a>(&self, line: &'a str) -> (&'a str, Option<(&'a str, Convention, bool)>) {
        let kernel = line.rsplit_once('@').and_then(|(signature, kernel)| Some((signature, self.kernel(kernel)?)));
        match kernel {
            Some((signature, kernel)) => (signature.trim_end(), Some(kernel)),
            None => (line, None),
        }
    }

    /// `SYMBOL [CONVENTION] [status]`.
    fn kernel<'a>(&self, text: &'a str) -> Option<(&'a str, Convention, bool)> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "_.$".contains(c);
        let mut words = text.split_whitespace();
        let symbol = words.next().filter(|symbol| symbol.chars().all(plain))?;
        let (mut convention, mut status) = (self.convention, self.status);
        for word in words {
            match word {
                "status" => status = true,
                _ => convention = word.parse().ok()?,
            }
        }
        Some((symbol, convention, status))
    }
}

fn parse(text: &str, place: &str) -> Result<Signature, CliError> {
    text.parse().map_err(|error| CliError::at(place, error))
}

fn kernel_of(kernel: Option<(&str, Convention, bool)>) -> Kernel {
    let Some((symbol, convention, status)) = kernel else { return Kernel::check_only() };
    let kernel = Kernel::symbol(symbol).convention(convention);
    match status {
        true => kernel.returning(KernelReturn::Status),
        false => kernel,
    }
}
