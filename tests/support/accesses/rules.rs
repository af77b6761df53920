//! The rules: which facts an access needs.

use std::collections::HashMap;
use std::mem::{offset_of, size_of};

use tvm_ffi_codegen::ir::{Block, DataKind, Function, Inst, Module, Op, Terminator};
use tvm_ffi_codegen::runtime::abi::{
    DLTensor, TVMFFIAny, TVMFFIByteArray, TVMFFIFunctionCell, TVMFFIObject, TVMFFISeqCell, TVMFFIShapeCell, TypeIndex,
};

use super::facts::{Facts, Table};
use super::graph::{Edge, Graph, targets};
use super::terms::{Node, Term, Terms, bytes};
use super::{Proof, Violation};

const ANY: i64 = size_of::<TVMFFIAny>() as i64;
const PAYLOAD: i64 = offset_of!(TVMFFIAny, v) as i64;
const HEADER: i64 = size_of::<TVMFFIObject>() as i64;
const NDIM: i64 = HEADER + offset_of!(DLTensor, ndim) as i64;
const SHAPE: i64 = HEADER + offset_of!(DLTensor, shape) as i64;
const STRIDES: i64 = HEADER + offset_of!(DLTensor, strides) as i64;
const DATA: i64 = HEADER + offset_of!(DLTensor, data) as i64;
/// The data pointer and the length of the cells of Shapes, sequences and strings.
const CELL_DATA: i64 = HEADER;
const CELL_SIZE: i64 = HEADER + 8;

/// The parameters of a wrapper.
const HANDLE: u32 = 0;
const ARGS: u32 = 1;
const NUM_ARGS: u32 = 2;
const RESULT: u32 = 3;

/// Why an access is allowed.
enum Allowed {
    Proven,
    Own,
    Trusted,
}

type Verdict = Result<Allowed, String>;

/// Checks a function's accesses.
pub fn check(module: &Module, name: &str, function: &Function, proof: &mut Proof, violations: &mut Vec<Violation>) {
    let graph = Graph::of(function);
    let terms = Terms::of(function, &graph);
    let table = table(function, &terms, &graph);
    let edges = facts_of_edges(function, &terms, &table, &graph);
    let rules = Rules { module, function, terms: &terms, table: &table, edges: &edges };
    for &block in &graph.order {
        let facts = at_entry(&graph, &edges, block);
        for &inst in &function.blocks[block].insts {
            for verdict in rules.instruction(inst, &facts) {
                match verdict {
                    Ok(Allowed::Proven) => proof.proven += 1,
                    Ok(Allowed::Own) => proof.own += 1,
                    Ok(Allowed::Trusted) => proof.trusted += 1,
                    Err(problem) => violations.push(Violation {
                        function: name.to_owned(),
                        block: format!("{block}"),
                        access: format!("{:?}", function.insts[inst].op),
                        problem,
                    }),
                }
            }
        }
    }
}

/// The facts on each edge.
type Edges = HashMap<Edge, Facts>;

/// The facts that the conditions of branches and selections may imply.
fn table(function: &Function, terms: &Terms<'_>, graph: &Graph) -> Table {
    let mut table = Table::default();
    for &block in &graph.order {
        if let Some(Terminator::Branch { cond, .. }) = &function.blocks[block].terminator {
            table.add(terms, terms.value(*cond));
        }
        for &inst in &function.blocks[block].insts {
            if let Op::Select(cond, ..) = function.insts[inst].op {
                table.add(terms, terms.value(cond));
            }
        }
    }
    table
}

/// Finds the facts of all edges. An edge that isn't known yet is one of a loop and restricts nothing, until it is.
fn facts_of_edges(function: &Function, terms: &Terms<'_>, table: &Table, graph: &Graph) -> Edges {
    let mut edges = Edges::new();
    loop {
        let mut changed = false;
        for &from in &graph.order {
            let before = at_entry(graph, &edges, from);
            for target in 0..targets(function, from).len() {
                let facts = match &function.blocks[from].terminator {
                    Some(Terminator::Branch { cond, .. }) => table.after(&before, terms.value(*cond), target == 0),
                    _ => before.clone(),
                };
                let edge = Edge { from, target };
                if edges.get(&edge) != Some(&facts) {
                    edges.insert(edge, facts);
                    changed = true;
                }
            }
        }
        if !changed {
            return edges;
        }
    }
}

fn at_entry(graph: &Graph, edges: &Edges, block: Block) -> Facts {
    let mut known = graph.edges_to(block).iter().filter_map(|edge| edges.get(edge));
    let first = known.next().cloned().unwrap_or_default();
    known.fold(first, Facts::both)
}

