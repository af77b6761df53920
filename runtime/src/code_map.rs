//! Names for code made at run time, for backtraces: no file has its symbols.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// A function made at run time.
#[derive(Clone, Debug)]
pub struct CodeFunction {
    /// The name, for code without a line.
    pub name: String,
    /// The function's address.
    pub start: usize,
    /// Bytes of its code.
    pub size: usize,
    /// The code with lines, sorted by address.
    pub lines: Vec<CodeLine>,
}

/// The code of one source line.
#[derive(Clone, Debug)]
pub struct CodeLine {
    /// Where it begins, in bytes from the function's start.
    pub start: usize,
    /// The end, in bytes from the function's start.
    pub end: usize,
    /// The source's file.
    pub file: Arc<str>,
    /// The line, counted from 1.
    pub line: u32,
    /// The source function that contains the line.
    pub function: Arc<str>,
}

/// Functions that backtraces name. When you drop it, they are unknown again.
#[derive(Debug)]
#[must_use = "backtraces name the functions for as long as this lives"]
pub struct KnownCode {
    keys: Vec<Key>,
}

/// A function's start, and its number: several names of one code may begin at one address.
type Key = (usize, u64);

/// Functions by their addresses. Those of one address are in the order of their registration.
static FUNCTIONS: RwLock<BTreeMap<Key, CodeFunction>> = RwLock::new(BTreeMap::new());
/// The number of the next function.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Lets the backtraces of errors name functions made at run time. Their frames have a function, a file and a line like
/// others. The unwinder must be able to walk through them. If several functions begin at one address, the frame has the
/// name registered last.
pub fn name_code(functions: impl IntoIterator<Item = CodeFunction>) -> KnownCode {
    let mut known = FUNCTIONS.write().unwrap_or_else(PoisonError::into_inner);
    let mut keys = Vec::new();
    // A function without code can't have a frame.
    for function in functions.into_iter().filter(|function| function.size > 0) {
        let key = (function.start, NEXT.fetch_add(1, Ordering::Relaxed));
        keys.push(key);
        known.insert(key, function);
    }
    KnownCode { keys }
}

impl Drop for KnownCode {
    fn drop(&mut self) {
        let mut known = FUNCTIONS.write().unwrap_or_else(PoisonError::into_inner);
        for key in &self.keys {
            known.remove(key);
        }
    }
}

/// A frame's function, and its file and line if known.
pub(crate) type Named = (String, Option<(String, u32)>);

/// The function that a return address is in. The call is before that address.
pub(crate) fn name_of(return_address: usize) -> Option<Named> {
    let call = return_address.checked_sub(1)?;
    let known = FUNCTIONS.read().unwrap_or_else(PoisonError::into_inner);
    let mut nearest = known.range(..=(call, u64::MAX)).rev().map(|(_, function)| function).peekable();
    let start = nearest.peek()?.start;
    let offset = call - start;
    let function = nearest.take_while(|function| function.start == start).find(|function| offset < function.size)?;
    let line = function.lines.iter().find(|line| (line.start..line.end).contains(&offset));
    Some(match line {
        Some(line) => (line.function.to_string(), Some((line.file.to_string(), line.line))),
        None => (function.name.clone(), None),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(name: &str, size: usize) -> CodeFunction {
        CodeFunction { name: name.to_owned(), start: 0x7e00_0000_0000, size, lines: Vec::new() }
    }

    fn name_at(offset: usize) -> Option<String> {
        name_of(0x7e00_0000_0000 + offset + 1).map(|(name, _)| name)
    }

    #[test]
    fn functions_of_one_address_are_known_until_each_is_dropped() {
        let first = name_code([function("first", 32)]);
        let second = name_code([function("second", 16), function("empty", 0)]);
        assert_eq!(name_at(8).as_deref(), Some("second"));
        // Past the end of the shorter one.
        assert_eq!(name_at(24).as_deref(), Some("first"));
        assert_eq!(name_at(32), None);
        drop(second);
        assert_eq!(name_at(8).as_deref(), Some("first"));
        let third = name_code([function("third", 32), function("fourth", 32)]);
        drop(first);
        assert_eq!(name_at(8).as_deref(), Some("fourth"));
        drop(third);
        assert_eq!(name_at(8), None);
    }
}
