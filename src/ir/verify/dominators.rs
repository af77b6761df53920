//! Dominators, by the iteration of Cooper, Harvey and Kennedy ("A Simple, Fast Dominance Algorithm").
//!
//! With one change. The paper meets a block's predecessors pair by pair, and each meeting walks up the tree
//! anew; ten thousand checks that share one error block would make that quadratic, and such functions are
//! just what this crate generates. Here a walk stops where an earlier one for the same block has been.

use crate::ir::inst::Block;
use crate::ir::module::Function;

const NONE: u32 = u32::MAX;

/// The dominator tree, as intervals: a block dominates those whose number falls into its own.
pub(super) struct Dominators {
    /// For each block its number in a preorder of the tree and how many blocks it dominates, itself included;
    /// `None` if it is unreachable.
    intervals: Vec<Option<(u32, u32)>>,
}

impl Dominators {
    /// Computes the tree. Branches to blocks that don't exist are passed over.
    pub(super) fn compute(func: &Function) -> Self {
        let order = reverse_postorder(func);
        // From here on a block is its rank in that order.
        let mut rank = vec![NONE; func.blocks.len()];
        for (i, &block) in order.iter().enumerate() {
            rank[block.as_u32() as usize] = i as u32;
        }
        let preds = Predecessors::new(func, &order, &rank);
        let idom = immediate_dominators(&preds, order.len());

        // A dominator ranks before what it dominates, so sums and numbers come without another search.
        let mut size = vec![1u32; order.len()];
        for b in (1..order.len()).rev() {
            size[idom[b] as usize] += size[b];
        }
        let mut number = vec![0u32; order.len()];
        let mut next = vec![1u32; order.len()];
        for b in 1..order.len() {
            let parent = idom[b] as usize;
            number[b] = next[parent];
            next[parent] += size[b];
            next[b] = number[b] + 1;
        }
        let intervals = rank.iter().map(|&r| (r != NONE).then(|| (number[r as usize], size[r as usize]))).collect();
        Dominators { intervals }
    }

    fn interval(&self, block: Block) -> Option<(u32, u32)> {
        self.intervals.get(block.as_u32() as usize).copied().flatten()
    }

    /// Whether any path leads from the entry to the block.
    pub(super) fn is_reachable(&self, block: Block) -> bool {
        self.interval(block).is_some()
    }

    /// Whether every path to `b` goes through `a`. False if either is unreachable.
    pub(super) fn dominates(&self, a: Block, b: Block) -> bool {
        match (self.interval(a), self.interval(b)) {
            (Some((first, count)), Some((number, _))) => number >= first && number - first < count,
            _ => false,
        }
    }
}

fn successor(func: &Function, block: Block, index: usize) -> Option<Block> {
    func.blocks[block].terminator.as_ref()?.targets().nth(index).map(|to| to.block)
}

/// The reachable blocks; the entry is first. Without recursion, since a chain of blocks may be long.
fn reverse_postorder(func: &Function) -> Vec<Block> {
    let mut seen = vec![false; func.blocks.len()];
    let mut order = Vec::with_capacity(func.blocks.len());
    let mut stack: Vec<(Block, usize)> = Vec::new();
    if let Some(entry) = func.entry() {
        seen[0] = true;
        stack.push((entry, 0));
    }
    while let Some((block, next)) = stack.last_mut() {
        let successor = successor(func, *block, *next);
        *next += 1;
        match successor {
            Some(to) => {
                if let Some(seen) = seen.get_mut(to.as_u32() as usize)
                    && !std::mem::replace(seen, true)
                {
                    stack.push((to, 0));
                }
            }
            None => {
                order.push(*block);
                stack.pop();
            }
        }
    }
    order.reverse();
    order
}

/// The predecessors of every reachable block, by rank, in one array.
struct Predecessors {
    starts: Vec<u32>,
    ranks: Vec<u32>,
}

impl Predecessors {
    fn new(func: &Function, order: &[Block], rank: &[u32]) -> Self {
        let edges = || {
            order.iter().enumerate().flat_map(move |(from, &block)| {
                let targets = func.blocks[block].terminator.iter().flat_map(|t| t.targets());
                targets.filter_map(move |to| Some((from as u32, *rank.get(to.block.as_u32() as usize)?)))
            })
        };
        let mut starts = vec![0u32; order.len() + 1];
        for (_, to) in edges() {
            starts[to as usize + 1] += 1;
        }
        for i in 1..starts.len() {
            starts[i] += starts[i - 1];
        }
        let mut fill = starts.clone();
        let mut ranks = vec![0; starts.last().map_or(0, |&n| n as usize)];
        for (from, to) in edges() {
            let at = &mut fill[to as usize];
            ranks[*at as usize] = from;
            *at += 1;
        }
        Predecessors { starts, ranks }
    }

    fn of(&self, block: usize) -> &[u32] {
        &self.ranks[self.starts[block] as usize..self.starts[block + 1] as usize]
    }
}

/// Everything by rank; the entry is its own dominator.
fn immediate_dominators(preds: &Predecessors, count: usize) -> Vec<u32> {
    let mut idom = vec![NONE; count];
    if let Some(entry) = idom.first_mut() {
        *entry = 0;
    }
    let mut mark = vec![0u32; count];
    let mut stamp = 0;
    loop {
        let mut changed = false;
        // Without a branch backwards the first pass has seen every predecessor, and is the last one.
        let mut again = false;
        for block in 1..count {
            stamp += 1;
            // What dominates all predecessors so far. Whatever bears the stamp lies below it or is it.
            let mut meet = NONE;
            for &pred in preds.of(block) {
                again |= pred as usize >= block;
                if idom[pred as usize] == NONE {
                    continue;
                }
                let mut walk = pred;
                if meet == NONE {
                    meet = pred;
                    mark[meet as usize] = stamp;
                }
                while walk != meet {
                    if walk > meet {
                        if mark[walk as usize] == stamp {
                            break;
                        }
                        mark[walk as usize] = stamp;
                        walk = idom[walk as usize];
                    } else {
                        meet = idom[meet as usize];
                        mark[meet as usize] = stamp;
                    }
                }
            }
            if idom[block] != meet {
                idom[block] = meet;
                changed = true;
            }
        }
        if !changed || !again {
            return idom;
        }
    }
}
