//! Quoted strings with escapes.

use std::fmt::{self, Write};

/// The character after the backslash of each escape, and the character that the escape stands for.
const ESCAPES: [(char, char); 5] = [('"', '"'), ('\\', '\\'), ('n', '\n'), ('r', '\r'), ('t', '\t')];

/// Displays a string in quotes, with escapes for quotes, backslashes and line ends.
pub(super) struct Quoted<'a>(pub &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for c in self.0.chars() {
            match ESCAPES.iter().find(|(_, meant)| *meant == c) {
                Some((escape, _)) => write!(f, "\\{escape}")?,
                None => f.write_char(c)?,
            }
        }
        f.write_char('"')
    }
}

/// Bytes in quotes, as a string of a host function. [`unquote_bytes`] reads what is between the quotes.
pub(crate) fn quoted_bytes(bytes: &[u8]) -> String {
    let mut text = "\"".to_owned();
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match ESCAPES.iter().find(|(_, meant)| *meant == c) {
                Some((escape, _)) => text.extend(['\\', *escape]),
                None if c.is_ascii_control() => text.push_str(&format!("\\x{:02x}", u32::from(c))),
                None => text.push(c),
            }
        }
        chunk.invalid().iter().for_each(|byte| text.push_str(&format!("\\x{byte:02x}")));
    }
    text.push('"');
    text
}

/// The number of bytes before the closing quote of a string, counted from after the opening one; `None` if there is
/// no closing quote.
pub(super) fn quoted_len(rest: &str) -> Option<usize> {
    let mut escaped = false;
    rest.bytes().position(|byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    })
}

/// Replaces the escapes in the text between quotes.
///
/// # Errors
/// An invalid escape: the byte offset of the backslash, and the problem.
pub(super) fn unquote(inside: &str) -> Result<String, (usize, String)> {
    let mut text = String::with_capacity(inside.len());
    let mut chars = inside.char_indices();
    while let Some((at, c)) = chars.next() {
        if c != '\\' {
            text.push(c);
            continue;
        }
        let behind = chars.next().map(|(_, escape)| escape);
        let Some((_, meant)) = ESCAPES.iter().find(|(escape, _)| Some(*escape) == behind) else {
            let found = behind.map(String::from).unwrap_or_default();
            let problem = format!(r#"expected an escape, `\"`, `\\`, `\n`, `\r` or `\t`, found `\{found}`"#);
            return Err((at, problem));
        };
        text.push(*meant);
    }
    Ok(text)
}

/// Replaces the escapes in the text between quotes of a host function: those of [`unquote`], and `\x41` for a byte.
///
/// # Errors
/// An invalid escape: the byte offset of the backslash, and the problem.
pub(super) fn unquote_bytes(inside: &str) -> Result<Vec<u8>, (usize, String)> {
    let mut bytes = Vec::with_capacity(inside.len());
    let mut rest = inside;
    while let Some(at) = rest.find('\\') {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        let escape = &rest[at + 1..];
        let known = ESCAPES.iter().find(|(behind, _)| escape.starts_with(*behind));
        let byte = escape.strip_prefix('x').and_then(|digits| digits.get(..2));
        let byte =
            byte.filter(|digits| !digits.starts_with('+')).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        rest = match (known, byte) {
            (Some((_, meant)), _) => {
                bytes.push(*meant as u8);
                &escape[1..]
            }
            (None, Some(byte)) => {
                bytes.push(byte);
                &escape[3..]
            }
            (None, None) => {
                let found: String = escape.chars().take(1).collect();
                let problem =
                    format!(r#"expected an escape, `\"`, `\\`, `\n`, `\r`, `\t` or `\x41`, found `\{found}`"#);
                return Err((inside.len() - rest.len() + at, problem));
            }
        };
    }
    bytes.extend_from_slice(rest.as_bytes());
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn what_is_quoted_is_read_back() {
        for text in ["", "a", "\"", "\\", "a\\\"b\\\\", "two\nlines\r\t", "é\u{1F600}", "\\n"] {
            let quoted = Quoted(text).to_string();
            let inside = &quoted[1..quoted.len() - 1];
            assert_eq!(quoted_len(&quoted[1..]), Some(inside.len()), "{quoted}");
            assert_eq!(unquote(inside).unwrap(), text, "{quoted}");
        }
        assert_eq!(quoted_len("a\\\""), None);
        assert_eq!(unquote("é\\x").unwrap_err().0, 2);
    }

    #[test]
    fn bytes_have_all_values() {
        for text in ["", "a\\n\\\"é", "\\t\\\\"] {
            assert_eq!(unquote_bytes(text).unwrap(), unquote(text).unwrap().into_bytes());
        }
        assert_eq!(unquote_bytes("\\x00é\\xfFx").unwrap(), b"\0\xc3\xa9\xffx");
        for bytes in [&b""[..], b"a\n\"\\\0\x7f", "é\u{1F600}".as_bytes(), b"\xc3\x28\xffx"] {
            let quoted = quoted_bytes(bytes);
            assert_eq!(unquote_bytes(&quoted[1..quoted.len() - 1]).unwrap(), bytes, "{quoted}");
        }
        for (text, at) in [("é\\x1", 2), ("\\n\\xé0", 2), ("\\x+1", 0), ("ab\\", 2), ("\\q", 0)] {
            assert_eq!(unquote_bytes(text).unwrap_err().0, at, "{text}");
        }
    }
}
