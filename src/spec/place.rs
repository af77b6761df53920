//! Lines of the source that a signature was made from.

use std::fmt;
use std::hash::{Hash, Hasher};

/// A line of the compiler's own source language, which a signature or a part of it was made from: `File "model.py", line 7, in forward`.
///
/// The errors that a wrapper raises for the part end in this line of the backtrace ([`SignatureBuilder::at`](super::SignatureBuilder::at)).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Place {
    /// The file, as the compiler calls it. Python shows the line's text if it finds the file under this name.
    pub file: String,
    /// The line, counted from 1.
    pub line: u32,
    /// The function that the line is in.
    pub function: String,
}

impl Place {
    /// A line of a function of a file.
    pub fn new(file: impl Into<String>, line: u32, function: impl Into<String>) -> Self {
        Place { file: file.into(), line, function: function.into() }
    }

    /// The mistake of a place that no line of a backtrace can show.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        let unusable = |text: &String| text.is_empty() || text.contains(['"', '\n', '\0']);
        [&self.file, &self.function]
            .into_iter()
            .any(unusable)
            .then_some("the file or function is empty, or has a quote, a line's end or a NUL in it")
    }
}

/// The line as a backtrace shows it.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "File \"{}\", line {}, in {}", self.file, self.line, self.function)
    }
}

/// The place of a part of a signature, if it has one. Two signatures are equal wherever they are from: any two origins are.
#[derive(Clone, Default, Debug)]
pub(super) struct Origin(pub Option<Box<Place>>);

impl From<Place> for Origin {
    fn from(place: Place) -> Self {
        Origin(Some(Box::new(place)))
    }
}

impl PartialEq for Origin {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Origin {}

impl Hash for Origin {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}
