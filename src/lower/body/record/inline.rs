//! Makes a recorded block readable: moves values into the statements that use them, and names the others.
//!
//! A value moves into its only user if no other operation stands between. So the operations keep their order, and the
//! code its instructions.

use std::collections::{HashMap, HashSet};

use super::{Id, Lets, Recorder, State};
use crate::host::Word;
use crate::host::tree::{Block, Expr, ExprKind, If, Scoped, Statement, StatementKind};
use crate::host::walk::{for_each_part, names};
use crate::spec::Signature;

/// The maximum number of values in an expression.
const MOST_VALUES: usize = 20;
/// The maximum distance, in statements, between a value that needs no code and its use.
const FAR: usize = 8;

impl Recorder {
    /// The block of the body.
    pub(in crate::lower) fn finish(self, signature: &Signature) -> Block {
        let State { mut open, lets, .. } = self.state.into_inner();
        let mut block = Block { span: 0..0, statements: open.pop().unwrap_or_default().statements };
        finish(&mut block, &lets, signature);
        block
    }
}

/// Finishes the block of a body.
fn finish(block: &mut Block, lets: &Lets, signature: &Signature) {
    let mut uses = HashMap::new();
    names(block, &mut |name| {
        if let Some(id) = id_of(name) {
            *uses.entry(id).or_insert(0) += 1;
        }
    });
    let mut inliner = Inliner { uses, lets };
    inliner.drop_unused(block);
    inliner.block(block, None);
    rename(block, signature);
}

fn id_of(name: &str) -> Option<Id> {
    name.strip_prefix('%')?.parse().ok()
}

/// Gives the values of a block their names: `v0`, `v1` and so on, but for the names of the signature.
fn rename(block: &mut Block, signature: &Signature) {
    let params = signature.params().iter().map(|param| param.name.as_str());
    let taken: HashSet<&str> = params.chain(signature.names_in_dims()).collect();
    let mut fresh = (0..).map(|number: u32| format!("v{number}")).filter(|name| !taken.contains(name.as_str()));
    let mut known: HashMap<Id, String> = HashMap::new();
    names(block, &mut |name| {
        if let Some(id) = id_of(name) {
            let new = known.entry(id).or_insert_with(|| fresh.next().unwrap_or_default());
            name.clone_from(new);
        }
    });
}

struct Inliner<'r> {
    /// The number of occurrences of each name, its definition included.
    uses: HashMap<Id, usize>,
    lets: &'r Lets,
}

