//! Control flow of a body: conditionals, returning and raising.

use std::array;

use super::builder::Body;
use super::expr::{Expr, Operand};
use super::function::{BodyLowerer, Failure};
use super::types::ir_type;
use crate::host::tree::StatementKind;
use crate::ir::{ConvertOp, Hint, Type, Value};
use crate::lower::half;
use crate::lower::protocol::{Directive, MAX_FIELDS, Piece};
use crate::spec::{ParamType, ScalarType};

impl Body<'_> {
    /// Runs `then` if `cond` holds.
    pub fn if_<'b>(&'b self, cond: Expr<'b>, then: impl FnOnce()) {
        self.if_else(cond, then, || {});
    }

    /// Runs `then` if `cond` holds, otherwise `otherwise`.
    pub fn if_else<'b>(&'b self, cond: Expr<'b>, then: impl FnOnce(), otherwise: impl FnOnce()) {
        let [] = self.if_else_n(
            cond,
            || {
                then();
                []
            },
            || {
                otherwise();
                []
            },
        );
    }

    /// The value of `then` if `cond` holds, otherwise that of `otherwise`; only one of them runs.
    pub fn if_else_value<'b>(
        &'b self,
        cond: Expr<'b>,
        then: impl FnOnce() -> Expr<'b>,
        otherwise: impl FnOnce() -> Expr<'b>,
    ) -> Expr<'b> {
        let [value] = self.if_else_n(cond, || [then()], || [otherwise()]);
        value
    }

    fn if_else_n<'b, const N: usize>(
        &'b self,
        cond: Expr<'b>,
        then: impl FnOnce() -> [Expr<'b>; N],
        otherwise: impl FnOnce() -> [Expr<'b>; N],
    ) -> [Expr<'b>; N] {
        let cond = self.coerce("if: the condition", ScalarType::Bool, cond.into());
        let blocks = self.emit(|l| {
            let (yes, no, join) = (l.b.block(), l.b.block(), l.b.block());
            l.b.branch(cond.value, yes, no, Hint::None);
            l.b.switch_to(yes);
            Some((no, join))
        });
        let Some((no, join)) = blocks else { return then() };
        let yes_values = self.inside(|| {
            let values = then().map(|e| e.used("if: the value"));
            self.recorder().zip(values.first()).inspect(|(recorder, value)| recorder.block_value(**value));
            values
        });
        self.emit(|l| {
            l.b.jump(join, &yes_values.map(|e| e.value));
            l.b.switch_to(no);
        });
        let no_values = self.inside(|| {
            let values = otherwise();
            self.recorder().zip(values.first()).inspect(|(recorder, value)| recorder.block_value(**value));
            array::from_fn::<_, N, _>(|i| match yes_values[i].is_missing() {
                true => yes_values[i],
                false => self.coerce("if: the other value", yes_values[i].ty(), values[i].into()),
            })
        });
        self.emit(|l| {
            l.b.jump(join, &no_values.map(|e| e.value));
            l.b.switch_to(join);
        });
        if N == 0 {
            self.record(|recorder| recorder.if_(cond));
        }
        yes_values.map(|e| {
            let value = self.value(|l| l.b.block_param(join, ir_type(e.ty())));
            self.expr(value, e.ty()).like(e).recorded(|recorder| recorder.chosen(cond))
        })
    }

    /// Returns from the function with a scalar.
    pub fn ret<'b>(&'b self, value: impl Into<Operand<'b>>) {
        let Some(ty) = self.signature.ret().and_then(ParamType::as_scalar) else {
            self.error("ret", format!("`{}` returns no scalar", self.signature));
            return self.end();
        };
        let of_body = if ty.is_half() { ScalarType::Float32 } else { ty };
        let given = value.into();
        let value = self.coerce("ret", of_body, given);
        self.record(|recorder| recorder.return_operand(given));
        self.emit(|l| {
            let mut result = value.value;
            if ty.is_half() {
                let wide = l.b.convert(ConvertOp::FPromote, Type::F64, result);
                result = half::narrow(&mut l.b, ty, wide);
            }
            l.succeed_with(ty, result);
            unreachable(l);
        });
    }

    /// Returns from a function that returns nothing.
    pub fn ret_none(&self) {
        if let Some(ty) = self.signature.ret().and_then(ParamType::as_scalar) {
            self.error("ret_none", format!("the function returns {ty}"));
        }
        self.record(|_| StatementKind::Return(None));
        self.end();
    }

    /// Ends the current path by returning: the code that follows doesn't run, even if the call that ends it has an
    /// error.
    pub(super) fn end(&self) {
        self.emit(|l| {
            l.succeed();
            unreachable(l);
        });
    }

    /// The maximum number of values that a message of [`raise`](Self::raise) or [`ensure`](Self::ensure) prints.
    pub const MAX_MESSAGE_VALUES: usize = MAX_FIELDS as usize;

    /// Returns from the function with an error.
    ///
    /// Each `{}` of the message prints the next value, at most [`MAX_MESSAGE_VALUES`](Self::MAX_MESSAGE_VALUES) values
    /// in all. The values are integers and `bool`s. A `uint64` above `i64::MAX` prints as a negative number.
    pub fn raise<'b>(&'b self, kind: &str, message: &str, values: &[Expr<'b>]) {
        self.record(|recorder| recorder.raise(kind, message, values));
        let message = self.message("raise", kind, message, values);
        self.emit(|l| {
            let failure = message.failure(l);
            l.raise(failure);
            unreachable(l);
        });
    }

    /// [Raises](Self::raise) unless `cond` holds.
    pub fn ensure<'b>(&'b self, cond: Expr<'b>, kind: &str, message: &str, values: &[Expr<'b>]) {
        let cond = self.coerce("ensure: the condition", ScalarType::Bool, cond.into());
        self.record(|recorder| recorder.ensure(cond, kind, message, values));
        let message = self.message("ensure", kind, message, values);
        self.emit(|l| l.check(cond.value, |l| message.failure(l)));
    }

    fn message(&self, operation: &str, kind: &str, message: &str, values: &[Expr<'_>]) -> Message {
        let pieces: Vec<&str> = message.split("{}").collect();
        let (places, max) = (pieces.len() - 1, Self::MAX_MESSAGE_VALUES);
        if places != values.len() {
            self.error(operation, format!("the message prints {places} values, got {}", values.len()));
        }
        if places > max {
            self.error(operation, format!("a message prints at most {max} values, this one {places}"));
        }
        if kind.is_empty() || kind.contains('\0') || message.contains('\0') {
            self.error(operation, "the kind is empty, or there is a NUL in the text");
        }
        let pieces = pieces.into_iter().take(max + 1).map(str::to_owned).collect();
        let printable = |e: &&Expr<'_>| {
            let printable = e.ty().is_int() || e.ty() == ScalarType::Bool;
            if !printable {
                self.error(operation, format!("can't print {}; cast it to an integer", e.ty()));
            }
            printable
        };
        let values = values.iter().take(max).filter(printable);
        let values = values.map(|e| e.used(operation).converted(ScalarType::Int64).value).collect();
        Message { kind: kind.to_owned(), pieces, values }
    }
}

/// The message of an error, with the values that it prints.
struct Message {
    kind: String,
    /// The literal pieces between values.
    pieces: Vec<String>,
    values: Vec<Value>,
}

impl Message {
    fn failure(self, l: &mut BodyLowerer<'_>) -> Failure {
        let mut parts = Vec::new();
        for (i, piece) in (0..).zip(&self.pieces) {
            parts.extend([Piece::Text(piece), Piece::Value(Directive::Number, i)]);
        }
        // no value follows the last piece
        parts.pop();
        let template = l.pool.constants.template(&self.kind, &parts);
        Failure { template, values: self.values }
    }
}

/// Continues in an unreachable block, for code that a body writes after leaving.
pub(super) fn unreachable(l: &mut BodyLowerer<'_>) {
    let after = l.b.block();
    l.b.switch_to(after);
}
