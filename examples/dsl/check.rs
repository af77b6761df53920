//! Syntax to a program: names, types, and accesses that stay within their tensors.

use std::collections::{HashMap, HashSet};

use super::program::{
    Access, Argument, Comparison, Constraint, Effect, Expr, ExprKind, Head, Index, Kernel, Operator, Outside, Param,
    Program, Scalar, Statement, Tensor, Type,
};
use super::syntax::{self, Base, Item, Name, Place, Result, StatementKind};

/// The name of the tensor that a kernel returns.
const RESULT: &str = "result";

pub fn check(file: &str, items: &[Item]) -> Result<Program> {
    let mut externs = HashMap::new();
    let mut names = HashSet::new();
    for item in items {
        let name = match item {
            Item::Extern { name, params, result } => {
                externs.insert(name.text.as_str(), (params.as_slice(), result));
                name
            }
            Item::Kernel(kernel) => &kernel.name,
        };
        if !names.insert(&name.text) {
            return Err((name.place, format!("there is another `{}`", name.text)));
        }
    }
    let kernels = items.iter().filter_map(|item| match item {
        Item::Kernel(kernel) => Some(Checker::new(&externs).kernel(kernel)),
        Item::Extern { .. } => None,
    });
    Ok(Program { file: file.to_owned(), kernels: kernels.collect::<Result<_>>()? })
}

/// The parameters and results of functions of the host.
type Externs<'a> = HashMap<&'a str, (&'a [syntax::Type], &'a syntax::Type)>;

/// A name's meaning.
enum Meaning {
    Scalar(Scalar),
    /// A scalar that may be missing.
    Optional(Scalar),
    /// The index of a loop up to this.
    Index(Expr),
    Text,
    Tensor {
        tensor: Tensor,
        optional: bool,
    },
    List(Scalar),
    /// The items have meanings of their own.
    Tuple,
}

struct Checker<'a> {
    externs: &'a Externs<'a>,
    names: HashMap<String, Meaning>,
    /// Optional parameters that are there, at this point of the text.
    given: HashSet<String>,
    outside: Vec<Outside>,
    passed_on: Vec<String>,
    result: Returned,
}

/// The value of a `return`.
#[derive(Clone, Copy)]
enum Returned {
    /// There is none.
    Nothing,
    Scalar(Scalar),
    Str,
}

impl<'a> Checker<'a> {
    fn new(externs: &'a Externs<'a>) -> Self {
        let (names, given) = (HashMap::new(), HashSet::new());
        Checker { externs, names, given, outside: Vec::new(), passed_on: Vec::new(), result: Returned::Nothing }
    }

    fn kernel(mut self, kernel: &syntax::Kernel) -> Result<Kernel> {
        let types = kernel.params.iter().map(|(_, ty)| ty).chain(&kernel.result);
        // Parameters come first, since a size may be one.
        for (name, ty) in &kernel.params {
            if let (Base::Scalar(scalar), false) = (&ty.base, ty.optional) {
                self.declare(name, Meaning::Scalar(*scalar))?;
            }
        }
        types.for_each(|ty| self.symbols_of(ty));
        let mut params = Vec::new();
        for (name, ty) in &kernel.params {
            let checked = self.ty(ty)?;
            self.parameter(name, &checked)?;
            params.push(Param { name: name.text.clone(), ty: checked });
        }
        let result = kernel.result.as_ref().map(|ty| self.ty(ty)).transpose()?;
        if self.names.contains_key(RESULT) {
            return Err((kernel.name.place, format!("`{RESULT}` is the name of the kernel's result")));
        }
        match &result {
            None => {}
            Some(Type::Scalar(scalar)) => self.result = Returned::Scalar(*scalar),
            Some(Type::Str) => self.result = Returned::Str,
            Some(Type::Tuple(items)) if !items.is_empty() => {
                for (number, item) in items.iter().enumerate() {
                    self.returned(format!("{RESULT}[{number}]"), item, kernel)?;
                }
            }
            Some(ty) => self.returned(RESULT.to_owned(), ty, kernel)?,
        }
        let constraints = kernel.constraints.iter().map(|constraint| self.constraint(constraint));
        let constraints = constraints.collect::<Result<_>>()?;
        let (body, ends) = self.block(&kernel.body)?;
        if !matches!(self.result, Returned::Nothing) && !ends {
            return Err((kernel.end, "expected a `return`".to_owned()));
        }
        let (name, line) = (kernel.name.text.clone(), kernel.name.place.line);
        let head = Head { name, line, params, result, constraints };
        let (doc, outside, passed_on) = (kernel.doc.clone(), self.outside, self.passed_on);
        Ok(Kernel { head, doc, outside, passed_on, body })
    }

