//! Writing. The layout needs only the lengths of payloads, so the caller can stream their bytes.

use super::error::LibraryBinError;
use super::format::{LIBRARY_KIND, MAX_LEN, WORD};
use super::tree::Tree;

/// A node to write.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum NodeSpec<'a> {
    /// The library that will carry the bytes, `_lib`.
    Library,
    /// A module of its own kind.
    Module {
        /// Its kind, which names its loader.
        kind: &'a str,
        /// The size of its payload in bytes.
        payload_len: u64,
    },
}

/// A piece of a `library_bin`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segment<'a> {
    /// Bytes of the format itself.
    Bytes(&'a [u8]),
    /// The payload of a node. The caller writes it.
    Payload {
        /// The node.
        node: usize,
        /// The size of the payload in bytes, as in [`NodeSpec::Module`].
        len: u64,
    },
}

/// The layout of a `library_bin`: segments of bytes, with the payloads between them.
///
/// ```
/// use tvm_ffi_runtime::unstable::library_bin::{Layout, LibraryBin, Node, NodeSpec, Segment};
///
/// // The library imports one module of kind `my.weights`.
/// let weights = b"numbers";
/// let nodes = [NodeSpec::Library, NodeSpec::Module { kind: "my.weights", payload_len: weights.len() as u64 }];
/// let layout = Layout::new(&nodes, &[vec![1], vec![]])?;
///
/// let mut blob = Vec::new();
/// for segment in layout.segments() {
///     match segment {
///         Segment::Bytes(bytes) => blob.extend_from_slice(bytes),
///         Segment::Payload { node: 1, .. } => blob.extend_from_slice(weights),
///         Segment::Payload { .. } => unreachable!(),
///     }
/// }
/// assert_eq!(blob.len() as u64, layout.total_len());
///
/// let read = LibraryBin::parse(&blob)?;
/// assert_eq!(read.nodes(), [Node::Library, Node::Module { kind: "my.weights", payload: weights }]);
/// assert_eq!(read.children(0), [1]);
/// # Ok::<(), tvm_ffi_runtime::unstable::library_bin::LibraryBinError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// All bytes except those of payloads.
    bytes: Vec<u8>,
    /// For each payload: the offset in `bytes` before which it is inserted, its node, and its length.
    payloads: Vec<(usize, usize, u64)>,
    total_len: u64,
}

impl Layout {
    /// Lays out `nodes`, the root first; `children[i]` are the indices of the nodes that node `i` imports.
    ///
    /// # Errors
    /// If [`LibraryBin::parse`](super::LibraryBin::parse) would refuse the result, a module has the kind `_lib`, or
    /// `children` doesn't have one list per node.
    pub fn new(nodes: &[NodeSpec<'_>], children: &[Vec<usize>]) -> Result<Self, LibraryBinError> {
        if nodes.len() != children.len() {
            return Err(LibraryBinError::ChildLists { lists: children.len() as u64, nodes: nodes.len() as u64 });
        }
        let mut indptr = vec![0];
        indptr.extend(children.iter().scan(0, |end, list| {
            *end += list.len() as u64;
            Some(*end)
        }));
        let children: Vec<u64> = children.iter().flatten().map(|&child| child as u64).collect();
        let tree = Tree::new(&indptr, &children)?;
        // The `nbytes` header is set last.
        let mut layout = Self { bytes: vec![0; WORD as usize], payloads: Vec::new(), total_len: 0 };
        tree.words().for_each(|word| layout.word(word));
        let (mut library, mut payload_len) = (None, 0u64);
        for (index, node) in nodes.iter().enumerate() {
            let offset = payload_len.saturating_add(layout.bytes.len() as u64);
            match *node {
                NodeSpec::Library => {
                    if let Some(first) = library.replace(index as u64) {
                        return Err(LibraryBinError::SecondLibrary { offset, node: index as u64, first });
                    }
                    layout.text(LIBRARY_KIND);
                }
                NodeSpec::Module { kind: LIBRARY_KIND, .. } => {
                    return Err(LibraryBinError::ReservedKind { node: index as u64 });
                }
                NodeSpec::Module { kind, payload_len: len } => {
                    layout.text(kind);
                    layout.word(len);
                    layout.payloads.push((layout.bytes.len(), index, len));
                    payload_len = payload_len.saturating_add(len);
                }
            }
        }
        layout.total_len = payload_len.saturating_add(layout.bytes.len() as u64);
        if layout.total_len > MAX_LEN {
            return Err(LibraryBinError::TooLarge { size: layout.total_len });
        }
        layout.bytes[..WORD as usize].copy_from_slice(&(layout.total_len - WORD).to_le_bytes());
        Ok(layout)
    }

    /// The total size in bytes, including the `nbytes` header.
    pub fn total_len(&self) -> u64 {
        self.total_len
    }

    /// The segments in order; the first contains the `nbytes` header. An empty payload has a segment too.
    pub fn segments(&self) -> impl Iterator<Item = Segment<'_>> {
        let starts = std::iter::once(0).chain(self.payloads.iter().map(|&(end, ..)| end));
        let between = starts.zip(&self.payloads).flat_map(|(start, &(end, node, len))| {
            [Segment::Bytes(&self.bytes[start..end]), Segment::Payload { node, len }]
        });
        let last = &self.bytes[self.payloads.last().map_or(0, |&(end, ..)| end)..];
        between.chain((!last.is_empty()).then_some(Segment::Bytes(last)))
    }

    fn word(&mut self, word: u64) {
        self.bytes.extend_from_slice(&word.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.word(text.len() as u64);
        self.bytes.extend_from_slice(text.as_bytes());
    }
}
