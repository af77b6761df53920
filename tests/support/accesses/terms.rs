//! Terms: values by the way they are computed, so two loads of one address are one term.

use std::collections::HashMap;

use tvm_ffi_codegen::ir::{
    BinaryOp, Block, ConvertOp, DataRef, Function, IntCC, Op, StackSlot, Type, UnaryOp, Value, ValueDef,
};

use super::graph::{Edge, Graph};

/// The number of a term.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Term(u32);

/// A term. Pointers and integers of 64 bits are the same.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Node {
    /// A parameter of the function.
    Param(u32),
    Const(i64),
    Slot(StackSlot),
    Data(DataRef),
    /// A load of that many bytes at the address, from memory that doesn't change during the call.
    Load(u32, Term),
    /// The address plus bytes.
    Offset(Term, i64),
    /// An address in the same memory, at a distance that is known only at run time.
    Within(Term),
    Binary(BinaryOp, Term, Term),
    Not(Term),
    Compare(IntCC, Term, Term),
    Select(Term, Term, Term),
    /// A parameter of a block that gets different terms.
    Joined(Value),
    /// A value that the runtime or a callee returns, or that is computed from others.
    Other(Value),
}

/// The terms of a function.
pub struct Terms<'f> {
    function: &'f Function,
    graph: &'f Graph,
    nodes: Vec<Node>,
    numbers: HashMap<Node, Term>,
    values: HashMap<Value, Term>,
    /// The terms that the edges pass for each joined parameter.
    joined: HashMap<Value, Vec<(Edge, Term)>>,
}

impl<'f> Terms<'f> {
    /// Computes the terms of all values that reachable blocks define.
    pub fn of(function: &'f Function, graph: &'f Graph) -> Self {
        let mut terms = Terms {
            function,
            graph,
            nodes: Vec::new(),
            numbers: HashMap::new(),
            values: HashMap::new(),
            joined: HashMap::new(),
        };
        let mut seen = vec![false; function.blocks.len()];
        for (at, &block) in graph.order.iter().enumerate() {
            terms.params(block, at == 0, &seen);
            seen[block.as_u32() as usize] = true;
            for &inst in &function.blocks[block].insts {
                let data = &function.insts[inst];
                if let Some(result) = data.result {
                    let term = terms.operation(result, &data.op);
                    terms.values.insert(result, term);
                }
            }
        }
        // Blocks that come later in the order may branch back.
        for (&param, edges) in &mut terms.joined {
            let ValueDef::Param(block, number) = function.values[param].def else { continue };
            let given = |edge: &Edge| (*edge, terms.values[&graph.argument(function, *edge, number as usize)]);
            *edges = graph.edges_to(block).iter().map(given).collect();
        }
        terms
    }

    fn params(&mut self, block: Block, is_entry: bool, seen: &[bool]) {
        for (number, &param) in self.function.blocks[block].params.iter().enumerate() {
            let term = match is_entry {
                true => self.term(Node::Param(number as u32)),
                false => self.joined(block, number, param, seen),
            };
            self.values.insert(param, term);
        }
    }

    fn joined(&mut self, block: Block, number: usize, param: Value, seen: &[bool]) -> Term {
        let edges = self.graph.edges_to(block);
        let known = |edge: &Edge| {
            let value = self.graph.argument(self.function, *edge, number);
            seen[edge.from.as_u32() as usize].then(|| self.values[&value])
        };
        let terms: Option<Vec<Term>> = edges.iter().map(known).collect();
        match terms.as_deref() {
            Some([first, rest @ ..]) if rest.iter().all(|term| term == first) => *first,
            _ => {
                self.joined.insert(param, Vec::new());
                self.term(Node::Joined(param))
            }
        }
    }

