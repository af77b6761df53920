//! Errors as values: the parts of this library's errors, for callers that aren't written in Rust, and for tools that underline a mistake in its text.

use std::error::Error;

use serde_json::{Value, json};

#[cfg(feature = "_engine")]
use crate::artifact::EmitError;
use crate::artifact::{ArchiveError, LinkError, UndefinedSymbol};
use crate::backend::CodegenError;
use crate::engine::EngineError;
#[cfg(feature = "_engine")]
use crate::explain::ExplainError;
use crate::lower::LowerError;
use crate::spec::{Mistake, ParseError, SignatureError, SyntaxError};

/// The kind of an error, by what its reader can do about it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum DiagnosticKind {
    /// A signature's text doesn't follow the grammar, or the signature has mistakes.
    Signature,
    /// A kernel doesn't fit its signature, a launch its image, or a name is taken.
    Kernel,
    /// Nobody defines a symbol.
    UndefinedSymbol,
    /// There is no code generator or linker for the target.
    UnsupportedTarget,
    /// LLVM is loaded when it is first used, and is not installed, or not found.
    LlvmNotFound,
    /// An object can't be read, or objects can't be linked.
    Link,
    /// Anything else: files that aren't there, memory that isn't given.
    Other,
}

impl DiagnosticKind {
    /// The kind's name in JSON, which is the name of the exception's class in Python.
    pub fn name(self) -> &'static str {
        match self {
            DiagnosticKind::Signature => "SignatureError",
            DiagnosticKind::Kernel => "KernelError",
            DiagnosticKind::UndefinedSymbol => "UndefinedSymbol",
            DiagnosticKind::UnsupportedTarget => "UnsupportedTarget",
            DiagnosticKind::LlvmNotFound => "LlvmNotFound",
            DiagnosticKind::Link => "LinkError",
            DiagnosticKind::Other => "CodegenError",
        }
    }
}

/// One mistake of several that an error has.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct DiagnosedMistake {
    /// The problem in words, and what would be right.
    pub message: String,
    /// The part that is wrong: a signature's (`x.shape[1]`, `where[0]`), or the function whose kernel it is. `None` where the text can't be read so far.
    pub path: Option<String>,
    /// The bytes of the text that are wrong; see [`Mistake::span`] and [`SyntaxError::span`].
    pub span: Option<std::ops::Range<usize>>,
    /// The line of the text, from 1.
    pub line: Option<usize>,
    /// The character in that line, from 1.
    pub column: Option<usize>,
    /// The forms that could stand there, in words.
    pub expected: Option<String>,
    /// The token that stands there.
    pub got: Option<String>,
}

impl DiagnosedMistake {
    fn new(message: String, path: Option<String>) -> Self {
        DiagnosedMistake { message, path, span: None, line: None, column: None, expected: None, got: None }
    }
}

/// An error's parts.
///
/// ```
/// use tvm_ffi_codegen::Signature;
/// use tvm_ffi_codegen::diagnostic::{Diagnostic, DiagnosticKind};
///
/// let text = "scale(x: Tensor([n], float32),\n      y: Tensor([n], float32, align=3))";
/// let error = text.parse::<Signature>().unwrap_err();
/// let diagnostic = Diagnostic::of(&error).in_text(text);
/// assert_eq!(diagnostic.kind, DiagnosticKind::Signature);
/// assert_eq!(diagnostic.mistakes[0].path.as_deref(), Some("y.align"));
/// assert_eq!((diagnostic.mistakes[0].line, diagnostic.mistakes[0].column), (Some(2), Some(37)));
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Diagnostic {
    /// The error's kind.
    pub kind: DiagnosticKind,
    /// The error's text, as its `Display` writes it.
    pub message: String,
    /// The mistakes of a signature or of kernels, all of them.
    pub mistakes: Vec<DiagnosedMistake>,
    /// The symbols that nobody defines.
    pub symbols: Vec<UndefinedSymbol>,
    /// The target that isn't supported.
    pub target: Option<String>,
}

