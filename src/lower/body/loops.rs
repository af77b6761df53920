//! Loops of a body: with an index or with a condition. Each carries any number of values.

use super::builder::Body;
use super::control::unreachable;
use super::expr::{Expr, Operand, Ops};
use super::function::{BodyLowerer, Failure};
use super::held::{Carried, Counter, OpenLoop};
use super::types::ir_type;
use crate::host::tree::StatementKind;
use crate::ir::{BinaryOp, Block, Hint, IntCC, Type, Value};
use crate::lower::protocol::{Directive, Piece};
use crate::spec::ScalarType;

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
        let [] = self.fold_step_n(start, end, step, [], |i, []| {
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
        let turn = |i, values: &[Expr<'b>]| body(i, values.try_into().unwrap_or(init)).to_vec();
        let last = self.fold_values(start.into(), end.into(), None, &init, turn);
        last[..].try_into().unwrap_or(init)
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
        let turn = |i, values: &[Expr<'b>]| body(i, values.try_into().unwrap_or(init)).to_vec();
        let last = self.fold_values(start.into(), end.into(), Some(step.into()), &init, turn);
        last[..].try_into().unwrap_or(init)
    }

    /// Writes a loop with an index that carries as many values as `init` has. `body` returns the next values.
    pub(crate) fn fold_values<'b>(
        &'b self,
        start: Operand<'b>,
        end: Operand<'b>,
        step: Option<Operand<'b>>,
        init: &[Expr<'b>],
        body: impl FnOnce(Expr<'b>, &[Expr<'b>]) -> Vec<Expr<'b>>,
    ) -> Vec<Expr<'b>> {
        self.is_in_graph("for");
        let bounds = [Some(start), Some(end), step].into_iter().flatten();
        let header = self.recorder().map(|recorder| recorder.loop_header(bounds, init));
        let start = self.coerce("for: start", ScalarType::Int64, start).value;
        let end = self.coerce("for: end", ScalarType::Int64, end).value;
        let step = step.and_then(|step| self.step(step));
        let init: Vec<Expr<'b>> = init.iter().map(|value| value.used("fold: the first value")).collect();
        // head(i, carried...): i < end ? inside : done
        // head(i, left, carried...): left != 0 ? inside : done
        let opened = self.emit(|l| {
            let left = step.map(|step| turns(l, start, end, step));
            let (head, inside, done) = (l.b.block(), l.b.block(), l.b.block());
            let index = l.b.block_param(head, Type::I64);
            let mut entry = vec![start];
            entry.extend(left);
            let left = left.map(|_| l.b.block_param(head, Type::I64));
            let carried: Vec<Carried> = init.iter().map(|first| l.carried(head, *first)).collect();
            entry.extend(init.iter().map(|first| first.value));
            l.b.jump(head, &entry);
            l.b.switch_to(head);
            let more = match left {
                None => l.b.icmp(IntCC::SLt, index, end),
                Some(left) => l.b.icmp_imm(IntCC::Ne, left, 0),
            };
            l.b.branch(more, inside, done, Hint::Likely);
            l.b.switch_to(inside);
            let counter = Some(Counter { index, step, left });
            l.exits.enter_loop(OpenLoop { head, done, depth: l.exits.depth(), counter, carried: carried.clone() });
            Some((index, carried))
        });
        let Some((index, carried)) = opened else { return init };
        let values = self.current_values(&carried, &init);
        let index = self.expr(index, ScalarType::Int64);
        let names = self.recorder().map(|recorder| recorder.loop_names(&[&[index], &values[..]].concat()));
        let next = self.inside(|| {
            let next = self.recorded_next(body(Expr::new(self, index.value, ScalarType::Int64), &values));
            self.next_values("fold: the next value", &carried, next)
        });
        self.close_loop(&next);
        if let Some((header, names)) = header.zip(names) {
            self.record(|recorder| recorder.for_(header, names));
        }
        values
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
        let holds = |values: &[Expr<'b>]| cond(values.try_into().unwrap_or(init));
        let turn = |values: &[Expr<'b>]| body(values.try_into().unwrap_or(init)).to_vec();
        self.while_values(&init, holds, turn)[..].try_into().unwrap_or(init)
    }

    /// Writes a loop with a condition that carries as many values as `init` has. `body` returns the next values.
    pub(crate) fn while_values<'b>(
        &'b self,
        init: &[Expr<'b>],
        cond: impl FnOnce(&[Expr<'b>]) -> Expr<'b>,
        body: impl FnOnce(&[Expr<'b>]) -> Vec<Expr<'b>>,
    ) -> Vec<Expr<'b>> {
        self.is_in_graph("while");
        let header = self.recorder().map(|recorder| recorder.loop_header([], init));
        let init: Vec<Expr<'b>> = init.iter().map(|value| value.used("while: the first value")).collect();
        // head(carried...): cond(carried...) ? inside : done
        let opened = self.emit(|l| {
            let (head, inside, done) = (l.b.block(), l.b.block(), l.b.block());
            let carried: Vec<Carried> = init.iter().map(|first| l.carried(head, *first)).collect();
            let entry: Vec<Value> = init.iter().map(|first| first.value).collect();
            l.b.jump(head, &entry);
            l.b.switch_to(head);
            let depth = l.exits.depth();
            l.exits.enter_loop(OpenLoop { head, done, depth, counter: None, carried: carried.clone() });
            Some((inside, done, carried))
        });
        let Some((inside, done, carried)) = opened else { return init };
        let values = self.current_values(&carried, &init);
        let names = self.recorder().map(|recorder| recorder.loop_names(&values));
        let cond = self.inside(|| {
            let cond = self.coerce("while: the condition", ScalarType::Bool, cond(&values).into());
            self.recorder().inspect(|recorder| recorder.block_value(cond));
            cond
        });
        self.emit(|l| {
            l.b.branch(cond.value, inside, done, Hint::Likely);
            l.b.switch_to(inside);
        });
        let next =
            self.inside(|| self.next_values("while: the next value", &carried, self.recorded_next(body(&values))));
        self.close_loop(&next);
        if let Some((header, names)) = header.zip(names) {
            self.record(|recorder| recorder.while_(header, names));
        }
        values
    }

    /// The values that a loop carries, with which the current turn began.
    fn current_values<'b>(&'b self, carried: &[Carried], init: &[Expr<'b>]) -> Vec<Expr<'b>> {
        carried.iter().zip(init).map(|(carried, first)| self.expr(carried.value, carried.ty).like(*first)).collect()
    }

    /// Records the next values at the end of a turn, if the loop carries any.
    fn recorded_next<'b>(&'b self, next: Vec<Expr<'b>>) -> Vec<Expr<'b>> {
        if !next.is_empty() {
            let operands = || next.iter().map(|value| (*value).into()).collect::<Vec<_>>();
            self.record(|recorder| recorder.next(&operands()));
        }
        next
    }

    /// Converts the next values to the types of the values that a loop carries. Records an error if their numbers
    /// differ.
    fn next_values<'b, O: Into<Operand<'b>>>(
        &'b self,
        operation: &str,
        carried: &[Carried],
        next: Vec<O>,
    ) -> Vec<Value> {
        if next.len() != carried.len() {
            self.error(operation, format!("the loop carries {} values, got {}", carried.len(), next.len()));
            return carried.iter().map(|carried| carried.value).collect();
        }
        let convert = |(carried, next): (&Carried, O)| match carried.missing {
            true => carried.value,
            false => self.coerce(operation, carried.ty, next.into()).value,
        };
        carried.iter().zip(next).map(convert).collect()
    }

    /// Ends the innermost loop: its last turn goes on to the next one, and the code after the loop follows.
    fn close_loop(&self, next: &[Value]) {
        self.emit(|l| {
            let Some(closed) = l.exits.leave_loop() else { return };
            l.next_turn(&closed, next);
            l.b.switch_to(closed.done);
        });
    }

    /// Leaves the innermost loop. The loop's results are then the carried values with which the current turn began.
    pub fn break_(&self) {
        self.is_in_graph("break_");
        let Some(innermost) = self.emit(|l| l.exits.innermost_loop()) else {
            return self.error("break_", NO_LOOP);
        };
        self.record(|_| StatementKind::Break);
        self.emit(|l| {
            l.release_above(innermost.depth);
            l.b.jump(innermost.done, &[]);
            unreachable(l);
        });
    }

    /// Goes on to the next turn of the innermost loop. Values that the loop carries stay as they were when the current
    /// turn began: [`continue_with`](Self::continue_with) states others.
    ///
    /// Like [`break_`](Self::break_), this releases what the turn owns. In the condition of a `while_`, it computes the
    /// condition again.
    pub fn continue_(&self) {
        self.is_in_graph("continue_");
        let Some(innermost) = self.emit(|l| l.exits.innermost_loop()) else {
            return self.error("continue_", NO_LOOP);
        };
        self.record(|_| StatementKind::Continue(Vec::new()));
        let same: Vec<Value> = innermost.carried.iter().map(|carried| carried.value).collect();
        self.leave_turn(&innermost, &same);
    }

    /// [`continue_`](Self::continue_) for a loop that carries values, with the values of the next turn.
    ///
    #[cfg_attr(feature = "_engine", doc = "```")]
    #[cfg_attr(not(feature = "_engine"), doc = "```text")]
    /// use tvm_ffi_codegen::{Engine, Kernel, Signature};
    ///
    /// let signature: Signature = "digits(n: int64) -> int64".parse()?;
    /// let kernel = Kernel::body(|b| {
    ///     // the sum of the even digits, and the number of the odd ones
    ///     let [_, sum, odd] = b.while_loop([b.arg("n"), b.i64(0), b.i64(0)], |[n, ..]| n.gt(0), |[n, sum, odd]| {
    ///         b.if_((n % 2).ne(0), || b.continue_with([n / 10, sum, odd + 1]));
    ///         [n / 10, sum + n % 10, odd]
    ///     });
    ///     b.ret(100 * sum + odd);
    /// });
    /// // SAFETY: the body reads no memory.
    /// let digits = unsafe { Engine::new()?.compile(&signature, &kernel)? };
    /// assert_eq!(digits.call((123_456,))?.cast::<i64>()?, 1203);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn continue_with<'b, O: Into<Operand<'b>>>(&'b self, next: impl IntoIterator<Item = O>) {
        const OPERATION: &str = "continue_with";
        self.is_in_graph(OPERATION);
        let Some(innermost) = self.emit(|l| l.exits.innermost_loop()) else {
            return self.error(OPERATION, NO_LOOP);
        };
        let next: Vec<Operand<'b>> = next.into_iter().map(Into::into).collect();
        self.record(|recorder| recorder.next(&next));
        let next = self.next_values(OPERATION, &innermost.carried, next);
        self.leave_turn(&innermost, &next);
    }

    /// Releases what the current turn of a loop owns, and goes on to the next turn.
    fn leave_turn(&self, looped: &OpenLoop, next: &[Value]) {
        self.emit(|l| {
            l.release_above(looped.depth);
            l.next_turn(looped, next);
            unreachable(l);
        });
    }
}

/// The error for leaving a loop or a turn where there is none.
const NO_LOOP: &str = "isn't inside a loop";

impl BodyLowerer<'_> {
    /// Adds a value that a loop carries to the block at which its turns begin.
    fn carried(&mut self, head: Block, first: Expr<'_>) -> Carried {
        Carried { value: self.b.block_param(head, ir_type(first.ty())), ty: first.ty(), missing: first.is_missing() }
    }

    /// Ends the current block by going on to the next turn of a loop.
    fn next_turn(&mut self, looped: &OpenLoop, next: &[Value]) {
        let mut again = Vec::new();
        if let Some(counter) = looped.counter {
            let step = counter.step.unwrap_or_else(|| self.b.i64(1));
            again.push(self.b.binary(BinaryOp::Add, counter.index, step));
            again.extend(counter.left.map(|left| self.b.binary_imm(BinaryOp::Sub, left, 1)));
        }
        again.extend(next);
        self.b.jump(looped.head, &again);
    }
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
