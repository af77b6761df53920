//! Builds signatures.

use super::check::Checker;
use super::dim::{CompareOp, Constraint, Dim};
use super::error::{PartError, SignatureError};
use super::location::{Aside, Origin, SourceLocation};
use super::param::{DefaultValue, Param, ParamType};
use super::path::Part;
use super::policy::DTypePolicy;
use super::scalar::ScalarType;
use super::signature::Signature;
use super::span::Spans;

/// The parts of a signature before they are checked. Created by [`Signature::builder`].
#[derive(Clone, Debug)]
#[must_use]
pub struct SignatureBuilder {
    signature: Signature,
    /// The part that was stated last.
    last: Part,
    /// The spans of the parts in the source that is parsed.
    pub(super) spans: Spans,
}

impl SignatureBuilder {
    pub(super) fn new(name: String) -> Self {
        let signature = Signature {
            name,
            params: Vec::new(),
            positional: None,
            ret: None,
            constraints: Vec::new(),
            dtype_policy: DTypePolicy::EXACT,
            origin: Origin::default(),
            ret_origin: Origin::default(),
            doc: Aside::default(),
        };
        SignatureBuilder { signature, last: Part::Signature, spans: Spans::default() }
    }

    /// Adds a parameter.
    pub fn param(self, name: impl Into<String>, ty: impl Into<ParamType>) -> Self {
        self.push(Param { name: name.into(), ty: ty.into(), default: None, origin: Origin::default() })
    }

    /// Adds a parameter that a call may omit if it also omits all later ones.
    pub fn param_or(self, name: impl Into<String>, ty: impl Into<ParamType>, default: impl Into<DefaultValue>) -> Self {
        let default = Some(default.into());
        self.push(Param { name: name.into(), ty: ty.into(), default, origin: Origin::default() })
    }

    fn push(mut self, param: Param) -> Self {
        self.last = Part::Param(self.signature.params.len());
        self.signature.params.push(param);
        self
    }

    /// Makes the parameters that follow keyword-only for callers in Python; written as `*`. Only the first call has
    /// an effect.
    ///
    /// ```
    /// use tvm_ffi_codegen::{ScalarType, Signature};
    ///
    /// let sig = Signature::builder("f").param("x", ScalarType::Int64).keyword_only();
    /// let sig = sig.param("y", ScalarType::Int64).build()?;
    /// assert_eq!(sig.to_string(), "f(x: int64, *, y: int64)");
    /// # Ok::<(), tvm_ffi_codegen::SignatureError>(())
    /// ```
    pub fn keyword_only(mut self) -> Self {
        self.signature.positional.get_or_insert(self.signature.params.len());
        self
    }

    /// Sets the result type. By default the function returns nothing.
    pub fn returns(mut self, ty: impl Into<ParamType>) -> Self {
        self.signature.ret = Some(ty.into()).filter(|ty| *ty != ParamType::None);
        self.last = Part::Result;
        self
    }

    /// Adds a comparison that must hold once all variables are bound.
    pub fn constraint(mut self, left: impl Into<Dim>, op: CompareOp, right: impl Into<Dim>) -> Self {
        self.last = Part::Constraint(self.signature.constraints.len());
        self.signature.constraints.push(Constraint::new(left, op, right));
        self
    }

    /// Sets the location, in your user's source, of the part that was added last: a parameter, the result or a
    /// constraint. Before any part is added, it is the place of the signature itself. A part without a location uses
    /// the signature's.
    ///
    /// If the wrapper raises an error for the part, the location is the last line of the error's backtrace: `File
    /// "model.py", line 7, in forward`. A Python user sees that line in the traceback. Locations affect neither a
    /// signature's text form nor its equality.
    ///
    /// ```
    /// use tvm_ffi_codegen::spec::{CompareOp, Part};
    /// use tvm_ffi_codegen::{DLDataType, Signature, TensorType, dim};
    ///
    /// let sig = Signature::builder("forward")
    ///     .location("model.py", 3, "forward")
    ///     .param("x", TensorType::new(["n"], DLDataType::FLOAT32))
    ///     .location("model.py", 4, "forward")
    ///     .constraint(dim("n") % 16, CompareOp::Eq, 0)
    ///     .build()?;
    /// let shown = |part| sig.location(part).map(ToString::to_string);
    /// assert_eq!(shown(Part::Param(0)).as_deref(), Some("File \"model.py\", line 4, in forward"));
    /// assert_eq!(shown(Part::Constraint(0)).as_deref(), Some("File \"model.py\", line 3, in forward"));
    /// # Ok::<(), tvm_ffi_codegen::SignatureError>(())
    /// ```
    pub fn location(mut self, file: impl Into<String>, line: u32, function: impl Into<String>) -> Self {
        self.signature.set_location(self.last, SourceLocation::new(file, line, function));
        self
    }

    /// Sets the function's documentation, which libraries carry and hosts show. It affects neither the signature's text
    /// form nor its equality.
    ///
    /// ```
    /// use tvm_ffi_codegen::{ScalarType, Signature};
    ///
    /// let double = Signature::builder("double").param("n", ScalarType::Int64).returns(ScalarType::Int64);
    /// let double = double.doc("2n").build()?;
    /// assert_eq!(double.doc(), Some("2n"));
    /// assert_eq!(double, "double(n: int64) -> int64".parse().unwrap());
    /// # Ok::<(), tvm_ffi_codegen::SignatureError>(())
    /// ```
    pub fn doc(mut self, text: impl Into<String>) -> Self {
        self.signature = self.signature.with_doc(text);
        self
    }

