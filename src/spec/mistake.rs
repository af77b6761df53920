//! Mistakes in signatures.

use std::fmt;
use std::ops::Range;

use super::path::Path;
use super::span::Spans;

/// One mistake in a signature.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mistake {
    path: Path,
    problem: String,
    span: Option<Range<usize>>,
}

impl Mistake {
    pub(super) fn new(path: Path, problem: String) -> Self {
        Mistake { path, problem, span: None }
    }

    /// The part of the signature that is wrong: `x`, `x.shape[1]`, `where[0]`, ...
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The problem, and what would be right.
    pub fn problem(&self) -> &str {
        &self.problem
    }

    /// The bytes of that part in the text that the signature was read from, or of the smallest part around it that stands in the text (a default
    /// that is missing doesn't). `None` for a signature that was built.
    pub fn span(&self) -> Option<Range<usize>> {
        self.span.clone()
    }

    pub(super) fn locate(&mut self, spans: &Spans) {
        self.span = spans.of(&self.path);
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.problem)
    }
}

/// The error of [`SignatureBuilder::build`](super::SignatureBuilder::build): all mistakes of one signature.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SignatureError {
    /// The signature's name, as given.
    pub name: String,
    /// At least one mistake, in order of appearance.
    pub mistakes: Vec<Mistake>,
}

impl fmt::Display for SignatureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.mistakes.len() == 1 { "" } else { "s" };
        write!(f, "signature `{}` has {} mistake{plural}", self.name.escape_debug(), self.mistakes.len())?;
        for mistake in &self.mistakes {
            write!(f, "\n  {mistake}")?;
        }
        Ok(())
    }
}

impl std::error::Error for SignatureError {}
