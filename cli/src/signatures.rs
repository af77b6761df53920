//! Signatures and their kernels, from the command line or a file.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use clap::Args;
use tvm_ffi_codegen::artifact::LibraryBuilder;
use tvm_ffi_codegen::image::Image;
use tvm_ffi_codegen::spec::{KernelArg, Launch, LaunchedSignature, Param, ParamType};
use tvm_ffi_codegen::{Convention, DLDeviceType, Kernel, KernelReturn, ParseError, Signature};

use crate::error::{CliError, TextLocation};
use crate::host::read_program;
use crate::images::Images;
use crate::io::read_text;

/// The source of the functions.
#[derive(Args)]
pub struct Functions {
    /// The function's signature, such as 'add_one(x: Tensor([n], float32), y: Tensor([n], float32))', optionally
    /// followed by its kernel's launch: `SIGNATURE @ launch ENTRY grid=... block=...`; `-` reads it from stdin
    #[arg(long, value_name = "TEXT", required_unless_present_any = ["signatures", "host"])]
    signature: Option<String>,
    /// A file of signatures, one a line, each optionally followed by its kernel: `SIGNATURE @ SYMBOL [CONVENTION]
    /// [returns=KIND] [args=[...]]`, or `SIGNATURE @ launch ENTRY ...`. `# ...` is a comment; `## ...` above a
    /// signature is its documentation. `-` is stdin
    #[arg(long, value_name = "FILE", conflicts_with_all = ["signature", "kernel", "doc"])]
    signatures: Option<PathBuf>,
    /// A file of host text: functions with bodies, launches and kernels, as docs/reference/host-text.md defines.
    /// `-` is stdin
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["signature", "signatures", "kernel", "convention", "returns", "doc"]
    )]
    host: Option<PathBuf>,
    /// The symbol of the C function to call after the checks. Without it the wrapper only checks its arguments
    #[arg(long, value_name = "SYMBOL")]
    kernel: Option<String>,
    /// How kernels are called, unless their lines state it: flat, dltensor, memref or packed
    #[arg(long, default_value_t)]
    convention: Convention,
    /// The C result of kernels, unless their lines state it: nothing, value, or status, an int32_t that is 0 for
    /// success. With a status, the kernel writes a scalar result through a last parameter
    #[arg(long, value_name = "KIND")]
    returns: Option<KernelReturn>,
    /// The function's documentation
    #[arg(long, value_name = "TEXT")]
    doc: Option<String>,
    #[command(flatten)]
    images: Images,
    /// Adds a function of that name, `NAME(device: device)`, which does the one-time work of first launches on a device
    #[arg(long, value_name = "NAME", requires = "Images")]
    prepare: Option<String>,
}

/// The kernel of a launch: in one of the images, or, if no tensor is on a device, a C function that is linked in.
pub fn launched(signature: &Signature, launch: Launch, images: &[Image]) -> Kernel {
    let is_on_cpu = |param: &Param| match &param.ty {
        ParamType::Tensor(tensor) => tensor.device.kind() == Some(DLDeviceType::CPU),
        _ => false,
    };
    if images.is_empty() && signature.params().iter().any(is_on_cpu) {
        let function = Kernel::symbol(launch.entry());
        return Kernel::launch_on_cpu(launch, function);
    }
    let has_it = |image: &&Image| image.entries().is_none() || image.entry(launch.entry()).is_some();
    let mut with_it: Vec<Image> = images.iter().filter(has_it).cloned().collect();
    if with_it.is_empty() {
        // the error then lists the kernels of every image
        with_it = images.to_vec();
    }
    Kernel::launch(launch, with_it)
}

/// A function to wrap.
#[derive(Debug)]
pub struct Function {
    /// Its signature.
    pub signature: Signature,
    /// The kernel that it wraps.
    pub kernel: Kernel,
}

impl Functions {
    /// The file of host text that has the functions.
    pub fn host(&self) -> Option<&Path> {
        self.host.as_deref()
    }

    /// Adds all of them to a library.
    pub fn add_to(&self, mut library: LibraryBuilder) -> Result<LibraryBuilder, CliError> {
        let mut kernels: Vec<Kernel> = Vec::new();
        if let Some(path) = &self.host {
            let program = read_program(path, &self.images)?;
            kernels.extend(program.functions().map(|(_, kernel)| kernel.clone()));
            library = library.program(&program);
        } else {
            for Function { signature, kernel } in self.stated()? {
                library = library.function(&signature, &kernel);
                kernels.push(kernel);
            }
        }
        if let Some(name) = &self.prepare {
            let signature = parse(&format!("{name}(device: device)"))?;
            library = library.function(&signature, &Kernel::prepare(&kernels));
        }
        Ok(library)
    }

    fn stated(&self) -> Result<Vec<Function>, CliError> {
        let images = self.images.read()?;
        if let Some(path) = &self.signatures {
            let functions = self.of_file(&read_text(path)?, &path.display().to_string(), &images)?;
            return match functions.is_empty() {
                true => Err(CliError::at_path(path, "it contains no signatures")),
                false => Ok(functions),
            };
        }
        let (signature, launch) = read_launched(self.signature.as_deref().unwrap_or_default())?;
        let kernel = match (launch, &self.kernel) {
            (Some(_), Some(_)) => {
                return Err(CliError::Usage("--kernel can't be combined with an `@ launch` clause".to_owned()));
            }
            (Some(launch), None) => launched(&signature, launch, &images),
            (None, kernel) => {
                let (convention, returns) = (self.convention, self.returns);
                kernel_of(kernel.as_deref().map(|symbol| NativeKernel { symbol, convention, returns, args: None }))
                    .map_err(CliError::Usage)?
            }
        };
        let signature = match &self.doc {
            Some(doc) => signature.with_doc(doc),
            None => signature,
        };
        Ok(vec![Function { kernel, signature }])
    }

