//! Reading. The input is untrusted: every bound, index and length is checked, and memory is allocated only after
//! checking that the input has enough bytes.

use super::error::LibraryBinError;
use super::format::{LIBRARY_KIND, MAX_LEN, WORD};
use super::tree::Tree;

/// A node of the import tree.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Node<'a> {
    /// The library that carries the bytes, `_lib`.
    Library,
    /// A module of its own kind.
    Module {
        /// Its kind, which names its loader.
        kind: &'a str,
        /// The bytes that its loader takes.
        payload: &'a [u8],
    },
}

/// A parsed `library_bin`: a tree of nodes. Their payloads borrow from the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibraryBin<'a> {
    nodes: Vec<Node<'a>>,
    tree: Tree,
}

impl<'a> LibraryBin<'a> {
    /// Parses bytes that begin with the `nbytes` header. Bytes after those that `nbytes` counts are ignored.
    ///
    /// # Errors
    /// If the bytes break a rule of the format. The module's documentation describes it.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, LibraryBinError> {
        let mut cursor = Cursor { bytes, offset: 0 };
        let nbytes = cursor.word("nbytes")?;
        cursor.bytes = Cursor { ..cursor }.take("what nbytes counts", nbytes)?;
        let (indptr, children) = (cursor.words("indptr")?, cursor.words("child_indices")?);
        let tree = Tree::new(&indptr, &children)?;
        // A node takes at least 8 bytes, so the remaining input limits the allocation.
        let mut nodes = Vec::with_capacity(tree.len().min(cursor.bytes.len() / WORD as usize));
        let mut library = None;
        for node in 0..tree.len() as u64 {
            let kind_offset = cursor.offset;
            let kind = cursor.counted("the kind of a node")?;
            let kind = std::str::from_utf8(kind).map_err(|error| LibraryBinError::KindNotUtf8 {
                offset: kind_offset + WORD + error.valid_up_to() as u64,
                node,
            })?;
            if kind != LIBRARY_KIND {
                nodes.push(Node::Module { kind, payload: cursor.counted("the payload of a node")? });
                continue;
            }
            if let Some(first) = library.replace(node) {
                return Err(LibraryBinError::SecondLibrary { offset: kind_offset, node, first });
            }
            nodes.push(Node::Library);
        }
        match cursor.bytes.len() as u64 {
            0 => Ok(Self { nodes, tree }),
            count => Err(LibraryBinError::Trailing { offset: cursor.offset, count }),
        }
    }

    /// Parses from the address of an `nbytes` header, such as that of the symbol `__tvm_ffi__library_bin`.
    ///
    /// # Errors
    /// As [`LibraryBin::parse`], and if that many bytes can't be at that address.
    ///
    /// # Safety
    /// `start` must be the address of 8 bytes that hold `nbytes`, followed by `nbytes` more. All of them must be
    /// readable and unchanged for `'a`. This function can't check that, since a loaded library's symbols have no sizes.
    pub unsafe fn from_ptr(start: *const u8) -> Result<Self, LibraryBinError> {
        // SAFETY: the header is readable by contract, at any alignment.
        let nbytes = u64::from_le_bytes(unsafe { start.cast::<[u8; 8]>().read_unaligned() });
        let size = nbytes.saturating_add(WORD);
        let len = usize::try_from(size).ok().filter(|&len| size <= MAX_LEN && start.addr().checked_add(len).is_some());
        let len = len.ok_or(LibraryBinError::TooLarge { size })?;
        // SAFETY: readable by contract; the length is at most `isize::MAX`, and the range doesn't wrap around.
        Self::parse(unsafe { std::slice::from_raw_parts(start, len) })
    }

    /// The nodes, at least one. The first is the root.
    pub fn nodes(&self) -> &[Node<'a>] {
        &self.nodes
    }

    /// The indices of the nodes that a node imports, in order; empty if `node` is out of range.
    pub fn children(&self, node: usize) -> &[usize] {
        self.tree.children(node)
    }
}

/// The unread bytes, and the offset of the first.
struct Cursor<'a> {
    bytes: &'a [u8],
    offset: u64,
}

impl<'a> Cursor<'a> {
    fn take(&mut self, what: &'static str, len: u64) -> Result<&'a [u8], LibraryBinError> {
        let split = usize::try_from(len).ok().and_then(|len| self.bytes.split_at_checked(len));
        let Some((taken, rest)) = split else {
            let left = self.bytes.len() as u64;
            return Err(LibraryBinError::Truncated { offset: self.offset, what, needed: len, left });
        };
        self.bytes = rest;
        self.offset += len;
        Ok(taken)
    }

    fn word(&mut self, what: &'static str) -> Result<u64, LibraryBinError> {
        let bytes = self.take(what, WORD)?;
        Ok(bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)))
    }

    fn counted(&mut self, what: &'static str) -> Result<&'a [u8], LibraryBinError> {
        let len = self.word(what)?;
        self.take(what, len)
    }

    fn words(&mut self, what: &'static str) -> Result<Vec<u64>, LibraryBinError> {
        let len = self.word(what)?;
        let bytes = self.take(what, len.saturating_mul(WORD))?;
        let (words, _) = bytes.as_chunks::<8>();
        Ok(words.iter().map(|&word| u64::from_le_bytes(word)).collect())
    }
}
