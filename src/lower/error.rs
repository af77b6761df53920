//! The mistakes that a kernel or a body can have.

use std::fmt;

use super::convention::Convention;

/// One mistake in a body.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct BodyMistake {
    /// The operation that was asked for: `load`, `tensor("x")`, ...
    pub operation: String,
    /// The problem with it.
    pub problem: String,
}

impl fmt::Display for BodyMistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.operation, self.problem)
    }
}

/// The error of making a wrapper from a signature and a kernel.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LowerError {
    /// Two functions of one module have the same name.
    #[error("function `{name}` is defined twice; give each wrapper of a module a name of its own")]
    DuplicateName {
        /// The name.
        name: String,
    },
    /// The kernel's symbol is no symbol.
    #[error("kernel symbol {symbol:?} of function `{function}` is empty or holds a NUL byte")]
    KernelName {
        /// The function.
        function: String,
        /// The symbol as given.
        symbol: String,
    },
    /// The kernel's symbol can't be a kernel's.
    #[error(
        "the kernel of function `{function}` can't be the symbol {symbol:?}, which is {meaning}; give the kernel another name"
    )]
    ReservedSymbol {
        /// The function.
        function: String,
        /// The kernel's symbol.
        symbol: String,
        /// What symbols of that name are.
        meaning: String,
    },
    /// The launch of a kernel doesn't fit the signature, or an image.
    #[error("the launch of kernel `{kernel}` by function `{function}` {}", problems.join("; "))]
    Launch {
        /// The function.
        function: String,
        /// The kernel's name in its image.
        kernel: String,
        /// All problems.
        problems: Vec<String>,
    },
    /// The kernel's symbol already means something else in the module.
    #[error("the kernel of function `{function}` is the symbol `{symbol}`, which the module already has as {found}")]
    SymbolConflict {
        /// The function.
        function: String,
        /// The kernel's symbol.
        symbol: String,
        /// The thing that the module has.
        found: String,
    },
    /// The symbols of such a function mean something else, in a library or in each module.
    #[error("function `{name}` can't have that name: the symbol `{symbol}` means something else; give it another name")]
    ReservedName {
        /// The name.
        name: String,
        /// The symbol that is in the way.
        symbol: String,
    },
    /// A function of a library can't be that global function.
    #[error("function `{function}` can't be the global function {global:?}: {problem}")]
    Global {
        /// The function.
        function: String,
        /// The name of the global function.
        global: String,
        /// The reason.
        problem: String,
    },
    /// A kernel that only this process has can't be in a file.
    #[error(
        "the kernel of function `{function}` is an address of this process, which means nothing in a file; name it by its symbol, \
         and link it in"
    )]
    AddressInFile {
        /// The function.
        function: String,
    },
    /// Code that a kernel comes with can't be put into an object, or into a module of the caller's.
    #[error(
        "the kernel of function `{function}` comes with its {code}, which only an engine links in; name the kernel by \
         `Kernel::symbol({symbol:?})`, and give the {code} to the linker"
    )]
    CodeForTheLinker {
        /// The function.
        function: String,
        /// The kind of code: an object, an archive, LLVM's IR or bitcode.
        code: &'static str,
        /// The kernel's symbol.
        symbol: String,
    },
    /// The prefix of a system library can't begin symbols.
    #[error("expected a prefix of letters, digits, `_`, `.` and `$` that doesn't begin with a digit, got {prefix:?}")]
    Prefix {
        /// The prefix as given.
        prefix: String,
    },
    /// The module's messages outgrow what its tables can refer to.
    #[error(
        "function `{function}` is one too many: the messages of one module may take {most} bytes; make several modules"
    )]
    TooManyMessages {
        /// The function that didn't fit.
        function: String,
        /// The limit.
        most: u32,
    },
    /// The wrapper would need too much of its caller's stack.
    #[error(
        "the wrapper of function `{function}` needs {bytes} bytes of stack, and may use {most}; most of them are for {}",
        shares(.largest)
    )]
    TooLarge {
        /// The function.
        function: String,
        /// The stack that it needs, in bytes.
        bytes: u32,
        /// The limit.
        most: u32,
        /// What takes most of it, with its bytes: the largest first, at most three.
        largest: Vec<(&'static str, u32)>,
    },
    /// The kernel's convention can't pass what the signature has.
    #[error("the kernel of function `{function}` can't be called by the convention {convention}: {problem}")]
    Convention {
        /// The function.
        function: String,
        /// The convention.
        convention: Convention,
        /// The problem.
        problem: String,
    },
    /// The kernel is the address NULL.
    #[error("the kernel of function `{function}` is at address NULL")]
    NullAddress {
        /// The function.
        function: String,
    },
    /// The kernel isn't native, and was told how to be called or what it returns.
    #[error(
        "the kernel of function `{function}` is {kernel}, and `Kernel::{method}` is for native kernels, which are symbols or addresses; \
         leave the call out"
    )]
    NotNative {
        /// The function.
        function: String,
        /// The kind of kernel: `a body` or `check-only`.
        kernel: &'static str,
        /// The method of [`Kernel`](super::Kernel) that was called: `convention` or `returning`.
        method: &'static str,
    },
    /// The kernel can't return what the signature says, or the other way round.
    #[error("the kernel of function `{function}` {problem}")]
    KernelReturn {
        /// The function.
        function: String,
        /// The problem.
        problem: String,
    },
    /// A bug of this crate: a look-up that can't fail has failed.
    #[error("lowering of function `{function}` lacks {missing}; this is a bug of tvm-ffi-codegen")]
    Internal {
        /// The function.
        function: String,
        /// What was looked for.
        missing: String,
    },
    /// The body has mistakes; all of them are here.
    #[error("the body of function `{function}` has mistakes:{}", list(.mistakes))]
    Body {
        /// The function.
        function: String,
        /// At least one.
        mistakes: Vec<BodyMistake>,
    },
}

fn shares(largest: &[(&'static str, u32)]) -> String {
    let shares: Vec<_> = largest.iter().map(|(what, bytes)| format!("{what} ({bytes})")).collect();
    shares.join(", ")
}

fn list(mistakes: &[BodyMistake]) -> String {
    mistakes.iter().map(|m| format!("\n  {m}")).collect()
}
