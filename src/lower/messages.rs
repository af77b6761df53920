//! Static tables of error messages: texts, and rows that put them together.
//!
//! A row is a run of bytes. What it begins with is the error's kind, the rest its message:
//!
//! | byte | stands for |
//! | --- | --- |
//! | `00` | the end |
//! | `01` to `1f`, `80` to `9f` | a value: how it is printed, and the number of its field in the context, plus 1, in the lower four bits |
//! | `20` to `7f` | the text that begins with it and ends with a NUL |
//! | `a0` to `af` | another [`Tag`], whose field is always the same |
//! | from `b0` on | the text that is so many bytes into those that are shared ([`SHARED`]) |
//!
//! So a part is one byte, and a text is where it is printed, as a C string. [`super::support::report`] reads rows.

use std::collections::HashMap;

use target_lexicon::Endianness;

use super::program::Features;
use super::support::Field;

/// What a part prints, or does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Tag {
    /// A number, signed decimal.
    Number,
    /// A C string.
    String,
    /// The address of a [place](super::program::place): what there is, without the dimension.
    Path,
    /// The same with the dimension.
    Place,
    /// A type index; the next field is the argument's payload.
    Type,
    /// A `DLDataType`.
    DType,
    /// A `DLDevice`.
    Device,
    /// A `DLDevice`, always with its number.
    NumberedDevice,
    /// Characters in quotes; the next field is how many bytes they are.
    Quoted,
    /// The symbols of the [expression](super::program::expr) at this address that have a value, with it and where it is from.
    Bindings,
    /// Those that have none.
    Unknown,
    /// The text behind it, which begins with a byte that isn't a text's.
    Text,
    // In the rows of `report` itself.
    /// The row's end, unless field 1 is something.
    Unless,
    /// The steps of the place that the context is.
    Steps,
    /// The key of a registered type, and the row's end; nothing where the type isn't registered.
    TypeKey,
}

/// Tags from this one on have codes of their own.
const FIRST_FIXED: Tag = Tag::Type;
const FIXED: u8 = 0xa0;
/// Bytes that texts begin with.
pub(super) const TEXT: std::ops::RangeInclusive<u8> = 0x20..=0x7f;
/// Shared texts from here on.
pub(super) const SHARED_TEXT: u8 = 0xb0;
const _: () = assert!(FIXED + Tag::TypeKey as u8 - (FIRST_FIXED as u8) < SHARED_TEXT);

/// Fields of a context that a part may name.
pub(super) const MAX_FIELDS: u32 = 15;

impl Tag {
    /// The byte for a value in a field.
    pub(super) const fn code(self, field: u32) -> u8 {
        let base = match self {
            Tag::Number => 0,
            Tag::String => 0x10,
            Tag::Path => 0x80,
            Tag::Place => 0x90,
            _ => return self.own_code(),
        };
        debug_assert!(field < MAX_FIELDS);
        base | (field as u8 + 1)
    }

    /// The byte of a tag whose field is always the same.
    pub(super) const fn own_code(self) -> u8 {
        FIXED + self as u8 - FIRST_FIXED as u8
    }

    /// How many C strings it makes at most, but for lists of symbols and steps into containers.
    const fn strings(self) -> usize {
        match self {
            // `code 99, 8 bits, x4`
            Tag::DType => 8,
            // `device type 99:0`; `x.shape[0]`
            Tag::Device | Tag::NumberedDevice | Tag::Place => 4,
            Tag::Quoted => 3,
            // `type index 99`
            Tag::Type => 2,
            Tag::Unless | Tag::Steps | Tag::Bindings | Tag::Unknown => 0,
            Tag::Number | Tag::String | Tag::Path | Tag::Text | Tag::TypeKey => 1,
        }
    }

    /// The field, where it is always the same.
    pub(super) const fn field(self) -> Option<Field> {
        match self {
            Tag::Type | Tag::DType | Tag::Device | Tag::Quoted => Some(Field::Got),
            Tag::NumberedDevice => Some(Field::Expected),
            Tag::Bindings | Tag::Unknown => Some(Field::Expr),
            _ => None,
        }
    }
}

/// A part of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part<'a> {
    /// A fixed text.
    Text(&'a str),
    /// A value: how it is printed, and which field of the context it is.
    Value(Tag, u32),
}

/// Texts that the rows of the shared routines have in common. The last begins less than 80 bytes behind the first.
const SHARED: [&str; 6] = ["ValueError", "TypeError", "Mismatched ", " on argument #", ", got ", "type of "];

/// The most parts that a row may have: a message of a body may print each field, with a text before it and behind it.
const MAX_PARTS: usize = 2 * MAX_FIELDS as usize + 1;
const _: () = assert!(MAX_PARTS < MAX_STRINGS);

/// The most C strings that a row makes, but for lists of symbols and steps into containers; [`super::support::report`] has room for them.
pub(super) const MAX_STRINGS: usize = 40;

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
