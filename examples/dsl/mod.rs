//! The front end of a small kernel language, which two example compilers share. It reads text, and gives a checked
//! [`program`].
//!
//! ```text
//! text ──► lexer ──► parser ──► syntax ──► check ──► program ──► a code generator
//! ```
//!
//! It is a compiler's own, and knows nothing of TVM FFI: it has types, shapes, loops and places in the text.
//! `kernels.dsl` shows the language.

mod check;
mod error;
mod lexer;
mod parser;
pub mod program;
mod syntax;

pub use error::PartError;
pub use program::Program;

/// Reads a program. `file` is its name in places.
pub fn read(file: &str, text: &str) -> Result<Program, PartError> {
    let error = |(place, problem): (syntax::Place, String)| PartError::new(file, text, place, problem);
    let items = lexer::tokens(text).and_then(parser::parse).map_err(error)?;
    check::check(file, &items).map_err(error)
}
