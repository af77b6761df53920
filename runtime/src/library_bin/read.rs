//! Reading: every bound, index and length is checked, and nothing is allocated for a length before as many bytes are seen to be there.

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
        /// What its loader takes.
        payload: &'a [u8],
    },
}

/// A `library_bin` that has been read: a tree of nodes whose payloads lie in the bytes that were given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibraryBin<'a> {
    nodes: Vec<Node<'a>>,
    tree: Tree,
}

impl<'a> LibraryBin<'a> {
    /// Reads bytes that begin with the `nbytes` header; what lies behind the `nbytes` bytes is not looked at.
    ///
    /// # Errors
    /// Where the bytes break a rule of the format; the module's documentation has them.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, LibraryBinError> {
        let mut cursor = Cursor { bytes, offset: 0 };
        let nbytes = cursor.word("nbytes")?;
        cursor.bytes = Cursor { ..cursor }.take("what nbytes counts", nbytes)?;
        let (indptr, children) = (cursor.words("indptr")?, cursor.words("child_indices")?);
        let tree = Tree::new(&indptr, &children)?;
        // A node takes 8 bytes at least: no more than those are allocated for.
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

    /// Reads from the address of an `nbytes` header, such as that of the symbol `__tvm_ffi__library_bin`.
    ///
    /// # Errors
    /// As [`LibraryBin::parse`], and where as many bytes can't be at that address.
    ///
    /// # Safety
    /// `start` must be the address of 8 bytes and of as many more as they say, readable and unchanged for `'a`. (That can't be checked: a
    /// symbol has no size once its library is loaded.)
    pub unsafe fn from_ptr(start: *const u8) -> Result<Self, LibraryBinError> {
        // SAFETY: the header is readable by contract, at any alignment.
        let nbytes = u64::from_le_bytes(unsafe { start.cast::<[u8; 8]>().read_unaligned() });
        let size = nbytes.saturating_add(WORD);
        let len = usize::try_from(size).ok().filter(|&len| size <= MAX_LEN && start.addr().checked_add(len).is_some());
        let len = len.ok_or(LibraryBinError::TooLarge { size })?;
        // SAFETY: readable by contract; the length is at most `isize::MAX`, and the range doesn't wrap around.
        Self::parse(unsafe { std::slice::from_raw_parts(start, len) })
    }

    /// The nodes; the first is the root. There is at least one.
    pub fn nodes(&self) -> &[Node<'a>] {
        &self.nodes
    }

    /// The indices of the nodes that a node imports, in order; none for a node that isn't there.
    pub fn children(&self, node: usize) -> &[usize] {
        self.tree.children(node)
    }
}

/// The bytes that are left, and the offset of the first.
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
