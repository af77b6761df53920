//! Parameters by index: the typed counterparts of the paths that [`Body::arg`] and [`Body::tensor`] take.

use std::fmt;

use super::args::{Arg, Args, Node};
use super::builder::Body;
use super::expr::{Expr, Ops};
use super::life::Ended;
use super::tensor::TensorRef;
use crate::ir::Value;
use crate::spec::{ParamType, ScalarType};

/// A parameter of a body, a tuple item or a field of a record: what a path names, accessed by index.
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
    /// `None` after an error.
    pub(super) node: Option<&'b Node>,
}

impl Body<'_> {
    /// The parameter at an index, counted from 0.
    pub fn param(&self, index: usize) -> ParamRef<'_> {
        let node = self.args.params.get(index);
        if node.is_none() {
            let problem = format!("`{}` has {} parameters", self.signature, self.args.params.len());
            self.error(format!("param({index})"), problem);
        }
        ParamRef { body: self, args: self.args, node }
    }

    /// All parameters, in order.
    pub fn params(&self) -> impl ExactSizeIterator<Item = ParamRef<'_>> {
        self.args.params.iter().map(|node| ParamRef { body: self, args: self.args, node: Some(node) })
    }
}

#[expect(clippy::return_self_not_must_use, reason = "a body may leave a value unused")]
impl<'b> ParamRef<'b> {
    /// The path, as [`Body::arg`] takes it: `cfg[2][0]`. Empty after an error.
    pub fn path(self) -> &'b str {
        self.node.map_or("", |node| &node.path)
    }

    /// The type stated by the signature; `None` after an error.
    pub fn ty(self) -> Option<&'b ParamType> {
        self.node.map(|node| &node.ty)
    }

    /// The items of a tuple or the fields of a record, optional or not, in order; empty for any other type.
    pub fn items(self) -> impl ExactSizeIterator<Item = ParamRef<'b>> {
        let items = self.node.map_or(&[][..], |node| &node.items);
        items.iter().map(move |node| ParamRef { node: Some(node), ..self })
    }

    /// The tuple item or the record's field at an index, counted from 0.
    pub fn item(self, index: usize) -> ParamRef<'b> {
        let item = self.node.and_then(|node| node.items.get(index));
        if let (None, Some(node)) = (item, self.node) {
            let count = node.items.len();
            self.error(&format!("item({index})"), format!("`{}: {}` has {count} items", node.path, node.ty));
        }
        ParamRef { node: item, ..self }
    }

    /// The field of a record by its name.
    ///
    /// ```
    /// use tvm_ffi_codegen::{Kernel, Signature};
    ///
    /// let signature: Signature = r#"f(cfg: Record("Config", alpha: float64, n: int64)) -> float64"#.parse()?;
    /// let kernel = Kernel::body(|b| {
    ///     // the same as b.arg("cfg.alpha")
    ///     b.ret(b.param(0).field("alpha").value());
    /// });
    /// # tvm_ffi_codegen::lower::lower(&signature, &kernel, Default::default())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn field(self, name: &str) -> ParamRef<'b> {
        let field = self.named_field(name);
        if let (None, Some(node)) = (field, self.node) {
            self.error(&format!("field({name:?})"), format!("`{}: {}` has no such field", node.path, node.ty));
        }
        field.unwrap_or(ParamRef { node: None, ..self })
    }

    /// The field of a record by its name, if there is one.
    pub(in crate::lower) fn named_field(self, name: &str) -> Option<ParamRef<'b>> {
        let node = self.node?;
        let ty = if let ParamType::Optional(inner) = &node.ty { inner } else { &node.ty };
        let ParamType::Record { fields, .. } = ty else { return None };
        let index = fields.iter().position(|(known, _)| known == name)?;
        Some(ParamRef { node: node.items.get(index), ..self })
    }

    fn recorded_value(self, value: Value, ty: ScalarType) -> Expr<'b> {
        let value = Expr::known_in(self.body, value, ty, self.args.life);
        self.body.recorder().inspect(|recorder| recorder.param_value(self, value));
        value
    }

    /// The value, as [`Body::arg`] returns it.
    pub fn value(self) -> Expr<'b> {
        match self.alive("value").found() {
            Some(Arg::Scalar(ty, value)) => self.recorded_value(*value, *ty),
            Some(Arg::Tensor(vars)) => match vars.descriptor {
                Some(descriptor) => self.recorded_value(descriptor, ScalarType::Handle),
                None => self.missing("value", "is a tensor; use `tensor`"),
            },
            None if self.ended().is_some() => self.body.missing(),
            None => self.missing("value", "has no value of its own"),
        }
    }

    /// The number of characters, bytes, sizes or elements, as [`Body::arg`] returns for the path followed by `.size`.
    pub fn size(self) -> Expr<'b> {
        let this = self.alive("size");
        match this.node.and_then(|node| self.args.find(&format!("{}.size", node.path))) {
            Some((_, Arg::Scalar(ty, value))) => {
                let size = Expr::known_in(self.body, *value, *ty, self.args.life);
                self.body.recorder().inspect(|recorder| recorder.param_part(self, "size", size));
                size
            }
            _ => this.missing("size", "has no size"),
        }
    }

    /// The tensor.
    pub fn tensor(self) -> TensorRef<'b> {
        let this = self.alive("tensor");
        match (this.node, this.found()) {
            (Some(node), Some(Arg::Tensor(vars))) => {
                self.body.recorder().inspect(|recorder| recorder.param_tensor(self, vars));
                TensorRef::new(self.body, &node.path, vars)
            }
            _ => {
                this.missing("tensor", "isn't a tensor that a body can hold; use `value`");
                TensorRef::missing(self.body)
            }
        }
    }

    /// Whether an optional parameter is given.
    pub fn is_given(self) -> Expr<'b> {
        let this = self.alive("is_given");
        match this.node.and_then(|node| self.args.given.get(&node.path)) {
            Some(value) => {
                let given = Expr::known_in(self.body, *value, ScalarType::Bool, self.args.life);
                self.body.recorder().inspect(|recorder| recorder.param_part(self, "given", given));
                given
            }
            None => {
                this.missing("is_given", "is not optional");
                self.body.zero(ScalarType::Bool)
            }
        }
    }

    /// The parameter, if it is usable here. Otherwise records an error and returns a missing parameter.
    pub(super) fn alive(self, operation: &str) -> Self {
        match (self.node, self.ended()) {
            (Some(node), Some(ended)) => {
                const BLOCK: &str = "is part of a value that was made inside of a loop or conditional that has ended; \
                    carry that out by a `variable`";
                self.body.note(operation, format!("`{}`: {}", node.path, ended.problem(BLOCK)));
                ParamRef { node: None, ..self }
            }
            _ => self,
        }
    }

    /// Why it can't be used here; `None` if it can.
    pub(super) fn ended(self) -> Option<Ended> {
        self.body.use_of(self.args.life)
    }

    fn found(self) -> Option<&'b Arg> {
        let (_, arg) = self.args.find(&self.node?.path)?;
        Some(arg)
    }

    /// Records an error, unless an earlier error made the parameter missing.
    fn error(self, operation: &str, problem: String) {
        if self.node.is_some() {
            self.body.note(operation, problem);
        }
    }

    fn missing(self, operation: &str, problem: &str) -> Expr<'b> {
        if let Some(node) = self.node {
            self.error(operation, format!("`{}: {}` {problem}", node.path, node.ty));
        }
        self.body.missing()
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
