//! Errors in signatures.

use std::fmt;
use std::ops::Range;

use super::path::Path;
use super::span::Spans;

/// The problem of a [`PartError`].
pub(super) struct Problem {
    text: String,
    /// The expected value and the actual one.
    mismatch: Option<(String, String)>,
}

impl Problem {
    /// A value instead of the expected one.
    pub(super) fn mismatch(expected: impl fmt::Display, got: impl fmt::Display) -> Self {
        let (expected, got) = (expected.to_string(), got.to_string());
        Problem { text: format!("expected {expected}, got {got}"), mismatch: Some((expected, got)) }
    }

    /// The problem, followed by its reason.
    pub(super) fn because(mut self, reason: &str) -> Self {
        self.text = format!("{}: {reason}", self.text);
        self
    }
}

impl<T: Into<String>> From<T> for Problem {
    fn from(text: T) -> Self {
        Problem { text: text.into(), mismatch: None }
    }
}

/// One error in a signature.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PartError {
    path: Path,
    problem: String,
    mismatch: Option<(String, String)>,
    span: Option<Range<usize>>,
}

impl PartError {
    pub(super) fn new(path: Path, problem: Problem) -> Self {
        PartError { path, problem: problem.text, mismatch: problem.mismatch, span: None }
    }

    /// The part of the signature that is wrong: `x`, `x.shape[1]`, `where[0]`, ...
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The problem and what would be correct.
    pub fn problem(&self) -> &str {
        &self.problem
    }

    /// A description of what was expected; `None` if the problem isn't an unexpected value.
    pub fn expected(&self) -> Option<&str> {
        self.mismatch.as_ref().map(|(expected, _)| expected.as_str())
    }

    /// The actual value, as the problem shows it; see [`expected`](Self::expected).
    pub fn got(&self) -> Option<&str> {
        self.mismatch.as_ref().map(|(_, got)| got.as_str())
    }

    /// The byte range of that part in the source that the signature was parsed from. If the part isn't in the source
    /// (such as a missing default), it is the range of the smallest enclosing part. `None` for a signature made with
    /// a builder.
    pub fn span(&self) -> Option<Range<usize>> {
        self.span.clone()
    }

    pub(super) fn locate(&mut self, spans: &Spans) {
        self.span = spans.of(&self.path);
    }
}

impl fmt::Display for PartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.problem)
    }
}

/// The error of [`SignatureBuilder::build`](super::SignatureBuilder::build): all errors in one signature.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SignatureError {
    /// The signature's name, as given.
    pub name: String,
    /// At least one error, in order of appearance.
    pub errors: Vec<PartError>,
}

impl fmt::Display for SignatureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.errors.len() == 1 { "" } else { "s" };
        write!(f, "signature `{}` has {} error{plural}", self.name.escape_debug(), self.errors.len())?;
        for error in &self.errors {
            write!(f, "\n  {error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for SignatureError {}
