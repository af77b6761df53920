//! Finds metadata and docs in a file's data. The functions that return them are not called, because running a file's
//! code means trusting it.
//!
//! In objects of this crate the strings are adjacent, each with a NUL at its end, and a function's doc follows its
//! metadata directly. A string counts as metadata only if it is JSON with a signature, and the file exports the
//! signature's function.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;

use memchr::memmem;
use object::{File, Object, ObjectSection};
use serde_json::{Deserializer, Value};

use super::binary::BinaryFunction;
use crate::lower::LaunchDescription;
use crate::spec::Signature;

/// The possible starts of metadata: the writer chooses the order of an object's keys.
const STARTS: [&str; 3] = [r#"{"launches":["#, r#"{"parameters":["#, r#"{"type_schema":""#];

/// The maximum size of metadata in bytes, which is enough for thousands of parameters. Parsed JSON takes many times
/// the memory of its source.
const MOST: usize = 16 << 20;

/// A function with its name in the signature, which lacks a system library's prefix.
pub(super) type Named = (String, BinaryFunction);

/// Adds metadata and docs found in the sections' data to the functions. The data `but` is skipped.
///
/// `bytes` is the whole file. Each byte is searched once, however many sections contain it.
pub(super) fn add(file: &File<'_>, bytes: &[u8], but: &[u8], functions: &mut [Named]) {
    let mut wanted: HashMap<String, VecDeque<usize>> = HashMap::new();
    for (index, (name, function)) in functions.iter().enumerate() {
        if function.has_metadata {
            wanted.entry(name.clone()).or_default().push_back(index);
        }
    }
    // a `library_bin` may be huge, and its payloads may be libraries with strings of their own
    let but = match but.as_ptr().addr().checked_sub(bytes.as_ptr().addr()) {
        Some(start) if !but.is_empty() => start..start + but.len(),
        _ => 0..0,
    };
    for range in ranges(file, bytes.len()) {
        for part in [range.start..range.end.min(but.start), range.start.max(but.end)..range.end] {
            if let Some(data) = bytes.get(part) {
                add_from(data, &mut wanted, functions);
            }
        }
    }
}

/// The sections' ranges in a file of `len` bytes, in order. Overlapping sections are merged. Adjacent sections are
/// not, as a string ends with its section.
fn ranges(file: &File<'_>, len: usize) -> Vec<Range<usize>> {
    let in_file = |(start, size): (u64, u64)| {
        let (start, end) = (usize::try_from(start).ok()?, usize::try_from(start.checked_add(size)?).ok()?);
        // a section that isn't entirely inside the file has no data
        (start < end && end <= len).then_some(start..end)
    };
    let mut all: Vec<_> = file.sections().filter_map(|section| section.file_range().and_then(in_file)).collect();
    all.sort_unstable_by_key(|range| range.start);
    let mut merged: Vec<Range<usize>> = Vec::with_capacity(all.len().min(64));
    for range in all {
        match merged.last_mut() {
            Some(last) if range.start < last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

fn add_from(data: &[u8], wanted: &mut HashMap<String, VecDeque<usize>>, functions: &mut [Named]) {
    let mut starts: Vec<usize> = STARTS.iter().flat_map(|start| memmem::find_iter(data, start)).collect();
    starts.sort_unstable();
    let mut end = 0;
    for start in starts {
        if start < end {
            continue;
        }
        let Some((value, signature, len)) = metadata(&data[start..]) else { continue };
        end = start + len;
        // functions with the same name differ only in a system library's prefix, which isn't in the metadata: assign
        // the metadata in order
        let next = wanted.get_mut(signature.name()).and_then(VecDeque::pop_front);
        if let Some((_, function)) = next.and_then(|index| functions.get_mut(index)) {
            function.metadata = Some(String::from_utf8_lossy(&data[start..end]).into_owned());
            function.signature = Some(signature.to_string());
            function.launches = LaunchDescription::all_of(&value);
            function.doc = if function.has_doc { doc(&data[end..]) } else { None };
        }
    }
}

/// The metadata, the signature in it, and the length of its JSON.
fn metadata(data: &[u8]) -> Option<(Value, Signature, usize)> {
    let mut values = Deserializer::from_slice(&data[..data.len().min(MOST)]).into_iter::<Value>();
    let value = values.next()?.ok()?;
    let signature = value.get("signature")?.as_str()?.parse().ok()?;
    Some((value, signature, values.byte_offset()))
}

/// The string between the metadata's NUL and the next NUL.
fn doc(behind: &[u8]) -> Option<String> {
    let text = behind.strip_prefix(&[0])?.split(|&byte| byte == 0).next()?;
    std::str::from_utf8(text).ok().map(str::to_owned)
}
