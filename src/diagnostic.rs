//! Structured errors, for callers in other languages and for tools that underline an error in its source.

use std::error::Error;
use std::fmt;

use serde_json::{Value, json};

/// The kind of an error, according to what its reader can do about it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum DiagnosticKind {
    /// A signature's source doesn't follow the grammar, or the signature has errors.
    Signature,
    /// A kernel doesn't fit its signature, a launch doesn't fit its image, a name is taken, or a text isn't one of host
    /// functions.
    Kernel,
    /// A symbol is undefined.
    UndefinedSymbol,
    /// There is no code generator or linker for the target.
    UnsupportedTarget,
    /// LLVM is loaded at its first use, and is not installed or was not found.
    LlvmNotFound,
    /// An object can't be read, or objects can't be linked.
    Link,
    /// Any other error, such as a missing file or insufficient memory.
    Other,
}

impl DiagnosticKind {
    /// The kind's name in JSON. It is also the name of the exception class in Python.
    pub fn name(self) -> &'static str {
        match self {
            DiagnosticKind::Signature => "SignatureError",
            DiagnosticKind::Kernel => "KernelError",
            DiagnosticKind::UndefinedSymbol => "UndefinedSymbolError",
            DiagnosticKind::UnsupportedTarget => "UnsupportedTargetError",
            DiagnosticKind::LlvmNotFound => "LlvmNotFoundError",
            DiagnosticKind::Link => "LinkError",
            DiagnosticKind::Other => "CodegenError",
        }
    }
}

/// One of the errors that a [`Diagnostic`] reports.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ErrorDetail {
    /// A description of the problem and of what would be correct.
    pub message: String,
    /// The part that is wrong: a part of the signature (`x.shape[1]`, `where[0]`), or the function of the kernel.
    /// `None` if parsing didn't get that far.
    pub path: Option<String>,
    /// The byte range in the source that is wrong; see `PartError::span` and `SyntaxError::span`.
    pub span: Option<std::ops::Range<usize>>,
    /// The line in the source, from 1.
    pub line: Option<usize>,
    /// The character in that line, from 1.
    pub column: Option<usize>,
    /// A description of what was expected.
    pub expected: Option<String>,
    /// The token that was found instead.
    pub got: Option<String>,
}

impl ErrorDetail {
    pub(crate) fn new(message: String, path: Option<String>) -> Self {
        ErrorDetail { message, path, span: None, line: None, column: None, expected: None, got: None }
    }
}

/// The parts of an error.
///
/// ```
/// use tvm_ffi_codegen::Signature;
/// use tvm_ffi_codegen::diagnostic::{Diagnostic, DiagnosticKind};
///
/// let text = "scale(x: Tensor([n], float32),\n      y: Tensor([n], float32, align=3))";
/// let error = text.parse::<Signature>().unwrap_err();
/// let diagnostic = Diagnostic::of(&error).in_text(text);
/// assert_eq!(diagnostic.kind, DiagnosticKind::Signature);
/// assert_eq!(diagnostic.errors[0].path.as_deref(), Some("y.align"));
/// assert_eq!((diagnostic.errors[0].line, diagnostic.errors[0].column), (Some(2), Some(37)));
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Diagnostic {
    /// The error's kind.
    pub kind: DiagnosticKind,
    /// The error's message, as its `Display` writes it.
    pub message: String,
    /// All errors in a signature or in kernels.
    pub errors: Vec<ErrorDetail>,
    /// The undefined symbols.
    pub symbols: Vec<UndefinedSymbol>,
    /// The unsupported target.
    pub target: Option<String>,
}

impl Diagnostic {
    /// A message of an error that isn't from this library.
    pub fn text(message: impl Into<String>) -> Self {
        let kind = DiagnosticKind::Other;
        Diagnostic { kind, message: message.into(), errors: Vec::new(), symbols: Vec::new(), target: None }
    }

