//! The static table of error messages: texts stored once, and rows that put them together.
//!
//! A row is a run of 32-bit words: the offset of the error kind's text, then a word for each part, then 0. The upper
//! eight bits of a part say what it is, the lower 24 are its operand. [`super::report`] reads it; offsets count from the
//! table's start, so that the table needs no relocations and a row costs four bytes a part.

use std::collections::HashMap;

/// What a part prints. The discriminant is the part's tag.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Tag {
    /// The text at the operand's offset.
    Text = 1,
    /// The operand, in decimal.
    Number = 2,
    /// The first value, signed decimal.
    First = 3,
    /// The second value, signed decimal.
    Second = 4,
    /// The first value as a `DLDataType`.
    FirstDType = 5,
    /// The first value as a `DLDevice`.
    FirstDevice = 6,
    /// The first value as a type index; the second is the argument's payload.
    FirstType = 7,
}

/// A part of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Part {
    Text(String),
    Number(u32),
    Value(Tag),
}

impl From<&str> for Part {
    fn from(text: &str) -> Self {
        Part::Text(text.to_owned())
    }
}

impl From<String> for Part {
    fn from(text: String) -> Self {
        Part::Text(text)
    }
}

impl From<Tag> for Part {
    fn from(tag: Tag) -> Self {
        Part::Value(tag)
    }
}

/// The most parts that a row may have; [`super::report`] has room for them.
pub(super) const MAX_PARTS: usize = 24;

/// Operands have 24 bits.
const MAX_OPERAND: u32 = (1 << 24) - 1;

#[derive(Debug, Default)]
pub(super) struct Messages {
    bytes: Vec<u8>,
    texts: HashMap<String, u32>,
}

impl Messages {
    /// The offset of a NUL-terminated text, stored once.
    fn text(&mut self, text: &str) -> u32 {
        if let Some(offset) = self.texts.get(text) {
            return *offset;
        }
        let offset = self.bytes.len() as u32;
        // the C API takes NUL-terminated parts, so a NUL inside would cut the message short
        self.bytes.extend(text.bytes().filter(|b| *b != 0));
        self.bytes.push(0);
        self.texts.insert(text.to_owned(), offset);
        offset
    }

    /// Adds a row and gives its offset. Parts past [`MAX_PARTS`] are left out, as are operands out of range:
    /// signatures and bodies are limited so that there are none.
    pub(super) fn row(&mut self, kind: &str, parts: &[Part]) -> u32 {
        let mut words = vec![self.text(kind)];
        for part in parts.iter().take(MAX_PARTS) {
            let (tag, operand) = match part {
                Part::Text(text) if text.is_empty() => continue,
                Part::Text(text) => (Tag::Text, self.text(text)),
                Part::Number(number) => (Tag::Number, *number),
                Part::Value(tag) => (*tag, 0),
            };
            if operand <= MAX_OPERAND {
                words.push((tag as u32) << 24 | operand);
            }
        }
        words.push(0);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        let offset = self.bytes.len() as u32;
        self.bytes.extend(words.into_iter().flat_map(u32::to_le_bytes));
        offset
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}
