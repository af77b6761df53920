//! JSON as upstream reads and writes it, `ffi.json.Parse` and `ffi.json.Stringify`: whole numbers are integers, `NaN`, `Infinity` and
//! `-Infinity` are numbers, and messages are those of Python. No crate reads this language; parser and writer don't recurse.

mod parse;
mod write;

pub(super) use parse::parse;
pub(super) use write::stringify;
