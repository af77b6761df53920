//! Integer expressions over the variables, integers and tensors of a call.

use super::parts::ExtentOf;
use super::values::Values;
use crate::ir::{BinaryOp, Block, ConvertOp, FunctionBuilder, Hint, IntCC, MemFlags, Type, Value};
use crate::lower::abi::tensor::NDIM;
use crate::lower::arithmetic::{DimCode, Overflow, checked, division_by_positive, extremum, lower_dim, total_division};
use crate::lower::convention::c_type::CType;
use crate::lower::convention::param::{ParamPart, ParamSource};
use crate::lower::protocol::{Directive, Piece};
use crate::spec::{Dim, DimOp};

/// The code of an expression. If a step doesn't fit in 64 bits, or a divisor is 0, it jumps to `bad`.
struct ExtentCode<'c, 'e, 'm> {
    values: &'c mut Values<'e, 'm>,
    /// Created by the first step that may fail.
    bad: Option<Block>,
}

impl ExtentCode<'_, '_, '_> {
    fn require(&mut self, fits: Value) {
        let b = &mut *self.values.b;
        let (next, bad) = (b.block(), *self.bad.get_or_insert_with(|| b.cold_block()));
        b.branch(fits, next, bad, Hint::Likely);
        b.switch_to(next);
    }
}

impl DimCode for ExtentCode<'_, '_, '_> {
    type Number = Value;

    fn constant(&mut self, value: i64) -> Value {
        self.values.b.i64(value)
    }

    fn var(&mut self, name: &str) -> Option<Value> {
        if let Some(value) = self.values.integer(name) {
            return Some(value);
        }
        match ExtentOf::named(name, self.values.signature)? {
            ExtentOf::Known(known) => lower_dim(self, &known),
            ExtentOf::Rank(tensor) => self.values.rank(tensor),
            ExtentOf::ByteOffset(tensor) => self.values.part(tensor, ParamPart::ByteOffset),
        }
    }

    fn operation(&mut self, op: DimOp, x: Value, y: Value, divisor: Option<i64>) -> Value {
        match (op, divisor) {
            (DimOp::Min | DimOp::Max, _) => extremum(self.values.b, op, x, y),
            (_, Some(1..)) if op.is_division() => division_by_positive(self.values.b, op, x, y),
            _ if op.is_division() => {
                let b = &mut *self.values.b;
                let some = b.icmp_imm(IntCC::Ne, y, 0);
                // the only quotient that doesn't fit
                let (min, minus) = (b.icmp_imm(IntCC::Eq, x, i64::MIN), b.icmp_imm(IntCC::Eq, y, -1));
                let overflows = b.binary(BinaryOp::And, min, minus);
                let (yes, no) = (b.bconst(true), b.bconst(false));
                let fits = b.select(overflows, no, yes);
                let fine = b.binary(BinaryOp::And, some, fits);
                self.require(fine);
                total_division(self.values.b, op, x, y)
            }
            _ => {
                let (value, overflow) = checked(self.values.b, op, x, y);
                let fits = match overflow {
                    Overflow::Negative(sign) => self.values.b.icmp_imm(IntCC::SGe, sign, 0),
                    Overflow::Different(x, y) => self.values.b.icmp(IntCC::Eq, x, y),
                };
                self.require(fits);
                value
            }
        }
    }
}

/// An integer of any width as an `I64`.
pub(in crate::lower) fn widen(b: &mut FunctionBuilder<'_>, value: Value, signed: bool) -> Value {
    match b.type_of(value) {
        Type::I64 => value,
        _ if signed => b.convert(ConvertOp::SExt, Type::I64, value),
        _ => b.convert(ConvertOp::ZExt, Type::I64, value),
    }
}

impl Values<'_, '_> {
    /// The value of a variable or integer parameter, an `I64`.
    pub(in crate::lower) fn integer(&mut self, name: &str) -> Option<Value> {
        let found = self.inputs.params.iter().find(|(param, _)| match &param.source {
            ParamSource::DimVar { name: var, .. } => var == name,
            ParamSource::Argument(path, ParamPart::Value) => path == name,
            _ => false,
        });
        let (param, value) = *found?;
        let signed = matches!(param.c_type, CType::Scalar(ty) if ty.is_signed_int());
        Some(widen(self.b, value, signed))
    }

    /// The number of dimensions of a tensor that is passed as a descriptor.
    fn rank(&mut self, tensor: &str) -> Option<Value> {
        let descriptor = self.part(tensor, ParamPart::Descriptor)?;
        let rank = self.b.load(Type::I32, descriptor, NDIM, MemFlags::ALIGNED);
        Some(widen(self.b, rank, true))
    }

    /// The value of a part of a parameter.
    fn part(&self, name: &str, wanted: ParamPart) -> Option<Value> {
        let is_it = |source: &ParamSource| match source {
            ParamSource::Argument(path, part) => path == name && *part == wanted,
            _ => false,
        };
        self.inputs.params.iter().find(|(param, _)| is_it(&param.source)).map(|(_, value)| *value)
    }

    /// The value of an expression, an `I64`.
    pub(in crate::lower) fn extent(&mut self, what: &str, dim: &Dim) -> Value {
        if let Some(value) = dim.eval(&|_| None) {
            return self.b.i64(value);
        }
        let mut code = ExtentCode { values: self, bad: None };
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

    /// Where an expression's variables come from.
    fn origins(&self, dim: &Dim, before: &str) -> String {
        let mut origins: Vec<String> = Vec::new();
        dim.for_each_var(&mut |name| {
            let from = self.inputs.params.iter().find_map(|(param, _)| match &param.source {
                ParamSource::DimVar { name: var, from: Some(from) } if var == name && from != name => {
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

    /// The source of an extent, for messages: `m, from x.shape[0]`, or `(n + 1023) // 1024, n from x.shape[0]`.
    pub(in crate::lower) fn shown(&self, dim: &Dim) -> String {
        match dim {
            Dim::Var(_) => self.origins(dim, "").replacen(" from ", ", from ", 1),
            _ => format!("{dim}{}", self.origins(dim, ", ")),
        }
    }
}