    /// A parameter, or an item of a tuple. Scalars of parameters have their meaning already.
    fn parameter(&mut self, name: &Name, ty: &Type) -> Result<()> {
        match ty {
            Type::Scalar(_) | Type::Whole => Ok(()),
            Type::Str => self.declare(name, Meaning::Text),
            Type::List(element) => self.declare(name, Meaning::List(*element)),
            Type::Tensor(tensor) => self.declare(name, Meaning::Tensor { tensor: tensor.clone(), optional: false }),
            Type::Optional(inner) => match &**inner {
                Type::Tensor(tensor) => self.declare(name, Meaning::Tensor { tensor: tensor.clone(), optional: true }),
                Type::Scalar(scalar) => self.declare(name, Meaning::Optional(*scalar)),
                _ => Ok(()),
            },
            Type::Tuple(items) => {
                self.declare(name, Meaning::Tuple)?;
                for (number, item) in items.iter().enumerate() {
                    let item_name = Name { text: format!("{}[{number}]", name.text), place: name.place };
                    if let Type::Scalar(scalar) = item {
                        self.declare(&item_name, Meaning::Scalar(*scalar))?;
                    }
                    self.parameter(&item_name, item)?;
                }
                Ok(())
            }
        }
    }

    /// A tensor that is returned.
    fn returned(&mut self, name: String, ty: &Type, kernel: &syntax::Kernel) -> Result<()> {
        match ty {
            Type::Tensor(tensor) if tensor.strides.is_none() => {
                self.names.insert(name, Meaning::Tensor { tensor: tensor.clone(), optional: false });
                Ok(())
            }
            _ => Err((kernel.name.place, "expected a scalar, a text or contiguous tensors as result".to_owned())),
        }
    }

    /// Each name has one meaning in a kernel, but for indices of loops and `let`s in blocks beside each other.
    fn declare(&mut self, name: &Name, meaning: Meaning) -> Result<()> {
        if name.text == RESULT {
            return Err((name.place, format!("`{RESULT}` is the kernel's result")));
        }
        match self.names.insert(name.text.clone(), meaning) {
            None => Ok(()),
            Some(_) => Err((name.place, format!("`{}` has a meaning already", name.text))),
        }
    }

    fn symbols_of(&mut self, ty: &syntax::Type) {
        match &ty.base {
            Base::Tensor { shape, strides, .. } => {
                shape.iter().chain(strides.iter().flatten()).for_each(|size| self.symbols(size));
            }
            Base::Tuple(items) => items.iter().for_each(|item| self.symbols_of(item)),
            Base::Str | Base::Scalar(_) | Base::List(_) => {}
        }
    }

    /// A name in a size is a symbol, if it is no parameter.
    fn symbols(&mut self, size: &syntax::Expr) {
        match &size.kind {
            syntax::ExprKind::Name(name) => {
                self.names.entry(name.clone()).or_insert(Meaning::Scalar(Scalar::Int64));
            }
            syntax::ExprKind::Binary(_, left, right) => [left, right].into_iter().for_each(|side| self.symbols(side)),
            _ => {}
        }
    }

