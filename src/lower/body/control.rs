//! Control flow of a body: loops, conditionals, returning and raising.

use std::array;

use super::builder::Body;
use super::expr::{Expr, Operand, Ops};
use super::function::{BodyLowerer, Failure};
use super::types::ir_type;
use crate::ir::{BinaryOp, Block, ConvertOp, Hint, IntCC, Type, Value};
use crate::lower::half;
use crate::lower::protocol::{Directive, MAX_FIELDS, Piece};
use crate::spec::{ParamType, ScalarType};

impl Body<'_> {
    /// Runs `body` for each `int64` from `start` up to but not including `end`.
    pub fn for_range<'b>(
        &'b self,
        start: impl Into<Operand<'b>>,
        end: impl Into<Operand<'b>>,
        body: impl FnOnce(Expr<'b>),
    ) {
        let [] = self.counted(start.into(), end.into(), None, [], |i, []| {
            body(i);
            []
        });
    }

    /// Runs `body` for `start`, `start + step` and so on, while that is less than `end`.
    ///
    /// A constant step below 1 is an error in the body. A computed step is checked when the function runs, and a step
    /// below 1 raises a `ValueError`.
    pub fn for_range_step<'b>(
        &'b self,
        start: impl Into<Operand<'b>>,
        end: impl Into<Operand<'b>>,
        step: impl Into<Operand<'b>>,
        body: impl FnOnce(Expr<'b>),
    ) {
        let [] = self.counted(start.into(), end.into(), Some(step.into()), [], |i, []| {
            body(i);
            []
        });
    }

    /// Returns the final value of a loop: `body` takes the index and the current value, and returns the next value.
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

    /// [`fold`](Self::fold) with the step of [`for_range_step`](Self::for_range_step).
    pub fn fold_step<'b>(
        &'b self,
        start: impl Into<Operand<'b>>,
        end: impl Into<Operand<'b>>,
        step: impl Into<Operand<'b>>,
        init: Expr<'b>,
        body: impl FnOnce(Expr<'b>, Expr<'b>) -> Expr<'b>,
    ) -> Expr<'b> {
        let [result] = self.fold_step_n(start, end, step, [init], |i, [value]| [body(i, value)]);
        result
    }

    /// [`fold`](Self::fold) for a loop that carries several values.
    pub fn fold_n<'b, const N: usize>(
        &'b self,
        start: impl Into<Operand<'b>>,
        end: impl Into<Operand<'b>>,
        init: [Expr<'b>; N],
        body: impl FnOnce(Expr<'b>, [Expr<'b>; N]) -> [Expr<'b>; N],
    ) -> [Expr<'b>; N] {
        self.counted(start.into(), end.into(), None, init, body)
    }

    /// [`fold_step`](Self::fold_step) for a loop that carries several values.
    pub fn fold_step_n<'b, const N: usize>(
        &'b self,
        start: impl Into<Operand<'b>>,
        end: impl Into<Operand<'b>>,
        step: impl Into<Operand<'b>>,
        init: [Expr<'b>; N],
        body: impl FnOnce(Expr<'b>, [Expr<'b>; N]) -> [Expr<'b>; N],
    ) -> [Expr<'b>; N] {
        self.counted(start.into(), end.into(), Some(step.into()), init, body)
    }

    /// Writes a loop with an index and carried values.
    fn counted<'b, const N: usize>(
        &'b self,
        start: Operand<'b>,
        end: Operand<'b>,
        step: Option<Operand<'b>>,
        init: [Expr<'b>; N],
        body: impl FnOnce(Expr<'b>, [Expr<'b>; N]) -> [Expr<'b>; N],
    ) -> [Expr<'b>; N] {
        let start = self.coerce("for: start", ScalarType::Int64, start).value;
        let end = self.coerce("for: end", ScalarType::Int64, end).value;
        let step = step.and_then(|step| self.step(step));
        let init = init.map(|value| value.used("fold: the first value"));
        // head(i, carried...): i < end ? inside : done
        // head(i, left, carried...): left != 0 ? inside : done
        let loop_ = self.emit(|l| {
            let left = step.map(|step| turns(l, start, end, step));
            let (head, inside, done) = (l.b.block(), l.b.block(), l.b.block());
            let index = l.b.block_param(head, Type::I64);
            let mut entry = vec![start];
            entry.extend(left);
            let left = left.map(|_| l.b.block_param(head, Type::I64));
            let carried: Vec<Value> = init.iter().map(|e| l.b.block_param(head, ir_type(e.ty()))).collect();
            entry.extend(init.map(|e| e.value));
            l.b.jump(head, &entry);
            l.b.switch_to(head);
            let more = match left {
                None => l.b.icmp(IntCC::SLt, index, end),
                Some(left) => l.b.icmp_imm(IntCC::Ne, left, 0),
            };
            l.b.branch(more, inside, done, Hint::Likely);
            l.b.switch_to(inside);
            l.exits.enter_loop(done);
            Some(Loop { head, done, index, left, carried })
        });
        let Some(loop_) = loop_ else { return init };
        let carried: [Expr<'b>; N] = array::from_fn(|i| self.expr(loop_.carried[i], init[i].ty()).like(init[i]));
        let next = self.inside(|| {
            let next = body(self.expr(loop_.index, ScalarType::Int64), carried);
            self.coerce_all("fold: the next value", &carried, next)
        });
        self.emit(|l| {
            l.exits.leave_loop();
            let step = step.unwrap_or_else(|| l.b.i64(1));
            let mut again = vec![l.b.binary(BinaryOp::Add, loop_.index, step)];
            again.extend(loop_.left.map(|left| l.b.binary_imm(BinaryOp::Sub, left, 1)));
            again.extend(next.map(|e| e.value));
            l.b.jump(loop_.head, &again);
            l.b.switch_to(loop_.done);
        });
        carried
    }

    /// Checks the step of a loop, an `int64` above 0; returns `None` for 1.
    fn step<'b>(&'b self, step: Operand<'b>) -> Option<Value> {
        let ops: &'b dyn Ops = self;
        let value = match ops.try_coerce("for: step", ScalarType::Int64, step) {
            Ok(step) => step.value,
            Err(problem) => {
                self.error("for: step", problem);
                return None;
            }
        };
        match self.emit(|l| l.b.as_int_const(value)) {
            Some(1) => None,
            Some(constant) if constant < 1 => {
                self.error("for: step", format!("expected a step of at least 1, got {constant}"));
                None
            }
            Some(_) => Some(value),
            None => {
                self.emit(|l| {
                    let fine = l.b.icmp_imm(IntCC::SGt, value, 0);
                    l.check(fine, |l| {
                        let parts = [
                            Piece::Text("expected a loop step of at least 1, got "),
                            Piece::Value(Directive::Number, 0),
                        ];
                        Failure { template: l.pool.constants.template("ValueError", &parts), values: vec![value] }
                    });
                });
                Some(value)
            }
        }
    }

    /// Runs `body` while `cond` holds. `cond` is computed before each turn.
    pub fn while_<'b>(&'b self, cond: impl FnOnce() -> Expr<'b>, body: impl FnOnce()) {
        let [] = self.while_loop(
            [],
            |[]| cond(),
            |[]| {
                body();
                []
            },
        );
    }

    /// Returns the final values of a loop: `cond` takes the current values, and while it holds, `body` takes them and
    /// returns the next values.
    ///
    #[cfg_attr(feature = "_engine", doc = "```")]
    #[cfg_attr(not(feature = "_engine"), doc = "```text")]
    /// use tvm_ffi_codegen::{Engine, Kernel, Signature};
    ///
    /// let signature: Signature = "gcd(a: int64, b: int64) -> int64".parse()?;
    /// let kernel = Kernel::body(|body| {
    ///     let [a, _] = body.while_loop([body.arg("a"), body.arg("b")], |[_, b]| b.ne(0), |[a, b]| [b, a % b]);
    ///     body.ret(a);
    /// });
    /// // SAFETY: the body reads no memory.
    /// let gcd = unsafe { Engine::new()?.compile(&signature, &kernel)? };
    /// assert_eq!(gcd.call((91, 35))?.cast::<i64>()?, 7);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn while_loop<'b, const N: usize>(
        &'b self,
        init: [Expr<'b>; N],
        cond: impl FnOnce([Expr<'b>; N]) -> Expr<'b>,
        body: impl FnOnce([Expr<'b>; N]) -> [Expr<'b>; N],
    ) -> [Expr<'b>; N] {
        let init = init.map(|value| value.used("while: the first value"));
        // head(carried...): cond(carried...) ? inside : done
        let loop_ = self.emit(|l| {
            let (head, inside, done) = (l.b.block(), l.b.block(), l.b.block());
            let carried: Vec<Value> = init.iter().map(|e| l.b.block_param(head, ir_type(e.ty()))).collect();
            l.b.jump(head, &init.map(|e| e.value));
            l.b.switch_to(head);
            l.exits.enter_loop(done);
            Some((head, inside, done, carried))
        });
        let Some((head, inside, done, values)) = loop_ else { return init };
        let carried: [Expr<'b>; N] = array::from_fn(|i| self.expr(values[i], init[i].ty()).like(init[i]));
        let cond = self.inside(|| self.coerce("while: the condition", ScalarType::Bool, cond(carried).into()));
        self.emit(|l| {
            l.b.branch(cond.value, inside, done, Hint::Likely);
            l.b.switch_to(inside);
        });
        let next = self.inside(|| self.coerce_all("while: the next value", &carried, body(carried)));
        self.emit(|l| {
            l.exits.leave_loop();
            l.b.jump(head, &next.map(|e| e.value));
            l.b.switch_to(done);
        });
        carried
    }

    /// Leaves the innermost loop. The loop's results are then the carried values with which the current turn began.
    pub fn break_(&self) {
        let left = self.emit(|l| {
            let loop_ = l.exits.innermost_loop()?;
            l.release_above(loop_.depth);
            l.b.jump(loop_.done, &[]);
            unreachable(l);
            Some(())
        });
        if left.is_none() {
            self.error("break_", "stands in no loop");
        }
    }

    /// Converts values to the types of other values.
    fn coerce_all<'b, const N: usize>(
        &'b self,
        operation: &str,
        types: &[Expr<'b>; N],
        values: [Expr<'b>; N],
    ) -> [Expr<'b>; N] {
        array::from_fn(|i| match types[i].is_missing() {
            true => types[i],
            false => self.coerce(operation, types[i].ty(), values[i].into()),
        })
    }

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
        let yes_values = self.inside(|| then().map(|e| e.used("if: the value")));
        self.emit(|l| {
            l.b.jump(join, &yes_values.map(|e| e.value));
            l.b.switch_to(no);
        });
        let no_values = self.inside(|| self.coerce_all("if: the other value", &yes_values, otherwise()));
        self.emit(|l| {
            l.b.jump(join, &no_values.map(|e| e.value));
            l.b.switch_to(join);
        });
        yes_values.map(|e| {
            let value = self.value(|l| l.b.block_param(join, ir_type(e.ty())));
            self.expr(value, e.ty()).like(e)
        })
    }

    /// Returns from the function with a scalar.
    pub fn ret<'b>(&'b self, value: impl Into<Operand<'b>>) {
        let Some(ty) = self.signature.ret().and_then(ParamType::as_scalar) else {
            self.error("ret", format!("`{}` returns no scalar", self.signature));
            return self.end();
        };
        let of_body = if ty.is_half() { ScalarType::Float32 } else { ty };
        let value = self.coerce("ret", of_body, value.into());
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

/// The blocks and values of a loop with an index.
struct Loop {
    head: Block,
    done: Block,
    index: Value,
    /// How many turns are left; `None` if the step is 1.
    left: Option<Value>,
    carried: Vec<Value>,
}

/// The number of turns of a loop. It is unsigned, since the distance of two `int64` values may exceed `i64::MAX`. The
/// step is above 0.
fn turns(l: &mut BodyLowerer<'_>, start: Value, end: Value, step: Value) -> Value {
    let any = l.b.icmp(IntCC::SLt, start, end);
    let distance = l.b.binary(BinaryOp::Sub, end, start);
    let to_last = l.b.binary_imm(BinaryOp::Sub, distance, 1);
    let steps = l.b.binary(BinaryOp::UDiv, to_last, step);
    let turns = l.b.binary_imm(BinaryOp::Add, steps, 1);
    let none = l.b.i64(0);
    l.b.select(any, turns, none)
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
