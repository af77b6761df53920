//! Metadata and docs as they lie among a file's data. The functions that return them are not called, as running code of a file means trusting it.
//!
//! Objects of this crate have the texts one behind the other, each with a NUL at its end; a function's doc comes right behind its metadata. What looks
//! like metadata has to be that: JSON with the text of a signature, of a function that the file has.

use memchr::memmem;
use object::{File, Object, ObjectSection};
use serde_json::{Deserializer, Value};

use super::BinaryFunction;
use crate::spec::Signature;

/// What metadata may begin with: the order of an object's keys is for its writer to choose.
const STARTS: [&str; 2] = [r#"{"parameters":["#, r#"{"type_schema":""#];

/// A function, and its name in its signature, which a system library's prefix is no part of.
pub(super) type Named = (String, BinaryFunction);

/// Adds what the file's data says of functions; the data `but` is left out.
pub(super) fn add(file: &File<'_>, but: &[u8], functions: &mut [Named]) {
    for section in file.sections() {
        let data = section.data().unwrap_or_default();
        // a `library_bin` may be huge, and its payloads may be libraries with texts of their own
        let around = match but.as_ptr().addr().checked_sub(data.as_ptr().addr()) {
            Some(start) if start < data.len() && !but.is_empty() => {
                [&data[..start], data.get(start + but.len()..).unwrap_or_default()]
            }
            _ => [data, &[]],
        };
        around.into_iter().for_each(|data| add_from(data, functions));
    }
}

fn add_from(data: &[u8], functions: &mut [Named]) {
    let mut starts: Vec<usize> = STARTS.iter().flat_map(|start| memmem::find_iter(data, start)).collect();
    starts.sort_unstable();
    let mut end = 0;
    for start in starts {
        if start < end {
            continue;
        }
        let Some((signature, len)) = metadata(&data[start..]) else { continue };
        end = start + len;
        let of_it = |(name, f): &&mut Named| f.has_metadata && f.metadata.is_none() && name == signature.name();
        if let Some((_, function)) = functions.iter_mut().find(of_it) {
            function.metadata = Some(String::from_utf8_lossy(&data[start..end]).into_owned());
            function.signature = Some(signature.to_string());
            function.doc = if function.has_doc { doc(&data[end..]) } else { None };
        }
    }
}

/// The signature that metadata has, and the length of its JSON.
fn metadata(data: &[u8]) -> Option<(Signature, usize)> {
    let mut values = Deserializer::from_slice(data).into_iter::<Value>();
    let value = values.next()?.ok()?;
    let signature = value.get("signature")?.as_str()?.parse().ok()?;
    Some((signature, values.byte_offset()))
}

/// The text between the NUL of the metadata and its own.
fn doc(behind: &[u8]) -> Option<String> {
    let text = behind.strip_prefix(&[0])?.split(|&byte| byte == 0).next()?;
    std::str::from_utf8(text).ok().map(str::to_owned)
}
