//! Parameters by number: the typed twins of the paths that [`Body::arg`] and [`Body::tensor`] take.

use std::fmt;

use super::args::{Arg, Args, Node};
use super::builder::Body;
use super::expr::{Expr, Ops};
use super::tensor::TensorRef;
use crate::spec::{ParamType, ScalarType};

/// A parameter of a body, or an item of a tuple: what a path names, found by number.
///
/// ```
/// use tvm_ffi_codegen::{Kernel, Signature};
///
/// let signature: Signature = "f(cfg: Tuple[int64, Tuple[int64, int64]]) -> int64".parse()?;
/// let kernel = Kernel::body(|b| {
///     // the same as b.arg("cfg[1][0]")
///     let cfg = b.param(0);
///     b.ret(cfg.item(0).value() - cfg.item(1).item(0).value());
/// });
/// # tvm_ffi_codegen::lower::lower(&signature, &kernel, Default::default())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy)]
pub struct ParamRef<'b> {
    pub(super) body: &'b dyn Ops,
    pub(super) args: &'b Args,
    /// `None` after a mistake.
    pub(super) node: Option<&'b Node>,
}

impl Body<'_> {
    /// The parameter of that number, counted from 0.
    pub fn param(&self, index: usize) -> ParamRef<'_> {
        let node = self.args.params.get(index);
        if node.is_none() {
            let problem = format!("`{}` has {} parameters", self.signature, self.args.params.len());
            self.mistake(format!("param({index})"), problem);
        }
        ParamRef { body: self, args: self.args, node }
    }

    /// All parameters, in order.
    pub fn params(&self) -> impl ExactSizeIterator<Item = ParamRef<'_>> {
        self.args.params.iter().map(|node| ParamRef { body: self, args: self.args, node: Some(node) })
    }
}

impl<'b> ParamRef<'b> {
    /// The path, as [`Body::arg`] takes it: `cfg[2][0]`. Empty after a mistake.
    pub fn path(self) -> &'b str {
        self.node.map_or("", |node| &node.path)
    }

    /// The type that the signature states; `None` after a mistake.
    pub fn ty(self) -> Option<&'b ParamType> {
        self.node.map(|node| &node.ty)
    }

    /// The items of a tuple or an optional tuple, in order; of anything else there are none.
    pub fn items(self) -> impl ExactSizeIterator<Item = ParamRef<'b>> {
        let items = self.node.map_or(&[][..], |node| &node.items);
        items.iter().map(move |node| ParamRef { node: Some(node), ..self })
    }

    /// The item of a tuple, counted from 0.
    pub fn item(self, index: usize) -> ParamRef<'b> {
        let item = self.node.and_then(|node| node.items.get(index));
        if let (None, Some(node)) = (item, self.node) {
            let count = node.items.len();
            self.mistake(&format!("item({index})"), format!("`{}: {}` has {count} items", node.path, node.ty));
        }
        ParamRef { node: item, ..self }
    }

    /// The value, as [`Body::arg`] gives it.
    pub fn value(self) -> Expr<'b> {
        match self.found() {
            Some(Arg::Scalar(ty, value)) => Expr::known_in(self.body, *value, *ty, self.args.scope),
            Some(Arg::Tensor(_)) => self.missing("value", "is a tensor; use `tensor`"),
            None => self.missing("value", "has no value of its own"),
        }
    }

    /// The number of characters, bytes, sizes or elements: what [`Body::arg`] gives for the path with `.size` behind it.
    pub fn size(self) -> Expr<'b> {
        match self.node.and_then(|node| self.args.find(&format!("{}.size", node.path))) {
            Some((_, Arg::Scalar(ty, value))) => Expr::known_in(self.body, *value, *ty, self.args.scope),
            _ => self.missing("size", "has no size"),
        }
    }

    /// The tensor.
    pub fn tensor(self) -> TensorRef<'b> {
        match (self.node, self.found()) {
            (Some(node), Some(Arg::Tensor(vars))) => TensorRef::new(self.body, &node.path, vars),
            _ => {
                self.missing("tensor", "is no tensor that a body can hold; use `value`");
                TensorRef::missing(self.body)
            }
        }
    }

    /// Whether an optional parameter is there.
    pub fn is_given(self) -> Expr<'b> {
        match self.node.and_then(|node| self.args.given.get(&node.path)) {
            Some(value) => Expr::known_in(self.body, *value, ScalarType::Bool, self.args.scope),
            None => {
                self.missing("is_given", "is not optional");
                self.body.zero(ScalarType::Bool)
            }
        }
    }

    fn found(self) -> Option<&'b Arg> {
        let (_, arg) = self.args.find(&self.node?.path)?;
        Some(arg)
    }

    /// Notes a mistake, unless there is one already.
    fn mistake(self, operation: &str, problem: String) {
        if self.node.is_some() {
            self.body.note(operation, problem);
        }
    }

    fn missing(self, operation: &str, problem: &str) -> Expr<'b> {
        if let Some(node) = self.node {
            self.mistake(operation, format!("`{}: {}` {problem}", node.path, node.ty));
        }
        self.body.zero(ScalarType::Int64)
    }
}

impl fmt::Debug for ParamRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.node {
            Some(node) => write!(f, "ParamRef({}: {})", node.path, node.ty),
            None => f.write_str("ParamRef(missing)"),
        }
    }
}
