//! Files of host functions: signatures with bodies, launches and native kernels, as text.

use std::fmt;
use std::sync::Arc;

use crate::host::tree::{At, Function, FunctionKernel, Item, ItemKind};
use crate::host::{self, HostTextError};
use crate::image::Image;
use crate::lower::{HostSource, Kernel, LowerError, text_of};
use crate::spec::{LaunchLocal, Signature, SyntaxError, did_you_mean};

/// Functions that a text states, as `docs/reference/host-text.md` defines. They may call each other.
///
#[cfg_attr(feature = "cranelift", doc = "```")]
#[cfg_attr(not(feature = "cranelift"), doc = "```text")]
/// use tvm_ffi_codegen::{Engine, HostProgram};
///
/// let program = HostProgram::parse(
///     "## The sum of the squares below n.
///      squares(n: int64) -> int64 {
///        for i in range(0, n) with sum = 0 { continue sum + i * i; }
///        return sum;
///      }
///      twice(n: int64) -> int64 {
///        let sum = call symbol squares(n) -> int64;
///        return 2 * sum;
///      }",
/// )?;
/// // SAFETY: the bodies read no memory.
/// let module = unsafe { Engine::new()?.compile_module(program.functions())? };
/// let twice = module.get_function("twice")?.expect("a function");
/// assert_eq!(twice.call((4,))?.cast::<i64>()?, 28);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// `Display` prints the text in its canonical form, with its comments:
///
/// ```
/// use tvm_ffi_codegen::HostProgram;
///
/// let program = HostProgram::parse("f(n: int64)->int64 { return (n+1)  *2; } # twice the next")?;
/// assert_eq!(program.to_string(), "f(n: int64) -> int64 {\n  return (n + 1) * 2;\n}  # twice the next\n");
/// # Ok::<(), tvm_ffi_codegen::HostTextError>(())
/// ```
#[derive(Clone, Debug)]
pub struct HostProgram {
    file: Arc<host::File>,
    functions: Vec<(Signature, Kernel, bool)>,
    images: Vec<(String, Image)>,
}

impl fmt::Display for HostProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.file.fmt(f)
    }
}

impl HostProgram {
    /// Parses a text whose functions launch no kernels of images.
    ///
    /// # Errors
    /// All errors of the text's grammar and signatures. Errors of bodies are reported when they are compiled.
    pub fn parse(text: &str) -> Result<Self, HostTextError> {
        Self::parse_with(text, std::iter::empty::<(String, Image)>())
    }

    /// The canonical form of a text, with its comments. The images of its launches needn't be there.
    ///
    /// # Errors
    /// See [`parse`](Self::parse).
    pub fn format(text: &str) -> Result<String, HostTextError> {
        Ok(host::file(text, None)?.to_string())
    }

    /// Parses a text with the images that its launches may use, each with its name.
    ///
    /// # Errors
    /// See [`parse`](Self::parse).
    pub fn parse_with<N: Into<String>>(
        text: &str,
        images: impl IntoIterator<Item = (N, Image)>,
    ) -> Result<Self, HostTextError> {
        let images: Vec<(String, Image)> = images.into_iter().map(|(name, image)| (name.into(), image)).collect();
        let source = HostSource::new(text, images.iter().cloned());
        let file = host::file(text, Some(&source.names()))?;
        let (mut functions, mut errors) = (Vec::new(), Vec::new());
        for Function { signature, is_extern, span, kernel } in file.functions() {
            if *is_extern && !matches!(kernel, FunctionKernel::Body(_)) {
                let problem = "a C function needs a body in braces".to_owned();
                errors.push(SyntaxError::new(text, span.clone(), problem));
                continue;
            }
            match kernel_of(&source, kernel) {
                Ok(kernel) => functions.push((signature.clone(), kernel, *is_extern)),
                Err(error) => errors.push(error),
            }
        }
        let file = Arc::new(file);
        if errors.is_empty() { Ok(HostProgram { file, functions, images }) } else { Err(HostTextError::new(errors)) }
    }

