//! Lowers expressions.

use std::sync::Arc;

use super::driver::Driver;
use super::questions::{Fact, facts, facts_of_chain};
use super::value::Val;
use crate::host::Word;
use crate::host::tree::{At, BinaryOp, Call, Callee, Closure, Expr as Tree, ExprKind, Input, Scoped, Span, UnaryOp};
use crate::lower::body::{self, CallArg, Expr, Operand, Owned, ParamRef, TensorRef};
use crate::spec::{CompareOp, ParamType, did_you_mean};

/// The parts that values have.
const PARTS: [&str; 11] =
    ["shape", "strides", "data", "size", "given", "kind", "dtype", "ndim", "device", "id", "capability"];

impl<'b, 'a> Driver<'b, 'a, '_> {
    pub(super) fn operand(&self, tree: &Tree) -> Operand<'b> {
        let value = self.value(tree);
        self.as_operand(&tree.span, value)
    }

    pub(super) fn expr(&self, tree: &Tree) -> Expr<'b> {
        let value = self.value(tree);
        self.as_expr(&tree.span, value)
    }

    pub(super) fn operands(&self, trees: &[Tree]) -> Vec<Operand<'b>> {
        trees.iter().map(|tree| self.operand(tree)).collect()
    }

    pub(super) fn tensor(&self, tree: &Tree) -> TensorRef<'b> {
        if matches!(&*tree.kind, ExprKind::Name(name) if name == "result") {
            self.at(&tree.span);
            return self.narrowed("result").unwrap_or_else(|| self.body.result());
        }
        let value = self.value(tree);
        self.as_tensor(&tree.span, value)
    }

    pub(super) fn arg(&self, tree: &Tree) -> CallArg<'b> {
        let value = self.value(tree);
        self.as_arg(&tree.span, value)
    }

    /// The value of an expression.
    pub(super) fn value(&self, tree: &Tree) -> Val<'b, 'a> {
        let span = &tree.span;
        match &*tree.kind {
            ExprKind::Int(value) => Val::Literal(Operand::Int(*value)),
            ExprKind::Float(value) => Val::Literal(Operand::Float(*value)),
            ExprKind::Bool(value) => Val::Literal(Operand::Bool(*value)),
            ExprKind::Text(bytes) => match String::from_utf8(bytes.clone()) {
                Ok(text) => Val::Arg(text.into()),
                Err(_) => {
                    self.error(span, "text", "it isn't UTF-8; write `bytes(\"...\")`");
                    Val::Missing
                }
            },
            ExprKind::None => Val::Arg(CallArg::NONE),
            ExprKind::Name(name) if name == "result" => Val::Tensor(self.tensor(tree)),
            ExprKind::Name(name) => self.named(span, name),
            ExprKind::Index(value, indices) => self.index(span, value, indices),
            ExprKind::Part(value, part) => self.part(value, part),
            ExprKind::Unary(op, value) => self.unary(span, *op, value),
            ExprKind::Chain(first, rest) => self.chain(first, rest),
            ExprKind::Compare(left, op, right) => Val::Expr(self.compare(left, op, right)),
            ExprKind::Cast(ty, value) => Val::Expr(self.converted(span, *ty, value)),
            ExprKind::Word(word, inputs) => self.word(span, *word, inputs),
            ExprKind::Is(value, kind) => Val::Expr(self.is_kind(value, kind)),
            ExprKind::Chosen(condition, then, otherwise) => {
                let facts = facts(condition);
                let condition = self.condition(condition);
                self.at(span);
                let then = || self.knowing(&facts, then.value.span.end, || self.scoped(then));
                Val::Expr(self.body.if_else_value(condition, then, || self.scoped(otherwise)))
            }
            ExprKind::Call(call) => self.call(span, call),
            ExprKind::As(value, ty) => self.taken_as(span, value, ty),
            ExprKind::Closure(closure) => Val::Owned(self.closure(span, closure)),
            ExprKind::List(_) => {
                self.error(span, "list", "expected a value, got a list");
                Val::Missing
            }
        }
    }

    /// A truth value.
    pub(super) fn condition(&self, tree: &Tree) -> Expr<'b> {
        let value = self.expr(tree);
        self.at(&tree.span);
        value
    }

    /// The value at the end of statements.
    pub(super) fn scoped(&self, scoped: &Scoped) -> Expr<'b> {
        self.inside(scoped.value.span.end, || {
            scoped.block.statements.iter().for_each(|statement| self.statement(statement));
            self.expr(&scoped.value)
        })
    }

    fn index(&self, span: &Span, value: &Tree, indices: &[Tree]) -> Val<'b, 'a> {
        if let ExprKind::Part(tensor, part) = &*value.kind
            && matches!(part.value.as_str(), "shape" | "strides")
            && self.field(tensor, part).is_none()
        {
            let (tensor, d) = (self.tensor(tensor), self.literal_index(span, indices));
            let Some(d) = d else { return Val::Missing };
            self.at(span);
            return Val::Expr(if part.value == "shape" { tensor.size(d) } else { tensor.stride(d) });
        }
        if matches!(&*value.kind, ExprKind::Name(name) if name == "result")
            && matches!(self.body.signature().ret(), Some(ParamType::Tuple(_)))
        {
            let Some(number) = self.literal_index(span, indices) else { return Val::Missing };
            self.at(span);
            return Val::Tensor(self.body.result_item(number));
        }
        let base = self.value(value);
        let param = match &base {
            Val::Param(param) | Val::Whole(param) => Some(*param),
            Val::Result(result) => Some(**result),
            _ => None,
        };
        let is_tuple = |ty: &ParamType| match ty {
            ParamType::Optional(inner) => matches!(**inner, ParamType::Tuple(_)),
            ty => matches!(ty, ParamType::Tuple(_)),
        };
        if let Some(param) = param.filter(|param| param.ty().is_some_and(is_tuple)) {
            let Some(number) = self.literal_index(span, indices) else { return Val::Missing };
            self.at(span);
            return Val::Param(param.item(number));
        }
        let tensor = self.as_tensor(&value.span, base);
        let indices = self.operands(indices);
        self.at(span);
        Val::Expr(tensor.load(indices))
    }

    fn literal_index(&self, span: &Span, indices: &[Tree]) -> Option<usize> {
        let index = match indices {
            [index] => match &*index.kind {
                ExprKind::Int(value) => usize::try_from(*value).ok(),
                _ => None,
            },
            _ => None,
        };
        if index.is_none() {
            self.error(span, "index", "expected one index that is a number, such as `[0]`");
        }
        index
    }

    /// The field of a record. `None` if the value is no record with this field.
    fn field(&self, value: &Tree, part: &At<String>) -> Option<ParamRef<'b>> {
        self.at(&part.span);
        self.param_of(value)?.named_field(&part.value)
    }

    /// The parameter, item or field that an expression states. `None` for any other expression.
    fn param_of(&self, value: &Tree) -> Option<ParamRef<'b>> {
        match &*value.kind {
            ExprKind::Name(name) => match self.local(name) {
                Some(Val::Param(param) | Val::Whole(param)) => Some(param),
                Some(_) => None,
                None => self.param(name),
            },
            ExprKind::Word(Word::Param, inputs) => self.param_of(&inputs.first()?.value),
            ExprKind::Part(record, field) => self.param_of(record)?.named_field(&field.value),
            ExprKind::Index(tuple, indices) => match &indices[..] {
                [Tree { kind, .. }] => match **kind {
                    ExprKind::Int(number) => self.param_of(tuple)?.items().nth(usize::try_from(number).ok()?),
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        }
    }

    fn part(&self, value: &Tree, part: &At<String>) -> Val<'b, 'a> {
        let declared = |driver: &Self| match &*value.kind {
            ExprKind::Name(name) if name != "result" => driver.declared(&value.span, name),
            _ => driver.value(value),
        };
        if let Some(field) = self.field(value, part) {
            return Val::Param(field);
        }
        let param = |driver: &Self| match declared(driver) {
            Val::Param(param) | Val::Whole(param) => Some(param),
            Val::Result(result) => Some(*result),
            Val::Missing => None,
            _ => {
                driver.error(&value.span, &part.value, "expected a parameter or a result");
                None
            }
        };
        match part.value.as_str() {
            "data" => {
                let tensor = self.tensor(value);
                self.at(&part.span);
                Val::Expr(tensor.ptr())
            }
            "dtype" | "device" | "ndim" | "id" | "capability" => self.asked(value, part),
            "size" | "given" => {
                let Some(param) = param(self) else { return Val::Missing };
                self.at(&part.span);
                Val::Expr(if part.value == "size" { param.size() } else { param.is_given() })
            }
            name @ ("shape" | "strides") => {
                self.error(&part.span, name, format!("expected an index after it, such as `{name}[0]`"));
                Val::Missing
            }
            "kind" => {
                let problem = "it is compared with a text: `e.kind == \"KeyError\"`, `x.device.kind == \"cuda\"`";
                self.error(&part.span, "kind", problem);
                Val::Missing
            }
            name => {
                let known = PARTS.map(|part| format!("`{part}`")).join(", ");
                let problem = format!("no part has this name{}; parts are {known}", did_you_mean(name, &PARTS));
                self.error(&part.span, &format!("`{name}`"), problem);
                Val::Missing
            }
        }
    }

    fn unary(&self, span: &Span, op: UnaryOp, value: &Tree) -> Val<'b, 'a> {
        let value = self.value(value);
        match (op, &value) {
            (UnaryOp::Neg, Val::Literal(Operand::Int(value))) => return Val::Literal(Operand::Int(-value)),
            (UnaryOp::Neg, Val::Literal(Operand::Float(value))) => return Val::Literal(Operand::Float(-value)),
            _ => {}
        }
        let value = self.as_expr(span, value);
        self.at(span);
        let is_bool = value.ty() == crate::spec::ScalarType::Bool;
        Val::Expr(match op {
            UnaryOp::Neg => -value,
            UnaryOp::Not if !is_bool && !value.is_missing() => {
                self.body.error("not", format!("expected bool, got {}; `~` inverts bits", value.ty()));
                self.body.missing()
            }
            UnaryOp::Not | UnaryOp::Invert => !value,
        })
    }

    fn chain(&self, first: &Tree, rest: &[(At<BinaryOp>, Tree)]) -> Val<'b, 'a> {
        let mut left = (first.span.clone(), self.value(first));
        for (op, right) in rest {
            let span = left.0.start..right.span.end;
            let value = match op.value {
                BinaryOp::And => {
                    let known = facts_of_chain(first, rest, right);
                    self.short_circuit(left, op, right, &known)
                }
                BinaryOp::Or => self.short_circuit(left, op, right, &[]),
                _ => {
                    let right = self.operand(right);
                    self.operation(left, op, right)
                }
            };
            left = (span, Val::Expr(value));
        }
        left.1
    }

    /// `known` holds if the left side is true.
    fn short_circuit(
        &self,
        (span, left): (Span, Val<'b, 'a>),
        op: &At<BinaryOp>,
        right: &Tree,
        known: &[Fact],
    ) -> Expr<'b> {
        let left = self.as_expr(&span, left);
        let right = || self.knowing(known, right.span.end, || self.expr(right));
        self.at(&op.span);
        match op.value {
            BinaryOp::And => self.body.if_else_value(left, right, || self.body.bool(false)),
            _ => self.body.if_else_value(left, || self.body.bool(true), right),
        }
    }

    /// The left operand of an operation. A literal takes the type of the right one.
    fn left(&self, (span, left): (Span, Val<'b, 'a>), op: &At<impl Sized>, name: &str, right: Operand<'b>) -> Expr<'b> {
        let left = self.as_operand(&span, left);
        self.at(&op.span);
        match (left, right) {
            (Operand::Expr(left), _) => left,
            (literal, Operand::Expr(right)) => right.left(name, literal),
            (literal, _) => self.as_expr(&span, Val::Literal(literal)),
        }
    }

    fn operation(&self, left: (Span, Val<'b, 'a>), op: &At<BinaryOp>, right: Operand<'b>) -> Expr<'b> {
        let name = op.value.sign();
        let left = self.left(left, op, name, right);
        self.at(&op.span);
        match op.value {
            BinaryOp::BitOr => left | right,
            BinaryOp::BitXor => left ^ right,
            BinaryOp::BitAnd => left & right,
            BinaryOp::Shl => left << right,
            BinaryOp::Shr => left >> right,
            BinaryOp::Add => left + right,
            BinaryOp::Sub => left - right,
            BinaryOp::Mul => left * right,
            BinaryOp::Div if left.ty().is_int() && !left.is_missing() => {
                self.body.error("/", "is for floats; on integers `//` rounds down, and `div` towards zero");
                left
            }
            BinaryOp::Div => left / right,
            BinaryOp::FloorDiv => left.floor_div(right),
            BinaryOp::FloorRem => left.floor_rem(right),
            // `short_circuit` has these
            BinaryOp::And | BinaryOp::Or => left,
        }
    }

    fn compare(&self, left: &Tree, op: &At<CompareOp>, right: &Tree) -> Expr<'b> {
        if let (ExprKind::Text(text), ExprKind::Part(value, part)) = (&*right.kind, &*left.kind)
            && part.value == "kind"
        {
            return self.compare_kind(value, op, text, &right.span);
        }
        let value = self.value(left);
        if let Some(same) = self.compare_dtypes((&left.span, &value), op, right) {
            return same;
        }
        if let ExprKind::Text(_) = &*right.kind {
            return self.no_text(op, &right.span);
        }
        let right = self.operand(right);
        let left = self.left((left.span.clone(), value), op, op.value.sign(), right);
        self.at(&op.span);
        match op.value {
            CompareOp::Eq => left.eq(right),
            CompareOp::Ne => left.ne(right),
            CompareOp::Lt => left.lt(right),
            CompareOp::Le => left.le(right),
            CompareOp::Gt => left.gt(right),
            CompareOp::Ge => left.ge(right),
        }
    }

    /// `e.kind == "KeyError"`, `x.device.kind == "cuda"`
    fn compare_kind(&self, value: &Tree, op: &At<CompareOp>, text: &[u8], span: &Span) -> Expr<'b> {
        let kind = std::str::from_utf8(text).ok().filter(|_| matches!(op.value, CompareOp::Eq | CompareOp::Ne));
        let value = self.value(value);
        let same = match (&value, self.as_device(&value), kind) {
            (Val::Missing, ..) => return self.body.missing(),
            (Val::Caught(caught), _, Some(kind)) => {
                self.at(&op.span);
                caught.is_kind(kind)
            }
            (_, Some(device), Some(kind)) => self.is_device_kind(device, kind, (&op.span, span)),
            _ => return self.no_text(op, span),
        };
        if op.value == CompareOp::Eq { same } else { !same }
    }

    /// The error for a value that isn't compared with a text.
    fn no_text(&self, op: &At<CompareOp>, span: &Span) -> Expr<'b> {
        let problem =
            "only a device, its kind and the kind of a caught error are compared with a text, by `==` or `!=`";
        self.error(span, op.value.sign(), problem);
        self.body.missing()
    }

    /// `int32(v)`: a constant that must fit, or a conversion.
    fn converted(&self, span: &Span, ty: crate::spec::ScalarType, value: &Tree) -> Expr<'b> {
        let operand = self.operand(value);
        self.at(span);
        match operand {
            Operand::Expr(value) => value.cast(ty),
            literal => self.body.coerce(ty.name(), ty, literal),
        }
    }

    fn taken_as(&self, span: &Span, value: &Tree, ty: &ParamType) -> Val<'b, 'a> {
        match self.value(value) {
            Val::Variable(variable) => {
                self.at(span);
                Val::Result(variable.cast(ty.clone()))
            }
            Val::Param(param) => {
                self.at(span);
                Val::Param(param.cast(ty.clone()))
            }
            Val::Result(result) => {
                self.at(span);
                Val::Param(result.cast(ty.clone()))
            }
            Val::Missing => Val::Missing,
            _ => {
                self.error(span, "as", "only a variable and values of type `Any` are taken as a type");
                Val::Missing
            }
        }
    }

    fn call(&self, span: &Span, call: &Call) -> Val<'b, 'a> {
        if call.returns.is_none() {
            self.error(span, "call", "expected `->` and the type of the result, since the value is used");
        }
        match self.begin_call(span, call) {
            Some(made) => Val::Result(made.returns(call.returns.clone().unwrap_or(ParamType::None))),
            None => Val::Missing,
        }
    }

    /// A call with its arguments, which isn't made yet.
    pub(super) fn begin_call(&self, span: &Span, call: &Call) -> Option<body::Call<'b>> {
        let (named, unnamed): (Vec<&Input>, Vec<&Input>) = call.inputs.iter().partition(|input| input.name.is_some());
        let args: Vec<CallArg<'b>> = unnamed.iter().map(|input| self.arg(&input.value)).collect();
        let named: Vec<(&str, CallArg<'b>)> = named
            .iter()
            .filter_map(|input| Some((input.name.as_ref()?.value.as_str(), self.arg(&input.value))))
            .collect();
        let made = match &call.callee {
            Callee::Global { name, uncached } => {
                let made = self.body.call_global(name, args);
                if *uncached { made.uncached() } else { made }
            }
            Callee::Import(name) => self.body.call_import(name, args),
            Callee::Symbol(name) => self.body.call_symbol(name, args),
            Callee::Value(value) => match self.value(value) {
                Val::Param(param) | Val::Whole(param) => self.body.call(param, args),
                Val::Result(result) => self.body.call(result, args),
                Val::Owned(owned) => self.body.call(owned, args),
                Val::Variable(variable) => self.body.call(variable.get(), args),
                Val::Missing => return None,
                _ => {
                    self.error(&value.span, "call", "expected a function");
                    return None;
                }
            },
        };
        self.at(span);
        Some(named.into_iter().fold(made, |made, (name, value)| made.kwarg(name, value)))
    }

    fn closure(&self, span: &Span, closure: &Closure) -> Owned<'b> {
        let captures: Vec<(CallArg<'b>, ParamType)> =
            closure.captures.iter().map(|(_, ty, value)| (self.arg(value), ty.clone())).collect();
        let names: Vec<String> = closure.captures.iter().map(|(name, ..)| name.value.clone()).collect();
        let (source, block) = (self.source.clone(), Arc::clone(&closure.body));
        self.at(span);
        self.body.closure(&closure.signature, captures, move |body| {
            Driver::new(&source, body, names.clone()).whole(&block);
        })
    }
}
