//! Dimensions on the good path: symbols are bound, compared, solved for; expressions are computed where they are needed.
//!
//! The order in which symbols get their values here is not the contract's: where all is well, it makes no difference.

use std::collections::HashSet;

use super::super::wrapper::{Bound, Held, KnownDims, Lowerer};
use crate::ir::{BinaryOp, IntCC, MemFlags, Type, Value};
use crate::lower::division::floor_division;
use crate::lower::program::TARGET;
use crate::spec::{CompareOp, Constraint, Dim, DimOp, ParamType, Signature};

/// A dimension that can't be decided yet.
pub(in crate::lower) struct Deferred {
    dim: Dim,
    got: Value,
    is_size: bool,
}

/// Whether the good path can compute an expression: a divisor is a positive constant, so that nothing traps.
fn is_computable(dim: &Dim) -> bool {
    match dim {
        Dim::Const(_) | Dim::Symbol(_) => true,
        Dim::Binary(DimOp::FloorDiv | DimOp::Mod, x, y) => {
            is_computable(x) && matches!(y.eval(&|_| None), Some(1..)) && is_computable(y)
        }
        Dim::Binary(_, x, y) => is_computable(x) && is_computable(y),
    }
}

/// The one symbol of an expression that is not known, if the good path can solve it for that.
fn solvable<'a>(dim: &'a Dim, known: &dyn Fn(&str) -> bool) -> Option<(&'a str, Dim)> {
    let mut unknown = Vec::new();
    dim.for_each_symbol(&mut |name| {
        if !known(name) && !unknown.contains(&name) {
            unknown.push(name);
        }
    });
    let [name] = unknown[..] else { return None };
    let solved = dim.solved_for(name, Dim::Symbol(TARGET.to_owned()))?;
    is_computable(&solved).then_some((name, solved))
}

/// Whether the good path can give every name in dimensions its value, and compute all that it would have to: carriers are always
/// there, and divisors are numbers.
pub(super) fn can_decide(signature: &Signature) -> bool {
    let mut known: HashSet<&str> = HashSet::new();
    let mut dims: Vec<&Dim> = Vec::new();
    for param in signature.params() {
        if param.ty.as_scalar().is_some() {
            known.insert(&param.name);
        }
        firm_dims(&param.ty, &mut dims);
    }
    loop {
        let before = known.len();
        for dim in &dims {
            if let Some((name, _)) = solvable(dim, &|name| known.contains(name)) {
                known.insert(name);
            }
        }
        if known.len() == before {
            break;
        }
    }
    let mut computable = signature.constraints().iter().all(|c| is_computable(&c.left) && is_computable(&c.right));
    let types = signature.params().iter().map(|param| &param.ty).chain(signature.ret());
    types.for_each(|ty| ty.for_each_dim(&mut |dim| computable &= is_computable(dim)));
    computable && signature.names_in_dims().into_iter().all(|name| known.contains(name))
}

/// The dimensions of what a call always passes: not what is optional, nor in a container.
fn firm_dims<'a>(ty: &'a ParamType, dims: &mut Vec<&'a Dim>) {
    match ty {
        ParamType::Tensor(_) | ParamType::Shape(_) => ty.for_each_dim(&mut |dim| dims.push(dim)),
        ParamType::Tuple(items) => items.iter().for_each(|item| firm_dims(item, dims)),
        _ => {}
    }
}

