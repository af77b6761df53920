//! Extents: expressions over the symbols and integers of a call, with their limits.

use super::super::device_api::MOST_THREADS_OF_BLOCK;
use super::emitter::Emitter;
use crate::ir::{BinaryOp, Block, ConvertOp, FunctionBuilder, Hint, IntCC, Type, Value};
use crate::lower::arithmetic::{DimCode, Overflow, checked, division_by_positive, extremum, lower_dim, total_division};
use crate::lower::convention::c_type::CType;
use crate::lower::convention::param::{ParamPart, ParamSource};
use crate::lower::protocol::{Directive, Piece};
use crate::spec::{Dim, DimOp};

/// Code of an expression. Where a step doesn't fit in 64 bits, or a divisor is 0, it goes to `bad`.
struct ExtentCode<'c, 'e, 'm> {
    emitter: &'c mut Emitter<'e, 'm>,
    /// Made by the first step that may not fit.
    bad: Option<Block>,
}

impl ExtentCode<'_, '_, '_> {
    fn require(&mut self, fits: Value) {
        let b = &mut *self.emitter.b;
        let (next, bad) = (b.block(), *self.bad.get_or_insert_with(|| b.cold_block()));
        b.branch(fits, next, bad, Hint::Likely);
        b.switch_to(next);
    }
}

impl DimCode for ExtentCode<'_, '_, '_> {
    fn constant(&mut self, value: i64) -> Value {
        self.emitter.b.i64(value)
    }

    fn symbol(&mut self, name: &str) -> Option<Value> {
        self.emitter.integer(name)
    }

    fn operation(&mut self, op: DimOp, x: Value, y: Value, divisor: Option<i64>) -> Value {
        match (op, divisor) {
            (DimOp::Min | DimOp::Max, _) => extremum(self.emitter.b, op, x, y),
            (_, Some(1..)) if op.is_division() => division_by_positive(self.emitter.b, op, x, y),
            _ if op.is_division() => {
                let b = &mut *self.emitter.b;
                let some = b.icmp_imm(IntCC::Ne, y, 0);
                // the one quotient that doesn't fit
                let (least, minus) = (b.icmp_imm(IntCC::Eq, x, i64::MIN), b.icmp_imm(IntCC::Eq, y, -1));
                let overflows = b.binary(BinaryOp::And, least, minus);
                let (yes, no) = (b.bconst(true), b.bconst(false));
                let fits = b.select(overflows, no, yes);
                let fine = b.binary(BinaryOp::And, some, fits);
                self.require(fine);
                total_division(self.emitter.b, op, x, y)
            }
            _ => {
                let (value, overflow) = checked(self.emitter.b, op, x, y);
                let fits = match overflow {
                    Overflow::Negative(sign) => self.emitter.b.icmp_imm(IntCC::SGe, sign, 0),
                    Overflow::Different(x, y) => self.emitter.b.icmp(IntCC::Eq, x, y),
                };
                self.require(fits);
                value
            }
        }
    }
}

/// An integer of any width as an `I64`.
pub(super) fn widen(b: &mut FunctionBuilder<'_>, value: Value, signed: bool) -> Value {
    match b.type_of(value) {
        Type::I64 => value,
        _ if signed => b.convert(ConvertOp::SExt, Type::I64, value),
        _ => b.convert(ConvertOp::ZExt, Type::I64, value),
    }
}

impl Emitter<'_, '_> {
    /// The value of a symbol or of an integer parameter, an `I64`.
    pub(super) fn integer(&mut self, name: &str) -> Option<Value> {
        let found = self.inputs.params.iter().find(|(param, _)| match &param.source {
            ParamSource::Symbol { name: symbol, .. } => symbol == name,
            ParamSource::Argument(path, ParamPart::Value) => path == name,
            _ => false,
        });
        let (param, value) = *found?;
        let signed = matches!(param.c_type, CType::Scalar(ty) if ty.is_signed_int());
        Some(widen(self.b, value, signed))
    }

    /// The values of expressions, each an `I64`. `what` says what they are.
    pub(super) fn extents(&mut self, what: &str, dims: &[Dim]) -> Vec<Value> {
        (0..).zip(dims).map(|(number, dim)| self.extent(&name_of(what, dims.len(), number), dim)).collect()
    }

    /// The value of an expression, an `I64`.
    pub(super) fn extent(&mut self, what: &str, dim: &Dim) -> Value {
        if let Some(value) = dim.eval(&|_| None) {
            return self.b.i64(value);
        }
        let mut code = ExtentCode { emitter: self, bad: None };
        let (value, bad) = (lower_dim(&mut code, dim), code.bad);
        let value = value.unwrap_or_else(|| self.b.i64(0));
        let Some(bad) = bad else { return value };
        let here = self.b.current();
        self.b.switch_to(bad);
        let text = format!(", {what} = {dim} can't be computed in 64 bits{}", self.origins(dim, " with "));
        self.raise(&[Piece::Value(Directive::String, 0), Piece::Text(&text)], &[]);
        self.b.switch_to(here);
        value
    }