struct Rules<'a> {
    module: &'a Module,
    function: &'a Function,
    terms: &'a Terms<'a>,
    table: &'a Table,
    edges: &'a Edges,
}

impl Rules<'_> {
    fn instruction(&self, inst: Inst, facts: &Facts) -> Vec<Verdict> {
        let terms = self.terms;
        match &self.function.insts[inst].op {
            Op::Load { ty, ptr, offset, .. } => {
                vec![self.read(terms.value(*ptr), i64::from(*offset), bytes(*ty), facts)]
            }
            Op::LoadAcquire(ptr) => vec![self.read(terms.value(*ptr), 0, 8, facts)],
            Op::SameBytes(pairs, bytes) => pairs
                .iter()
                .flat_map(|(a, b)| [a, b])
                .map(|ptr| self.read(terms.value(*ptr), 0, i64::from(*bytes), facts))
                .collect(),
            Op::Store { value, ptr, offset, .. } => {
                vec![self.write(terms.value(*ptr), i64::from(*offset), bytes(self.function.type_of(*value)), facts)]
            }
            Op::AtomicAdd(ptr, _) | Op::CompareExchange(ptr, ..) => vec![self.write(terms.value(*ptr), 0, 8, facts)],
            _ => Vec::new(),
        }
    }

    /// A read of `size` bytes, `offset` bytes behind an address.
    fn read(&self, address: Term, offset: i64, size: i64, facts: &Facts) -> Verdict {
        let (base, before) = self.terms.split(address);
        let at = before + offset;
        match self.terms.node(base) {
            Node::Param(ARGS) => self.argument(base, at, size, facts),
            Node::Load(_, from) => self.read_behind(base, from, at, size, facts),
            Node::Joined(param) => match self.is_tensor(base, facts) {
                true => self.read_tensor(base, at, size, facts),
                false => {
                    self.each(self.terms.alternatives(param), facts, |term, facts| self.read(term, at, size, facts))
                }
            },
            Node::Select(cond, a, b) => {
                self.either(cond, [a, b], facts, |term, facts| self.read(term, at, size, facts))
            }
            _ => self.own_or_trusted(base, at, size, false),
        }
    }

    fn write(&self, address: Term, offset: i64, size: i64, facts: &Facts) -> Verdict {
        let (base, before) = self.terms.split(address);
        let at = before + offset;
        match self.terms.node(base) {
            Node::Param(ARGS) => Err("a write to the argument array".to_owned()),
            Node::Load(_, from) => match self.is_trusted(base) || self.is_elements(from, facts) {
                true => Ok(Allowed::Trusted),
                false => Err("a write to memory of an argument".to_owned()),
            },
            Node::Joined(param) => {
                self.each(self.terms.alternatives(param), facts, |term, facts| self.write(term, at, size, facts))
            }
            Node::Select(cond, a, b) => {
                self.either(cond, [a, b], facts, |term, facts| self.write(term, at, size, facts))
            }
            _ => self.own_or_trusted(base, at, size, true),
        }
    }

    /// Every alternative of a joined address must be allowed. If a loop moves the address, each must be trusted: the
    /// distance is known only at run time.
    fn each(&self, alternatives: &[(Edge, Term)], facts: &Facts, check: impl Fn(Term, &Facts) -> Verdict) -> Verdict {
        let (moved, starts): (Vec<_>, Vec<_>) = alternatives.iter().copied().partition(|(_, term)| {
            matches!(self.terms.node(self.terms.split(*term).0), Node::Within(_) | Node::Joined(_))
        });
        let mut allowed = Err("an address without a start".to_owned());
        for (edge, term) in starts {
            allowed = match check(term, &self.edges[&edge].and(facts))? {
                Allowed::Proven | Allowed::Own if !moved.is_empty() => {
                    return Err("an address that a loop moves".to_owned());
                }
                verdict => Ok(verdict),
            };
        }
        allowed
    }

    fn either(&self, cond: Term, [a, b]: [Term; 2], facts: &Facts, check: impl Fn(Term, &Facts) -> Verdict) -> Verdict {
        check(a, &self.table.after(facts, cond, true))?;
        check(b, &self.table.after(facts, cond, false))
    }

    fn own_or_trusted(&self, base: Term, at: i64, size: i64, writes: bool) -> Verdict {
        let own = |len: i64, what: &str| match at >= 0 && at + size <= len {
            true => Ok(Allowed::Own),
            false => Err(format!("bytes {at} to {} of {what}, which has {len}", at + size)),
        };
        match self.terms.node(base) {
            Node::Param(RESULT) => own(ANY, "the result"),
            Node::Slot(slot) => own(i64::from(self.function.slots[slot].size), "a slot"),
            Node::Data(data) => match &self.module.data[data] {
                data if writes && data.kind == DataKind::Constant => Err("a write to constant data".to_owned()),
                data => own(data.bytes.len() as i64, "data"),
            },
            Node::Within(inner) => match self.terms.node(self.terms.split(inner).0) {
                Node::Param(ARGS) => Err("an address in the argument array that is known only at run time".to_owned()),
                _ => Ok(Allowed::Trusted),
            },
            Node::Const(0) => Err("NULL".to_owned()),
            _ => Ok(Allowed::Trusted),
        }
    }

    /// A read of the argument array: C3.1 and C3.3.
    fn argument(&self, args: Term, at: i64, size: i64, facts: &Facts) -> Verdict {
        let count =
            self.terms.find(Node::Param(NUM_ARGS)).and_then(|count| self.table.constant(facts, self.terms, count));
        match count {
            _ if !self.table.is_not_zero(facts, args) => Err("C3.3: `args` may be NULL".to_owned()),
            Some(count) if at >= 0 && at + size <= count * ANY => Ok(Allowed::Proven),
            Some(count) => Err(format!("C3.1: bytes {at} to {} of {count} arguments", at + size)),
            None => Err("C3.1: the number of arguments is unknown".to_owned()),
        }
    }

    /// A read behind a pointer that was loaded `from` an address.
    fn read_behind(&self, pointer: Term, from: Term, at: i64, size: i64, facts: &Facts) -> Verdict {
        let (holder, field) = self.terms.split(from);
        if self.is_trusted(pointer) {
            return Ok(Allowed::Trusted);
        }
        if self.is_any(holder, field - PAYLOAD, facts) {
            return self.read_object(pointer, (holder, field - PAYLOAD), at, size, facts);
        }
        let not_null = |clause: &str| match self.table.is_not_zero(facts, pointer) {
            true => Ok(()),
            false => Err(format!("{clause}: the pointer may be NULL")),
        };
        if self.is_tensor(holder, facts) {
            let (clause, what) = match field {
                SHAPE => ("C5.8", "shape"),
                STRIDES => ("C5.17", "strides"),
                DATA => return Ok(Allowed::Trusted),
                _ => return Err(format!("the field at {field} of a tensor is no pointer")),
            };
            not_null(clause)?;
            return match self.rank(holder, facts) {
                Some(rank) if at >= 0 && at + size <= 8 * rank => Ok(Allowed::Proven),
                Some(rank) => Err(format!("C5.2: byte {} of the {what} of {rank} dimensions", at + size)),
                None => Err(format!("C5.2: a {what} of unknown rank")),
            };
        }
        let element = match (self.kind_of_object(holder, facts), field) {
            (Some(TypeIndex::ARRAY | TypeIndex::LIST), CELL_DATA) => ANY,
            (Some(TypeIndex::SHAPE), CELL_DATA) => 8,
            (Some(TypeIndex::STR | TypeIndex::BYTES), CELL_DATA) => 1,
            _ => return Err("a pointer from memory of the caller that has no known layout".to_owned()),
        };
        if element != ANY {
            not_null("C8.10")?;
        }
        match self.length(holder, facts) {
            Some(length) if at >= 0 && at + size <= element * length => Ok(Allowed::Proven),
            Some(length) => Err(format!("C4.6, C4.13: byte {} of {length} entries", at + size)),
            None => Err("C4.6, C4.13: the length is unknown".to_owned()),
        }
    }

    /// A read of the object that a `TVMFFIAny` holds.
    fn read_object(&self, pointer: Term, any: (Term, i64), at: i64, size: i64, facts: &Facts) -> Verdict {
        if !self.table.is_not_zero(facts, pointer) {
            return Err("C4.4, C5.1: the object may be NULL".to_owned());
        }
        let Some(kind) = self.kind(any, facts) else { return Err("C4.1: the type is unknown".to_owned()) };
        let length = match kind {
            TypeIndex::TENSOR => HEADER + size_of::<DLTensor>() as i64,
            TypeIndex::STR | TypeIndex::BYTES => HEADER + size_of::<TVMFFIByteArray>() as i64,
            TypeIndex::SHAPE => HEADER + size_of::<TVMFFIShapeCell>() as i64,
            TypeIndex::ARRAY | TypeIndex::LIST => HEADER + size_of::<TVMFFISeqCell>() as i64,
            TypeIndex::FUNCTION => HEADER + size_of::<TVMFFIFunctionCell>() as i64,
            TypeIndex::DL_TENSOR_PTR => size_of::<DLTensor>() as i64,
            kind if kind.is_object() => HEADER,
            kind => return Err(format!("C4.1: type {} has no object", kind.0)),
        };
        match at >= 0 && at + size <= length {
            true => Ok(Allowed::Proven),
            false => Err(format!("byte {} of an object of type {}, which has {length}", at + size, kind.0)),
        }
    }

    /// A read of a tensor's `DLTensor`, at an address that is a header's size before it.
    fn read_tensor(&self, tensor: Term, at: i64, size: i64, facts: &Facts) -> Verdict {
        match self.table.is_not_zero(facts, tensor) {
            false => Err("C5.1: the tensor may be NULL".to_owned()),
            true if at >= HEADER && at + size <= HEADER + size_of::<DLTensor>() as i64 => Ok(Allowed::Proven),
            true => Err(format!("byte {at} of a `DLTensor`, which has no object's header")),
        }
    }

    /// True if the address is that of a caller's `TVMFFIAny`: an argument, or an item of a tuple.
    fn is_any(&self, base: Term, at: i64, facts: &Facts) -> bool {
        at % ANY == 0
            && match self.terms.node(base) {
                Node::Param(ARGS) => true,
                Node::Load(_, from) => {
                    let (object, field) = self.terms.split(from);
                    field == CELL_DATA
                        && matches!(self.kind_of_object(object, facts), Some(TypeIndex::ARRAY | TypeIndex::LIST))
                }
                _ => false,
            }
    }

    /// The type index of a `TVMFFIAny`.
    fn kind(&self, (base, at): (Term, i64), facts: &Facts) -> Option<TypeIndex> {
        let index = self.terms.find_load(4, base, at)?;
        self.table.constant(facts, self.terms, index).map(|index| TypeIndex(index as i32))
    }

    /// The type of the object that a term points to, if a `TVMFFIAny` of the caller holds it.
    fn kind_of_object(&self, pointer: Term, facts: &Facts) -> Option<TypeIndex> {
        let Node::Load(_, from) = self.terms.node(pointer) else { return None };
        let (base, field) = self.terms.split(from);
        if !self.is_any(base, field - PAYLOAD, facts) {
            return None;
        }
        self.kind((base, field - PAYLOAD), facts)
    }

    /// True if a term is NULL, or the address of a `DLTensor` minus the size of an object's header.
    fn is_tensor(&self, term: Term, facts: &Facts) -> bool {
        match self.terms.node(term) {
            Node::Load(..) => self.kind_of_object(term, facts) == Some(TypeIndex::TENSOR),
            // `DLTensor*`, moved unless it is NULL
            Node::Select(_, moved, null) => {
                self.terms.split(moved) == (null, -HEADER)
                    && self.kind_of_object(null, facts) == Some(TypeIndex::DL_TENSOR_PTR)
            }
            Node::Joined(param) => {
                let alternatives = self.terms.alternatives(param);
                let tensor = |(edge, term): &(Edge, Term)| {
                    !matches!(self.terms.node(*term), Node::Joined(_))
                        && self.is_tensor(*term, &self.edges[edge].and(facts))
                };
                !alternatives.is_empty() && alternatives.iter().all(tensor)
            }
            _ => false,
        }
    }

    /// A tensor's rank.
    fn rank(&self, tensor: Term, facts: &Facts) -> Option<i64> {
        let word = |bytes| {
            let word = self.terms.find_load(bytes, tensor, NDIM)?;
            self.table.constant(facts, self.terms, word)
        };
        word(4).or_else(|| word(8)).map(|word| i64::from(word as i32))
    }

    /// The number of entries of a Shape, a sequence or a string.
    fn length(&self, object: Term, facts: &Facts) -> Option<i64> {
        let length = self.terms.find_load(8, object, CELL_SIZE)?;
        self.table.constant(facts, self.terms, length)
    }

    /// True if a pointer loaded from this address points to a tensor's elements.
    fn is_elements(&self, from: Term, facts: &Facts) -> bool {
        let (holder, field) = self.terms.split(from);
        field == DATA && self.is_tensor(holder, facts)
    }

    /// True if a pointer comes from the binder, the runtime or a body, and not from an argument.
    fn is_trusted(&self, pointer: Term) -> bool {
        match self.terms.node(pointer) {
            Node::Load(_, address) | Node::Within(address) | Node::Offset(address, _) => self.is_trusted(address),
            Node::Param(HANDLE | RESULT..) | Node::Other(_) => true,
            Node::Select(_, a, b) => self.is_trusted(a) && self.is_trusted(b),
            Node::Joined(param) => {
                let trusted = |(_, term): &(Edge, Term)| {
                    !matches!(self.terms.node(*term), Node::Joined(_)) && self.is_trusted(*term)
                };
                self.terms.alternatives(param).iter().all(trusted)
            }
            _ => false,
        }
    }
}