    fn ty(&mut self, ty: &syntax::Type) -> Result<Type> {
        match (&ty.base, ty.optional) {
            (Base::Str, false) => Ok(Type::Str),
            (Base::Scalar(scalar), false) => Ok(Type::Scalar(*scalar)),
            (Base::Scalar(scalar), true) => Ok(Type::Optional(Type::Scalar(*scalar).into())),
            (Base::List(element), false) => match element {
                Scalar::Int64 | Scalar::Float64 => Ok(Type::List(*element)),
                _ => Err((ty.place, "the elements of a list are of type int64 or float64".to_owned())),
            },
            (Base::Tuple(items), false) => {
                let is_part =
                    |item: &&syntax::Type| !item.optional && matches!(item.base, Base::Scalar(_) | Base::Tensor { .. });
                match items.iter().find(|item| !is_part(item)) {
                    Some(item) => Err((item.place, "the items of a tuple are scalars and tensors".to_owned())),
                    None => Ok(Type::Tuple(items.iter().map(|item| self.ty(item)).collect::<Result<_>>()?)),
                }
            }
            (Base::Tensor { element, shape, strides }, optional) => {
                let mut sizes =
                    |sizes: &[syntax::Expr]| sizes.iter().map(|size| self.size(size)).collect::<Result<_>>();
                let (shape, strides): (Vec<_>, Option<Vec<_>>) =
                    (sizes(shape)?, strides.as_deref().map(sizes).transpose()?);
                if strides.as_ref().is_some_and(|strides| strides.len() != shape.len()) {
                    return Err((ty.place, format!("expected {} strides", shape.len())));
                }
                let tensor = Type::Tensor(Tensor { element: *element, shape, strides });
                Ok(if optional { Type::Optional(tensor.into()) } else { tensor })
            }
            (_, true) => Err((ty.place, "only a scalar or a tensor may be optional".to_owned())),
        }
    }

    /// A size, of numbers, symbols and their arithmetic.
    fn size(&mut self, size: &syntax::Expr) -> Result<Expr> {
        match &size.kind {
            syntax::ExprKind::Int(_) | syntax::ExprKind::Name(_) => self.expr(size, Scalar::Int64),
            syntax::ExprKind::Binary(operator, left, right)
                if !matches!(operator, Operator::Min | Operator::Max | Operator::Div) =>
            {
                self.size(left)?;
                self.size(right)?;
                self.expr(size, Scalar::Int64)
            }
            _ => Err((size.place, "expected a number, a symbol, or their sum, difference, product or quotient".into())),
        }
    }

    fn constraint(&mut self, constraint: &syntax::Expr) -> Result<Constraint> {
        let syntax::ExprKind::Compare(comparison, left, right) = &constraint.kind else {
            return Err((constraint.place, "expected a comparison".to_owned()));
        };
        let (left, right) = (self.size(left)?, self.size(right)?);
        Ok(Constraint { left, comparison: *comparison, right })
    }

    /// The block, and whether all ways through it end by a `return` or `raise`. Its names are not known after it.
    fn block(&mut self, statements: &[syntax::Statement]) -> Result<(Vec<Statement>, bool)> {
        let (mut checked, mut declared, mut ended) = (Vec::new(), Vec::new(), false);
        for statement in statements {
            if ended {
                return Err((statement.place, "nothing gets here".to_owned()));
            }
            if let StatementKind::Let { name, .. } = &statement.kind {
                declared.push(&name.text);
            }
            let (statement, ends) = self.statement(statement)?;
            checked.push(statement);
            ended = ends;
        }
        declared.into_iter().for_each(|name| drop(self.names.remove(name)));
        Ok((checked, ended))
    }

