//! The error type of reading and writing a `library_bin`.

use thiserror::Error;

/// The error for bytes that aren't a valid `library_bin`, or for nodes that can't be written as one. Offsets are in
/// bytes from the start of the `nbytes` header.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LibraryBinError {
    /// The bytes end in the middle of an item.
    #[error("library_bin, byte {offset}: {what} takes {needed} bytes, got {left}")]
    Truncated {
        /// The offset of the item.
        offset: u64,
        /// A description of the item: a number, a string, a payload.
        what: &'static str,
        /// Its size in bytes; `u64::MAX` if it is larger than that.
        needed: u64,
        /// The number of bytes that are left.
        left: u64,
    },
    /// The import tree has no nodes, and so no root.
    #[error("library_bin, byte {offset}: the import tree has no nodes")]
    NoNodes {
        /// The offset of the tree.
        offset: u64,
    },
    /// An entry of `indptr` has an invalid value.
    #[error("library_bin, byte {offset}: expected indptr[{index}] = {expected}, got {value}")]
    Indptr {
        /// The offset of the entry.
        offset: u64,
        /// Its index.
        index: u64,
        /// Its value.
        value: u64,
        /// The allowed values, in words for the message.
        expected: String,
    },
    /// A node imports an index that isn't a node.
    #[error("library_bin, byte {offset}: expected child_indices[{index}] < {nodes}, the number of nodes, got {value}")]
    Child {
        /// The offset of the entry.
        offset: u64,
        /// Its index.
        index: u64,
        /// Its value.
        value: u64,
        /// The number of nodes.
        nodes: u64,
    },
    /// A node imports itself, directly or through other nodes.
    #[error("library_bin, byte {offset}: node {node} imports itself, maybe through others")]
    Cycle {
        /// The offset of the node's first child index.
        offset: u64,
        /// A node of the cycle.
        node: u64,
    },
    /// A kind is not UTF-8.
    #[error("library_bin, byte {offset}: the kind of node {node} is not UTF-8")]
    KindNotUtf8 {
        /// The offset of the first invalid byte.
        offset: u64,
        /// The node.
        node: u64,
    },
    /// Two nodes have the kind `_lib`.
    #[error("library_bin, byte {offset}: node {node} is `_lib`, and so is node {first}")]
    SecondLibrary {
        /// The offset of the second node's kind.
        offset: u64,
        /// The second node.
        node: u64,
        /// The first node.
        first: u64,
    },
    /// Bytes are left after the last node.
    #[error("library_bin, byte {offset}: {count} bytes are left after the last node")]
    Trailing {
        /// The offset of the first of them.
        offset: u64,
        /// Their number.
        count: u64,
    },
    /// A size doesn't fit into memory.
    #[error("library_bin: {size} bytes are more than memory can have")]
    TooLarge {
        /// The size; `u64::MAX` if it is larger than that.
        size: u64,
    },
    /// A module to write has the kind `_lib`, which is reserved for the library.
    #[error("library_bin: node {node} can't be a module of kind `_lib`, which stands for the library")]
    ReservedKind {
        /// The node.
        node: u64,
    },
    /// The number of child lists to write isn't the number of nodes.
    #[error("library_bin: {lists} lists of children for {nodes} nodes")]
    ChildLists {
        /// The number of lists.
        lists: u64,
        /// The number of nodes.
        nodes: u64,
    },
}
