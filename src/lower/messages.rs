//! Static tables of error messages: texts stored once, and rows that put them together.
//!
//! A row is a run of 32-bit words: the offset of the error kind's text, then a word for each part, then 0. The upper
//! eight bits of a part say what it is, the lower 24 are its operand. Offsets count from the table's start, so that a
//! table needs no relocations and a part costs four bytes. [`super::support::report`] reads rows.

use std::collections::HashMap;

use target_lexicon::Endianness;

use super::program::Features;

/// What a part prints. The discriminant is the part's tag. All but the first take their value from the report's context, whose
/// field the operand names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Tag {
    /// The text at the operand's offset in the table.
    Text = 1,
    /// A C string.
    String = 2,
    /// A number, signed decimal.
    Number = 3,
    /// A `DLDataType`.
    DType = 4,
    /// A `DLDevice`.
    Device = 5,
    /// A type index; the next field is the argument's payload.
    Type = 6,
    /// Characters in quotes; the next field is how many bytes they are.
    Quoted = 7,
    /// The address of a [place](super::program::place): what there is, without the dimension.
    Path = 8,
    /// The same with the dimension.
    Place = 9,
    /// The symbols of the [expression](super::program::expr) at this address that have a value, with it and where it is from.
    Bindings = 10,
    /// Those that have none.
    Unknown = 11,
    /// A `DLDevice`, always with its number.
    NumberedDevice = 12,
}

/// A part of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part<'a> {
    /// A fixed text.
    Text(&'a str),
    /// A value: how it is printed, and which field of the context it is.
    Value(Tag, u32),
}

/// The most parts that a row may have; [`super::support::report`] has room for them.
pub(super) const MAX_PARTS: usize = 24;

/// Operands have 24 bits.
pub(super) const MAX_OPERAND: u32 = (1 << 24) - 1;

/// More than the texts and rows of the shared routines take.
const ROOM_FOR_ROUTINES: usize = 1 << 16;

#[derive(Debug)]
pub(super) struct Messages {
    /// The byte order of words.
    endianness: Endianness,
    bytes: Vec<u8>,
    texts: HashMap<String, u32>,
    /// Runs of words.
    runs: HashMap<Box<[u32]>, u32>,
    /// What all that is written here makes use of.
    pub features: Features,
}

impl Messages {
    pub(super) fn new(endianness: Endianness) -> Self {
        Messages {
            endianness,
            bytes: Vec::new(),
            texts: HashMap::new(),
            runs: HashMap::new(),
            features: Features::default(),
        }
    }

    pub(super) fn endianness(&self) -> Endianness {
        self.endianness
    }

    /// The offset of a NUL-terminated text, stored once. Never 0, which stands for no text.
    pub(super) fn text(&mut self, text: &str) -> u32 {
        if let Some(offset) = self.texts.get(text) {
            return *offset;
        }
        if self.bytes.is_empty() {
            self.bytes.push(0);
        }
        let offset = self.bytes.len() as u32;
        // the C API takes NUL-terminated parts, so a NUL inside would cut the message short
        self.bytes.extend(text.bytes().filter(|b| *b != 0));
        self.bytes.push(0);
        self.texts.insert(text.to_owned(), offset);
        offset
    }

    /// The offset of texts one behind the other, and an empty one.
    pub(super) fn list(&mut self, texts: &[&str]) -> u32 {
        let offset = self.bytes.len() as u32;
        for text in texts {
            self.bytes.extend(text.bytes());
            self.bytes.push(0);
        }
        self.bytes.push(0);
        offset
    }

    /// The offset of words, aligned; equal runs of them are stored once.
    pub(super) fn words(&mut self, words: &[u32]) -> u32 {
        if let Some(offset) = self.runs.get(words) {
            return *offset;
        }
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        let offset = self.bytes.len() as u32;
        let bytes = match self.endianness {
            Endianness::Little => u32::to_le_bytes,
            Endianness::Big => u32::to_be_bytes,
        };
        self.bytes.extend(words.iter().copied().flat_map(bytes));
        self.runs.insert(words.into(), offset);
        offset
    }

    /// Adds a row and gives its offset. Parts past [`MAX_PARTS`] are left out, as are operands out of range:
    /// signatures and bodies are limited so that there are none, as are modules ([`is_in_reach`](Self::is_in_reach)).
    pub(super) fn row(&mut self, kind: &str, parts: &[Part<'_>]) -> u32 {
        let mut words = Vec::with_capacity(parts.len() + 2);
        words.push(self.text(kind));
        for part in parts.iter().take(MAX_PARTS) {
            let (tag, operand) = match part {
                Part::Text("") => continue,
                Part::Text(text) => (Tag::Text, self.text(text)),
                Part::Value(tag, field) => {
                    self.features.add(*tag);
                    (*tag, *field)
                }
            };
            if operand <= MAX_OPERAND {
                words.push((tag as u32) << 24 | operand);
            }
        }
        words.push(0);
        self.words(&words)
    }

    /// Whether operands reach all of it, the shared routines' own texts with it.
    pub(super) fn is_in_reach(&self) -> bool {
        self.bytes.len() <= MAX_OPERAND as usize - ROOM_FOR_ROUTINES
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}