    fn statement(&mut self, statement: &syntax::Statement) -> Result<(Statement, bool)> {
        let place = statement.place;
        Ok(match &statement.kind {
            StatementKind::For { index, end, body } => {
                let end = self.expr(end, Scalar::Int64)?;
                self.declare(index, Meaning::Index(end.clone()))?;
                let (body, _) = self.block(body)?;
                self.names.remove(&index.text);
                (Statement::For { index: index.text.clone(), end, body }, false)
            }
            StatementKind::Let { name, value } => {
                let value = self.any(value, None)?;
                self.declare(name, Meaning::Scalar(value.ty))?;
                (Statement::Let { name: name.text.clone(), value }, false)
            }
            StatementKind::If { condition, then, otherwise } => {
                let condition = self.expr(condition, Scalar::Bool)?;
                let (then, then_ends) = self.where_given(&condition, |checker| checker.block(then))?;
                let (otherwise, otherwise_ends) = self.block(otherwise)?;
                (Statement::If { condition, then, otherwise }, then_ends && otherwise_ends)
            }
            StatementKind::Store { tensor, index, value } => {
                let access = self.access(&tensor.text, index, tensor.place)?;
                let value = self.expr(value, access.of.element)?;
                (Statement::Store { access, value }, false)
            }
            StatementKind::Raise { kind, message, values } => {
                let expected = message.matches("{}").count();
                if expected != values.len() {
                    return Err((place, format!("the message has {expected} values, found {}", values.len())));
                }
                let (args, params) = self.arguments(values)?;
                let effect = Effect::Raise { kind: kind.clone(), message: message.clone() };
                (Statement::Raise { outside: self.calls(params, None, effect, place), args }, true)
            }
            StatementKind::Return(value) => {
                let statement = match (self.result, &value.kind) {
                    (Returned::Scalar(result), _) => Statement::Return(self.expr(value, result)?),
                    (Returned::Str, syntax::ExprKind::Call { function, args }) => {
                        let (outside, args) = self.call(function, args, value.place, Type::Str)?;
                        Statement::ReturnCall { outside, args }
                    }
                    (Returned::Str, _) => return Err((place, "expected a call that returns a text".to_owned())),
                    (Returned::Nothing, _) => return Err((place, "the kernel has no value to return".to_owned())),
                };
                (statement, true)
            }
        })
    }

    /// The number of a function that the kernel calls.
    fn calls(&mut self, params: Vec<Type>, result: Option<Type>, effect: Effect, place: Place) -> usize {
        self.outside.push(Outside { params, result, effect, line: place.line });
        self.outside.len() - 1
    }

    /// Arguments of a function outside, and its parameters.
    fn arguments(&mut self, args: &[syntax::Expr]) -> Result<(Vec<Argument>, Vec<Type>)> {
        let args = args.iter().map(|arg| match &arg.kind {
            syntax::ExprKind::Name(name) if matches!(self.names.get(name), Some(Meaning::Text)) => {
                Ok((Argument::Text(name.clone()), Type::Str))
            }
            _ => {
                let arg = self.any(arg, None)?;
                let ty = Type::Scalar(arg.ty);
                Ok((Argument::Scalar(arg), ty))
            }
        });
        Ok(args.collect::<Result<Vec<_>>>()?.into_iter().unzip())
    }

    /// The checks under a condition, which may say that a parameter is there.
    fn where_given<T>(&mut self, condition: &Expr, inner: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let given = match &condition.kind {
            ExprKind::Given(name) if self.given.insert(name.clone()) => Some(name),
            _ => None,
        };
        let result = inner(self);
        if let Some(name) = given {
            self.given.remove(name);
        }
        result
    }

    fn access(&mut self, name: &str, index: &[syntax::Expr], place: Place) -> Result<Access> {
        let (tensor, is_list) = match self.names.get(name) {
            Some(Meaning::Tensor { optional: true, .. }) if !self.given.contains(name) => {
                return Err((place, missing(name)));
            }
            Some(Meaning::Tensor { tensor, .. }) => (tensor.clone(), false),
            Some(Meaning::List(element)) => {
                let length = Expr { kind: ExprKind::Length(name.to_owned()), ty: Scalar::Int64 };
                (Tensor { element: *element, shape: vec![length], strides: None }, true)
            }
            _ => return Err((place, format!("there is no tensor `{name}`"))),
        };
        if tensor.shape.len() != index.len() {
            return Err((place, format!("`{name}` has {} dimensions, found {}", tensor.shape.len(), index.len())));
        }
        let index = index.iter().zip(&tensor.shape).enumerate().map(|(axis, (value, size))| {
            let value = self.expr(value, Scalar::Int64)?;
            let end = match &value.kind {
                ExprKind::Name(index) => self.names.get(index),
                _ => None,
            };
            let is_inside = matches!(end, Some(Meaning::Index(end)) if end.to_string() == size.to_string());
            let checked = (!is_inside).then(|| {
                let message = format!("index {{}} is out of bounds for axis {axis} of {name} with size {{}}");
                let int = || Type::Scalar(Scalar::Int64);
                let effect = Effect::Raise { kind: "IndexError".to_owned(), message };
                self.calls(vec![int(), int()], None, effect, place)
            });
            Ok(Index { value, checked })
        });
        Ok(Access { tensor: name.to_owned(), index: index.collect::<Result<_>>()?, of: tensor, is_list })
    }