    /// The origins of an expression's symbols.
    fn origins(&self, dim: &Dim, before: &str) -> String {
        let mut origins: Vec<String> = Vec::new();
        dim.for_each_symbol(&mut |name| {
            let from = self.inputs.params.iter().find_map(|(param, _)| match &param.source {
                ParamSource::Symbol { name: symbol, from: Some(from) } if symbol == name && from != name => {
                    Some(from.clone())
                }
                _ => None,
            });
            let origin = from.map_or_else(|| name.to_owned(), |from| format!("{name} from {from}"));
            if !origins.contains(&origin) {
                origins.push(origin);
            }
        });
        if origins.is_empty() { String::new() } else { format!("{before}{}", origins.join(", ")) }
    }

    /// The parts of an extent, for messages: `m, from x.shape[0]`, or `(n + 1023) // 1024, n from x.shape[0]`.
    pub(super) fn shown(&self, dim: &Dim) -> String {
        match dim {
            Dim::Symbol(_) => self.origins(dim, "").replacen(" from ", ", from ", 1),
            _ => format!("{dim}{}", self.origins(dim, ", ")),
        }
    }

    /// Leaves where an extent of a grid is 0.
    pub(super) fn leave_if_empty(&mut self, grid: &[Value]) {
        for extent in grid {
            if self.b.as_int_const(*extent).is_some_and(|extent| extent != 0) {
                continue;
            }
            let next = self.b.block();
            let empty = self.b.icmp_imm(IntCC::Eq, *extent, 0);
            self.b.branch_with(empty, (self.exits.done, &[]), (next, &[]), Hint::Unlikely);
            self.b.switch_to(next);
        }
    }

    /// Requires extents that aren't constant to be at least `least` and at most so much.
    pub(super) fn limit(&mut self, what: &str, values: &[Value], dims: &[Dim], least: i64, most: &[i64]) {
        for (number, ((value, dim), most)) in (0..).zip(values.iter().zip(dims).zip(most)) {
            if self.b.as_int_const(*value).is_some() {
                continue;
            }
            let above = if least == 0 { *value } else { self.b.binary_imm(BinaryOp::Sub, *value, least) };
            let limit = self.b.i64(most - least);
            // a negative one is a large one without its sign
            let holds = self.b.icmp(IntCC::ULe, above, limit);
            let before = format!(", {} = ", name_of(what, dims.len(), number));
            let expected = format!(" ({}), expected {least} to {most}", self.shown(dim));
            self.require(holds, *value, &before, &[Piece::Text(&expected)], None);
        }
    }

    /// Requires a block to have no more threads than any device takes.
    pub(super) fn limit_threads(&mut self, block: &[Value]) {
        if block.iter().all(|extent| self.b.as_int_const(*extent).is_some()) || block.len() < 2 {
            return;
        }
        // each is at most 1,024, so that the product fits
        let threads = block.iter().copied().reduce(|x, y| self.b.binary(BinaryOp::Mul, x, y));
        let Some(threads) = threads else { return };
        let holds = self.b.icmp_imm(IntCC::ULe, threads, MOST_THREADS_OF_BLOCK);
        let expected = format!(", expected at most {MOST_THREADS_OF_BLOCK}");
        self.require(holds, threads, ", the threads of a block = ", &[Piece::Text(&expected)], None);
    }

    /// Requires the extents of a cluster to divide those of the grid.
    pub(super) fn cluster_divides(&mut self, grid: &[Value], cluster: &[Value]) {
        for (number, extent) in cluster.iter().enumerate() {
            let blocks = grid.get(number).copied().unwrap_or_else(|| self.b.i64(1));
            if self.b.as_int_const(*extent).is_some_and(|extent| extent == 1) {
                continue;
            }
            if let (Some(x), Some(y)) = (self.b.as_int_const(blocks), self.b.as_int_const(*extent))
                && x % y == 0
            {
                continue;
            }
            let rest = self.b.binary(BinaryOp::URem, blocks, *extent);
            let holds = self.b.icmp_imm(IntCC::Eq, rest, 0);
            let behind = [
                Piece::Text(&format!(", expected a multiple of cluster[{number}], which is ")),
                Piece::Value(Directive::Number, 2),
            ];
            self.require(holds, blocks, &format!(", grid[{number}] = "), &behind, Some(*extent));
        }
    }

    /// Requires dynamic shared memory to be at most so much.
    pub(super) fn refuse_unless_at_most(&mut self, bytes: Value, most: Value) {
        let holds = self.b.icmp(IntCC::ULe, bytes, most);
        let behind = [
            Piece::Text(&format!(" ({}), expected at most ", self.shown(self.prepared.launch.shared_bytes()))),
            Piece::Value(Directive::Number, 2),
            Piece::Text(" bytes on this device"),
        ];
        self.require(holds, bytes, ", shared = ", &behind, Some(most));
    }
}

/// The name of an extent: `grid[1]`, or `grid` where there is one.
fn name_of(what: &str, count: usize, number: usize) -> String {
    if count == 1 { what.to_owned() } else { format!("{what}[{number}]") }
}