    fn of_file(&self, text: &str, path: &str, images: &[Image]) -> Result<Vec<Function>, CliError> {
        let mut functions = Vec::new();
        let mut doc: Vec<&str> = Vec::new();
        for (number, whole) in (1..).zip(text.lines()) {
            let line = whole.trim();
            if let Some(text) = line.strip_prefix("##") {
                doc.push(text.strip_prefix(' ').unwrap_or(text));
            } else if line.is_empty() {
                doc.clear();
            } else if !line.starts_with('#') {
                let (text, kernel) = self.split(line);
                let indent = whole.chars().take_while(|c| c.is_whitespace()).count();
                let (signature, launch) = parse_launched(text, TextLocation::File { path, line: number, indent })?;
                let kernel = match launch {
                    Some(launch) => launched(&signature, launch, images),
                    None => kernel_of(kernel).map_err(|problem| CliError::at(format!("{path}:{number}"), problem))?,
                };
                let lines = std::mem::take(&mut doc);
                let signature = match lines.is_empty() {
                    true => signature,
                    false => signature.with_doc(lines.join("\n")),
                };
                functions.push(Function { kernel, signature });
            }
        }
        Ok(functions)
    }

    /// Splits a line into its signature and kernel. A string in the signature may also contain `@`. The text after
    /// the last `@` is a launch if it doesn't parse as a native kernel.
    fn split<'a>(&self, line: &'a str) -> (&'a str, Option<NativeKernel<'a>>) {
        let kernel = line.rsplit_once('@').and_then(|(signature, kernel)| Some((signature, self.kernel(kernel)?)));
        match kernel {
            Some((signature, kernel)) => (signature.trim_end(), Some(kernel)),
            None => (line, None),
        }
    }

    /// `SYMBOL [CONVENTION] [returns=KIND] [args=[...]]`.
    fn kernel<'a>(&self, text: &'a str) -> Option<NativeKernel<'a>> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "_.$".contains(c);
        let (text, args) = match text.split_once(" args=") {
            Some((text, args)) => (text, Some(args)),
            None => (text, None),
        };
        let mut words = text.split_whitespace();
        let symbol = words.next().filter(|symbol| symbol.chars().all(plain))?;
        let (mut convention, mut returns) = (self.convention, self.returns);
        for word in words {
            match word.strip_prefix("returns=") {
                Some(kind) => returns = Some(kind.parse().ok()?),
                None => convention = word.parse().ok()?,
            }
        }
        Some(NativeKernel { symbol, convention, returns, args })
    }
}

fn parse(text: &str) -> Result<Signature, CliError> {
    text.parse().map_err(|error| CliError::in_text(TextLocation::Argument, text, &error))
}

/// Reads the signature of an argument, with its kernel's launch if present; `-` is stdin.
pub fn read_launched(argument: &str) -> Result<(Signature, Option<Launch>), CliError> {
    match argument {
        "-" => parse_launched(read_text("-".as_ref())?.trim_end(), TextLocation::Stdin),
        text => parse_launched(text.trim_end(), TextLocation::Argument),
    }
}

/// Parses a signature, with its kernel's launch if present.
fn parse_launched(text: &str, place: TextLocation<'_>) -> Result<(Signature, Option<Launch>), CliError> {
    let is_launched = text.rsplit_once('@').is_some_and(|(_, launch)| launch.trim_start().starts_with("launch"));
    let read = match is_launched {
        true => text.parse().map(|LaunchedSignature { signature, launch }| (signature, Some(launch))),
        false => text.parse().map(|signature| (signature, None)),
    };
    read.map_err(|error: ParseError| CliError::in_text(place, text, &error))
}

/// A native kernel: a C function.
struct NativeKernel<'a> {
    symbol: &'a str,
    convention: Convention,
    /// The kernel's C result, if stated.
    returns: Option<KernelReturn>,
    /// The C parameters, if stated: `[x, int32(n)]`.
    args: Option<&'a str>,
}

fn kernel_of(kernel: Option<NativeKernel<'_>>) -> Result<Kernel, String> {
    let Some(NativeKernel { symbol, convention, returns, args }) = kernel else { return Ok(Kernel::check_only()) };
    let mut kernel = Kernel::symbol(symbol).convention(convention);
    if let Some(args) = args {
        let wrong = |error: &dyn Display| format!("the args of kernel `{symbol}`: {error}");
        let list = args.strip_prefix('[').and_then(|args| args.trim_end().strip_suffix(']'));
        let list = list.ok_or_else(|| wrong(&"expected a list in brackets, `[x, int32(n)]`"))?;
        kernel = kernel.args(KernelArg::list(list).map_err(|error| wrong(&error))?);
    }
    Ok(match returns {
        Some(returns) => kernel.returns(returns),
        None => kernel,
    })
}
