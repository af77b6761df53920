//! JSON in upstream's dialect, `ffi.json.Parse` and `ffi.json.Stringify`: whole numbers are integers, `NaN`, `Infinity`
//! and `-Infinity` are numbers, and messages are those of Python. Unlike upstream's, a written float parses as the same
//! float. No crate supports this dialect. Parser and writer don't recurse.

mod parse;
mod write;

pub(crate) use parse::parse;
pub(crate) use write::stringify;
