//! Walks over the names and the values of trees that are recorded.

use super::tree::{Block, Call, Callee, Error, Expr, ExprKind, LaunchOf, Scoped, Statement, StatementKind};

/// Visits each local name of a block, where it is given and where it is used, in the order of the text. The bodies of
/// closures have names of their own, and aren't visited.
pub(crate) fn names(block: &mut Block, visit: &mut dyn FnMut(&mut String)) {
    for statement in &mut block.statements {
        names_of_statement(statement, visit);
    }
}

fn names_of_statement(statement: &mut Statement, visit: &mut dyn FnMut(&mut String)) {
    match &mut statement.kind {
        StatementKind::Let(name, value) => {
            visit(&mut name.value);
            names_of_expr(value, visit);
        }
        StatementKind::Var(name) | StatementKind::RaiseAgain(name) => visit(&mut name.value),
        StatementKind::Set(target, value) => {
            names_of_expr(target, visit);
            names_of_expr(value, visit);
        }
        StatementKind::Do(value) | StatementKind::Forward(value) | StatementKind::Return(Some(value)) => {
            names_of_expr(value, visit);
        }
        StatementKind::Continue(next) => next.iter_mut().for_each(|value| names_of_expr(value, visit)),
        StatementKind::Raise(error, from) => {
            names_of_error(error, visit);
            from.iter_mut().for_each(|name| visit(&mut name.value));
        }
        StatementKind::Ensure(condition, error) => {
            names_of_expr(condition, visit);
            names_of_error(error, visit);
        }
        StatementKind::Launch(launch) => names_of_launch(launch, visit),
        StatementKind::Return(None)
        | StatementKind::Break
        | StatementKind::Location(_)
        | StatementKind::If(_)
        | StatementKind::Match(_)
        | StatementKind::While(_)
        | StatementKind::For(_)
        | StatementKind::Try(_)
        | StatementKind::Graph(_) => names_of_blocks(&mut statement.kind, visit),
    }
}

fn names_of_blocks(kind: &mut StatementKind, visit: &mut dyn FnMut(&mut String)) {
    match kind {
        StatementKind::If(if_) => {
            for (condition, block) in &mut if_.branches {
                names_of_expr(condition, visit);
                names(block, visit);
            }
            if_.otherwise.iter_mut().for_each(|block| names(block, visit));
        }
        StatementKind::Match(match_) => {
            match_.keys.iter_mut().for_each(|key| names_of_expr(&mut key.value, visit));
            match_.rows.iter_mut().for_each(|row| names(&mut row.block, visit));
            match_.otherwise.iter_mut().for_each(|block| names(block, visit));
        }
        StatementKind::While(while_) => {
            for (name, first) in &mut while_.carried {
                visit(&mut name.value);
                names_of_expr(first, visit);
            }
            names_of_scoped(&mut while_.condition, visit);
            names(&mut while_.block, visit);
        }
        StatementKind::For(for_) => {
            visit(&mut for_.index.value);
            let bounds = [Some(&mut for_.start), Some(&mut for_.end), for_.step.as_mut()];
            bounds.into_iter().flatten().for_each(|bound| names_of_expr(bound, visit));
            for (name, first) in &mut for_.carried {
                visit(&mut name.value);
                names_of_expr(first, visit);
            }
            names(&mut for_.block, visit);
        }
        StatementKind::Try(try_) => {
            names(&mut try_.attempt, visit);
            visit(&mut try_.name.value);
            names(&mut try_.handler, visit);
        }
        StatementKind::Graph(block) => names(block, visit),
        _ => {}
    }
}

fn names_of_launch(launch: &mut LaunchOf, visit: &mut dyn FnMut(&mut String)) {
    launch.items.values.iter_mut().flatten().for_each(|named| visit(&mut named.value));
}

fn names_of_error(error: &mut Error, visit: &mut dyn FnMut(&mut String)) {
    error.values.iter_mut().for_each(|value| names_of_expr(value, visit));
}

fn names_of_scoped(scoped: &mut Scoped, visit: &mut dyn FnMut(&mut String)) {
    names(&mut scoped.block, visit);
    names_of_expr(&mut scoped.value, visit);
}

fn names_of_expr(expr: &mut Expr, visit: &mut dyn FnMut(&mut String)) {
    match &mut *expr.kind {
        ExprKind::Name(name) => visit(name),
        ExprKind::Chosen(condition, then, otherwise) => {
            names_of_expr(condition, visit);
            names_of_scoped(then, visit);
            names_of_scoped(otherwise, visit);
        }
        ExprKind::Call(call) => {
            let Call { callee, inputs, .. } = &mut **call;
            inputs.iter_mut().for_each(|input| names_of_expr(&mut input.value, visit));
            if let Callee::Value(value) = callee {
                names_of_expr(value, visit);
            }
        }
        _ => for_each_part(expr, &mut |part| names_of_expr(part, visit)),
    }
}

/// Visits the values from which a value is computed, in the order in which they are. Functions that are called, and
/// statements inside of the value, aren't visited.
pub(crate) fn for_each_part<'t>(expr: &'t mut Expr, visit: &mut dyn FnMut(&'t mut Expr)) {
    match &mut *expr.kind {
        ExprKind::Int(_)
        | ExprKind::Float(_)
        | ExprKind::Bool(_)
        | ExprKind::Text(_)
        | ExprKind::None
        | ExprKind::Name(_) => {}
        ExprKind::Index(value, indices) => {
            visit(value);
            indices.iter_mut().for_each(visit);
        }
        ExprKind::Part(value, _)
        | ExprKind::Unary(_, value)
        | ExprKind::Cast(_, value)
        | ExprKind::As(value, _)
        | ExprKind::Is(value, _)
        | ExprKind::Chosen(value, ..) => visit(value),
        ExprKind::Chain(first, rest) => {
            visit(first);
            rest.iter_mut().for_each(|(_, value)| visit(value));
        }
        ExprKind::Compare(left, _, right) => {
            visit(left);
            visit(right);
        }
        ExprKind::Word(_, inputs) => inputs.iter_mut().for_each(|input| visit(&mut input.value)),
        ExprKind::Call(call) => call.inputs.iter_mut().for_each(|input| visit(&mut input.value)),
        ExprKind::Closure(closure) => closure.captures.iter_mut().for_each(|(.., value)| visit(value)),
        ExprKind::List(items) => items.iter_mut().for_each(visit),
    }
}