    /// The program of functions that you have: `Display` prints it as text. Bodies built in Rust are recorded, and
    /// their values get the names `v0`, `v1` and so on. The text reads back to the same code with
    /// [`images`](Self::images).
    ///
    /// ```
    /// use tvm_ffi_codegen::{HostProgram, Kernel, Signature};
    ///
    /// let signature: Signature = "f(n: int64) -> int64".parse()?;
    /// let kernel = Kernel::body(|b| {
    ///     let sum = b.fold(0, b.arg("n"), b.i64(0), |i, sum| sum + i * i);
    ///     b.ret(sum / 2);
    /// });
    /// let program = HostProgram::of([(&signature, &kernel)])?;
    /// let text = "\
    /// f(n: int64) -> int64 {
    ///   for v0 in range(0, n) with v1 = int64(0) {
    ///     continue v1 + v0 * v0;
    ///   }
    ///   return div(v1, 2);
    /// }
    /// ";
    /// assert_eq!(program.to_string(), text);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A body has errors, or text can't state a kernel: an address, a launch on the CPU, [`Kernel::prepare`], and
    /// [`Kernel::with_arguments`]. A kernel that comes with its code is printed as its symbol.
    pub fn of<'k>(functions: impl IntoIterator<Item = (&'k Signature, &'k Kernel)>) -> Result<Self, LowerError> {
        Self::of_all(functions, std::iter::empty())
    }

    /// Like [`of`](Self::of), with [C functions](Self::c_functions) after the functions.
    ///
    /// # Errors
    /// See [`of`](Self::of). Also the kernel of a C function isn't a body.
    pub fn of_all<'k>(
        functions: impl IntoIterator<Item = (&'k Signature, &'k Kernel)>,
        c_functions: impl IntoIterator<Item = (&'k Signature, &'k Kernel)>,
    ) -> Result<Self, LowerError> {
        let functions = functions.into_iter().map(|(signature, kernel)| (signature, kernel, false));
        let c_functions = c_functions.into_iter().map(|(signature, kernel)| (signature, kernel, true));
        let functions: Vec<(&Signature, &Kernel, bool)> = functions.chain(c_functions).collect();
        let (printed, images) = text_of(functions.iter().copied())?;
        let item = |function| Item { span: 0..0, kind: ItemKind::Function(Box::new(function)) };
        let items = printed.into_iter().map(item).collect();
        let file = Arc::new(host::File { items, comments: [].into() });
        let functions =
            functions.into_iter().map(|(signature, kernel, is_c)| (signature.clone(), kernel.clone(), is_c));
        Ok(HostProgram { file, functions: functions.collect(), images })
    }

    /// The images that launches may use, each with its name in the text.
    pub fn images(&self) -> impl Iterator<Item = (&str, &Image)> {
        self.images.iter().map(|(name, image)| (name.as_str(), image))
    }

    /// The functions with their kernels, in order, without [C functions](Self::c_functions).
    pub fn functions(&self) -> impl Iterator<Item = (&Signature, &Kernel)> {
        let functions = self.functions.iter().filter(|(_, _, is_extern)| !is_extern);
        functions.map(|(signature, kernel, _)| (signature, kernel))
    }

    /// The functions after `extern`, in order: the C functions of [`embed`](crate::embed).
    pub fn c_functions(&self) -> impl Iterator<Item = (&Signature, &Kernel)> {
        let functions = self.functions.iter().filter(|(_, _, is_extern)| *is_extern);
        functions.map(|(signature, kernel, _)| (signature, kernel))
    }

    /// The functions that a library registers as global functions, each with its global name.
    pub fn globals(&self) -> impl Iterator<Item = (&str, &str)> {
        self.file.globals().map(|(function, global)| (function.value.as_str(), global))
    }
}

/// The kernel of a function.
fn kernel_of(source: &HostSource, kernel: &FunctionKernel) -> Result<Kernel, SyntaxError> {
    Ok(match kernel {
        FunctionKernel::CheckOnly => Kernel::check_only(),
        FunctionKernel::Body(text) => Kernel::of_text(source.clone(), text.clone()),
        FunctionKernel::Launch(launch) => {
            if let Some(LaunchLocal { span, .. }) = launch.items.values.iter().flatten().next() {
                let problem = "`values` is for launches of bodies".to_owned();
                return Err(SyntaxError::new(&source.text, span.clone(), problem));
            }
            let images = source.images_of(launch.launch.entry(), launch.items.images.as_deref());
            Kernel::launch(launch.launch.clone(), images)
        }
        FunctionKernel::Symbol { symbol, convention, returns, args } => {
            let mut kernel = Kernel::symbol(symbol.as_str());
            if let Some(stated) = convention {
                kernel = kernel.convention(named(source, stated, &["flat", "dltensor", "memref", "packed"])?);
            }
            if let Some(stated) = returns {
                kernel = kernel.returns(named(source, stated, &["nothing", "status", "value"])?);
            }
            match args {
                Some(args) => kernel.args(args.iter().cloned()),
                None => kernel,
            }
        }
    })
}

/// A value with a name, out of those that there are.
fn named<T: std::str::FromStr>(source: &HostSource, stated: &At<String>, names: &[&str]) -> Result<T, SyntaxError> {
    stated.value.parse().map_err(|_| {
        let known: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        let (expected, got) = (known.join(", "), format!("`{}`", stated.value));
        let problem = format!("expected one of {expected}, found {got}{}", did_you_mean(&stated.value, names));
        SyntaxError::new(&source.text, stated.span.clone(), problem).with_mismatch(expected, got)
    })
}
