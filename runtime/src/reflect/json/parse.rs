//! The JSON parser. The input need not be UTF-8.

use crate::any::{Any, AnyView};
use crate::container::{Array, Map};
use crate::error::{Error, Result, type_mismatch, value_error};
use crate::string::raw_str_from_bytes;

/// Parses a JSON string.
///
/// # Errors
/// `TypeError` if `text` is not a string; `ValueError` for invalid JSON, with the position of the error.
pub(crate) fn parse(text: &AnyView<'_>) -> Result<Any> {
    let Some(text) = text.str_bytes() else {
        return Err(type_mismatch("ffi.String", text.type_index()));
    };
    let mut parser = Parser { text, pos: 0, line: 1, line_start: 0 };
    parser.document().map_err(|reason| parser.error(reason))
}

/// The message for an error at the parser's position.
type Reason = &'static str;

const EXPECTING_VALUE: Reason = "Expecting value";
const EXPECTING_NAME: Reason = "Expecting property name enclosed in double quotes";
const EXPECTING_COMMA: Reason = "Expecting ',' delimiter";
const SYNTAX_ERROR: Reason = "Syntax error near";
const INVALID_SURROGATES: Reason = "Invalid surrogate pair of \\uXXXX escapes";
const INVALID_UNICODE: Reason = "Invalid \\uXXXX escape";

struct Parser<'a> {
    text: &'a [u8],
    pos: usize,
    line: usize,
    line_start: usize,
}

/// An array or object that is being parsed.
enum OpenContainer {
    Array(Vec<Any>),
    Object(Vec<(Any, Any)>, Any),
}

