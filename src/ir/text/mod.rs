//! The text of modules: the listing that `Display` prints, and the reader for it.
//!
//! ```text
//! data0 "message" align 1 = "negative\x00"
//!
//! import fn report(ptr)
//!
//! export fn half(i64) -> i64 {
//! entry(n: i64):
//!     zero = iconst.i64 0
//!     bad = icmp.i64 slt n, zero
//!     br_unlikely bad, refuse, divide
//!
//! refuse cold:
//!     text = data_addr data0
//!     call @report(text)
//!     return zero    # as documented
//!
//! divide:
//!     two = iconst.i64 2
//!     half = sdiv.i64 n, two
//!     return half
//! }
//! ```
//!
//! A line is a declaration, the head of a block, an instruction or the end of a block. Inside parentheses, line ends
//! don't count. A comment begins with `#`. Values, blocks, slots, signatures, data and locations have any names in a
//! text; a listing numbers them. Entities get the numbers of their order in the text, with two exceptions: values get
//! the numbers of their names if these are `v0`, `v1`, ... without a gap, and instructions get the numbers of their
//! order in the blocks.

mod body;
mod error;
mod head;
mod lex;
mod names;
mod parse;
pub(super) mod print;
mod scope;
mod words;

pub use error::ParseError;
pub use print::DisplayFunction;
