//! Prints values, with the parentheses that they need.

use super::Printer;
use super::place::{CLAIM, EXPR, POSTFIX, UNARY, VALUE, is_short, place_of, precedence};
use crate::host::tree::{Call, Callee, Closure, Expr, ExprKind, Input, Scoped, UnaryOp};

impl Printer<'_> {
    /// Prints a value at a place, in parentheses if the place doesn't take it without.
    pub(super) fn expr(&mut self, expr: &Expr, place: u8) {
        if place_of(expr) < place {
            self.put("(");
            self.bare(expr);
            self.put(")");
        } else {
            self.bare(expr);
        }
    }

    fn bare(&mut self, expr: &Expr) {
        match &*expr.kind {
            ExprKind::Int(value) => self.put(&value.to_string()),
            ExprKind::Float(value) => self.put(&float(*value)),
            ExprKind::Bool(value) => self.put(if *value { "True" } else { "False" }),
            ExprKind::Text(bytes) => self.text(bytes),
            ExprKind::None => self.put("None"),
            ExprKind::Name(name) => self.put(name),
            ExprKind::Index(value, indices) => {
                self.expr(value, POSTFIX);
                self.put("[");
                self.exprs(indices);
                self.put("]");
            }
            ExprKind::Part(value, part) => {
                self.expr(value, POSTFIX);
                self.put(".");
                self.put(&part.value);
            }
            ExprKind::Unary(op, value) => {
                let (sign, place) = match op {
                    UnaryOp::Neg => ("-", UNARY),
                    UnaryOp::Invert => ("~", UNARY),
                    UnaryOp::Not => ("not ", CLAIM),
                };
                self.put(sign);
                self.expr(value, place);
            }
            ExprKind::Compare(left, op, right) => {
                self.expr(left, CLAIM + 1);
                self.put(&format!(" {} ", op.value));
                self.expr(right, CLAIM + 1);
            }
            ExprKind::Is(value, kind) => {
                self.expr(value, CLAIM + 1);
                self.put(&format!(" is {}", kind.value));
            }
            ExprKind::Cast(ty, value) => {
                self.put(ty.name());
                self.put("(");
                self.expr(value, VALUE);
                self.put(")");
            }
            ExprKind::List(items) => {
                self.put("[");
                self.exprs(items);
                self.put("]");
            }
            ExprKind::As(value, ty) => {
                self.expr(value, EXPR + 1);
                self.put(&format!(" as {ty}"));
            }
            kind => self.with_parts(kind),
        }
    }

    /// Prints one of the larger forms. Those of `bare` use less stack without them.
    fn with_parts(&mut self, kind: &ExprKind) {
        match kind {
            ExprKind::Chain(first, rest) => {
                let place = rest.first().map_or(POSTFIX, |(op, _)| precedence(op.value));
                self.expr(first, place);
                for (op, right) in rest {
                    self.put(&format!(" {} ", op.value.sign()));
                    self.expr(right, place + 1);
                }
            }
            ExprKind::Word(word, inputs) => {
                self.put(word.name());
                self.inputs(inputs);
            }
            ExprKind::Chosen(condition, then, otherwise) => self.chosen(condition, then, otherwise),
            ExprKind::Call(call) => self.call(call),
            ExprKind::Closure(closure) => self.closure(closure),
            _ => {}
        }
    }

    fn inputs(&mut self, inputs: &[Input]) {
        self.put("(");
        self.list(inputs, |printer, input| {
            if let Some(name) = &input.name {
                printer.put(&name.value);
                printer.put("=");
            }
            printer.expr(&input.value, VALUE);
        });
        self.put(")");
    }

    fn chosen(&mut self, condition: &Expr, then: &Scoped, otherwise: &Scoped) {
        self.put("if ");
        self.expr(condition, EXPR);
        if is_short(then) && is_short(otherwise) {
            for (scoped, before) in [(then, " { "), (otherwise, " } else { ")] {
                self.put(before);
                self.expr(&scoped.value, EXPR);
            }
            return self.put(" }");
        }
        self.put(" ");
        self.scoped(then);
        self.put(" else ");
        match &*otherwise.value.kind {
            ExprKind::Chosen(condition, then, rest) if otherwise.block.statements.is_empty() => {
                self.chosen(condition, then, rest);
            }
            _ => self.scoped(otherwise),
        }
    }

    fn call(&mut self, call: &Call) {
        self.put("call ");
        self.called(call);
        if let Some(ty) = &call.returns {
            self.put(&format!(" -> {ty}"));
        }
    }

    /// A call that ends the function.
    pub(super) fn forward(&mut self, call: &Expr) {
        self.put("forward ");
        if let ExprKind::Call(call) = &*call.kind {
            self.called(call);
        }
    }

    /// The function of a call, with the inputs.
    fn called(&mut self, call: &Call) {
        match &call.callee {
            Callee::Global { name, uncached } => {
                self.put(if *uncached { "global uncached " } else { "global " });
                self.label(name);
            }
            Callee::Import(name) => {
                self.put("import ");
                self.label(name);
            }
            Callee::Symbol(name) => {
                self.put("symbol ");
                self.label(name);
            }
            Callee::Value(value) => self.expr(value, POSTFIX),
        }
        self.inputs(&call.inputs);
    }

    fn closure(&mut self, closure: &Closure) {
        self.put("closure [");
        self.list(&closure.captures, |printer, (name, ty, value)| {
            printer.put(&format!("{}: {ty} = ", name.value));
            printer.expr(value, VALUE);
        });
        self.put(&format!("] {} ", closure.signature));
        self.block(&closure.body);
    }
}

/// A float with the fewest digits that read back.
fn float(value: f64) -> String {
    match value {
        _ if value.is_nan() => "nan".to_owned(),
        _ if value.is_infinite() => if value > 0.0 { "inf" } else { "-inf" }.to_owned(),
        value => format!("{value:?}"),
    }
}
