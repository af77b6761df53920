//! Dimensions on the fast path: variables are bound, compared or solved for; expressions are computed when needed.
//!
//! Dimension variables are bound in another order than the contract's. If all checks hold, the order makes no
//! difference.

use std::collections::{BTreeSet, HashMap};
use std::ops::Bound;

use super::checks::Checks;
use super::range::Range;
use super::state::{Binding, KnownShape, Ranged, Saved};
use crate::ir::{IntCC, MemFlags, StackSlot, Type, Value};
use crate::lower::arithmetic::{
    DimCode, Overflow, checked, division_by_positive, extremum, lower_dim, rounded_division, wrapping,
};
use crate::lower::plan::{Plan, solvable};
use crate::lower::protocol::{self, TARGET};
use crate::spec::{CompareOp, Constraint, Dim, DimOp};

/// A dimension that waits until a variable is bound.
struct Deferred {
    dim: Dim,
    got: Ranged,
}

/// The variables, shapes and deferred dimensions of a wrapper.
pub(in crate::lower) struct Dims {
    bindings: Vec<Binding>,
    /// The index of a variable in the bindings, by its name.
    places: HashMap<String, usize>,
    deferred: Vec<Deferred>,
    known: Vec<KnownShape>,
    /// Whether variables are spilled.
    spills: bool,
    /// Whether the binder has done all checks, so variables have the values that it bound.
    bound: bool,
}

/// The variables and shapes that are known at a point of the code.
pub(super) struct Mark {
    bindings: usize,
    known: usize,
}

impl Dims {
    pub(in crate::lower) fn new(plan: &Plan<'_>) -> Self {
        Dims {
            bindings: Vec::new(),
            places: HashMap::new(),
            deferred: Vec::new(),
            known: Vec::new(),
            spills: plan.spills_vars,
            bound: plan.binds_first,
        }
    }

    /// Loads the values of all variables from the binder's bindings in its scratch memory. Each binding has `size`
    /// bytes.
    pub(in crate::lower) fn preload(&mut self, c: &mut Checks<'_, '_>, plan: &Plan<'_>, scratch: StackSlot, size: i64) {
        let address = c.b.stack_addr(scratch);
        let first = protocol::bindings_offset(plan.signature);
        for (i, name) in (0..).zip(plan.signature.names_in_dims()) {
            let offset = (first + i * size) as i32;
            let value = match self.spills {
                true => Saved::Spilled(scratch, offset, Type::I64),
                false => Saved::Value(c.b.load(Type::I64, address, offset, MemFlags::ALIGNED)),
            };
            self.push_binding(name, value, Range::ANY);
        }
    }

    fn push_binding(&mut self, name: &str, value: Saved, range: Range) {
        // the first binding of a name counts
        self.places.entry(name.to_owned()).or_insert(self.bindings.len());
        self.bindings.push(Binding { value, range });
    }

    /// Records what is known before a conditional part of the code.
    pub(super) fn mark(&self) -> Mark {
        Mark { bindings: self.bindings.len(), known: self.known.len() }
    }

    /// Forgets the variables and shapes learned since the mark.
    pub(super) fn forget_since(&mut self, mark: Mark) {
        self.bindings.truncate(mark.bindings);
        self.places.retain(|_, place| *place < mark.bindings);
        self.known.truncate(mark.known);
    }

    fn binding(&self, name: &str) -> Option<&Binding> {
        self.bindings.get(*self.places.get(name)?)
    }

    /// A variable's value, if it is bound.
    fn value_of(&self, c: &mut Checks<'_, '_>, name: &str) -> Option<Ranged> {
        let Binding { value, range } = self.binding(name)?;
        Some(Ranged { value: value.reload(c.b), range: *range })
    }

    /// Binds a variable to a value.
    fn bind(&mut self, c: &mut Checks<'_, '_>, name: &str, Ranged { value, range }: Ranged) {
        let value = if self.spills { Saved::spill(c.b, value) } else { Saved::Value(value) };
        self.push_binding(name, value, range);
    }

    /// Binds a variable to the value of an integer parameter, unless the binder has compared the two.
    pub(super) fn bind_param(&mut self, c: &mut Checks<'_, '_>, name: &str, value: Ranged) {
        if !self.bound {
            self.bind(c, name, value);
        }
    }

