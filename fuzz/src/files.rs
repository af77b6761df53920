//! Files of any content: inspection, archives, the bytes of a `library_bin`, and the objects of a link. Each reader
//! gives an error or a value, in memory that the input's size bounds.

use std::sync::LazyLock;

use tvm_ffi_codegen::artifact::{
    ArchiveInput, LibraryBuilder, LinkError, Linker, Triple, archive_bytes, inspect_bytes,
};
use tvm_ffi_codegen::runtime::unstable::library_bin::{Layout, LibraryBin, Node, NodeSpec, Segment};
use tvm_ffi_codegen::{Kernel, Signature};

use super::memory;

/// The maximum size of an input in bytes.
const LONGEST: usize = 1 << 16;
/// The memory that a reader may take for a byte of the input, and for any input.
const BYTES_EACH: usize = 256;
const BYTES_FOR_ANY: usize = 4 << 20;

/// The targets of archives, one for each kind of archive and format of objects.
const TARGETS: [&str; 3] = ["x86_64-unknown-linux-gnu", "aarch64-apple-darwin", "x86_64-pc-windows-msvc"];

/// An object that every archive for Linux on x86-64 takes.
static OBJECT: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let signature: Signature = "f(n: int64)".parse().expect("a signature");
    let library = LibraryBuilder::new().target(triple(TARGETS[0])).function(&signature, &Kernel::check_only());
    library.emit().expect("an object").into_bytes()
});

fn triple(target: &str) -> Triple {
    target.parse().expect("a target")
}

/// Reads an input with each reader.
///
/// # Panics
/// A reader panics or takes too much memory, or what is written from a file reads otherwise.
pub fn run(input: &[u8]) {
    let input = &input[..input.len().min(LONGEST)];
    LazyLock::force(&OBJECT);
    for (name, reader) in
        [("inspection", inspected as fn(&[u8])), ("library_bin", library_bin), ("archives", archives), ("links", links)]
    {
        let peak = memory::peak(|| reader(input));
        let most = BYTES_EACH * input.len() + BYTES_FOR_ANY;
        assert!(peak <= most, "{name}: {peak} bytes of memory for {} bytes", input.len());
    }
}

fn inspected(input: &[u8]) {
    let binary = match inspect_bytes(input, "input") {
        Ok(binary) => binary,
        Err(error) => return assert!(error.to_string().starts_with("input: "), "{error}"),
    };
    assert!(binary.to_json().starts_with('{'));
    for function in &binary.functions {
        let signature = function.signature.as_ref().map(|text| text.parse::<Signature>());
        assert!(signature.is_none_or(|signature| signature.is_ok()), "the signature of {function:?}");
    }
    let modules = binary.modules.iter().flatten();
    let count = modules.clone().count();
    assert!(modules.flat_map(|module| &module.imports).all(|&import| import < count), "{:?}", binary.modules);
}

/// Reads a tree of modules, and writes it again.
fn library_bin(input: &[u8]) {
    let bin = match LibraryBin::parse(input) {
        Ok(bin) => bin,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let specs: Vec<NodeSpec<'_>> = bin.nodes().iter().map(spec).collect();
    let children: Vec<Vec<usize>> = (0..bin.nodes().len()).map(|node| bin.children(node).to_vec()).collect();
    let layout = Layout::new(&specs, &children).expect("what is read can be written");
    let mut written = Vec::new();
    for segment in layout.segments() {
        match segment {
            Segment::Bytes(bytes) => written.extend_from_slice(bytes),
            Segment::Payload { node, .. } => match bin.nodes()[node] {
                Node::Module { payload, .. } => written.extend_from_slice(payload),
                Node::Library => panic!("the library has a payload"),
            },
        }
    }
    assert!(input.starts_with(&written), "what is written differs");
}

fn spec<'a>(node: &Node<'a>) -> NodeSpec<'a> {
    match *node {
        Node::Library => NodeSpec::Library,
        Node::Module { kind, payload } => NodeSpec::Module { kind, payload_len: payload.len() as u64 },
    }
}

/// Makes archives of the input, of its members, and of an object whose name it is.
fn archives(input: &[u8]) {
    let object = |name: &str, bytes: &[u8]| ArchiveInput::Object { name: name.to_owned(), bytes: bytes.to_vec() };
    for target in TARGETS.map(triple) {
        archive(&target, object("input.o", input));
    }
    let name = String::from_utf8_lossy(&input[..input.len().min(64)]);
    archive(&triple(TARGETS[0]), object(&name, &OBJECT));
}

/// Makes an archive. An archive of its members is the same.
fn archive(target: &Triple, input: ArchiveInput) {
    match archive_bytes(target, std::slice::from_ref(&input)) {
        Ok(bytes) => {
            let members = ArchiveInput::Object { name: "archive.a".to_owned(), bytes: bytes.clone() };
            let again = archive_bytes(target, &[members]);
            let again = again.unwrap_or_else(|error| panic!("{error}: the archive of {input:?}"));
            assert!(again == bytes, "the archive is read otherwise: {input:?}");
        }
        Err(error) => assert!(!error.to_string().is_empty(), "an error without a message"),
    }
}

/// Begins links of the input that end before a linker runs.
fn links(input: &[u8]) {
    let link =
        |target: &str| Linker::new(triple(target)).object(input).library("-no-name").link("no folder/no library");
    for error in TARGETS.map(|target| link(target).expect_err("a link without a library")) {
        let is_expected = matches!(error, LinkError::Machine { .. } | LinkError::LibraryName { .. });
        assert!(is_expected && !error.to_string().is_empty(), "{error:?}");
    }
}