impl Diagnostic {
    /// The parts of an error of this library, or of the first one among its sources. Of an error of another origin it is the text.
    pub fn of(error: &(dyn Error + 'static)) -> Self {
        let mut at = Some(error);
        while let Some(cause) = at {
            if let Some(known) = Self::known(cause) {
                return Diagnostic { message: error.to_string(), ..known };
            }
            at = cause.source();
        }
        Self::plain(DiagnosticKind::Other, error)
    }

    /// A text of one's own, of an error that is none of this library's.
    pub fn text(message: impl Into<String>) -> Self {
        let kind = DiagnosticKind::Other;
        Diagnostic { kind, message: message.into(), mistakes: Vec::new(), symbols: Vec::new(), target: None }
    }

    /// Adds lines and columns to mistakes that have a span, from the text that the signature was read from.
    #[must_use]
    pub fn in_text(mut self, text: &str) -> Self {
        for mistake in &mut self.mistakes {
            if let (None, Some(span)) = (mistake.line, &mistake.span)
                && let Some(before) = text.get(..span.start)
            {
                let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
                mistake.line = Some(before.matches('\n').count() + 1);
                mistake.column = Some(before[line_start..].chars().count() + 1);
            }
        }
        self
    }

    /// The parts as a JSON object: `kind`, `message`, and `mistakes`, `symbols` and `target` where the error has them.
    ///
    /// ```
    /// # use tvm_ffi_codegen::diagnostic::Diagnostic;
    /// let error = "f(x: fp16)".parse::<tvm_ffi_codegen::Signature>().unwrap_err();
    /// let json = Diagnostic::of(&error).to_json();
    /// assert!(json.starts_with(r#"{"kind":"SignatureError","message":"expected a type, found `fp16`"#));
    /// assert!(json.contains(r#""line":1"#) && json.contains(r#""column":6"#) && json.contains(r#""got":"`fp16`""#));
    /// ```
    pub fn to_json(&self) -> String {
        self.json().to_string()
    }

    fn json(&self) -> Value {
        let mistake = |mistake: &DiagnosedMistake| {
            json!({
                "message": mistake.message,
                "path": mistake.path,
                "span": mistake.span.as_ref().map(|span| [span.start, span.end]),
                "line": mistake.line,
                "column": mistake.column,
                "expected": mistake.expected,
                "got": mistake.got,
            })
        };
        let symbol = |symbol: &UndefinedSymbol| json!({ "name": symbol.name, "references": symbol.references });
        let mut json = json!({ "kind": self.kind.name(), "message": self.message });
        if !self.mistakes.is_empty() {
            json["mistakes"] = self.mistakes.iter().map(mistake).collect();
        }
        if !self.symbols.is_empty() {
            json["symbols"] = self.symbols.iter().map(symbol).collect();
        }
        if let Some(target) = &self.target {
            json["target"] = Value::from(target.as_str());
        }
        json
    }

    fn plain(kind: DiagnosticKind, error: &dyn Error) -> Self {
        Diagnostic { kind, ..Self::text(error.to_string()) }
    }

    /// The parts of an error whose type is known; its causes aren't looked at, but for those that it stands for.
    fn known(error: &(dyn Error + 'static)) -> Option<Self> {
        if let Some(error) = error.downcast_ref::<ParseError>() {
            return match error {
                ParseError::Syntax(error) => Self::known(error),
                ParseError::Mistakes(error) => Self::known(error),
            };
        }
        if let Some(error) = error.downcast_ref::<SyntaxError>() {
            return Some(Self::of_syntax(error));
        }
        if let Some(error) = error.downcast_ref::<SignatureError>() {
            let mistake = |mistake: &Mistake| DiagnosedMistake {
                span: mistake.span(),
                expected: mistake.expected().map(str::to_owned),
                got: mistake.got().map(str::to_owned),
                ..DiagnosedMistake::new(mistake.problem().to_owned(), Some(mistake.path().to_string()))
            };
            let mistakes = error.mistakes.iter().map(mistake).collect();
            return Some(Diagnostic { mistakes, ..Self::plain(DiagnosticKind::Signature, error) });
        }
        if let Some(error) = error.downcast_ref::<LowerError>() {
            return Some(Self::of_kernels([error], error));
        }
        #[cfg(feature = "_engine")] // nobody emits without a backend
        if let Some(error) = error.downcast_ref::<EmitError>() {
            return match error {
                EmitError::Functions(errors) => Some(Self::of_kernels(errors, error)),
                EmitError::Codegen(error) => Self::known(error),
            };
        }
        #[cfg(feature = "_engine")]
        if let Some(error) = error.downcast_ref::<ExplainError>() {
            return match error {
                ExplainError::Lower(error) => Self::known(error),
                ExplainError::Codegen(error) => Self::known(error),
                _ => None,
            };
        }
        if let Some(error) = error.downcast_ref::<EngineError>() {
            return Some(Self::of_engine(error));
        }
        if let Some(error) = error.downcast_ref::<LinkError>() {
            return Some(Self::of_linking(error));
        }
        if let Some(error) = error.downcast_ref::<ArchiveError>() {
            return Some(match error {
                ArchiveError::Target(target) => Self::of_target(target.to_string(), error),
                ArchiveError::Member { .. } => Self::plain(DiagnosticKind::Link, error),
                _ => Self::plain(DiagnosticKind::Other, error),
            });
        }
        error.downcast_ref::<CodegenError>().map(Self::of_backend)
    }

    fn of_syntax(error: &SyntaxError) -> Self {
        let mistake = |error: &SyntaxError| DiagnosedMistake {
            message: error.message.clone(),
            path: None,
            span: Some(error.span.clone()),
            line: Some(error.line),
            column: Some(error.column),
            expected: error.expected().map(str::to_owned),
            got: error.got().map(str::to_owned),
        };
        let mistakes = [error].into_iter().chain(error.more()).map(mistake).collect();
        Diagnostic { mistakes, ..Self::plain(DiagnosticKind::Signature, error) }
    }

    /// The mistakes of functions, which are all of an error.
    fn of_kernels<'e>(errors: impl IntoIterator<Item = &'e LowerError>, error: &dyn Error) -> Self {
        let mistakes = errors.into_iter().flat_map(of_lowering).collect();
        Diagnostic { mistakes, ..Self::plain(DiagnosticKind::Kernel, error) }
    }

    fn of_engine(error: &EngineError) -> Self {
        match error {
            EngineError::Lower(error) => Self::of_kernels([error], error),
            EngineError::Codegen(error) => Self::of_backend(error),
            EngineError::Unresolved { names, callers, references } => {
                let symbol = |name: &String| {
                    let referring = callers.get(name).into_iter().chain(references.get(name)).flatten();
                    UndefinedSymbol { name: name.clone(), references: referring.cloned().collect() }
                };
                let symbols = names.iter().map(symbol).collect();
                Diagnostic { symbols, ..Self::plain(DiagnosticKind::UndefinedSymbol, error) }
            }
            EngineError::Object { .. } | EngineError::DuplicateSymbol { .. } => {
                Self::plain(DiagnosticKind::Link, error)
            }
            _ => Self::plain(DiagnosticKind::Other, error),
        }
    }

    fn of_linking(error: &LinkError) -> Self {
        match error {
            LinkError::Undefined { symbols } => {
                Diagnostic { symbols: symbols.clone(), ..Self::plain(DiagnosticKind::UndefinedSymbol, error) }
            }
            LinkError::Target { target, .. } => Self::of_target(target.to_string(), error),
            _ => Self::plain(DiagnosticKind::Link, error),
        }
    }

    fn of_backend(error: &CodegenError) -> Self {
        match error {
            #[cfg(feature = "cranelift")]
            CodegenError::Cranelift(crate::backend::cranelift::Error::UnsupportedTarget { target, .. }) => {
                Self::of_target(target.clone(), error)
            }
            #[cfg(feature = "_llvm")]
            CodegenError::Llvm(crate::backend::llvm::Error::UnsupportedTarget { target, .. }) => {
                Self::of_target(target.clone(), error)
            }
            #[cfg(feature = "llvm22-1-loaded")]
            CodegenError::Llvm(crate::backend::llvm::Error::NotLoaded { .. }) => {
                Self::plain(DiagnosticKind::LlvmNotFound, error)
            }
            _ => Self::plain(DiagnosticKind::Other, error),
        }
    }

    fn of_target(target: String, error: &dyn Error) -> Self {
        Diagnostic { target: Some(target), ..Self::plain(DiagnosticKind::UnsupportedTarget, error) }
    }
}

/// The mistakes of one function: those of its body or its launch, each for itself.
fn of_lowering(error: &LowerError) -> Vec<DiagnosedMistake> {
    match error {
        LowerError::Launch { function, problems, .. } => {
            let mistake = |problem: &String| DiagnosedMistake::new(problem.clone(), Some(function.clone()));
            problems.iter().map(mistake).collect()
        }
        LowerError::Body { function, mistakes } => {
            mistakes.iter().map(|mistake| DiagnosedMistake::new(mistake.to_string(), Some(function.clone()))).collect()
        }
        _ => vec![DiagnosedMistake::new(error.to_string(), None)],
    }
}
