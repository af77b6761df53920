//! Source locations of signatures and their parts.

use std::fmt;
use std::hash::{Hash, Hasher};

/// A line in your compiler's source language from which a signature or a part of it was made: `File "model.py", line
/// 7, in forward`.
///
/// It is the last line of the backtrace of an error that a wrapper raises for the part
/// ([`SignatureBuilder::location`](super::SignatureBuilder::location)).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct SourceLocation {
    /// The file, as your compiler names it. Python shows the source line if it finds a file with this name.
    pub file: String,
    /// The line, counted from 1.
    pub line: u32,
    /// The function that contains the line.
    pub function: String,
}

impl SourceLocation {
    /// Creates a location from a file, a line and a function.
    pub fn new(file: impl Into<String>, line: u32, function: impl Into<String>) -> Self {
        SourceLocation { file: file.into(), line, function: function.into() }
    }

    /// Why a backtrace can't show the location, if it can't.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        let unusable = |text: &String| text.is_empty() || text.contains(['"', '\n', '\0']);
        [&self.file, &self.function]
            .into_iter()
            .any(unusable)
            .then_some("the file or function is empty, or has a quote, a line's end or a NUL in it")
    }
}

/// The line as a backtrace shows it.
impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "File \"{}\", line {}, in {}", self.file, self.line, self.function)
    }
}

/// Optional information beside a signature. Any two values compare equal, so the information doesn't affect whether
/// signatures are equal.
#[derive(Clone, Debug)]
pub(super) struct Aside<T>(pub Option<Box<T>>);

/// The location of a part of a signature.
pub(super) type Origin = Aside<SourceLocation>;

impl<T> Default for Aside<T> {
    fn default() -> Self {
        Aside(None)
    }
}

impl<T> From<T> for Aside<T> {
    fn from(value: T) -> Self {
        Aside(Some(Box::new(value)))
    }
}

impl<T> PartialEq for Aside<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<T> Eq for Aside<T> {}

impl<T> Hash for Aside<T> {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}
