//! Code that was made at run time, as backtraces name it: symbols of it are in no file.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

/// A function of such code.
#[derive(Clone, Debug)]
pub struct CodeFunction {
    /// The name, for code of no line.
    pub name: String,
    /// The function's address.
    pub start: usize,
    /// Bytes of its code.
    pub size: usize,
    /// Code of lines, in the order of addresses.
    pub lines: Vec<CodeLine>,
}

/// Code of one line of a source.
#[derive(Clone, Debug)]
pub struct CodeLine {
    /// Where it begins, in bytes from the function's start.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// The source's file.
    pub file: Arc<str>,
    /// The line, counted from 1.
    pub line: u32,
    /// The function of the source that the line is in.
    pub function: Arc<str>,
}

/// Functions that backtraces name; dropping it makes them unknown again.
#[derive(Debug)]
#[must_use = "backtraces name the functions for as long as this lives"]
pub struct KnownCode {
    starts: Vec<usize>,
}

/// Functions by their addresses.
static FUNCTIONS: RwLock<BTreeMap<usize, CodeFunction>> = RwLock::new(BTreeMap::new());

/// Lets the backtraces of errors name functions that were made at run time: their frames have a function, a file and a line like others. The
/// unwinder has to know how to walk through them.
pub fn name_code(functions: impl IntoIterator<Item = CodeFunction>) -> KnownCode {
    let mut known = FUNCTIONS.write().unwrap_or_else(PoisonError::into_inner);
    let mut starts = Vec::new();
    for function in functions {
        starts.push(function.start);
        known.insert(function.start, function);
    }
    KnownCode { starts }
}

impl Drop for KnownCode {
    fn drop(&mut self) {
        let mut known = FUNCTIONS.write().unwrap_or_else(PoisonError::into_inner);
        for start in &self.starts {
            known.remove(start);
        }
    }
}

/// A frame's function, and its file and line if known.
pub(crate) type Named = (String, Option<(String, u32)>);

/// The function that a frame returns into: the call is before that address.
pub(crate) fn name_of(return_address: usize) -> Option<Named> {
    let call = return_address.checked_sub(1)?;
    let known = FUNCTIONS.read().unwrap_or_else(PoisonError::into_inner);
    let (start, function) = known.range(..=call).next_back()?;
    let offset = call - start;
    if offset >= function.size {
        return None;
    }
    let line = function.lines.iter().find(|line| (line.start..line.end).contains(&offset));
    Some(match line {
        Some(line) => (line.function.to_string(), Some((line.file.to_string(), line.line))),
        None => (function.name.clone(), None),
    })
}