    /// Adds lines and columns to errors that have a span. `text` is the source from which the signature was parsed.
    #[must_use]
    pub fn in_text(mut self, text: &str) -> Self {
        for error in &mut self.errors {
            if let (None, Some(span)) = (error.line, &error.span)
                && let Some(before) = text.get(..span.start)
            {
                let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
                error.line = Some(before.matches('\n').count() + 1);
                error.column = Some(before[line_start..].chars().count() + 1);
            }
        }
        self
    }

    /// The parts as a JSON object: `kind`, `message` and, if the error has them, `errors`, `symbols` and `target`.
    ///
    /// ```
    /// # use tvm_ffi_codegen::diagnostic::Diagnostic;
    /// let error = "f(x: fp16)".parse::<tvm_ffi_codegen::Signature>().unwrap_err();
    /// let json = Diagnostic::of(&error).to_json();
    /// assert!(json.contains(r#""kind":"SignatureError","message":"expected a type, found `fp16`"#));
    /// assert!(json.contains(r#""line":1"#) && json.contains(r#""column":6"#) && json.contains(r#""got":"`fp16`""#));
    /// ```
    pub fn to_json(&self) -> String {
        self.json().to_string()
    }

    fn json(&self) -> Value {
        let error = |error: &ErrorDetail| {
            json!({
                "message": error.message,
                "path": error.path,
                "span": error.span.as_ref().map(|span| [span.start, span.end]),
                "line": error.line,
                "column": error.column,
                "expected": error.expected,
                "got": error.got,
            })
        };
        let symbol = |symbol: &UndefinedSymbol| json!({ "name": symbol.name, "references": symbol.references });
        let mut json = json!({ "kind": self.kind.name(), "message": self.message });
        if !self.errors.is_empty() {
            json["errors"] = self.errors.iter().map(error).collect();
        }
        if !self.symbols.is_empty() {
            json["symbols"] = self.symbols.iter().map(symbol).collect();
        }
        if let Some(target) = &self.target {
            json["target"] = Value::from(target.as_str());
        }
        json
    }

    /// An error that consists of a message only.
    pub(crate) fn plain(kind: DiagnosticKind, error: &dyn Error) -> Self {
        Diagnostic { kind, ..Self::text(error.to_string()) }
    }

    /// An error with a list of individual errors.
    pub(crate) fn with_errors(
        kind: DiagnosticKind,
        error: &dyn Error,
        errors: impl IntoIterator<Item = ErrorDetail>,
    ) -> Self {
        Diagnostic { errors: errors.into_iter().collect(), ..Self::plain(kind, error) }
    }

    /// An error about undefined symbols.
    pub(crate) fn undefined(error: &dyn Error, symbols: impl IntoIterator<Item = UndefinedSymbol>) -> Self {
        Diagnostic { symbols: symbols.into_iter().collect(), ..Self::plain(DiagnosticKind::UndefinedSymbol, error) }
    }

    /// An error about an unsupported target.
    pub(crate) fn of_target(target: impl Into<String>, error: &dyn Error) -> Self {
        Diagnostic { target: Some(target.into()), ..Self::plain(DiagnosticKind::UnsupportedTarget, error) }
    }
}

/// An error that exposes its parts. All errors of this library with a more specific kind than
/// [`DiagnosticKind::Other`] implement this.
pub trait Diagnose: Error {
    /// The error's parts.
    fn diagnostic(&self) -> Diagnostic;
}

/// A symbol that a library needs but that is undefined.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct UndefinedSymbol {
    /// The symbol's name in C.
    pub name: String,
    /// Descriptions of the functions and variables that refer to the symbol, with their objects. There are at most a
    /// few, and none if they are unknown.
    pub references: Vec<String>,
}

impl UndefinedSymbol {
    pub(crate) fn new(name: impl Into<String>, references: impl IntoIterator<Item = String>) -> Self {
        UndefinedSymbol { name: name.into(), references: references.into_iter().collect() }
    }
}

impl fmt::Display for UndefinedSymbol {
    /// Writes the name and what refers to it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.references.is_empty() {
            true => write!(f, "`{}`", self.name),
            false => write!(f, "`{}` (referred to by {})", self.name, self.references.join(", ")),
        }
    }
}