    /// Compares a size or stride with a constant or a bound variable; otherwise binds the variable. A size must not be
    /// negative; this is tested unless it equals a value that is known not to be.
    pub(super) fn match_dim(&mut self, c: &mut Checks<'_, '_>, dim: &Dim, got: Value, is_size: bool) {
        let ranged = Ranged { value: got, range: if is_size { Range::SIZE } else { Range::ANY } };
        let vouched = match dim {
            Dim::Const(expected) => {
                let expected = c.b.i64(*expected);
                c.require_equal(got, expected);
                true
            }
            Dim::Var(name) => match self.binding(name) {
                Some(binding) => {
                    let value = binding.value.reload(c.b);
                    c.require_equal(value, got);
                    binding.range.is_size()
                }
                None => {
                    self.bind(c, name, ranged);
                    false
                }
            },
            // the binder has already checked it
            Dim::Binary(..) if self.bound => false,
            Dim::Binary(..) => {
                let deferred = Deferred { dim: dim.clone(), got: ranged };
                if !self.decide(c, &deferred) {
                    self.deferred.push(deferred);
                }
                false
            }
        };
        if is_size && !vouched {
            c.require_non_negative(got);
        }
    }

    /// The unbound variables of an expression, without duplicates.
    fn unknown<'d>(&self, dim: &'d Dim) -> Vec<&'d str> {
        let mut unknown = Vec::new();
        dim.for_each_var(&mut |name| {
            if self.binding(name).is_none() && !unknown.contains(&name) {
                unknown.push(name);
            }
        });
        unknown
    }

    /// Compares an expression or solves it; returns whether that was possible. Emits no code for an expression that has
    /// to wait longer.
    fn decide(&mut self, c: &mut Checks<'_, '_>, deferred: &Deferred) -> bool {
        let Deferred { dim, got } = deferred;
        if let Some((name, solved)) = solvable(dim, &|name| self.binding(name).is_some()) {
            let (name, is_solution) = (name.to_owned(), dim.is_sum_of(name));
            if let Some(mut candidate) = self.compute(c, &solved, Some(*got)) {
                if got.range.is_size() {
                    candidate = c.require_size(candidate);
                }
                self.bind(c, &name, candidate);
                // put into the sum again, it gives `got`
                if is_solution {
                    return true;
                }
            }
        }
        if !self.unknown(dim).is_empty() {
            return false;
        }
        if let Some(expected) = self.compute(c, dim, None) {
            c.require_equal(expected.value, got.value);
        }
        true
    }

    /// Resolves the deferred dimensions, in passes from the first to the last. The binder has already resolved any that
    /// this function can't. A dimension is revisited only when at most one of its variables is unbound, so a long chain
    /// takes linear time in any order.
    pub(super) fn decide_deferred(&mut self, c: &mut Checks<'_, '_>) {
        let deferred = std::mem::take(&mut self.deferred);
        // for each dimension, its number of unbound variables; for each unbound variable, the dimensions that contain
        // it
        let mut missing = Vec::with_capacity(deferred.len());
        let mut occurrences: HashMap<&str, Vec<usize>> = HashMap::new();
        for (number, Deferred { dim, .. }) in deferred.iter().enumerate() {
            let unknown = self.unknown(dim);
            missing.push(unknown.len());
            unknown.into_iter().for_each(|name| occurrences.entry(name).or_default().push(number));
        }
        let mut ready: BTreeSet<usize> = (0..deferred.len()).filter(|number| missing[*number] <= 1).collect();
        let mut last = None;
        loop {
            // the next one of this pass, or the first of a new pass
            let from = last.map_or(Bound::Unbounded, Bound::Excluded);
            let next = ready.range((from, Bound::Unbounded)).next().or(ready.first());
            let Some(number) = next.copied() else { return };
            ready.remove(&number);
            last = Some(number);
            let unknown = self.unknown(&deferred[number].dim);
            if !self.decide(c, &deferred[number]) {
                continue;
            }
            for other in unknown.into_iter().filter_map(|name| occurrences.remove(name)).flatten() {
                missing[other] -= 1;
                if missing[other] <= 1 && other != number {
                    ready.insert(other);
                }
            }
        }
    }

    /// The value of an expression, with the condition that no step overflows; `None` if a variable is unbound. `target`
    /// is the start value of a solved expression.
    fn compute(&self, c: &mut Checks<'_, '_>, dim: &Dim, target: Option<Ranged>) -> Option<Ranged> {
        lower_dim(&mut CheckedCode { dims: self, c, target }, dim)
    }

    /// The value of a size that is computed from variables, with the conditions that it isn't negative and no step
    /// overflows.
    pub(in crate::lower) fn size(&self, c: &mut Checks<'_, '_>, dim: &Dim) -> Value {
        match self.compute(c, dim, None) {
            Some(size) => c.require_size(size).value,
            None => c.missing(format!("the value of {dim}, a size of the result"), Type::I64),
        }
    }

    /// Requires a constraint to hold, unless the binder has checked it.
    pub(super) fn constrain(&mut self, c: &mut Checks<'_, '_>, constraint: &Constraint) {
        if self.bound {
            return;
        }
        let sides = (self.compute(c, &constraint.left, None), self.compute(c, &constraint.right, None));
        let (Some(Ranged { value: left, .. }), Some(Ranged { value: right, .. })) = sides else { return };
        let compare = match constraint.op {
            CompareOp::Eq => return c.require_equal(left, right),
            CompareOp::Ne => IntCC::Ne,
            CompareOp::Lt => IntCC::SLt,
            CompareOp::Le => IntCC::SLe,
            CompareOp::Gt => IntCC::SGt,
            CompareOp::Ge => IntCC::SGe,
        };
        let holds = c.b.icmp(compare, left, right);
        c.require(holds);
    }

    /// The value to use for a size that has been [matched](Self::match_dim): its variable's value, so the size itself
    /// need not stay live.
    pub(super) fn matched(&self, dim: &Dim, got: Value) -> Value {
        let Dim::Var(name) = dim else { return got };
        match self.binding(name).map(|bound| bound.value) {
            Some(Saved::Value(value)) => value,
            _ => got,
        }
    }

    /// Remembers the shape of a tensor with matched sizes; returns its number.
    pub(super) fn remember(&mut self, c: &mut Checks<'_, '_>, dims: &[Dim], sizes: Vec<Value>, shape: Value) -> usize {
        let checked = dims.iter().any(|dim| !matches!(dim, Dim::Const(_)));
        let compact = c.products(&sizes, checked);
        self.known.push(KnownShape { dims: dims.to_vec(), sizes, compact, shape, strides: None });
        self.known.len() - 1
    }

    /// The number of a remembered shape with these dimensions.
    pub(super) fn find(&self, dims: &[Dim]) -> Option<usize> {
        self.known.iter().position(|known| known.dims == dims)
    }

    /// A remembered shape.
    pub(super) fn known(&mut self, number: usize) -> &mut KnownShape {
        &mut self.known[number]
    }

    /// A variable's value for the kernel.
    pub(in crate::lower) fn var(&self, c: &mut Checks<'_, '_>, name: &str) -> Value {
        match self.value_of(c, name) {
            Some(Ranged { value, .. }) => value,
            None => c.missing(format!("the value of dimension variable `{name}`"), Type::I64),
        }
    }
}

