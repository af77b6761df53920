//! The constant pool of a module: strings, message templates and descriptors, each stored once.

use std::collections::HashMap;

use target_lexicon::Endianness;

use super::protocol::layout::POOL_ALIGN;
use super::protocol::{
    Capabilities, Descriptors, Directive, Encode, MAX_FIELDS, MAX_STRINGS, Piece, ResultDescriptor, SHARED,
    SHARED_TEXT, TEXT, derive,
};

/// The max pieces of a template. A message of a body may print each field, with a string before and after it.
const MAX_PIECES: usize = 2 * MAX_FIELDS as usize + 1;
const _: () = assert!(MAX_PIECES < MAX_STRINGS);

/// The max bytes of a pool.
pub(super) const MAX_BYTES: u32 = (1 << 24) - 1;

/// An upper bound for the strings and templates of the runtime helpers.
const ROOM_FOR_HELPERS: usize = 1 << 16;

#[derive(Debug)]
pub(super) struct ConstantPool {
    /// The byte order of descriptors.
    order: Endianness,
    bytes: Vec<u8>,
    texts: HashMap<String, u32>,
    /// Descriptors and expression code.
    descriptors: HashMap<Box<[u8]>, u32>,
    templates: HashMap<Box<[u8]>, u32>,
    /// The offset of the shared strings, once they are added.
    shared: Option<u32>,
    /// The capabilities that the pool's signatures, results and templates require of the runtime helpers.
    capabilities: Capabilities,
}

impl ConstantPool {
    /// An empty pool for a target of this byte order.
    pub(super) fn new(order: Endianness) -> Self {
        ConstantPool {
            order,
            bytes: Vec::new(),
            texts: HashMap::new(),
            descriptors: HashMap::new(),
            templates: HashMap::new(),
            shared: None,
            capabilities: Capabilities::default(),
        }
    }

    /// The byte order of descriptors.
    pub(super) fn order(&self) -> Endianness {
        self.order
    }

    /// The capabilities that the pool requires of the runtime helpers so far.
    pub(super) fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    /// The offset of a NUL-terminated string, stored once. Never 0, which means no string.
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

    /// The offset of consecutive strings, followed by an empty one.
    pub(super) fn list(&mut self, texts: &[&str]) -> u32 {
        let offset = self.bytes.len() as u32;
        texts.iter().for_each(|text| push_text(&mut self.bytes, text));
        self.bytes.push(0);
        offset
    }

    /// The encoding of a value in the pool.
    pub(super) fn encoded(&self, value: &impl Encode) -> Vec<u8> {
        let mut bytes = Vec::new();
        value.write(self.order, &mut bytes);
        bytes
    }

    /// The offset of a descriptor or of expression code, aligned; equal bytes are stored once.
    pub(super) fn descriptor(&mut self, bytes: &[u8]) -> u32 {
        if let Some(offset) = self.descriptors.get(bytes) {
            return *offset;
        }
        self.bytes.resize(self.bytes.len().next_multiple_of(POOL_ALIGN), 0);
        let offset = self.bytes.len() as u32;
        self.bytes.extend_from_slice(bytes);
        self.descriptors.insert(bytes.into(), offset);
        offset
    }

    /// The offset of a record.
    pub(super) fn record(&mut self, record: &impl Encode) -> u32 {
        self.descriptor(&self.encoded(record))
    }

    /// The offset of a signature's descriptor. It begins `start` bytes into `bytes`, after its extension. All
    /// descriptors that it refers to have to be in the pool.
    ///
    /// # Errors
    /// One of these descriptors isn't in the pool; the message says which.
    pub(super) fn signature(&mut self, bytes: &[u8], start: u32) -> Result<u32, String> {
        let offset = self.descriptor(bytes) + start;
        self.capabilities.add_all(derive::of_signature(self.descriptors(), offset)?);
        Ok(offset)
    }

    /// The offset of a result's descriptor.
    ///
    /// # Errors
    /// The descriptor has an unknown kind; the message says so.
    pub(super) fn result(&mut self, descriptor: &ResultDescriptor) -> Result<u32, String> {
        let offset = self.descriptor(&self.encoded(descriptor));
        self.capabilities.add_all(derive::of_result(self.descriptors(), offset)?);
        Ok(offset)
    }

    /// Adds capabilities that no descriptor implies.
    pub(super) fn ask(&mut self, capabilities: Capabilities) {
        self.capabilities.add_all(capabilities);
    }

