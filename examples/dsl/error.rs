//! Errors in a program, as its author reads them.

use std::fmt;

use super::syntax::Place;

/// An error, with the line that has it.
#[derive(Debug)]
pub struct PartError {
    file: String,
    place: Place,
    problem: String,
    line: String,
}

impl PartError {
    pub fn new(file: &str, text: &str, place: Place, problem: String) -> Self {
        let line = text.lines().nth(place.line as usize - 1).unwrap_or_default().to_owned();
        PartError { file: file.to_owned(), place, problem, line }
    }
}

impl fmt::Display for PartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { line, column } = self.place;
        let caret = column as usize + 1;
        write!(f, "{}:{line}:{column}: {}\n  {}\n{:>caret$}^", self.file, self.problem, self.line, "")
    }
}

impl std::error::Error for PartError {}
