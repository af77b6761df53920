//! The names of entities in a text, and the entities' numbers.

use std::collections::HashMap;

use super::lex::{Parsed, Tokens};

/// The names of entities of one kind, such as values, in a function. A name may be used before its definition.
pub(super) struct Names<'a> {
    /// The kind, in messages: "a value".
    kind: &'static str,
    by_name: HashMap<&'a str, usize>,
    /// In order of the first use or definition.
    entries: Vec<Entry<'a>>,
    /// Indices of `entries`, in order of definition.
    defined: Vec<usize>,
}

struct Entry<'a> {
    name: &'a str,
    /// The offset of its first use.
    at: usize,
    defined: bool,
}

/// The number of an entity, until [`Names::numbers`] tells the final one.
pub(super) type Provisional = u32;

impl<'a> Names<'a> {
    pub(super) fn new(kind: &'static str) -> Self {
        Names { kind, by_name: HashMap::new(), entries: Vec::new(), defined: Vec::new() }
    }

    /// Reads the name of an entity that is defined anywhere in the function.
    pub(super) fn used(&mut self, tokens: &mut Tokens<'a>) -> Parsed<Provisional> {
        let (at, name) = (tokens.at(), tokens.word(self.kind)?);
        Ok(self.entry(name, at) as Provisional)
    }

    /// Reads the name of an entity where it is defined.
    pub(super) fn defined(&mut self, tokens: &mut Tokens<'a>) -> Parsed<Provisional> {
        let (at, name) = (tokens.at(), tokens.word(self.kind)?);
        let number = self.entry(name, at);
        if std::mem::replace(&mut self.entries[number].defined, true) {
            return Err(tokens.error_at(at, "a new name", format!("`{name}`, which is defined already")));
        }
        self.defined.push(number);
        Ok(number as Provisional)
    }

    /// Reads the name of an entity that is already defined; returns its number in order of definition.
    pub(super) fn known(&self, tokens: &mut Tokens<'a>) -> Parsed<u32> {
        tokens.known(self.kind, |name| Some(*self.by_name.get(name)? as u32))
    }

    fn entry(&mut self, name: &'a str, at: usize) -> usize {
        let next = self.entries.len();
        let number = *self.by_name.entry(name).or_insert(next);
        if number == next {
            self.entries.push(Entry { name, at, defined: false });
        }
        number
    }

    /// The final number of each provisional one: its place in the order of definition, or, if `named`, the number in
    /// its name if all names are `v0`, `v1`, ... without a gap.
    ///
    /// # Errors
    /// The first name that is used and never defined.
    pub(super) fn numbers(&self, tokens: &Tokens<'_>, named: bool) -> Parsed<Vec<u32>> {
        if let Some(Entry { name, at, .. }) = self.entries.iter().find(|entry| !entry.defined) {
            let expected = format!("{} that the function defines", self.kind);
            return Err(tokens.error_at(*at, expected, format!("`{name}`")));
        }
        let numbers: Option<Vec<u32>> = self.entries.iter().map(|entry| number_in(entry.name, "v")).collect();
        let count = self.entries.len();
        // names differ, and so do numbers in canonical form
        if let Some(numbers) = numbers.filter(|numbers| named && numbers.iter().all(|n| (*n as usize) < count)) {
            return Ok(numbers);
        }
        let mut numbers = vec![0; count];
        (0..).zip(&self.defined).for_each(|(number, entry)| numbers[*entry] = number);
        Ok(numbers)
    }
}

/// The number after a prefix, in canonical form.
pub(super) fn number_in(name: &str, prefix: &str) -> Option<u32> {
    let digits = name.strip_prefix(prefix)?;
    let canonical = digits.bytes().all(|byte| byte.is_ascii_digit()) && (digits == "0" || !digits.starts_with('0'));
    digits.parse().ok().filter(|_| canonical)
}