    /// An expression of this type.
    fn expr(&mut self, expr: &syntax::Expr, ty: Scalar) -> Result<Expr> {
        let checked = self.any(expr, Some(ty))?;
        match checked.ty == ty {
            true => Ok(checked),
            false => Err((expr.place, format!("expected {}, found {}", ty.name(), checked.ty.name()))),
        }
    }

    /// An expression of any type. A number has the type that is hoped for, if it can.
    fn any(&mut self, expr: &syntax::Expr, hoped: Option<Scalar>) -> Result<Expr> {
        let place = expr.place;
        let float = hoped.filter(|ty| ty.is_float());
        let (kind, ty) = match &expr.kind {
            syntax::ExprKind::Int(value) => match float {
                Some(ty) => (ExprKind::Float(*value as f64), ty),
                None => (ExprKind::Int(*value), Scalar::Int64),
            },
            syntax::ExprKind::Float(value) => (ExprKind::Float(*value), float.unwrap_or(Scalar::Float64)),
            syntax::ExprKind::Text(_) => return Err((place, "a text may only be compared with".to_owned())),
            syntax::ExprKind::Name(name) => match self.names.get(name) {
                Some(Meaning::Scalar(ty)) => (ExprKind::Name(name.clone()), *ty),
                Some(Meaning::Index(_)) => (ExprKind::Name(name.clone()), Scalar::Int64),
                Some(Meaning::Optional(ty)) if self.given.contains(name) => (ExprKind::Name(name.clone()), *ty),
                Some(Meaning::Optional(_)) => return Err((place, missing(name))),
                Some(Meaning::Text | Meaning::Tensor { .. } | Meaning::List(_) | Meaning::Tuple) => {
                    return Err((place, format!("`{name}` is no number")));
                }
                None => return Err((place, format!("there is no `{name}`"))),
            },
            syntax::ExprKind::Negative(inner) => {
                let inner = self.number(inner, hoped)?;
                let ty = inner.ty;
                (ExprKind::Negative(inner.into()), ty)
            }
            syntax::ExprKind::Not(inner) => (ExprKind::Not(self.expr(inner, Scalar::Bool)?.into()), Scalar::Bool),
            syntax::ExprKind::Binary(operator, left, right) => {
                let (left, right) = self.pair(left, right, hoped)?;
                let ty = left.ty;
                let of_ints = matches!(operator, Operator::FloorDiv | Operator::Rem);
                if (of_ints && ty != Scalar::Int64) || (*operator == Operator::Div && !ty.is_float()) {
                    return Err((place, format!("no such division of {}", ty.name())));
                }
                if of_ints && !matches!(right.kind, ExprKind::Int(1..)) {
                    return Err((place, "expected a number above 0 as divisor".to_owned()));
                }
                (ExprKind::Binary(*operator, left.into(), right.into()), ty)
            }
            syntax::ExprKind::Compare(comparison, left, right) => {
                (self.compare(*comparison, left, right)?, Scalar::Bool)
            }
            syntax::ExprKind::Logic { is_and, left, right } => {
                let left = self.expr(left, Scalar::Bool)?.into();
                let right = self.expr(right, Scalar::Bool)?.into();
                (if *is_and { ExprKind::And(left, right) } else { ExprKind::Or(left, right) }, Scalar::Bool)
            }
            syntax::ExprKind::Choose { condition, then, otherwise } => {
                let condition = self.expr(condition, Scalar::Bool)?;
                let then = self.where_given(&condition, |checker| checker.any(then, hoped))?;
                let otherwise = self.expr(otherwise, then.ty)?.into();
                let ty = then.ty;
                (ExprKind::Choose { condition: condition.into(), then: then.into(), otherwise }, ty)
            }
            syntax::ExprKind::Reduce { how, index, end, value } => {
                let end = self.expr(end, Scalar::Int64)?;
                self.declare(index, Meaning::Index(end.clone()))?;
                let value = self.number(value, hoped)?;
                self.names.remove(&index.text);
                let (index, ty) = (index.text.clone(), value.ty);
                (ExprKind::Reduce { how: *how, index, end: end.into(), value: value.into() }, ty)
            }
            syntax::ExprKind::Math(math, inner) => {
                let inner = self.any(inner, Some(float.unwrap_or(Scalar::Float64)))?;
                if !inner.ty.is_float() {
                    return Err((place, format!("expected a float, found {}", inner.ty.name())));
                }
                let ty = inner.ty;
                (ExprKind::Math(*math, inner.into()), ty)
            }
            syntax::ExprKind::Load { tensor, index } => {
                let access = self.access(tensor, index, place)?;
                let ty = access.of.element;
                (ExprKind::Load(access), ty)
            }
            syntax::ExprKind::Call { function, args } => return self.value_of_call(function, args, place),
        };
        Ok(Expr { kind, ty })
    }

