//! Host functions as text: the tree of a text, its parser and its printer. `docs/reference/host-text.md` defines the
//! language.
//!
//! The parser knows the grammar alone. `lower::host_text` walks the tree and calls the operations of a body, which make
//! all checks of names, types and ownership.

mod error;
mod parse;
mod print;
pub(crate) mod tree;
pub(crate) mod walk;
mod words;

pub use error::HostTextError;
pub(crate) use parse::{block, file, match_key, match_patterns};
pub(crate) use tree::{File, Text};
pub(crate) use words::{RESERVED, Word, WordKind};
