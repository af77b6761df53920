//! Mistakes in a program, as its author reads them.

use std::fmt;

use super::syntax::Place;

/// A mistake, with the line that has it.
#[derive(Debug)]
pub struct Mistake {
    file: String,
    place: Place,
    problem: String,
    line: String,
}

impl Mistake {
    pub fn new(file: &str, text: &str, place: Place, problem: String) -> Self {
        let line = text.lines().nth(place.line as usize - 1).unwrap_or_default().to_owned();
        Mistake { file: file.to_owned(), place, problem, line }
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { line, column } = self.place;
        let caret = column as usize + 1;
        write!(f, "{}:{line}:{column}: {}\n  {}\n{:>caret$}^", self.file, self.problem, self.line, "")
    }
}

impl std::error::Error for Mistake {}