    fn number(&mut self, expr: &syntax::Expr, hoped: Option<Scalar>) -> Result<Expr> {
        let checked = self.any(expr, hoped)?;
        match checked.ty {
            Scalar::Bool => Err((expr.place, "expected a number, found bool".to_owned())),
            _ => Ok(checked),
        }
    }

    /// Two numbers of the same type. One that is written as a number has the other's.
    fn pair(&mut self, left: &syntax::Expr, right: &syntax::Expr, hoped: Option<Scalar>) -> Result<(Expr, Expr)> {
        if is_literal(left) {
            let right = self.number(right, hoped)?;
            return Ok((self.expr(left, right.ty)?, right));
        }
        let left = self.number(left, hoped)?;
        let right = self.expr(right, left.ty)?;
        Ok((left, right))
    }

    fn compare(&mut self, comparison: Comparison, left: &syntax::Expr, right: &syntax::Expr) -> Result<ExprKind> {
        if let (syntax::ExprKind::Name(name), syntax::ExprKind::Text(text)) = (&left.kind, &right.kind) {
            if !matches!(self.names.get(name), Some(Meaning::Text)) {
                return Err((left.place, format!("`{name}` is no text")));
            }
            let is = ExprKind::TextIs(name.clone(), text.clone());
            return match comparison {
                Comparison::Eq => Ok(is),
                Comparison::Ne => Ok(ExprKind::Not(Expr { kind: is, ty: Scalar::Bool }.into())),
                _ => Err((left.place, "texts are equal or not".to_owned())),
            };
        }
        let (left, right) = self.pair(left, right, None)?;
        Ok(ExprKind::Compare(comparison, left.into(), right.into()))
    }

