//! The import tree in CSR form, and the rules for it that reader and writer share.

use super::error::LibraryBinError;
use super::format::WORD;

/// The imports between nodes, as in the format. The values have been checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tree {
    indptr: Vec<usize>,
    children: Vec<usize>,
}

/// The offset of `indptr`: right after `nbytes`.
pub(super) const TREE_OFFSET: u64 = WORD;

/// The offset of entry `index` of `indptr`.
fn indptr_offset(index: u64) -> u64 {
    TREE_OFFSET + WORD + index * WORD
}

/// The offset of entry `index` of `child_indices`, for an `indptr` of `len` entries.
fn child_offset(len: u64, index: u64) -> u64 {
    indptr_offset(len) + WORD + index * WORD
}

impl Tree {
    /// Checks a tree: it must have at least one node and no cycle, and all children must be nodes. `indptr` must start
    /// at 0, never decrease, and end at the number of children.
    pub(super) fn new(indptr: &[u64], children: &[u64]) -> Result<Self, LibraryBinError> {
        let len = indptr.len() as u64;
        let nodes = match len {
            0 | 1 => return Err(LibraryBinError::NoNodes { offset: TREE_OFFSET }),
            len => len - 1,
        };
        let mut before = 0;
        for (index, &value) in (0..).zip(indptr) {
            let wrong =
                |expected| Err(LibraryBinError::Indptr { offset: indptr_offset(index), index, value, expected });
            if index == 0 && value != 0 {
                return wrong("0".to_owned());
            }
            if value < before || value > children.len() as u64 {
                return wrong(format!("{before} to {}, the number of child indices", children.len()));
            }
            if index == nodes && value != children.len() as u64 {
                return wrong(format!("{}, the number of child indices", children.len()));
            }
            before = value;
        }
        for (index, &value) in (0..).zip(children) {
            if value >= nodes {
                return Err(LibraryBinError::Child { offset: child_offset(len, index), index, value, nodes });
            }
        }
        // This can't truncate: every checked value is at most the length of a slice.
        let usizes = |values: &[u64]| values.iter().map(|&value| value as usize).collect();
        let tree = Self { indptr: usizes(indptr), children: usizes(children) };
        match tree.node_of_a_cycle() {
            None => Ok(tree),
            Some(node) => Err(LibraryBinError::Cycle { offset: child_offset(len, indptr[node]), node: node as u64 }),
        }
    }

    /// The number of nodes.
    pub(super) fn len(&self) -> usize {
        self.indptr.len() - 1
    }

    /// The nodes that a node imports; empty if `node` is out of range.
    pub(super) fn children(&self, node: usize) -> &[usize] {
        match self.indptr.get(node..).and_then(|rest| rest.first_chunk()) {
            Some(&[start, end]) => &self.children[start..end],
            None => &[],
        }
    }

    /// The words of the tree in the format: both vectors, each with its length first.
    pub(super) fn words(&self) -> impl Iterator<Item = u64> {
        let vec = |values: &[usize]| {
            let len = values.len() as u64;
            let values: Vec<u64> = values.iter().map(|&value| value as u64).collect();
            std::iter::once(len).chain(values)
        };
        vec(&self.indptr).chain(vec(&self.children))
    }

    /// Finds a node that is part of a cycle. Repeatedly removes nodes without importers. The remaining nodes are on a
    /// cycle, or imported directly or indirectly by one.
    fn node_of_a_cycle(&self) -> Option<usize> {
        let mut importers = vec![0usize; self.len()];
        self.children.iter().for_each(|&child| importers[child] += 1);
        let mut free: Vec<usize> = (0..self.len()).filter(|&node| importers[node] == 0).collect();
        while let Some(node) = free.pop() {
            for &child in self.children(node) {
                importers[child] -= 1;
                if importers[child] == 0 {
                    free.push(child);
                }
            }
        }
        // Each remaining node has a remaining importer. So following importers for as many steps as there are nodes
        // ends on a cycle.
        let left = |node: &usize| importers[*node] > 0;
        let mut node = (0..self.len()).find(left)?;
        let mut importer = vec![None; self.len()];
        for parent in (0..self.len()).filter(left) {
            self.children(parent).iter().for_each(|&child| importer[child] = Some(parent));
        }
        for _ in 0..self.len() {
            node = importer[node].unwrap_or(node);
        }
        Some(node)
    }
}