impl Inliner<'_> {
    /// The value that a statement names, if it is a `let`.
    fn let_of(statement: &Statement) -> Option<(Id, &Expr)> {
        match &statement.kind {
            StatementKind::Let(name, value) => Some((id_of(&name.value)?, value)),
            _ => None,
        }
    }

    fn occurrences(&self, id: Id) -> usize {
        self.uses.get(&id).copied().unwrap_or_default()
    }

    /// Drops values that are read without code and aren't used.
    fn drop_unused(&mut self, block: &mut Block) {
        let mut kept = Vec::with_capacity(block.statements.len());
        for mut statement in std::mem::take(&mut block.statements).into_iter().rev() {
            for_each_block(&mut statement, &mut |block, _| self.drop_unused(block));
            let unused = Self::let_of(&statement)
                .is_some_and(|(id, _)| self.lets.silent.contains(&id) && self.occurrences(id) == 1);
            if !unused {
                kept.push(statement);
                continue;
            }
            let mut dropped = Block { span: 0..0, statements: vec![statement] };
            names(&mut dropped, &mut |name| {
                if let Some(uses) = id_of(name).and_then(|id| self.uses.get_mut(&id)) {
                    *uses -= 1;
                }
            });
        }
        kept.reverse();
        block.statements = kept;
    }

    /// Moves values into their users in a block, and into its value.
    fn block(&mut self, block: &mut Block, value: Option<&mut Expr>) {
        let mut before = Vec::with_capacity(block.statements.len());
        for mut statement in std::mem::take(&mut block.statements) {
            for_each_block(&mut statement, &mut |block, value| self.block(block, value));
            let mut places = Vec::new();
            places_of(&mut statement.kind, &mut places);
            self.fill(places, &mut before);
            self.simplify(&mut statement);
            before.push(statement);
        }
        if let Some(value) = value {
            let mut places = Vec::new();
            places_in(value, &mut places);
            self.fill(places, &mut before);
        }
        block.statements = before;
    }

    fn simplify(&self, statement: &mut Statement) {
        match &mut statement.kind {
            StatementKind::Let(name, value) => {
                let id = id_of(&name.value);
                let is_read = id.is_some_and(|id| self.lets.reads.contains(&id));
                let unused = id.is_some_and(|id| self.occurrences(id) == 1);
                if let ExprKind::Cast(_, inner) = &*value.kind
                    && is_read
                    && matches!(&*inner.kind, ExprKind::Call(_) | ExprKind::Word(Word::Captured, _))
                {
                    *value = inner.clone();
                }
                if unused && matches!(*value.kind, ExprKind::Call(_)) {
                    statement.kind = StatementKind::Do(value.clone());
                }
            }
            StatementKind::If(If { branches, otherwise }) => {
                if let Some([Statement { kind: StatementKind::If(_), .. }]) =
                    otherwise.as_ref().map(|b| &b.statements[..])
                    && let Some(Statement { kind: StatementKind::If(inner), .. }) =
                        otherwise.take().and_then(|mut block| block.statements.pop())
                {
                    branches.extend(inner.branches);
                    *otherwise = inner.otherwise;
                }
            }
            _ => {}
        }
    }

    /// Moves the last values before a statement into its places, which are in the order in which they are computed.
    fn fill(&mut self, places: Vec<&mut Expr>, before: &mut Vec<Statement>) {
        let mut room = MOST_VALUES;
        for place in places.into_iter().rev() {
            let ExprKind::Name(name) = &*place.kind else { return };
            let Some(id) = id_of(name).filter(|id| self.occurrences(*id) == 2) else { continue };
            let Some(number) = self.position(id, before) else { continue };
            let Some((_, value)) = Self::let_of(&before[number]) else { continue };
            let size = size(value, room);
            if size >= room || !is_plain(value) {
                continue;
            }
            room -= size;
            let StatementKind::Let(_, value) = before.remove(number).kind else { continue };
            *place = match *value.kind {
                ExprKind::Cast(_, inner) if self.lets.reads.contains(&id) => inner,
                kind => Expr { kind: Box::new(kind), ..value },
            };
        }
    }

    /// The number of the statement that gives a value, if the value may move behind the statements after it.
    fn position(&self, id: Id, before: &[Statement]) -> Option<usize> {
        let is_it = |statement: &Statement| Self::let_of(statement).is_some_and(|(known, _)| known == id);
        if before.last().is_some_and(is_it) {
            return Some(before.len() - 1);
        }
        if !self.lets.silent.contains(&id) {
            return None;
        }
        let near = before.len().saturating_sub(FAR);
        let number = near + before[near..].iter().rposition(is_it)?;
        // a call may have moved into it
        Self::let_of(&before[number]).filter(|(_, value)| is_path(value))?;
        // no statement between may move what the value is read from
        let keeps = |statement: &Statement| {
            Self::let_of(statement)
                .is_some_and(|(_, value)| !matches!(*value.kind, ExprKind::Call(_)) && is_plain(value))
        };
        before[number + 1..].iter().all(keeps).then_some(number)
    }
}

/// Visits the blocks inside of a statement, those with a value together with it.
fn for_each_block(statement: &mut Statement, visit: &mut dyn FnMut(&mut Block, Option<&mut Expr>)) {
    match &mut statement.kind {
        StatementKind::If(if_) => {
            if_.branches.iter_mut().for_each(|(_, block)| visit(block, None));
            if_.otherwise.iter_mut().for_each(|block| visit(block, None));
        }
        StatementKind::Match(match_) => {
            match_.rows.iter_mut().for_each(|row| visit(&mut row.block, None));
            match_.otherwise.iter_mut().for_each(|block| visit(block, None));
        }
        StatementKind::While(while_) => {
            visit(&mut while_.condition.block, Some(&mut while_.condition.value));
            visit(&mut while_.block, None);
        }
        StatementKind::For(for_) => visit(&mut for_.block, None),
        StatementKind::Graph(block) => visit(block, None),
        StatementKind::Try(try_) => {
            visit(&mut try_.attempt, None);
            visit(&mut try_.handler, None);
        }
        StatementKind::Let(_, value) => {
            if let ExprKind::Chosen(_, then, otherwise) = &mut *value.kind {
                [then, otherwise].into_iter().for_each(|scoped| visit(&mut scoped.block, Some(&mut scoped.value)));
            }
        }
        _ => {}
    }
}