    /// A function: a conversion, `given`, `len`, or one of the host.
    fn value_of_call(&mut self, function: &str, args: &[syntax::Expr], place: Place) -> Result<Expr> {
        if let [syntax::Expr { kind: syntax::ExprKind::Name(name), .. }] = args {
            match (function, self.names.get(name)) {
                ("given", Some(Meaning::Tensor { optional: true, .. } | Meaning::Optional(_))) => {
                    return Ok(Expr { kind: ExprKind::Given(name.clone()), ty: Scalar::Bool });
                }
                ("given", _) => return Err((place, format!("there is no optional parameter `{name}`"))),
                ("len", Some(Meaning::List(_))) => {
                    return Ok(Expr { kind: ExprKind::Length(name.clone()), ty: Scalar::Int64 });
                }
                ("len", _) => return Err((place, format!("there is no list `{name}`"))),
                _ => {}
            }
        }
        let float = Scalar::ALL.into_iter().find(|scalar| scalar.is_float() && scalar.name() == function);
        if let (Some(ty), [arg]) = (float, args) {
            return Ok(Expr { kind: ExprKind::Convert(self.number(arg, None)?.into()), ty });
        }
        let result = match self.externs.get(function) {
            Some((_, syntax::Type { base: Base::Scalar(result), optional: false, .. })) => *result,
            Some(_) => return Err((place, format!("`{function}` returns no scalar"))),
            None => return Err((place, format!("there is no function `{function}` of {} arguments", args.len()))),
        };
        let (outside, args) = self.call(function, args, place, Type::Scalar(result))?;
        Ok(Expr { kind: ExprKind::Call { outside, args }, ty: result })
    }

    /// The number of a function of the host, and its arguments.
    fn call(
        &mut self,
        function: &str,
        args: &[syntax::Expr],
        place: Place,
        result: Type,
    ) -> Result<(usize, Vec<Argument>)> {
        let Some((params, returned)) = self.externs.get(function).copied() else {
            return Err((place, format!("there is no function `{function}` of {} arguments", args.len())));
        };
        if matches!(result, Type::Str) != matches!(returned.base, Base::Str) {
            return Err((place, format!("`{function}` returns no text")));
        }
        if params.len() != args.len() {
            return Err((place, format!("expected {} arguments, found {}", params.len(), args.len())));
        }
        let (mut checked, mut types) = (Vec::new(), Vec::new());
        for (param, arg) in params.iter().zip(args) {
            let (arg, ty) = match (&param.base, &arg.kind) {
                (Base::Scalar(scalar), _) => (Argument::Scalar(self.expr(arg, *scalar)?), Type::Scalar(*scalar)),
                (base, syntax::ExprKind::Name(name)) if self.names.get(name).is_some_and(|m| is_of(m, base)) => {
                    match base {
                        Base::Str => (Argument::Text(name.clone()), Type::Str),
                        _ => (self.whole(name, arg.place)?, Type::Whole),
                    }
                }
                _ => return Err((arg.place, "expected a scalar, or a parameter of the stated type".to_owned())),
            };
            checked.push(arg);
            types.push(ty);
        }
        let effect = Effect::Call { function: function.to_owned() };
        Ok((self.calls(types, Some(result), effect, place), checked))
    }

    /// A parameter that is passed on as it came.
    fn whole(&mut self, name: &str, place: Place) -> Result<Argument> {
        if name == RESULT || name.contains('[') {
            return Err((place, format!("`{name}` is no parameter, so it can't be passed on")));
        }
        if !self.passed_on.iter().any(|known| known == name) {
            self.passed_on.push(name.to_owned());
        }
        Ok(Argument::Whole(name.to_owned()))
    }
}

/// Whether a function of the host takes what a name means.
fn is_of(meaning: &Meaning, base: &Base) -> bool {
    match (meaning, base) {
        (Meaning::Text, Base::Str) | (Meaning::Tuple, Base::Tuple(_)) => true,
        (Meaning::List(of), Base::List(element)) => of == element,
        (Meaning::Tensor { tensor, .. }, Base::Tensor { element, shape, .. }) => {
            tensor.element == *element && tensor.shape.len() == shape.len()
        }
        _ => false,
    }
}

/// The problem with an optional parameter that is used before a check.
fn missing(name: &str) -> String {
    format!("`{name}` may be missing; ask `if given({name})` before")
}

fn is_literal(expr: &syntax::Expr) -> bool {
    match &expr.kind {
        syntax::ExprKind::Int(_) | syntax::ExprKind::Float(_) => true,
        syntax::ExprKind::Negative(inner) => is_literal(inner),
        _ => false,
    }
}
