//! Dominators, computed with the iteration of Cooper, Harvey and Kennedy ("A Simple, Fast Dominance Algorithm").
//!
//! There is one change. The paper intersects a block's predecessors pair by pair, and each intersection walks up the
//! tree anew. Ten thousand checks that share one error block would make that quadratic, and this crate generates just
//! such functions. Here a walk stops where an earlier walk for the same block has been.

use crate::ir::inst::Block;
use crate::ir::module::Function;

const NONE: u32 = u32::MAX;

/// The dominator tree as intervals: a block dominates those whose numbers are in its interval.
pub(super) struct Dominators {
    /// For each block, its number in a preorder of the tree and the number of blocks that it dominates, including
    /// itself. `None` if it is unreachable.
    intervals: Vec<Option<(u32, u32)>>,
}

impl Dominators {
    /// Computes the tree. Branches to blocks that don't exist are ignored.
    pub(super) fn compute(func: &Function) -> Self {
        let order = reverse_postorder(func);
        // From here on, a block is represented by its rank in that order.
        let mut rank = vec![NONE; func.blocks.len()];
        for (i, &block) in order.iter().enumerate() {
            rank[block.as_u32() as usize] = i as u32;
        }
        let preds = Predecessors::new(func, &order, &rank);
        let idom = immediate_dominators(&preds, order.len());

        // A dominator ranks before the blocks that it dominates, so a single pass computes sums and numbers.
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

    /// Whether a path leads from the entry to the block.
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

/// The reachable blocks, with the entry first. Not recursive, since a chain of blocks may be long.
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

/// The immediate dominator of each block, by rank; the entry is its own.
fn immediate_dominators(preds: &Predecessors, count: usize) -> Vec<u32> {
    let mut idom = vec![NONE; count];
    if let Some(entry) = idom.first_mut() {
        *entry = 0;
    }
    let mut mark = vec![0u32; count];
    let mut stamp = 0;
    loop {
        let mut changed = false;
        // Without back edges, the first pass has seen every predecessor and is the last one.
        let mut again = false;
        for block in 1..count {
            stamp += 1;
            // The block that dominates all predecessors so far. Every stamped block is that block or below it.
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

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::ir::{BlockCall, BlockData, Hint, Terminator, Value};

    /// The generator of Steele, Lea and Flood, good enough for test inputs.
    struct Random(u64);

    impl Random {
        fn below(&mut self, n: usize) -> usize {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((z ^ (z >> 31)) % n as u64) as usize
        }
    }

    /// A function with only these edges: zero, one or two for each block.
    fn graph(edges: &[Vec<usize>]) -> Function {
        let to = |block: usize| BlockCall { block: Block::from_u32(block as u32), args: vec![] };
        let mut func = Function::default();
        for targets in edges {
            let terminator = match targets[..] {
                [] => Terminator::Return(None),
                [a] => Terminator::Jump(to(a)),
                [a, b, ..] => {
                    Terminator::Branch { cond: Value::from_u32(0), then: to(a), otherwise: to(b), hint: Hint::None }
                }
            };
            func.blocks.push(BlockData { terminator: Some(terminator), ..BlockData::default() });
        }
        func
    }

    /// The blocks reachable from block 0 without passing through `without`.
    fn reachable(edges: &[Vec<usize>], without: Option<usize>) -> Vec<bool> {
        let mut seen = vec![false; edges.len()];
        let mut stack = vec![0];
        while let Some(block) = stack.pop() {
            if Some(block) != without && !std::mem::replace(&mut seen[block], true) {
                stack.extend(&edges[block]);
            }
        }
        seen
    }

    #[test]
    fn dominators_are_what_all_paths_go_through() {
        let mut random = Random(1);
        for _ in 0..3_000 {
            let n = 1 + random.below(12);
            let edges: Vec<Vec<usize>> =
                (0..n).map(|_| (0..random.below(3)).map(|_| random.below(n)).collect()).collect();
            let doms = Dominators::compute(&graph(&edges));
            let all = reachable(&edges, None);
            for a in 0..n {
                let without = reachable(&edges, Some(a));
                assert_eq!(doms.is_reachable(Block::from_u32(a as u32)), all[a]);
                for b in 0..n {
                    let expected = all[a] && all[b] && !without[b];
                    let found = doms.dominates(Block::from_u32(a as u32), Block::from_u32(b as u32));
                    assert_eq!(found, expected, "{a} dominates {b} in {edges:?}");
                }
            }
        }
    }

    #[test]
    fn ten_thousand_blocks_are_no_matter() {
        let n = 10_000;
        let chain = |exits: &dyn Fn(usize) -> usize, extra: usize| -> Vec<Vec<usize>> {
            let mut edges: Vec<Vec<usize>> = (0..n).map(|i| vec![i + 1, exits(i)]).collect();
            edges.push(vec![]);
            edges.extend((0..extra).map(|_| vec![n]));
            edges
        };
        let shapes = [
            // Checks that share one error block, or two; a chain that branches back to each previous block.
            chain(&|_| n + 1, 1),
            chain(&|i| n + 1 + i % 2, 2),
            chain(&|i| i.max(1), 0),
            chain(&|i| (i / 2).max(1), 0),
            // Both combined: every other block exits to the end, the rest loop to the second block.
            chain(&|i| if i % 2 == 0 { n } else { 1 }, 0),
        ];
        let start = Instant::now();
        for edges in shapes {
            let doms = Dominators::compute(&graph(&edges));
            assert!(doms.dominates(Block::from_u32(0), Block::from_u32(n as u32)));
        }
        // Without optimisation it takes about a hundredth of that; a quadratic algorithm would take seconds for each.
        assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    }
}
