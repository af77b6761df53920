//! The JSON writer.

use std::collections::HashSet;

use crate::abi::TypeIndex;
use crate::any::Any;
use crate::container::{Array, List};
use crate::error::{Result, value_error};
use crate::reflect::children::entries;
use crate::reflect::text::general;
use crate::string::raw_str_from_bytes;

/// The max indentation of a level. It keeps a small value from using up all memory.
const MAX_INDENT: i32 = 1024;

/// Writes a value as JSON. If `indent` is not zero, each element has its own line.
///
/// # Errors
/// `ValueError` for values that JSON can't represent, for a list that contains itself, and for an indentation above
/// [`MAX_INDENT`].
pub(crate) fn stringify(value: &Any, indent: i32) -> Result<Any> {
    if indent > MAX_INDENT {
        return Err(value_error(&format!("an indentation of {indent}: at most {MAX_INDENT} is accepted")));
    }
    let mut writer = Writer { indent: indent.into(), total: 0, out: Vec::new(), open_lists: HashSet::new() };
    writer.write(value)?;
    // SAFETY: the value is a new one.
    Ok(unsafe { Any::from_raw(raw_str_from_bytes(&writer.out)) })
}

struct Writer {
    indent: i64,
    total: i64,
    out: Vec<u8>,
    /// Addresses of the lists that are being written. Their frames keep them alive.
    open_lists: HashSet<usize>,
}

/// An array, list or map that is being written.
struct OpenContainer {
    rest: Rest,
    is_first: bool,
    /// This frame's list, if it is one. Its address is in `open_lists`.
    list: Option<Any>,
}

enum Rest {
    Values(std::vec::IntoIter<Any>),
    Entries(std::vec::IntoIter<(Any, Any)>),
}

impl Writer {
    fn write(&mut self, value: &Any) -> Result<()> {
        let mut stack = Vec::new();
        self.begin(value, &mut stack)?;
        while let Some(frame) = stack.last_mut() {
            let next = match &mut frame.rest {
                Rest::Values(values) => values.next().map(|value| (None, value)),
                Rest::Entries(entries) => entries.next().map(|(key, value)| (Some(key), value)),
            };
            let Some((key, value)) = next else {
                self.total -= self.indent;
                self.new_line();
                self.out.push(if matches!(frame.rest, Rest::Values(_)) { b']' } else { b'}' });
                if let Some(list) = &frame.list {
                    self.open_lists.remove(&list.as_raw().ptr().addr());
                }
                stack.pop();
                continue;
            };
            if !std::mem::take(&mut frame.is_first) {
                self.out.push(b',');
            }
            self.new_line();
            if let Some(key) = key {
                self.key(&key)?;
            }
            self.begin(&value, &mut stack)?;
        }
        Ok(())
    }

    fn key(&mut self, key: &Any) -> Result<()> {
        let view = key.as_view();
        let Some(text) = view.str_bytes() else {
            return Err(value_error(&format!("Expect key to be string, got `{}`", key.type_key())));
        };
        self.string(text);
        self.out.push(b':');
        if self.indent != 0 {
            self.out.push(b' ');
        }
        Ok(())
    }

    /// Writes a value, or starts one that contains others.
    fn begin(&mut self, value: &Any, stack: &mut Vec<OpenContainer>) -> Result<()> {
        let (rest, list) = match value.type_index() {
            TypeIndex::NONE => return self.literal("null"),
            TypeIndex::BOOL => return self.literal(if value.cast()? { "true" } else { "false" }),
            TypeIndex::INT => return self.literal(&value.cast::<i64>()?.to_string()),
            TypeIndex::FLOAT => return self.literal(&float(value.cast()?)),
            TypeIndex::SMALL_STR | TypeIndex::STR => {
                self.string(value.as_view().str_bytes().unwrap_or_default());
                return Ok(());
            }
            TypeIndex::ARRAY => (Rest::Values(value.cast::<Array>()?.to_vec().into_iter()), None),
            TypeIndex::LIST => {
                if !self.open_lists.insert(value.as_raw().ptr().addr()) {
                    return Err(value_error("Cycle detected: List contains itself"));
                }
                (Rest::Values(value.cast::<List>()?.to_vec().into_iter()), Some(value.clone()))
            }
            TypeIndex::MAP => (Rest::Entries(entries(value)?.into_iter()), None),
            _ => return Err(value_error(&format!("Unsupported type: `{}`", value.type_key()))),
        };
        self.out.push(if matches!(rest, Rest::Values(_)) { b'[' } else { b'{' });
        self.total += self.indent;
        stack.push(OpenContainer { rest, is_first: true, list });
        Ok(())
    }

    fn literal(&mut self, text: &str) -> Result<()> {
        self.out.extend_from_slice(text.as_bytes());
        Ok(())
    }

    fn new_line(&mut self) {
        if self.indent != 0 {
            self.out.push(b'\n');
            self.out.resize(self.out.len() + usize::try_from(self.total).unwrap_or(0), b' ');
        }
    }

    fn string(&mut self, bytes: &[u8]) {
        self.out.push(b'"');
        for &byte in bytes {
            let escape: &[u8] = match byte {
                b'"' => b"\\\"",
                b'\\' => b"\\\\",
                b'/' => b"\\/",
                8 => b"\\b",
                12 => b"\\f",
                b'\n' => b"\\n",
                b'\r' => b"\\r",
                b'\t' => b"\\t",
                0..b' ' | 0x7f => {
                    self.out.extend_from_slice(format!("\\u{byte:04x}").as_bytes());
                    continue;
                }
                _ => &[byte],
            };
            self.out.extend_from_slice(escape);
        }
        self.out.push(b'"');
    }
}

/// Formats a float so that it parses as the same float, and never as an integer.
fn float(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value < 0.0 { "-Infinity" } else { "Infinity" }.to_owned();
    }
    let mut text = general(value, 17);
    if !text.contains(['.', 'e']) {
        text.push_str(".0");
    }
    text
}
