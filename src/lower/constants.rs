//! The constant pool of a module: texts, message rows and runs of words, each stored once.

use std::collections::HashMap;

use target_lexicon::Endianness;

use super::protocol::{Features, MAX_FIELDS, MAX_STRINGS, Part, SHARED, SHARED_TEXT, TEXT, Tag};

/// The most parts that a row may have: a message of a body may print each field, with a text before it and behind it.
const MAX_PARTS: usize = 2 * MAX_FIELDS as usize + 1;
const _: () = assert!(MAX_PARTS < MAX_STRINGS);

/// The most bytes of a table.
pub(super) const MAX_BYTES: u32 = (1 << 24) - 1;

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
    rows: HashMap<Box<[u8]>, u32>,
    /// Where shared texts are, once they are there.
    shared: Option<u32>,
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
            rows: HashMap::new(),
            shared: None,
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
        push_text(&mut self.bytes, text);
        self.texts.insert(text.to_owned(), offset);
        offset
    }

    /// The offset of texts one behind the other, and an empty one.
    pub(super) fn list(&mut self, texts: &[&str]) -> u32 {
        let offset = self.bytes.len() as u32;
        texts.iter().for_each(|text| push_text(&mut self.bytes, text));
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

    /// The offset of the shared texts, which rows refer to from now on. Only the routines' own may: `report` finds them in its own table.
    pub(super) fn shared(&mut self) -> u32 {
        *self.shared.get_or_insert_with(|| {
            let offset = self.bytes.len() as u32;
            SHARED.iter().for_each(|text| push_text(&mut self.bytes, text));
            offset
        })
    }

    /// Adds a row and gives its offset; equal ones are stored once. Parts past [`MAX_PARTS`] are left out: the routines and bodies
    /// have no more.
    pub(super) fn row(&mut self, kind: &str, parts: &[Part<'_>]) -> u32 {
        let mut row = Vec::new();
        self.push_part(&mut row, Part::Text(kind));
        self.finish_row(row, parts)
    }

    /// The same without a kind: what a row's part is made of.
    pub(super) fn part_of_row(&mut self, parts: &[Part<'_>]) -> u32 {
        self.finish_row(Vec::new(), parts)
    }

    fn finish_row(&mut self, mut row: Vec<u8>, parts: &[Part<'_>]) -> u32 {
        let strings = |part: &Part<'_>| if let Part::Value(tag, _) = part { tag.strings() } else { 1 };
        debug_assert!(parts.iter().map(strings).sum::<usize>() < MAX_STRINGS, "{parts:?}");
        parts.iter().take(MAX_PARTS).for_each(|part| self.push_part(&mut row, *part));
        row.push(0);
        if let Some(offset) = self.rows.get(row.as_slice()) {
            return *offset;
        }
        let offset = self.bytes.len() as u32;
        self.bytes.extend_from_slice(&row);
        self.rows.insert(row.into(), offset);
        offset
    }

    fn push_part(&mut self, row: &mut Vec<u8>, part: Part<'_>) {
        match part {
            Part::Text("") => {}
            Part::Text(text) => match self.shared_code(text) {
                Some(code) => row.push(code),
                None => {
                    if !text.as_bytes().first().is_some_and(|first| TEXT.contains(first)) {
                        self.features.add(Tag::Text);
                        row.push(Tag::Text.own_code());
                    }
                    push_text(row, text);
                }
            },
            Part::Value(tag, field) => {
                self.features.add(tag);
                debug_assert!(tag.field().is_none_or(|its| its as u32 == field), "{tag:?} of field {field}");
                match tag {
                    Tag::Quoted => row.extend([b'"', 0, tag.own_code(), b'"', 0]),
                    _ => row.push(tag.code(field)),
                }
            }
        }
    }

    /// The byte for a shared text.
    fn shared_code(&self, text: &str) -> Option<u8> {
        self.shared?;
        let at = SHARED.iter().position(|shared| *shared == text)?;
        let before: usize = SHARED[..at].iter().map(|shared| shared.len() + 1).sum();
        u8::try_from(before).ok().and_then(|before| SHARED_TEXT.checked_add(before))
    }

    /// Whether offsets reach all of it, the shared routines' own texts with it.
    pub(super) fn is_in_reach(&self) -> bool {
        self.bytes.len() <= MAX_BYTES as usize - ROOM_FOR_ROUTINES
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// Appends a C string. A NUL inside would cut it short.
fn push_text(to: &mut Vec<u8>, text: &str) {
    to.extend(text.bytes().filter(|b| *b != 0));
    to.push(0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lower::protocol::FIRST_FIXED;

    fn row(texts: &mut Messages, kind: &str, parts: &[Part<'_>]) -> Vec<u8> {
        let before = texts.bytes.len();
        let offset = texts.row(kind, parts) as usize;
        assert_eq!(offset, before);
        texts.bytes[offset..].to_vec()
    }

    #[test]
    fn a_row_has_its_texts_inside() {
        let mut texts = Messages::new(Endianness::Little);
        let parts = [Part::Text("at "), Part::Value(Tag::Number, 1), Part::Text(""), Part::Text(", got ")];
        assert_eq!(row(&mut texts, "ValueError", &parts), b"ValueError\0at \0\x02, got \0\0");
        // stored once
        assert_eq!(texts.row("ValueError", &parts), 0);
        assert_eq!(texts.part_of_row(&[]), texts.part_of_row(&[]));
    }

    #[test]
    fn the_routines_rows_share_texts() {
        let mut texts = Messages::new(Endianness::Little);
        let shared = texts.shared() as usize;
        assert_eq!(texts.shared() as usize, shared);
        for text in SHARED {
            let code = texts.shared_code(text).expect(text);
            let at = shared + usize::from(code - SHARED_TEXT);
            assert!(texts.bytes[at..].starts_with(text.as_bytes()) && texts.bytes[at + text.len()] == 0);
            assert_eq!(row(&mut texts, text, &[]), [code, 0]);
        }
    }

    /// What no text can begin with stands behind a byte that says so.
    #[test]
    fn texts_may_begin_with_any_character() {
        let mut texts = Messages::new(Endianness::Little);
        let bytes = row(&mut texts, "É", &[Part::Text("\u{1}a"), Part::Text("ü"), Part::Text("aü\n")]);
        let code = Tag::Text.own_code();
        let expected = [&[code][..], "É\0".as_bytes(), &[code], b"\x01a\0", &[code], "ü\0aü\n\0\0".as_bytes()].concat();
        assert_eq!(bytes, expected);
        assert!(texts.features.has(Tag::Text));
    }

    #[test]
    fn no_two_parts_have_the_same_byte() {
        const TAGS: [Tag; 15] = [
            Tag::Number,
            Tag::String,
            Tag::Path,
            Tag::Place,
            Tag::Type,
            Tag::DType,
            Tag::Device,
            Tag::NumberedDevice,
            Tag::Quoted,
            Tag::Bindings,
            Tag::Unknown,
            Tag::Text,
            Tag::Unless,
            Tag::Steps,
            Tag::TypeKey,
        ];
        let mut seen = HashMap::new();
        for (tag, field) in TAGS.into_iter().flat_map(|tag| (0..MAX_FIELDS).map(move |field| (tag, field))) {
            let code = tag.code(field);
            assert!(code != 0 && code < SHARED_TEXT && !TEXT.contains(&code), "{tag:?} of field {field}");
            let operand = (tag as u8) < FIRST_FIXED as u8;
            let before = seen.insert(code, (tag, operand.then_some(field)));
            assert!(before.is_none_or(|before| before == (tag, None)), "{tag:?} of field {field}: {before:?}");
        }
    }
}