    fn operation(&mut self, result: Value, op: &Op) -> Term {
        let node = match *op {
            Op::IntConst { value, .. } => Node::Const(value),
            Op::PtrConst(address) => Node::Const(address as i64),
            Op::BoolConst(value) => Node::Const(i64::from(value)),
            Op::StackAddr(slot, offset) => return self.address(Node::Slot(slot), offset),
            Op::DataAddr(data, offset) => return self.address(Node::Data(data), offset),
            Op::Load { ty, ptr, offset, .. } => {
                let address = self.offset(self.value(ptr), i64::from(offset));
                match self.node(self.split(address).0) {
                    // The wrapper writes there, so the value depends on the time.
                    Node::Slot(_) | Node::Data(_) => Node::Other(result),
                    _ => Node::Load(ty.bytes(), address),
                }
            }
            Op::PtrAdd(base, bytes) => {
                let (base, bytes) = (self.value(base), self.value(bytes));
                return match self.node(bytes) {
                    Node::Const(bytes) => self.offset(base, bytes),
                    _ => self.term(Node::Within(base)),
                };
            }
            Op::Element { base, index, ty } => {
                let (base, index) = (self.value(base), self.value(index));
                return match self.node(index) {
                    Node::Const(index) => self.offset(base, index.wrapping_mul(i64::from(ty.bytes()))),
                    _ => self.term(Node::Within(base)),
                };
            }
            Op::Unary(UnaryOp::Not, value) => Node::Not(self.value(value)),
            Op::Binary(op, a, b) => Node::Binary(op, self.value(a), self.value(b)),
            Op::ICmp(cc, a, b) => Node::Compare(cc, self.value(a), self.value(b)),
            Op::Select(cond, a, b) => Node::Select(self.value(cond), self.value(a), self.value(b)),
            Op::Convert(ConvertOp::PtrToInt | ConvertOp::IntToPtr, _, value) => return self.value(value),
            // the low half of a loaded word
            Op::Convert(ConvertOp::Truncate, ty, value) => match self.node(self.value(value)) {
                Node::Load(bytes, address) if bytes > ty.bytes() => Node::Load(ty.bytes(), address),
                _ => Node::Other(result),
            },
            _ => Node::Other(result),
        };
        self.term(node)
    }

    fn address(&mut self, base: Node, offset: u32) -> Term {
        let base = self.term(base);
        self.offset(base, i64::from(offset))
    }

    /// The term of a node.
    pub fn term(&mut self, node: Node) -> Term {
        let next = Term(self.nodes.len() as u32);
        let term = *self.numbers.entry(node).or_insert(next);
        if term == next {
            self.nodes.push(node);
        }
        term
    }

    /// The term of a node, if the function has it.
    pub fn find(&self, node: Node) -> Option<Term> {
        self.numbers.get(&node).copied()
    }

    /// The term of an address that is a number of bytes behind another.
    fn offset(&mut self, base: Term, bytes: i64) -> Term {
        let (base, before) = self.split(base);
        match before.wrapping_add(bytes) {
            0 => base,
            bytes => self.term(Node::Offset(base, bytes)),
        }
    }

    /// The load of that many bytes at a distance from an address, if the function has it.
    pub fn find_load(&self, bytes: u32, base: Term, offset: i64) -> Option<Term> {
        let (base, before) = self.split(base);
        let address = match before.wrapping_add(offset) {
            0 => base,
            offset => self.find(Node::Offset(base, offset))?,
        };
        self.find(Node::Load(bytes, address))
    }

    /// An address as a base and bytes.
    pub fn split(&self, address: Term) -> (Term, i64) {
        match self.node(address) {
            Node::Offset(base, bytes) => (base, bytes),
            _ => (address, 0),
        }
    }

    pub fn node(&self, term: Term) -> Node {
        self.nodes[term.0 as usize]
    }

    /// The term of a value.
    pub fn value(&self, value: Value) -> Term {
        self.values[&value]
    }

    /// The terms that the edges pass for a joined parameter.
    pub fn alternatives(&self, param: Value) -> &[(Edge, Term)] {
        self.joined.get(&param).map_or(&[], Vec::as_slice)
    }
}

/// The size of a type in bytes.
pub fn bytes(ty: Type) -> i64 {
    i64::from(ty.bytes())
}