impl Lowerer<'_> {
    fn bound(&self, name: &str) -> Option<&Bound> {
        self.bound.iter().find(|b| b.name == name)
    }

    /// A symbol's value, if it has one.
    fn value_of(&mut self, name: &str) -> Option<Value> {
        let held = self.bound(name)?.value;
        Some(self.held(held))
    }

    pub(super) fn bind(&mut self, name: &str, value: Value, is_size: bool) {
        let value = if self.many_symbols { self.hold(value) } else { Held::Value(value) };
        self.bound.push(Bound { name: name.to_owned(), value, is_size });
    }

    /// Puts a value into the frame, unless it is a constant.
    pub(super) fn hold(&mut self, value: Value) -> Held {
        if self.b.as_int_const(value).is_some() {
            return Held::Value(value);
        }
        let slot = self.b.slot(8, 8);
        let address = self.b.stack_addr(slot);
        self.b.store(value, address, 0, MemFlags::ALIGNED);
        Held::Slot(slot, 0, self.b.type_of(value))
    }

    /// The value as it was.
    pub(super) fn held(&mut self, held: Held) -> Value {
        match held {
            Held::Value(value) => value,
            Held::Slot(slot, offset, ty) => {
                let address = self.b.stack_addr(slot);
                self.b.load(ty, address, offset, MemFlags::ALIGNED)
            }
        }
    }

    /// Compares with a constant or a symbol that has a value; else binds the symbol. A size that nothing vouches for may be negative.
    pub(super) fn match_dim(&mut self, dim: &Dim, got: Value, is_size: bool) {
        let vouched = match dim {
            Dim::Const(expected) => {
                let expected = self.b.i64(*expected);
                self.require_equal(got, expected);
                true
            }
            Dim::Symbol(name) => match self.bound(name) {
                Some(bound) => {
                    let (held, vouched) = (bound.value, bound.is_size);
                    let value = self.held(held);
                    self.require_equal(value, got);
                    vouched
                }
                None => {
                    self.bind(name, got, is_size);
                    false
                }
            },
            // `bind` has decided it
            Dim::Binary(..) if self.from_bind.is_some() => false,
            Dim::Binary(..) => {
                let deferred = Deferred { dim: dim.clone(), got, is_size };
                if let Some(deferred) = self.decide(deferred) {
                    self.deferred.push(deferred);
                }
                false
            }
        };
        if is_size && !vouched {
            self.require_non_negative(got);
        }
    }

    /// Compares an expression or solves it; gives it back where it has to wait.
    fn decide(&mut self, deferred: Deferred) -> Option<Deferred> {
        let Deferred { dim, got, is_size } = &deferred;
        if let Some((name, solved)) = solvable(dim, &|name| self.bound(name).is_some()) {
            let name = name.to_owned();
            if let Some(candidate) = self.compute(&solved, Some(*got)) {
                if *is_size {
                    self.require_non_negative(candidate);
                }
                self.bind(&name, candidate, *is_size);
            }
        }
        match self.compute(dim, None) {
            Some(expected) => {
                self.require_equal(expected, *got);
                None
            }
            None => Some(deferred),
        }
    }

    /// Decides what had to wait. What can't be decided here has been by `bind`.
    pub(super) fn decide_deferred(&mut self) {
        loop {
            let waiting = std::mem::take(&mut self.deferred);
            let before = waiting.len();
            for deferred in waiting {
                let still = self.decide(deferred);
                self.deferred.extend(still);
            }
            if self.deferred.len() == before {
                self.deferred.clear();
                return;
            }
        }
    }

    /// The value of an expression, under the condition that no step overflows; `None` where a symbol has none.
    pub(in crate::lower) fn compute(&mut self, dim: &Dim, target: Option<Value>) -> Option<Value> {
        match dim {
            Dim::Const(value) => Some(self.b.i64(*value)),
            Dim::Symbol(name) if name == TARGET => target,
            Dim::Symbol(name) => self.value_of(name),
            Dim::Binary(op, x, y) => {
                if let (DimOp::FloorDiv | DimOp::Mod, divisor) = (op, y.eval(&|_| None)) {
                    let x = self.compute(x, target)?;
                    if let Some(divisor) = divisor.filter(|divisor| *divisor > 0) {
                        return Some(self.divide(*op, x, divisor));
                    }
                    self.from_bind?;
                    // `bind` has computed it, so that no machine traps on it
                    let y = self.compute(y, target)?;
                    return Some(floor_division(&mut self.b, *op, x, y));
                }
                let (x, y) = (self.compute(x, target)?, self.compute(y, target)?);
                Some(self.operation(*op, x, y))
            }
        }
    }

    fn operation(&mut self, op: DimOp, x: Value, y: Value) -> Value {
        let xor = |l: &mut Self, x, y| l.b.binary(BinaryOp::Xor, x, y);
        match op {
            DimOp::Add => {
                let sum = self.b.binary(BinaryOp::Add, x, y);
                // overflows where both signs differ from the sum's
                let (a, b) = (xor(self, x, sum), xor(self, y, sum));
                let overflow = self.b.binary(BinaryOp::And, a, b);
                self.require_non_negative(overflow);
                sum
            }
            DimOp::Sub => {
                let difference = self.b.binary(BinaryOp::Sub, x, y);
                let (a, b) = (xor(self, x, y), xor(self, x, difference));
                let overflow = self.b.binary(BinaryOp::And, a, b);
                self.require_non_negative(overflow);
                difference
            }
            _ => {
                let low = self.b.binary(BinaryOp::Mul, x, y);
                let high = self.b.binary(BinaryOp::SMulHi, x, y);
                let shift = self.b.i64(63);
                let sign = self.b.binary(BinaryOp::AShr, low, shift);
                self.require_equal(high, sign);
                low
            }
        }
    }

    /// Rounded down, by a positive number: where the rest towards zero is negative, one less.
    fn divide(&mut self, op: DimOp, x: Value, divisor: i64) -> Value {
        let divisor = self.b.i64(divisor);
        let rest = self.b.binary(BinaryOp::SRem, x, divisor);
        let shift = self.b.i64(63);
        let negative = self.b.binary(BinaryOp::AShr, rest, shift);
        if op == DimOp::FloorDiv {
            let quotient = self.b.binary(BinaryOp::SDiv, x, divisor);
            return self.b.binary(BinaryOp::Add, quotient, negative);
        }
        let back = self.b.binary(BinaryOp::And, divisor, negative);
        self.b.binary(BinaryOp::Add, rest, back)
    }

    /// Requires a constraint, unless `bind` has.
    pub(super) fn constrain(&mut self, constraint: &Constraint) {
        if self.from_bind.is_some() {
            return;
        }
        let sides = (self.compute(&constraint.left, None), self.compute(&constraint.right, None));
        let (Some(left), Some(right)) = sides else { return };
        let compare = match constraint.op {
            CompareOp::Eq => return self.require_equal(left, right),
            CompareOp::Ne => IntCC::Ne,
            CompareOp::Lt => IntCC::SLt,
            CompareOp::Le => IntCC::SLe,
            CompareOp::Gt => IntCC::SGt,
            CompareOp::Ge => IntCC::SGe,
        };
        let holds = self.b.icmp(compare, left, right);
        self.require(holds);
    }

    /// A size that has been [matched](Self::match_dim), by the value that stands for its symbol: then nothing has to keep its own.
    pub(super) fn matched(&self, dim: &Dim, got: Value) -> Value {
        let Dim::Symbol(name) = dim else { return got };
        match self.bound(name).map(|bound| bound.value) {
            Some(Held::Value(value)) => value,
            _ => got,
        }
    }

    /// Notes a tensor's dimensions, whose sizes have been matched.
    pub(super) fn know(&mut self, dims: &[Dim], sizes: Vec<Value>, shape: Value) -> usize {
        let checked = dims.iter().any(|dim| !matches!(dim, Dim::Const(_)));
        let compact = self.products(&sizes, checked);
        self.known.push(KnownDims { dims: dims.to_vec(), sizes, compact, shape, strides: None });
        self.known.len() - 1
    }

    /// A symbol's value for the kernel; 0 where it has none.
    pub(in crate::lower) fn symbol(&mut self, name: &str) -> Value {
        match self.value_of(name) {
            Some(value) => value,
            None => self.b.iconst(Type::I64, 0),
        }
    }
}
