//! The control flow of a function.

use tvm_ffi_codegen::ir::{Block, Function, Terminator, Value};

/// A branch from a block to one of its targets.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Edge {
    pub from: Block,
    /// The number of the target.
    pub target: usize,
}

/// The reachable blocks and their edges.
pub struct Graph {
    /// The blocks, each after those that lead to it, apart from loops.
    pub order: Vec<Block>,
    into: Vec<Vec<Edge>>,
}

impl Graph {
    pub fn of(function: &Function) -> Self {
        let order = reverse_postorder(function);
        let mut into = vec![Vec::new(); function.blocks.len()];
        for &from in &order {
            for (target, to) in targets(function, from).into_iter().enumerate() {
                into[to.as_u32() as usize].push(Edge { from, target });
            }
        }
        Graph { order, into }
    }

    /// The edges to a block.
    pub fn edges_to(&self, block: Block) -> &[Edge] {
        &self.into[block.as_u32() as usize]
    }

    /// The value that an edge passes for a parameter of its target.
    pub fn argument(&self, function: &Function, edge: Edge, param: usize) -> Value {
        let terminator = function.blocks[edge.from].terminator.as_ref().unwrap();
        terminator.targets().nth(edge.target).unwrap().args[param]
    }
}

/// The targets of a block, in order.
pub fn targets(function: &Function, block: Block) -> Vec<Block> {
    let terminator = function.blocks[block].terminator.iter();
    terminator.flat_map(Terminator::targets).map(|target| target.block).collect()
}

fn reverse_postorder(function: &Function) -> Vec<Block> {
    let mut seen = vec![false; function.blocks.len()];
    let (mut order, mut stack) = (Vec::new(), Vec::new());
    let mut next = function.entry();
    loop {
        if let Some(block) = next.take_if(|block| !std::mem::replace(&mut seen[block.as_u32() as usize], true)) {
            stack.push((block, targets(function, block)));
        }
        let Some((block, targets)) = stack.last_mut() else { break };
        next = targets.pop();
        if next.is_none() {
            order.push(*block);
            stack.pop();
        }
    }
    order.reverse();
    order
}
