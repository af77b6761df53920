//! Lowers bodies of text: walks the tree and calls the operations of [`Body`], which make all checks of types,
//! ownership and lifetimes.

mod driver;
mod expr;
mod launch;
mod matches;
mod questions;
mod source;
mod statement;
mod value;
mod word;

use super::body::Body;
use crate::host::tree::Block;

use driver::Driver;
pub(crate) use source::Source;

/// Writes a body of text.
pub(crate) fn build(source: &Source, block: &Block, body: &Body<'_>) {
    Driver::new(source, body, Vec::new()).whole(block);
}