/// Code of expressions where every step has to fit.
struct CheckedCode<'d, 'c, 'b, 'm> {
    dims: &'d Dims,
    c: &'c mut Checks<'b, 'm>,
    target: Option<Ranged>,
}

impl DimCode for CheckedCode<'_, '_, '_, '_> {
    type Number = Ranged;

    fn constant(&mut self, value: i64) -> Ranged {
        Ranged { value: self.c.b.i64(value), range: Range::of(value) }
    }

    fn var(&mut self, name: &str) -> Option<Ranged> {
        match name {
            TARGET => self.target,
            name => self.dims.value_of(self.c, name),
        }
    }

    fn operation(&mut self, op: DimOp, x: Ranged, y: Ranged, divisor: Option<i64>) -> Ranged {
        let range = Range::after(op, x.range, y.range);
        let (x, y) = (x.value, y.value);
        let value = match (op, divisor) {
            (_, Some(1..)) if op.is_division() => division_by_positive(self.c.b, op, x, y),
            // The binder has already computed it, so it doesn't trap here: the plan leaves divisors other than positive
            // constants to the binder.
            _ if op.is_division() => rounded_division(self.c.b, op, x, y),
            (DimOp::Min | DimOp::Max, _) => extremum(self.c.b, op, x, y),
            _ if range.fits() => wrapping(self.c.b, op, x, y),
            _ => {
                let (value, overflow) = checked(self.c.b, op, x, y);
                match overflow {
                    Overflow::Negative(sign) => self.c.require_non_negative(sign),
                    Overflow::Different(x, y) => self.c.require_equal(x, y),
                }
                value
            }
        };
        Ranged { value, range: range.within(Range::ANY) }
    }
}
