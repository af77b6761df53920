//! AMD code objects and bundles, built byte by byte. They have only the parts that the readers use, and errors that no
//! compiler makes.

use serde_json::Value;

/// A code object of version 5 with metadata, given as JSON.
pub fn code_object(metadata: &Value) -> Vec<u8> {
    let mut note = Vec::new();
    rmpv::encode::write_value(&mut note, &message(metadata)).unwrap();
    code_object_of(&note, 3)
}

/// A code object with these contents of its note, and this ABI version in its header.
pub fn code_object_of(note: &[u8], abi_version: u8) -> Vec<u8> {
    let mut contents = Vec::new();
    // the sizes of the name and the contents, and the type; then both, aligned to 4 bytes
    contents.extend([7, note.len() as u32, 32].map(u32::to_le_bytes).concat());
    contents.extend(b"AMDGPU\0\0");
    contents.extend(note);
    contents.resize(contents.len().next_multiple_of(4), 0);
    let size = contents.len() as u64;
    // little-endian, 64 bits, OS ABI 64; a shared object for machine 224; one program header after the file header, and
    // no sections
    let mut bytes =
        vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 64, abi_version, 0, 0, 0, 0, 0, 0, 0, 3, 0, 224, 0, 1, 0, 0, 0];
    bytes.extend([0, 64, 0].map(u64::to_le_bytes).concat());
    bytes.extend(0_u32.to_le_bytes());
    bytes.extend([64, 56, 1, 64, 0, 0].map(u16::to_le_bytes).concat());
    // a segment of notes, readable: offset, two addresses, two sizes, alignment
    bytes.extend([4_u32, 4].map(u32::to_le_bytes).concat());
    bytes.extend([120, 0, 0, size, size, 4].map(u64::to_le_bytes).concat());
    bytes.extend(contents);
    bytes
}

/// A bundle of these entries, each with its id.
pub fn bundle(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut offset = 32 + entries.iter().map(|(id, _)| 24 + id.len()).sum::<usize>();
    let mut bytes = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
    bytes.extend((entries.len() as u64).to_le_bytes());
    for (id, code) in entries {
        bytes.extend([offset, code.len(), id.len()].map(|number| (number as u64).to_le_bytes()).concat());
        bytes.extend(id.as_bytes());
        offset += code.len();
    }
    entries.iter().for_each(|(_, code)| bytes.extend(*code));
    bytes
}

/// Encodes JSON as MessagePack.
fn message(json: &Value) -> rmpv::Value {
    match json {
        Value::Null => rmpv::Value::Nil,
        Value::Bool(is) => (*is).into(),
        Value::Number(number) => number.as_i64().unwrap().into(),
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => rmpv::Value::Array(items.iter().map(message).collect()),
        Value::Object(items) => {
            rmpv::Value::Map(items.iter().map(|(key, value)| (key.as_str().into(), message(value))).collect())
        }
    }
}

/// A section of an ELF file: the offset of its name, its type, and the offset and size of its contents in the file.
#[derive(Clone, Copy)]
pub struct Section {
    pub name: usize,
    pub kind: u32,
    pub offset: usize,
    pub size: usize,
}

/// The offset of [`cubin`]'s contents in the file.
pub const CONTENTS: usize = 64;

/// A cubin for `sm_90` with these contents. Each name ends with a NUL, and kernels are given by the offsets of their
/// names. The sections may overlap.
pub fn cubin(contents: &[u8], names: &[u8], kernels: &[usize], sections: &[Section]) -> Vec<u8> {
    let mut bytes = vec![0; CONTENTS];
    bytes.extend(contents);
    let names_at = bytes.len();
    bytes.extend(names);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    let symbols_at = bytes.len();
    bytes.extend([0; 24]);
    for name in kernels {
        // a global function, marked as a kernel, in section 1
        bytes.extend((*name as u32).to_le_bytes());
        bytes.extend([0x12, 0x10, 1, 0]);
        bytes.extend([0; 16]);
    }
    let headers_at = bytes.len();
    let mut header = |Section { name, kind, offset, size }: Section, link: u32, entry: u64| {
        bytes.extend([name as u32, kind].map(u32::to_le_bytes).concat());
        bytes.extend([0, 0, offset as u64, size as u64].map(u64::to_le_bytes).concat());
        bytes.extend([link, 0].map(u32::to_le_bytes).concat());
        bytes.extend([1, entry].map(u64::to_le_bytes).concat());
    };
    header(Section { name: 0, kind: 0, offset: 0, size: 0 }, 0, 0);
    header(Section { name: 0, kind: 3, offset: names_at, size: names.len() }, 0, 0);
    header(Section { name: 0, kind: 2, offset: symbols_at, size: headers_at - symbols_at }, 1, 24);
    sections.iter().for_each(|section| header(*section, 0, 0));
    // little-endian, 64 bits, OS ABI 51 version 7; an executable for machine 190
    let mut head = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 51, 7, 0, 0, 0, 0, 0, 0, 0, 2, 0, 190, 0, 1, 0, 0, 0];
    head.extend([0, 0, headers_at as u64].map(u64::to_le_bytes).concat());
    head.extend(90_u32.to_le_bytes());
    head.extend([64, 56, 0, 64, sections.len() as u16 + 3, 1].map(u16::to_le_bytes).concat());
    bytes[..64].copy_from_slice(&head);
    bytes
}