    /// Sets which dtypes tensors may have instead of the stated ones. By default there are none.
    pub fn dtype_policy(mut self, policy: DTypePolicy) -> Self {
        self.signature.dtype_policy = policy;
        self
    }

    /// Checks and returns the signature.
    ///
    /// # Errors
    /// Every error in the signature, each with its path.
    pub fn build(mut self) -> Result<Signature, SignatureError> {
        self.signature.params.iter_mut().for_each(Param::settle_default);
        let types = self.signature.params.iter_mut().map(|param| &mut param.ty).chain(&mut self.signature.ret);
        types.for_each(ParamType::fold_dims);
        let count = self.signature.params.len();
        self.signature.positional = self.signature.positional.filter(|positional| *positional < count);
        let mut errors = Checker::check(&self.signature);
        errors.iter_mut().for_each(|error| error.locate(&self.spans));
        match errors.is_empty() {
            true => Ok(self.signature),
            false => Err(SignatureError { name: self.signature.name, errors }),
        }
    }
}

impl Signature {
    /// Creates a builder of a signature with this name, without parameters.
    ///
    /// ```
    /// use tvm_ffi_codegen::{DLDataType, Signature, TensorType};
    ///
    /// let sig = Signature::builder("add_one")
    ///     .param("x", TensorType::new(["n"], DLDataType::FLOAT32))
    ///     .param("y", TensorType::new(["n"], DLDataType::FLOAT32))
    ///     .build()?;
    /// assert_eq!(sig.to_string(), "add_one(x: Tensor([n], float32), y: Tensor([n], float32))");
    /// # Ok::<(), tvm_ffi_codegen::SignatureError>(())
    /// ```
    pub fn builder(name: impl Into<String>) -> SignatureBuilder {
        SignatureBuilder::new(name.into())
    }

    /// Sets the function's documentation; see [`SignatureBuilder::doc`].
    ///
    /// ```
    /// use tvm_ffi_codegen::Signature;
    ///
    /// let double = "double(n: int64) -> int64".parse::<Signature>()?.with_doc("2n");
    /// assert_eq!(double.doc(), Some("2n"));
    /// # Ok::<(), tvm_ffi_codegen::ParseError>(())
    /// ```
    #[must_use]
    pub fn with_doc(mut self, text: impl Into<String>) -> Self {
        self.doc = text.into().into();
        self
    }

    /// Makes an interface for values that aren't arguments. Its parameters are integers with the names of the
    /// variables, followed by the values. The names of the values are descriptions for messages.
    ///
    /// # Errors
    /// Every error in the types, each with its path.
    pub(crate) fn of_values<'n>(
        vars: impl IntoIterator<Item = &'n str>,
        values: impl IntoIterator<Item = (String, ParamType)>,
        dtype_policy: DTypePolicy,
    ) -> Result<Self, Vec<PartError>> {
        let vars: Vec<_> = vars.into_iter().map(|name| (name.to_owned(), ParamType::from(ScalarType::Int64))).collect();
        let known = vars.len();
        let params = vars.into_iter().chain(values).map(|(name, mut ty)| {
            ty.fold_dims();
            Param { name, ty, default: None, origin: Origin::default() }
        });
        let signature =
            Signature { params: params.collect(), dtype_policy, ..SignatureBuilder::new(String::new()).signature };
        let errors = Checker::check_values(&signature, known);
        if errors.is_empty() { Ok(signature) } else { Err(errors) }
    }

    /// Sets the place of a part; see [`SignatureBuilder::location`]. A part that the signature doesn't have is ignored.
    ///
    /// # Errors
    /// The file or the function is empty, or contains a quote, a line end or a NUL.
    ///
    /// ```
    /// use tvm_ffi_codegen::Signature;
    /// use tvm_ffi_codegen::spec::{Part, SourceLocation};
    ///
    /// let plain: Signature = "forward(x: Tensor([n], float32))".parse()?;
    /// let placed = plain.clone().with_location(Part::Param(0), SourceLocation::new("model.py", 4, "forward"))?;
    /// assert_eq!(placed.location(Part::Param(0)).map(|location| location.line), Some(4));
    /// assert_eq!(placed, plain);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_location(self, part: Part, location: SourceLocation) -> Result<Self, SignatureError> {
        self.with_locations([(part, location)])
    }

    /// Like [`with_location`](Self::with_location), for several parts. Parts that the signature doesn't have are
    /// ignored.
    ///
    /// # Errors
    /// The errors of [`with_location`](Self::with_location); all are reported together.
    ///
    /// ```
    /// use tvm_ffi_codegen::Signature;
    /// use tvm_ffi_codegen::spec::{Part, SourceLocation};
    ///
    /// let plain: Signature = "forward(x: Tensor([n], float32), k: int64)".parse()?;
    /// let lines = [(Part::Signature, 3), (Part::Param(0), 4), (Part::Param(1), 5)];
    /// let locations = lines.map(|(part, line)| (part, SourceLocation::new("model.py", line, "forward")));
    /// let placed = plain.with_locations(locations)?;
    /// assert_eq!(placed.location(Part::Param(1)).map(|location| location.line), Some(5));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_locations(
        mut self,
        locations: impl IntoIterator<Item = (Part, SourceLocation)>,
    ) -> Result<Self, SignatureError> {
        locations.into_iter().for_each(|(part, location)| self.set_location(part, location));
        let errors = Checker::check_locations(&self);
        match errors.is_empty() {
            true => Ok(self),
            false => Err(SignatureError { name: self.name, errors }),
        }
    }
}
