//! Errors of parsing the text form.

use std::fmt;
use std::ops::Range;

use super::error::SignatureError;

/// The maximum number of reported errors per source. Each has a copy of its line, and a source may be one long line.
pub(crate) const MAX_ERRORS: usize = 32;

/// The error of a source string that doesn't follow the grammar, with its location. This is the first error in the
/// source; [`more`](Self::more) has the others.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SyntaxError {
    /// The line, from 1.
    pub line: usize,
    /// The character in that line, from 1; one past the last at its end.
    pub column: usize,
    /// The problem: what was expected, and what was found.
    pub message: String,
    /// The source line.
    pub text: String,
    /// The byte range of the unexpected part in the source; empty at the end of the source.
    pub span: Range<usize>,
    /// The expected part and the actual one, in words.
    pub(super) mismatch: Option<Box<(String, String)>>,
    /// The errors after this one.
    pub(super) more: Vec<SyntaxError>,
}

impl SyntaxError {
    /// The error of a part of a source, given by its bytes.
    pub(crate) fn new(source: &str, span: Range<usize>, message: String) -> Self {
        let (before, after) = source.split_at_checked(span.start).unwrap_or((source, ""));
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let rest = after.split('\n').next().unwrap_or_default();
        SyntaxError {
            line: before.matches('\n').count() + 1,
            column: before[start..].chars().count() + 1,
            message,
            text: format!("{}{}", &before[start..], rest.trim_end()),
            span,
            mismatch: None,
            more: Vec::new(),
        }
    }

    /// Adds what was expected and what was found.
    pub(crate) fn with_mismatch(mut self, expected: impl Into<String>, got: impl Into<String>) -> Self {
        self.mismatch = Some(Box::new((expected.into(), got.into())));
        self
    }

    /// The same error as one of a source that has this one at an offset. The errors after it are left out.
    pub(crate) fn within(self, source: &str, offset: usize) -> Self {
        let span = self.span.start + offset..self.span.end + offset;
        SyntaxError { mismatch: self.mismatch, ..SyntaxError::new(source, span, self.message) }
    }

    /// This error and the ones after it, each alone.
    pub(crate) fn each(mut self) -> Vec<SyntaxError> {
        let more = std::mem::take(&mut self.more);
        [self].into_iter().chain(more).collect()
    }

    /// A description of what was expected. `None` if the form is correct but not its meaning: a keyword that is given
    /// twice, or a number that doesn't fit in 64 bits.
    pub fn expected(&self) -> Option<&str> {
        self.mismatch.as_ref().map(|mismatch| mismatch.0.as_str())
    }

    /// The token that was found instead of the [expected](Self::expected) one, as the message shows it.
    pub fn got(&self) -> Option<&str> {
        self.mismatch.as_ref().map(|mismatch| mismatch.1.as_str())
    }

    /// The other errors in the source, in order; they have no further errors themselves. After an error, parsing
    /// continues where the next parameter, constraint, launch item or kernel argument certainly begins, so no error
    /// is a consequence of another. There are at most 31.
    ///
    /// ```
    /// use tvm_ffi_codegen::{ParseError, Signature};
    ///
    /// let text = "f(x: fp16, y int8) where n = 1";
    /// let Err(ParseError::Syntax(error)) = text.parse::<Signature>() else { panic!("no error") };
    /// let more: Vec<_> = error.more().iter().map(|error| (error.column, error.got())).collect();
    /// assert_eq!((error.column, error.got()), (6, Some("`fp16`")));
    /// assert_eq!(more, [(14, Some("`int8`")), (28, Some("`=`"))]);
    /// ```
    pub fn more(&self) -> &[SyntaxError] {
        &self.more
    }

    /// Writes the error without the ones after it.
    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.message)?;
        show_caret(f, &self.text, self.column)
    }
}

/// Writes a source line, and a caret below one of its characters.
fn show_caret(f: &mut fmt::Formatter<'_>, line: &str, column: usize) -> fmt::Result {
    // keep tabs, so the caret is where the terminal puts the character
    let before = line.chars().take(column.saturating_sub(1));
    let indent: String = before.map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
    write!(f, "  {line}\n  {indent}^")
}

/// A place in a text of host functions. `Display` writes its line and a caret.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct TextPlace {
    /// The line, from 1.
    pub line: usize,
    /// The character in that line, from 1.
    pub column: usize,
    /// The source line.
    pub text: String,
    /// The byte range in the source.
    pub span: Range<usize>,
}

impl TextPlace {
    pub(crate) fn new(source: &str, span: Range<usize>) -> Self {
        let SyntaxError { line, column, text, span, .. } = SyntaxError::new(source, span, String::new());
        TextPlace { line, column, text, span }
    }
}

impl fmt::Display for TextPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show_caret(f, &self.text, self.column)
    }
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.show(f)?;
        self.more.iter().try_for_each(|error| {
            f.write_str("\n")?;
            error.show(f)
        })
    }
}

impl std::error::Error for SyntaxError {}

/// The error of parsing a signature.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ParseError {
    /// The source doesn't follow the grammar. All errors of this kind are included.
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
    /// The source follows the grammar, but the signature has errors. All of them are included.
    #[error(transparent)]
    Signature(#[from] SignatureError),
}
