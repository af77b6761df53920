//! Lowers statements.

use super::driver::Driver;
use super::questions::facts;
use super::value::Val;
use crate::host::tree::{
    At, Block, Error, Expr as Tree, ExprKind, For, If, Location, Span, Statement, StatementKind, Try, While,
};
use crate::lower::body::{CallArg, Caught, Expr};
use crate::spec::{ParamType, SourceLocation};

impl<'b, 'a> Driver<'b, 'a, '_> {
    /// Writes the statements of a block.
    pub(super) fn block(&self, block: &Block) {
        self.inside(block.span.end, || block.statements.iter().for_each(|statement| self.statement(statement)));
    }

    /// Writes a statement. `simple` writes statements without blocks, so nested blocks use less stack.
    pub(super) fn statement(&self, statement: &Statement) {
        let span = &statement.span;
        match &statement.kind {
            StatementKind::If(if_) => self.if_(&if_.branches, if_),
            StatementKind::Match(match_) => self.match_(span, match_),
            StatementKind::While(while_) => self.while_(span, while_),
            StatementKind::For(for_) => self.for_(span, for_),
            StatementKind::Try(try_) => self.try_(span, try_),
            StatementKind::Graph(block) => {
                self.at(span);
                self.body.graph(|| self.block(block));
            }
            _ => self.simple(statement),
        }
    }

    /// Writes a statement without blocks.
    fn simple(&self, statement: &Statement) {
        let span = &statement.span;
        match &statement.kind {
            StatementKind::Let(name, value) => {
                let value = match self.value(value) {
                    literal @ Val::Literal(_) => Val::Expr(self.as_expr(&value.span, literal)),
                    value => value,
                };
                self.define(name, value);
            }
            StatementKind::Var(name) => {
                self.at(span);
                self.define(name, Val::Variable(self.body.variable()));
            }
            StatementKind::Set(target, value) => self.set(target, value),
            StatementKind::Do(done) => self.do_(span, done),
            StatementKind::Forward(call) => self.forward(span, call),
            StatementKind::Return(value) => self.return_(span, value.as_ref()),
            StatementKind::Break => {
                self.at(span);
                self.body.break_();
            }
            StatementKind::Continue(next) => {
                let next = self.operands(next);
                self.at(span);
                if next.is_empty() { self.body.continue_() } else { self.body.continue_with(next) }
            }
            StatementKind::Raise(error, from) => self.raise(span, error, from.as_ref()),
            StatementKind::RaiseAgain(name) => {
                if let Some(caught) = self.caught(name) {
                    self.at(span);
                    caught.raise_again();
                }
            }
            StatementKind::Ensure(condition, error) => {
                let facts = facts(condition);
                let condition = self.condition(condition);
                let values: Vec<CallArg<'b>> = error.values.iter().map(|value| self.arg(value)).collect();
                self.at(span);
                self.body.ensure(condition, &error.kind, &error.message, values);
                self.learn(&facts);
            }
            StatementKind::Launch(launch) => self.launch(span, launch),
            StatementKind::Location(location) => self.set_location(span, location),
            // `statement` has those with blocks
            StatementKind::If(_)
            | StatementKind::Match(_)
            | StatementKind::While(_)
            | StatementKind::For(_)
            | StatementKind::Try(_)
            | StatementKind::Graph(_) => {}
        }
    }

    fn set(&self, target: &Tree, value: &Tree) {
        match &*target.kind {
            ExprKind::Name(name) => match self.named(&target.span, name) {
                Val::Variable(variable) => {
                    let value = self.arg(value);
                    self.at(&target.span);
                    variable.set(value);
                }
                Val::Missing => {}
                _ => self.error(&target.span, name, "isn't a variable; only a `var` and elements are assigned"),
            },
            ExprKind::Index(tensor, indices) => {
                let tensor = self.tensor(tensor);
                let indices = self.operands(indices);
                let value = self.operand(value);
                self.at(&target.span);
                tensor.store(indices, value);
            }
            _ => self.error(&target.span, "=", "only a `var` and elements are assigned"),
        }
    }

    fn do_(&self, span: &Span, done: &Tree) {
        match &*done.kind {
            ExprKind::Call(call) => {
                let Some(made) = self.begin_call(span, call) else { return };
                match &call.returns {
                    None => made.run(),
                    Some(ty) => {
                        made.returns(ty.clone());
                    }
                }
            }
            ExprKind::Word(word, inputs) => self.do_word(span, *word, inputs),
            _ => self.error(span, "statement", "expected a call"),
        }
    }

    fn forward(&self, span: &Span, call: &Tree) {
        match &*call.kind {
            ExprKind::Call(call) => {
                if let Some(made) = self.begin_call(span, call) {
                    made.forward();
                }
            }
            _ => self.error(span, "forward", "expected a call"),
        }
    }

    fn return_(&self, span: &Span, value: Option<&Tree>) {
        let is_scalar = self.body.signature().ret().is_some_and(|ret| matches!(ret, ParamType::Scalar(_)));
        match value {
            None => {
                self.at(span);
                self.body.ret_none();
            }
            Some(value) if is_scalar => {
                let value = self.operand(value);
                self.at(span);
                self.body.ret(value);
            }
            Some(value) => {
                let value = self.arg(value);
                self.at(span);
                self.body.ret_value(value);
            }
        }
    }

    fn if_(&self, branches: &[(Tree, Block)], whole: &If) {
        let Some(((condition, then), rest)) = branches.split_first() else {
            return whole.otherwise.iter().for_each(|block| self.block(block));
        };
        let facts = facts(condition);
        let condition = self.condition(condition);
        let then_block = || self.knowing(&facts, then.span.end, || self.block(then));
        if rest.is_empty() && whole.otherwise.is_none() {
            return self.body.if_(condition, then_block);
        }
        self.body.if_else(condition, then_block, || self.inside(then.span.end, || self.if_(rest, whole)));
    }

    fn while_(&self, span: &Span, while_: &While) {
        let init: Vec<Expr<'b>> = while_.carried.iter().map(|(_, value)| self.expr(value)).collect();
        self.at(span);
        let with = |values: &[Expr<'b>]| {
            for ((name, _), value) in while_.carried.iter().zip(values) {
                self.define(name, Val::Expr(*value));
            }
        };
        let last = self.body.while_values(
            &init,
            |values| {
                self.inside(while_.condition.value.span.end, || {
                    with(values);
                    let value = self.scoped(&while_.condition);
                    self.at(&while_.condition.value.span);
                    value
                })
            },
            |values| {
                self.inside(while_.block.span.end, || {
                    with(values);
                    self.turn(&while_.block, values)
                })
            },
        );
        with(&last);
    }

    fn for_(&self, span: &Span, for_: &For) {
        let [start, end] = [&for_.start, &for_.end].map(|value| self.operand(value));
        let step = for_.step.as_ref().map(|step| self.operand(step));
        let init: Vec<Expr<'b>> = for_.carried.iter().map(|(_, value)| self.expr(value)).collect();
        self.at(span);
        let with = |values: &[Expr<'b>]| {
            for ((name, _), value) in for_.carried.iter().zip(values) {
                self.define(name, Val::Expr(*value));
            }
        };
        let last = self.body.fold_values(start, end, step, &init, |index, values| {
            self.inside(for_.block.span.end, || {
                self.define(&for_.index, Val::Expr(index));
                with(values);
                self.turn(&for_.block, values)
            })
        });
        with(&last);
    }

    /// Writes the block of a loop. Returns the next values: those of a `continue` at its end.
    fn turn(&self, block: &Block, values: &[Expr<'b>]) -> Vec<Expr<'b>> {
        let leaves = |statement: &Statement| {
            use StatementKind::{Break, Continue, Forward, If, Match, Raise, RaiseAgain, Return};
            let is_exit = matches!(statement.kind, Break | Continue(_) | Forward(_) | Return(_));
            is_exit || matches!(statement.kind, If(_) | Match(_) | Raise(..) | RaiseAgain(_))
        };
        self.inside(block.span.end, || match block.statements.split_last() {
            Some((Statement { kind: StatementKind::Continue(next), span }, before)) if !next.is_empty() => {
                before.iter().for_each(|statement| self.statement(statement));
                let next = self.operands(next);
                self.at(span);
                let typed = |(at, next): (usize, &_)| match values.get(at) {
                    Some(value) if !value.is_missing() => self.body.coerce("continue", value.ty(), *next),
                    _ => self.as_expr(span, Val::Literal(*next)),
                };
                next.iter().enumerate().map(typed).collect()
            }
            last => {
                block.statements.iter().for_each(|statement| self.statement(statement));
                if !values.is_empty() && !last.is_some_and(|(last, _)| leaves(last)) {
                    let end = block.span.end.saturating_sub(1)..block.span.end;
                    self.error(&end, "with", "expected a `continue` with the next values at the end of the block");
                }
                values.to_vec()
            }
        })
    }

    fn try_(&self, span: &Span, try_: &Try) {
        let Try { attempt, name, handler } = try_;
        self.at(span);
        self.body.try_(
            || self.block(attempt),
            |caught| {
                self.inside(handler.span.end, || {
                    self.define(name, Val::Caught(caught));
                    self.block(handler);
                });
            },
        );
    }

    fn caught(&self, name: &At<String>) -> Option<Caught<'b, 'a>> {
        match self.named(&name.span, &name.value) {
            Val::Caught(caught) => Some(caught),
            Val::Missing => None,
            _ => {
                self.error(&name.span, &name.value, "isn't a caught error");
                None
            }
        }
    }

    fn raise(&self, span: &Span, error: &Error, from: Option<&At<String>>) {
        let Error { kind, message, values } = error;
        match from {
            None => {
                let values: Vec<_> = values.iter().map(|value| self.arg(value)).collect();
                self.at(span);
                self.body.raise(kind, message, values);
            }
            Some(name) => {
                let values: Vec<CallArg<'b>> = values.iter().map(|value| self.arg(value)).collect();
                let Some(caught) = self.caught(name) else { return };
                self.at(span);
                caught.raise_from(kind, message, values);
            }
        }
    }

    fn set_location(&self, span: &Span, location: &Location) {
        self.at(span);
        let whole = match location {
            Location::None => None,
            Location::Whole(location) => Some(location.clone()),
            Location::Line(line) => match &*self.location.borrow() {
                Some(SourceLocation { file, function, .. }) => Some(SourceLocation::new(file, *line, function)),
                None => {
                    return self.body.error("@", "a line alone changes the line of a place that is stated above it");
                }
            },
        };
        match &whole {
            Some(SourceLocation { file, line, function }) => self.body.set_location(file, *line, function),
            None => self.body.clear_location(),
        }
        *self.location.borrow_mut() = whole;
    }
}
