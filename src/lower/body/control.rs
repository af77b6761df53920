//! Control flow of a body: loops, conditionals, returning and raising.

use super::expr::{Expr, Operand};
use super::function::{Failure, Lowerer};
use super::{Body, ir_type};
use crate::ir::{BinaryOp, Block, Hint, IntCC, Type, Value};
use crate::lower::protocol::{Directive, Piece};
use crate::spec::{ParamType, ScalarType};

impl Body<'_> {
    /// Runs `body` for each `int64` from `start` up to but not including `end`.
    pub fn for_range<'b>(
        &'b self,
        start: impl Into<Operand<'b>>,
        end: impl Into<Operand<'b>>,
        body: impl FnOnce(Expr<'b>),
    ) {
        let [] = self.fold_n(start, end, [], |i, []| {
            body(i);
            []
        });
    }

    /// Carries a value through a loop: `body` takes the index and the value so far, and gives the next.
    pub fn fold<'b>(
        &'b self,
        start: impl Into<Operand<'b>>,
        end: impl Into<Operand<'b>>,
        init: Expr<'b>,
        body: impl FnOnce(Expr<'b>, Expr<'b>) -> Expr<'b>,
    ) -> Expr<'b> {
        let [result] = self.fold_n(start, end, [init], |i, [value]| [body(i, value)]);
        result
    }

    /// As [`fold`](Self::fold), with several values.
    pub fn fold_n<'b, const N: usize>(
        &'b self,
        start: impl Into<Operand<'b>>,
        end: impl Into<Operand<'b>>,
        init: [Expr<'b>; N],
        body: impl FnOnce(Expr<'b>, [Expr<'b>; N]) -> [Expr<'b>; N],
    ) -> [Expr<'b>; N] {
        let zero = self.i64(0);
        let start = zero.coerce("for: start", start.into());
        let end = zero.coerce("for: end", end.into());
        let types = init.map(Expr::ty);
        // head(i, carried...): i < end ? inside : done
        let loop_ = self.emit(|l| {
            let (head, inside, done) = (l.b.block(), l.b.block(), l.b.block());
            let index = l.b.block_param(head, Type::I64);
            let carried: Vec<Value> = types.iter().map(|ty| l.b.block_param(head, ir_type(*ty))).collect();
            let mut entry = vec![start.value];
            entry.extend(init.map(|e| e.value));
            l.b.jump(head, &entry);
            l.b.switch_to(head);
            let more = l.b.icmp(IntCC::SLt, index, end.value);
            l.b.branch(more, inside, done, Hint::Likely);
            l.b.switch_to(inside);
            Some(Loop { head, done, index, carried })
        });
        let Some(loop_) = loop_ else { return init };
        let mut at = 0;
        let carried = types.map(|ty| {
            at += 1;
            self.expr(loop_.carried[at - 1], ty)
        });
        let next = body(self.expr(loop_.index, ScalarType::Int64), carried);
        let mut at = 0;
        let next = next.map(|value| {
            at += 1;
            carried[at - 1].coerce("fold: the next value", value.into())
        });
        self.emit(|l| {
            let one = l.b.i64(1);
            let mut again = vec![l.b.binary(BinaryOp::Add, loop_.index, one)];
            again.extend(next.map(|e| e.value));
            l.b.jump(loop_.head, &again);
            l.b.switch_to(loop_.done);
        });
        carried
    }

    /// Runs `then` where `cond` holds.
    pub fn if_<'b>(&'b self, cond: Expr<'b>, then: impl FnOnce()) {
        self.if_else(cond, then, || {});
    }

    /// Runs `then` where `cond` holds, else `otherwise`.
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

    /// The value of `then` where `cond` holds, else that of `otherwise`; only one of them runs.
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
        let cond = self.bool(true).coerce("if: the condition", cond.into());
        let blocks = self.emit(|l| {
            let (yes, no, join) = (l.b.block(), l.b.block(), l.b.block());
            l.b.branch(cond.value, yes, no, Hint::None);
            l.b.switch_to(yes);
            Some((no, join))
        });
        let Some((no, join)) = blocks else { return then() };
        let yes_values = then();
        self.emit(|l| {
            l.b.jump(join, &yes_values.map(|e| e.value));
            l.b.switch_to(no);
        });
        let no_values = otherwise();
        let mut at = 0;
        let no_values = no_values.map(|value| {
            at += 1;
            yes_values[at - 1].coerce("if: the other value", value.into())
        });
        self.emit(|l| {
            l.b.jump(join, &no_values.map(|e| e.value));
            l.b.switch_to(join);
        });
        yes_values.map(|e| {
            let value = self.value(|l| l.b.block_param(join, ir_type(e.ty())));
            self.expr(value, e.ty())
        })
    }

    /// Returns from the function with its value.
    pub fn ret<'b>(&'b self, value: impl Into<Operand<'b>>) {
        let Some(ty) = self.signature.ret().and_then(ParamType::as_scalar) else {
            return self.mistake("ret", format!("`{}` returns no scalar", self.signature));
        };
        let value = self.placeholder(ty).coerce("ret", value.into());
        self.emit(|l| {
            l.succeed_with(ty, value.value);
            unreachable(l);
        });
    }

    /// Returns from a function that returns nothing.
    pub fn ret_none(&self) {
        if let Some(ty) = self.signature.ret().and_then(ParamType::as_scalar) {
            return self.mistake("ret_none", format!("the function returns {ty}"));
        }
        self.emit(|l| {
            l.succeed();
            unreachable(l);
        });
    }

    /// Returns from the function with an error. Each `{}` of the message prints the next of at most two integer or `bool` values.
    pub fn raise<'b>(&'b self, kind: &str, message: &str, values: &[Expr<'b>]) {
        let row_and_values = self.message("raise", kind, message, values);
        self.emit(|l| {
            let failure = row_and_values.failure(l);
            l.raise(failure);
            unreachable(l);
        });
    }

    /// [Raises](Self::raise) unless `cond` holds.
    pub fn ensure<'b>(&'b self, cond: Expr<'b>, kind: &str, message: &str, values: &[Expr<'b>]) {
        let cond = self.bool(true).coerce("ensure: the condition", cond.into());
        let row_and_values = self.message("ensure", kind, message, values);
        self.emit(|l| l.check(cond.value, |l| row_and_values.failure(l)));
    }

    fn message(&self, operation: &str, kind: &str, message: &str, values: &[Expr<'_>]) -> Message {
        let pieces: Vec<&str> = message.split("{}").collect();
        if pieces.len() != values.len() + 1 || values.len() > MAX_VALUES {
            let problem = format!("the message takes {} values, got {}; at most 2", pieces.len() - 1, values.len());
            self.mistake(operation, problem);
        }
        if kind.is_empty() || kind.contains('\0') || message.contains('\0') {
            self.mistake(operation, "the kind is empty, or there is a NUL in the text");
        }
        let pieces = pieces.into_iter().map(str::to_owned).collect();
        for value in values {
            if !value.ty().is_int() && value.ty() != ScalarType::Bool {
                self.mistake(operation, format!("can't print {}; cast it to an integer", value.ty()));
            }
        }
        let printable = |e: &Expr<'_>| e.ty().is_int() || e.ty() == ScalarType::Bool;
        let values = values.iter().filter(|e| printable(e)).map(|e| e.cast(ScalarType::Int64).value).collect();
        Message { kind: kind.to_owned(), pieces, values }
    }
}

/// How many values a message may print.
const MAX_VALUES: usize = 2;

struct Loop {
    head: Block,
    done: Block,
    index: Value,
    carried: Vec<Value>,
}

struct Message {
    kind: String,
    /// The text between values.
    pieces: Vec<String>,
    values: Vec<Value>,
}

impl Message {
    fn failure(&self, l: &mut Lowerer<'_>) -> Failure {
        let mut parts = Vec::new();
        for (i, piece) in (0..).zip(&self.pieces).take(MAX_VALUES + 1) {
            parts.extend([Piece::Text(piece), Piece::Value(Directive::Number, i)]);
        }
        // no value follows the last piece
        parts.pop();
        let row = l.texts.template(&self.kind, &parts);
        Failure { row, values: [self.values.first().copied(), self.values.get(1).copied()] }
    }
}

/// Goes on in a block that nothing reaches: what a body says after leaving.
fn unreachable(l: &mut Lowerer<'_>) {
    let after = l.b.block();
    l.b.switch_to(after);
}
