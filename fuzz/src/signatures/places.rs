//! The places of errors in a text.

use std::fmt::{Debug, Display};
use std::ops::Range;

use tvm_ffi_codegen::spec::{ParseError, SyntaxError};

/// The maximum number of errors that are reported for a text.
const MOST: usize = 32;

/// An error that states its places.
pub trait Places: Display + Debug {
    /// Checks that all places are in the text.
    fn check(&self, text: &str);
}

/// Checks an error's places and its message.
pub fn check<E: Places>(error: &E, text: &str) {
    error.check(text);
    assert!(!error.to_string().is_empty(), "an error without a message for {text:?}");
}

impl Places for SyntaxError {
    fn check(&self, text: &str) {
        assert!(self.more().len() < MOST, "{} more errors", self.more().len());
        let mut last = 0;
        for error in [self].into_iter().chain(self.more()) {
            span(&error.span, text);
            assert!(error.span.start >= last, "the errors aren't in order: {self:?}");
            last = error.span.start;
            let line = text.split('\n').nth(error.line - 1).expect("the line is in the text");
            assert_eq!(line.trim_end(), error.text.trim_end(), "the line of {error:?}");
            assert!((1..=line.chars().count() + 1).contains(&error.column), "the column of {error:?}");
            let start: usize = text.split_inclusive('\n').take(error.line - 1).map(str::len).sum();
            let before = text.get(start..error.span.start).map(|before| before.chars().count());
            assert_eq!(before, Some(error.column - 1), "the column of {error:?}");
        }
    }
}

impl Places for ParseError {
    fn check(&self, text: &str) {
        match self {
            ParseError::Syntax(error) => error.check(text),
            ParseError::Signature(error) => {
                assert!(!error.errors.is_empty(), "an error without parts");
                error.errors.iter().for_each(|part| span(&part.span().expect("a part has a place"), text));
            }
            _ => {}
        }
    }
}

fn span(span: &Range<usize>, text: &str) {
    assert!(text.get(span.clone()).is_some(), "{span:?} isn't in the text {text:?}");
}