impl Parser<'_> {
    #[cold]
    fn error(&self, reason: Reason) -> Error {
        let column = self.pos.saturating_sub(self.line_start) + 1;
        value_error(&format!("{reason}: line {} column {column} (char {})", self.line, self.pos))
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.pos).copied()
    }

    /// Skips whitespace, and returns the next byte without consuming it.
    fn peek_token(&mut self) -> Option<u8> {
        while let Some(byte @ (b' ' | b'\t' | b'\n' | b'\r')) = self.peek() {
            self.pos += 1;
            if byte == b'\n' {
                self.line += 1;
                self.line_start = self.pos;
            }
        }
        self.peek()
    }

    /// Consumes `literal` if the input continues with it. Returns true if it did.
    fn take(&mut self, literal: &[u8]) -> bool {
        let found = self.text[self.pos..].starts_with(literal);
        if found {
            self.pos += literal.len();
        }
        found
    }

    fn document(&mut self) -> Result<Any, Reason> {
        let mut stack: Vec<OpenContainer> = Vec::new();
        loop {
            let Some(mut value) = self.value_or_open(&mut stack)? else { continue };
            // Add the value to the innermost open array or object, which may end after it.
            loop {
                let Some(frame) = stack.last_mut() else {
                    return if self.peek_token().is_none() { Ok(value) } else { Err("Extra data") };
                };
                let next = self.peek_token();
                self.pos += usize::from(next.is_some());
                value = match (frame, next) {
                    (OpenContainer::Array(values), Some(b',')) => {
                        values.push(value);
                        self.peek_token().ok_or(SYNTAX_ERROR)?;
                        break;
                    }
                    (OpenContainer::Array(values), Some(b']')) => {
                        values.push(value);
                        Array::from(std::mem::take(values)).into()
                    }
                    (OpenContainer::Object(entries, name), Some(b',')) => {
                        entries.push((std::mem::take(name), value));
                        self.peek_token().ok_or(SYNTAX_ERROR)?;
                        *name = self.name()?;
                        break;
                    }
                    (OpenContainer::Object(entries, name), Some(b'}')) => {
                        entries.push((std::mem::take(name), value));
                        // This can't fail: names are strings, and comparing their contents raises no errors.
                        Map::try_from_entries(std::mem::take(entries)).map_err(|_| SYNTAX_ERROR)?.into()
                    }
                    (_, next) => {
                        self.pos -= usize::from(next.is_some());
                        return Err(EXPECTING_COMMA);
                    }
                };
                stack.pop();
            }
        }
    }

    /// Parses the next value. For a nonempty array or object, opens a frame and returns `None`.
    fn value_or_open(&mut self, stack: &mut Vec<OpenContainer>) -> Result<Option<Any>, Reason> {
        let value = match self.peek_token().ok_or(EXPECTING_VALUE)? {
            b'{' => {
                self.pos += 1;
                match self.peek_token().ok_or(EXPECTING_NAME)? {
                    b'}' => {
                        self.pos += 1;
                        <Map>::default().into()
                    }
                    _ => {
                        let name = self.name()?;
                        stack.push(OpenContainer::Object(Vec::new(), name));
                        return Ok(None);
                    }
                }
            }
            b'[' => {
                self.pos += 1;
                match self.peek_token().ok_or(EXPECTING_VALUE)? {
                    b']' => {
                        self.pos += 1;
                        <Array>::default().into()
                    }
                    _ => {
                        stack.push(OpenContainer::Array(Vec::new()));
                        return Ok(None);
                    }
                }
            }
            b'"' => self.string()?,
            b't' if self.take(b"true") => true.into(),
            b'f' if self.take(b"false") => false.into(),
            b'n' if self.take(b"null") => Any::none(),
            b't' | b'f' | b'n' => return Err(EXPECTING_VALUE),
            _ => self.number()?,
        };
        Ok(Some(value))
    }

    /// Parses the name of an entry, and the colon after it.
    fn name(&mut self) -> Result<Any, Reason> {
        if self.peek() != Some(b'"') {
            return Err(EXPECTING_NAME);
        }
        let name = self.string()?;
        if self.peek_token() != Some(b':') {
            return Err("Expecting ':' delimiter");
        }
        self.pos += 1;
        Ok(name)
    }

    fn number(&mut self) -> Result<Any, Reason> {
        let start = self.pos;
        if self.take(b"-Infinity") {
            return Ok(f64::NEG_INFINITY.into());
        }
        match self.peek() {
            Some(b'I') if self.take(b"Infinity") => return Ok(f64::INFINITY.into()),
            Some(b'N') if self.take(b"NaN") => return Ok(f64::NAN.into()),
            _ => {}
        }
        while let Some(b'0'..=b'9' | b'e' | b'E' | b'+' | b'-' | b'.') = self.peek() {
            self.pos += 1;
        }
        let digits = str::from_utf8(&self.text[start..self.pos]).unwrap_or_default();
        if let Ok(value) = digits.parse::<i64>() {
            return Ok(value.into());
        }
        match digits.parse::<f64>() {
            // As upstream, refuse a number that overflows to infinity or underflows to zero. Upstream also refuses
            // subnormal numbers, although it writes them.
            Ok(value) if value.is_finite() && (value != 0.0 || !has_digits(digits)) => Ok(value.into()),
            _ => {
                self.pos = start;
                Err(EXPECTING_VALUE)
            }
        }
    }

    fn string(&mut self) -> Result<Any, Reason> {
        let start = self.pos;
        self.pos += 1;
        // Most strings have no escapes, and are copied once.
        let plain = self.text[self.pos..].iter().take_while(|&&byte| !matches!(byte, b'"' | b'\\' | 0..b' ')).count();
        let content = &self.text[self.pos..self.pos + plain];
        self.pos += plain;
        if self.peek() == Some(b'"') {
            self.pos += 1;
            // SAFETY: the value is a new one.
            return Ok(unsafe { Any::from_raw(raw_str_from_bytes(content)) });
        }
        let mut out = content.to_vec();
        loop {
            let Some(byte) = self.peek() else {
                self.pos = start;
                return Err("Unterminated string starting at");
            };
            match byte {
                b'"' => {
                    self.pos += 1;
                    // SAFETY: the value is a new one.
                    return Ok(unsafe { Any::from_raw(raw_str_from_bytes(&out)) });
                }
                b'\\' => {
                    self.pos += 1;
                    self.escape(&mut out)?;
                }
                0..b' ' => return Err("Invalid control character at"),
                _ => {
                    self.pos += 1;
                    out.push(byte);
                }
            }
        }
    }

    /// Parses the part of an escape sequence after the backslash.
    fn escape(&mut self, out: &mut Vec<u8>) -> Result<(), Reason> {
        let byte = match self.peek() {
            Some(byte @ (b'"' | b'\\' | b'/')) => byte,
            Some(b'b') => 8,
            Some(b'f') => 12,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'u') => return self.unicode(out),
            _ => return Err("Invalid \\escape"),
        };
        self.pos += 1;
        out.push(byte);
        Ok(())
    }

    /// Parses an escaped code point from its `u` on: one or two UTF-16 code units of four hexadecimal digits.
    fn unicode(&mut self, out: &mut Vec<u8>) -> Result<(), Reason> {
        let mut place = self.pos;
        let wrong = |parser: &mut Self, place, reason| {
            parser.pos = place;
            Err(reason)
        };
        self.pos += 1;
        let Some(first) = self.four_digits() else { return wrong(self, place, INVALID_UNICODE) };
        let mut units = vec![first];
        if (0xd800..0xe000).contains(&first) {
            if first >= 0xdc00 || !self.take(b"\\u") {
                return wrong(self, place, INVALID_SURROGATES);
            }
            place = self.pos;
            let Some(second) = self.four_digits() else { return wrong(self, place, INVALID_UNICODE) };
            units.push(second);
        }
        match String::from_utf16(&units) {
            Ok(text) => out.extend_from_slice(text.as_bytes()),
            Err(_) => return wrong(self, place, INVALID_SURROGATES),
        }
        Ok(())
    }

    fn four_digits(&mut self) -> Option<u16> {
        let digits = self.text.get(self.pos..self.pos + 4)?;
        let is_number = digits.iter().all(u8::is_ascii_hexdigit);
        let number = u16::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()?;
        self.pos += 4;
        is_number.then_some(number)
    }
}

/// True if the number has a digit other than zero before its exponent.
fn has_digits(number: &str) -> bool {
    number.bytes().take_while(|byte| !matches!(byte, b'e' | b'E')).any(|byte| matches!(byte, b'1'..=b'9'))
}
