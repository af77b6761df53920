//! The state of the driver: names, places, and values as the operations take them.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use super::source::Source;
use super::value::Val;
use crate::host::tree::{At, Block, Span};
use crate::lower::body::{Body, CallArg, Expr, Operand, ParamRef, TensorRef};
use crate::spec::{ParamType, SourceLocation, did_you_mean};

/// Writes one body.
pub(super) struct Driver<'b, 'a, 's> {
    pub source: &'s Source,
    pub body: &'b Body<'a>,
    /// The visible local names, from the outermost block to the innermost.
    names: RefCell<Vec<String>>,
    /// Their values. All visible names differ.
    values: RefCell<HashMap<String, Val<'b, 'a>>>,
    /// The narrowed tensors, by name: more is known about them here than their types state.
    narrowed: RefCell<HashMap<String, Vec<TensorRef<'b>>>>,
    /// The names of `narrowed`, in the order in which they were added.
    narrowings: RefCell<Vec<String>>,
    /// The names of blocks that have ended, with the ends of the blocks.
    ended: RefCell<Vec<(String, usize)>>,
    /// The signature's parameters, by name.
    params: HashMap<&'a str, usize>,
    /// The signature's dimension variables.
    dims: HashSet<&'a str>,
    /// The names of captured values.
    captured: Vec<String>,
    /// The stated source location of the current operation.
    pub location: RefCell<Option<SourceLocation>>,
}

impl<'b, 'a, 's> Driver<'b, 'a, 's> {
    pub(super) fn new(source: &'s Source, body: &'b Body<'a>, captured: Vec<String>) -> Self {
        Driver {
            source,
            body,
            names: RefCell::default(),
            values: RefCell::default(),
            narrowed: RefCell::default(),
            narrowings: RefCell::default(),
            ended: RefCell::default(),
            params: body.signature().params().iter().map(|param| param.name.as_str()).zip(0..).collect(),
            dims: body.signature().names_in_dims().into_iter().collect(),
            captured,
            location: RefCell::new(None),
        }
    }

    /// Writes the whole body.
    pub(super) fn whole(&self, block: &Block) {
        self.at(&block.span);
        for (index, name) in self.captured.iter().enumerate() {
            // without a name, a captured value is `captured(0)`
            if name == "_" {
                continue;
            }
            let value = self.body.captured(index);
            self.define(&At { span: block.span.clone(), value: name.clone() }, Val::Param(value));
        }
        self.block(block);
        self.at(&(block.span.end.saturating_sub(1)..block.span.end));
    }

    /// States the place of the following operations.
    pub(super) fn at(&self, span: &Span) {
        self.body.set_text(&self.source.text, span.clone());
    }

    /// Records an error at a place.
    pub(super) fn error(&self, span: &Span, operation: &str, problem: impl Into<String>) {
        self.at(span);
        self.body.error(operation, problem);
    }

    /// Writes the inside of a block: its names and its location end with it.
    pub(super) fn inside<R>(&self, end: usize, write: impl FnOnce() -> R) -> R {
        let (known, location) = (self.names.borrow().len(), self.location.borrow().clone());
        let narrowings = self.narrowings.borrow().len();
        let result = write();
        for name in self.narrowings.borrow_mut().drain(narrowings..) {
            self.narrowed.borrow_mut().get_mut(&name).and_then(Vec::pop);
        }
        let gone = self.names.borrow_mut().split_off(known);
        gone.iter().for_each(|name| drop(self.values.borrow_mut().remove(name)));
        self.ended.borrow_mut().extend(gone.into_iter().map(|name| (name, end)));
        *self.location.borrow_mut() = location;
        result
    }

    /// Gives a name to a value. The name must differ from all visible ones.
    pub(super) fn define(&self, name: &At<String>, value: Val<'b, 'a>) {
        let what = if self.params.contains_key(name.value.as_str()) {
            "a parameter"
        } else if self.dims.contains(name.value.as_str()) {
            "a dimension variable"
        } else if self.values.borrow().contains_key(&name.value) {
            "a value that is visible here"
        } else {
            self.names.borrow_mut().push(name.value.clone());
            self.values.borrow_mut().insert(name.value.clone(), value);
            return;
        };
        self.error(&name.span, &name.value, format!("{what} has this name already; choose another one"));
    }

    /// The local value with that name.
    pub(super) fn local(&self, name: &str) -> Option<Val<'b, 'a>> {
        self.values.borrow().get(name).cloned()
    }