    /// The pool's contents, for reading.
    pub(super) fn descriptors(&self) -> Descriptors<'_> {
        Descriptors { bytes: &self.bytes, order: self.order }
    }

    /// The offset of the shared strings; templates refer to them from now on. Only the runtime helpers' own templates
    /// may do so, because `report` looks them up in its own pool.
    pub(super) fn shared(&mut self) -> u32 {
        *self.shared.get_or_insert_with(|| {
            let offset = self.bytes.len() as u32;
            SHARED.iter().for_each(|text| push_text(&mut self.bytes, text));
            offset
        })
    }

    /// Adds a template and returns its offset; equal ones are stored once. Omits pieces past [`MAX_PIECES`]; the
    /// runtime helpers and bodies never have more.
    pub(super) fn template(&mut self, kind: &str, pieces: &[Piece<'_>]) -> u32 {
        let mut template = Vec::new();
        self.push_piece(&mut template, Piece::Text(kind));
        self.finish_template(template, pieces)
    }

    /// The same without an error's kind: the template that a directive of another template expands to.
    pub(super) fn inner_template(&mut self, pieces: &[Piece<'_>]) -> u32 {
        self.finish_template(Vec::new(), pieces)
    }

    fn finish_template(&mut self, mut template: Vec<u8>, pieces: &[Piece<'_>]) -> u32 {
        let strings = |piece: &Piece<'_>| if let Piece::Value(directive, _) = piece { directive.strings() } else { 1 };
        debug_assert!(pieces.iter().map(strings).sum::<usize>() < MAX_STRINGS, "{pieces:?}");
        pieces.iter().take(MAX_PIECES).for_each(|piece| self.push_piece(&mut template, *piece));
        self.end_template(template)
    }

    /// The same without a limit: the template that prints a long signature.
    pub(super) fn calling_template(&mut self, pieces: &[Piece<'_>]) -> u32 {
        let mut template = Vec::new();
        pieces.iter().for_each(|piece| self.push_piece(&mut template, *piece));
        self.end_template(template)
    }

    fn end_template(&mut self, mut template: Vec<u8>) -> u32 {
        template.push(0);
        if let Some(offset) = self.templates.get(template.as_slice()) {
            return *offset;
        }
        self.capabilities.add_all(derive::of_template(&template));
        let offset = self.bytes.len() as u32;
        self.bytes.extend_from_slice(&template);
        self.templates.insert(template.into(), offset);
        offset
    }

    fn push_piece(&self, template: &mut Vec<u8>, piece: Piece<'_>) {
        match piece {
            Piece::Text("") => {}
            Piece::Text(text) => match self.shared_code(text) {
                Some(code) => template.push(code),
                None => {
                    if !text.as_bytes().first().is_some_and(|first| TEXT.contains(first)) {
                        template.push(Directive::Text.own_code());
                    }
                    push_text(template, text);
                }
            },
            Piece::Stated(text) => {
                template.push(Directive::Stated.own_code());
                push_text(template, text);
            }
            Piece::Value(directive, field) => {
                debug_assert!(
                    directive.field().is_none_or(|its| its as u32 == field),
                    "{directive:?} of field {field}"
                );
                match directive {
                    Directive::Quoted => template.extend([b'"', 0, directive.own_code(), b'"', 0]),
                    _ => template.push(directive.code(field)),
                }
            }
        }
    }

    /// The byte for a shared string.
    fn shared_code(&self, text: &str) -> Option<u8> {
        self.shared?;
        let at = SHARED.iter().position(|shared| *shared == text)?;
        let before: usize = SHARED[..at].iter().map(|shared| shared.len() + 1).sum();
        u8::try_from(before).ok().and_then(|before| SHARED_TEXT.checked_add(before))
    }

    /// Whether offsets can address the whole pool, including the runtime helpers' own strings.
    pub(super) fn is_in_reach(&self) -> bool {
        self.bytes.len() <= MAX_BYTES as usize - ROOM_FOR_HELPERS
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// Appends a C string. A NUL inside would truncate it.
fn push_text(to: &mut Vec<u8>, text: &str) {
    to.extend(text.bytes().filter(|b| *b != 0));
    to.push(0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lower::protocol::FIRST_FIXED;

    fn template(pool: &mut ConstantPool, kind: &str, pieces: &[Piece<'_>]) -> Vec<u8> {
        let before = pool.bytes.len();
        let offset = pool.template(kind, pieces) as usize;
        assert_eq!(offset, before);
        pool.bytes[offset..].to_vec()
    }

    #[test]
    fn a_template_has_its_texts_inside() {
        let mut pool = ConstantPool::new(Endianness::Little);
        let pieces = [Piece::Text("at "), Piece::Value(Directive::Number, 1), Piece::Text(""), Piece::Text(", got ")];
        assert_eq!(template(&mut pool, "ValueError", &pieces), b"ValueError\0at \0\x02, got \0\0");
        // equal templates are stored once
        assert_eq!(pool.template("ValueError", &pieces), 0);
        assert_eq!(pool.inner_template(&[]), pool.inner_template(&[]));
    }

    #[test]
    fn the_helpers_templates_share_texts() {
        let mut pool = ConstantPool::new(Endianness::Little);
        let shared = pool.shared() as usize;
        assert_eq!(pool.shared() as usize, shared);
        for text in SHARED {
            let code = pool.shared_code(text).expect(text);
            let at = shared + usize::from(code - SHARED_TEXT);
            assert!(pool.bytes[at..].starts_with(text.as_bytes()) && pool.bytes[at + text.len()] == 0);
            assert_eq!(template(&mut pool, text, &[]), [code, 0]);
        }
    }

    /// A string with a reserved first byte is stored after the byte of [`Directive::Text`].
    #[test]
    fn texts_may_begin_with_any_character() {
        let mut pool = ConstantPool::new(Endianness::Little);
        let bytes = template(&mut pool, "É", &[Piece::Text("\u{1}a"), Piece::Text("ü"), Piece::Text("aü\n")]);
        let code = Directive::Text.own_code();
        let expected = [&[code][..], "É\0".as_bytes(), &[code], b"\x01a\0", &[code], "ü\0aü\n\0\0".as_bytes()].concat();
        assert_eq!(bytes, expected);
        assert!(pool.capabilities.has(Directive::Text));
    }

    #[test]
    fn no_two_directives_have_the_same_byte() {
        let mut seen = HashMap::new();
        for (directive, field) in
            Directive::ALL.into_iter().flat_map(|directive| (0..MAX_FIELDS).map(move |field| (directive, field)))
        {
            let code = directive.code(field);
            assert!(code != 0 && code < SHARED_TEXT && !TEXT.contains(&code), "{directive:?} of field {field}");
            assert_eq!(Directive::of_code(code), Some(directive));
            let operand = (directive as u8) < FIRST_FIXED as u8;
            let before = seen.insert(code, (directive, operand.then_some(field)));
            assert!(
                before.is_none_or(|before| before == (directive, None)),
                "{directive:?} of field {field}: {before:?}"
            );
        }
    }
}