/// The places of values in a statement that are computed before it does anything else, in their order.
fn places_of<'t>(kind: &'t mut StatementKind, places: &mut Vec<&'t mut Expr>) {
    match kind {
        StatementKind::Let(_, value) | StatementKind::Do(value) | StatementKind::Forward(value) => {
            match &mut *value.kind {
                ExprKind::As(..) | ExprKind::Is(..) | ExprKind::Word(Word::Param | Word::Captured, _) => {}
                _ => for_each_part(value, &mut |part| places_in(part, places)),
            }
        }
        StatementKind::Set(target, value) => {
            for_each_part(target, &mut |part| places_in(part, places));
            places_in(value, places);
        }
        StatementKind::Return(Some(value)) => places_in(value, places),
        StatementKind::Continue(next) => next.iter_mut().for_each(|value| places_in(value, places)),
        StatementKind::If(if_) => {
            if_.branches.first_mut().into_iter().for_each(|(condition, _)| places_in(condition, places));
        }
        StatementKind::Match(match_) => match_.keys.iter_mut().for_each(|key| places_in(&mut key.value, places)),
        StatementKind::While(while_) => while_.carried.iter_mut().for_each(|(_, first)| places_in(first, places)),
        StatementKind::For(for_) => {
            places_in(&mut for_.start, places);
            places_in(&mut for_.end, places);
            for_.step.iter_mut().for_each(|step| places_in(step, places));
            for_.carried.iter_mut().for_each(|(_, first)| places_in(first, places));
        }
        StatementKind::Raise(error, _) => error.values.iter_mut().for_each(|value| places_in(value, places)),
        StatementKind::Ensure(condition, error) => {
            places_in(condition, places);
            error.values.iter_mut().for_each(|value| places_in(value, places));
        }
        StatementKind::Var(_)
        | StatementKind::Return(None)
        | StatementKind::Break
        | StatementKind::Try(_)
        | StatementKind::Graph(_)
        | StatementKind::RaiseAgain(_)
        | StatementKind::Launch(_)
        | StatementKind::Location(_) => {}
    }
}

/// The names in a value. A constant with its type is a place that no value can move behind.
fn places_in<'t>(expr: &'t mut Expr, places: &mut Vec<&'t mut Expr>) {
    match &*expr.kind {
        ExprKind::Name(_) => places.push(expr),
        ExprKind::Cast(_, value) if is_literal(value) => places.push(expr),
        ExprKind::Word(Word::Bitcast, _) => places.push(expr),
        ExprKind::Word(Word::Param, _) | ExprKind::As(..) | ExprKind::Is(..) => {}
        _ => for_each_part(expr, &mut |part| places_in(part, places)),
    }
}

fn is_literal(expr: &Expr) -> bool {
    match &*expr.kind {
        ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Bool(_) => true,
        ExprKind::Unary(_, value) => is_literal(value),
        _ => false,
    }
}

/// Whether a value is read from a name, without code.
fn is_path(value: &Expr) -> bool {
    match &*value.kind {
        ExprKind::Name(_) => true,
        ExprKind::Index(value, _) | ExprKind::Part(value, _) | ExprKind::Cast(_, value) => is_path(value),
        _ => false,
    }
}

/// Whether a value reads well inside of another one.
fn is_plain(value: &Expr) -> bool {
    let is_short = |scoped: &Scoped| scoped.block.statements.is_empty();
    match &*value.kind {
        ExprKind::Closure(_) => false,
        ExprKind::Chosen(_, then, otherwise) => is_short(then) && is_short(otherwise),
        _ => true,
    }
}

/// The number of values that an expression is made of, up to a limit.
fn size(value: &Expr, limit: usize) -> usize {
    let mut value = value.clone();
    let mut count = 0;
    fn add(value: &mut Expr, count: &mut usize, limit: usize) {
        *count += 1;
        if *count < limit {
            for_each_part(value, &mut |part| add(part, count, limit));
        }
    }
    add(&mut value, &mut count, limit);
    count
}