    /// The parameter with that name.
    pub(super) fn param(&self, name: &str) -> Option<ParamRef<'b>> {
        Some(self.body.param(*self.params.get(name)?))
    }

    /// The value of a name.
    pub(super) fn named(&self, span: &Span, name: &str) -> Val<'b, 'a> {
        match self.narrowed(name) {
            Some(tensor) => Val::Tensor(tensor),
            None => self.declared(span, name),
        }
    }

    /// The tensor with that name, if more is known about it here than its type.
    pub(super) fn narrowed(&self, name: &str) -> Option<TensorRef<'b>> {
        self.narrowed.borrow().get(name)?.last().copied()
    }

    /// Whether a value has that name.
    pub(super) fn is_known(&self, name: &str) -> bool {
        self.param(name).is_some() || self.dims.contains(name) || self.local(name).is_some()
    }

    /// Gives a name that more is known about the narrowed tensor, up to the end of the block.
    pub(super) fn narrow(&self, name: &str, tensor: TensorRef<'b>) {
        self.narrowed.borrow_mut().entry(name.to_owned()).or_default().push(tensor);
        self.narrowings.borrow_mut().push(name.to_owned());
    }

    /// The value of a name, with its type as it was declared.
    pub(super) fn declared(&self, span: &Span, name: &str) -> Val<'b, 'a> {
        self.at(span);
        if let Some(param) = self.param(name) {
            return Val::Param(param);
        }
        if self.dims.contains(name) {
            return Val::Expr(self.body.dim(name));
        }
        self.local(name).unwrap_or_else(|| self.unknown(span, name))
    }

    fn unknown(&self, span: &Span, name: &str) -> Val<'b, 'a> {
        // further errors aren't reported, and a suggestion takes time
        if self.body.has_all_errors() {
            return Val::Missing;
        }
        let ended = self.ended.borrow().iter().rev().find(|(known, _)| known == name).map(|(_, end)| *end);
        let problem = match ended {
            Some(end) => {
                let line = self.source.text.get(..end).unwrap_or_default().matches('\n').count() + 1;
                format!("is known up to the end of its block, at line {line}; carry it out by `with` or a `var`")
            }
            None => {
                let signature = self.body.signature();
                let locals = self.names.borrow();
                let params = signature.params().iter().map(|param| param.name.as_str());
                let known = params.chain(signature.names_in_dims());
                let known: Vec<&str> = known.chain(locals.iter().map(String::as_str)).collect();
                format!("no value has this name{}", did_you_mean(name, &known))
            }
        };
        self.error(span, &format!("`{name}`"), problem);
        Val::Missing
    }

    /// A value as an operand.
    pub(super) fn as_operand(&self, span: &Span, value: Val<'b, 'a>) -> Operand<'b> {
        let what = match value {
            Val::Literal(operand) => return operand,
            Val::Expr(expr) => return expr.into(),
            Val::Param(param) | Val::Whole(param) => {
                self.at(span);
                return param.value().into();
            }
            Val::Result(result) => {
                self.at(span);
                return result.value().into();
            }
            Val::Missing => return self.body.missing().into(),
            Val::Tensor(_) => "a tensor",
            Val::Owned(_) => "a function",
            Val::Variable(_) => "a variable; state its type by `as`",
            Val::Caught(_) => "an error",
            Val::DType(_) => "a dtype",
            Val::Device(_) => "a device",
            Val::Arg(_) => "a value that can only be passed on",
        };
        self.error(span, "value", format!("expected a number, got {what}"));
        self.body.missing().into()
    }

    /// A value of a known type. A literal is an `int64`, a `float64` or a `bool`.
    pub(super) fn as_expr(&self, span: &Span, value: Val<'b, 'a>) -> Expr<'b> {
        use crate::spec::ScalarType;
        let operand = self.as_operand(span, value);
        let ty = match operand {
            Operand::Expr(expr) => return expr,
            Operand::Int(_) => ScalarType::Int64,
            Operand::Float(_) => ScalarType::Float64,
            Operand::Bool(_) => ScalarType::Bool,
        };
        self.at(span);
        self.body.coerce("literal", ty, operand)
    }

    pub(super) fn as_tensor(&self, span: &Span, value: Val<'b, 'a>) -> TensorRef<'b> {
        self.at(span);
        match value {
            Val::Tensor(tensor) => tensor,
            Val::Param(param) | Val::Whole(param) => param.tensor(),
            Val::Result(result) => result.tensor(),
            Val::Missing => TensorRef::missing_in(self.body),
            _ => {
                self.error(span, "value", "expected a tensor");
                TensorRef::missing_in(self.body)
            }
        }
    }

    /// A value as an argument of a call. The name of a scalar passes its value.
    pub(super) fn as_arg(&self, span: &Span, value: Val<'b, 'a>) -> CallArg<'b> {
        let is_scalar = |param: ParamRef<'b>| matches!(param.ty(), Some(ParamType::Scalar(_)));
        self.at(span);
        match value {
            Val::Literal(operand) => operand.into(),
            Val::Expr(expr) => expr.into(),
            Val::Tensor(tensor) => tensor.into(),
            Val::Param(param) if is_scalar(param) => param.value().into(),
            Val::Param(param) | Val::Whole(param) => param.into(),
            Val::Result(result) if is_scalar(*result) => result.value().into(),
            Val::Result(result) => result.into(),
            Val::Owned(owned) => owned.into(),
            Val::Variable(variable) => variable.get().into(),
            Val::Caught(caught) => caught.error().into(),
            Val::DType(dtype) => dtype.into(),
            Val::Device(device) => device.into(),
            Val::Arg(arg) => arg,
            Val::Missing => self.body.missing().into(),
        }
    }
}
