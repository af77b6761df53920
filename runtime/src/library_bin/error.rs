//! Why bytes are no `library_bin`, or nodes can't be written as one.

use thiserror::Error;

/// The error of bytes that are no `library_bin`, or of nodes that can't be written as one. Offsets are in bytes from the start of the `nbytes` header.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LibraryBinError {
    /// The bytes end before something that they announce.
    #[error("library_bin, byte {offset}: {what} takes {needed} bytes, and {left} are left")]
    Truncated {
        /// Where the missing thing begins.
        offset: u64,
        /// The missing thing: a number, a text, a payload.
        what: &'static str,
        /// Its size in bytes; `u64::MAX` if it is larger than that.
        needed: u64,
        /// The bytes that are there.
        left: u64,
    },
    /// The import tree has no node, and so no root.
    #[error("library_bin, byte {offset}: the import tree has no nodes")]
    NoNodes {
        /// Where the tree begins.
        offset: u64,
    },
    /// An entry of `indptr` is not what comes next.
    #[error("library_bin, byte {offset}: indptr[{index}] is {value}, expected {expected}")]
    Indptr {
        /// Where the entry is.
        offset: u64,
        /// Its index.
        index: u64,
        /// Its value.
        value: u64,
        /// The values that it may have, as words of the message.
        expected: String,
    },
    /// A node imports one that isn't there.
    #[error("library_bin, byte {offset}: child_indices[{index}] is {value}, and there are {nodes} nodes")]
    Child {
        /// Where the entry is.
        offset: u64,
        /// Its index.
        index: u64,
        /// Its value.
        value: u64,
        /// The number of nodes.
        nodes: u64,
    },
    /// A node imports itself, maybe through others.
    #[error("library_bin, byte {offset}: node {node} imports itself, maybe through others")]
    Cycle {
        /// Where the node's first child index is.
        offset: u64,
        /// A node of the cycle.
        node: u64,
    },
    /// A kind is not UTF-8.
    #[error("library_bin, byte {offset}: the kind of node {node} is not UTF-8")]
    KindNotUtf8 {
        /// Where the first wrong byte is.
        offset: u64,
        /// The node.
        node: u64,
    },
    /// The library is there twice.
    #[error("library_bin, byte {offset}: node {node} is `_lib`, and so is node {first}")]
    SecondLibrary {
        /// Where the kind of the second one is.
        offset: u64,
        /// The second one.
        node: u64,
        /// The first one.
        first: u64,
    },
    /// Bytes are left behind the last node.
    #[error("library_bin, byte {offset}: {count} bytes are left behind the last node")]
    Trailing {
        /// Where they begin.
        offset: u64,
        /// Their number.
        count: u64,
    },
    /// A size is more than memory can have.
    #[error("library_bin: {size} bytes are more than memory can have")]
    TooLarge {
        /// The size; `u64::MAX` if it is larger than that.
        size: u64,
    },
    /// A module to write has the kind that stands for the library.
    #[error("library_bin: node {node} can't be a module of kind `_lib`, which stands for the library")]
    ReservedKind {
        /// The node.
        node: u64,
    },
    /// The lists of children to write are not one for each node.
    #[error("library_bin: {lists} lists of children for {nodes} nodes")]
    ChildLists {
        /// The number of lists.
        lists: u64,
        /// The number of nodes.
        nodes: u64,
    },
}
