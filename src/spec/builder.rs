//! Building a signature.

use super::check::Checker;
use super::dim::{CompareOp, Constraint, Dim};
use super::mistake::SignatureError;
use super::param::{DefaultValue, Param, ParamType};
use super::path::Part;
use super::place::{Origin, Place};
use super::policy::DTypePolicy;
use super::signature::Signature;
use super::span::Spans;

/// The parts of a signature before they are checked, made by [`Signature::builder`].
#[derive(Clone, Debug)]
pub struct SignatureBuilder {
    signature: Signature,
    /// The part that was stated last.
    last: Part,
    /// The places of the parts in the text that is read.
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
        };
        SignatureBuilder { signature, last: Part::Signature, spans: Spans::default() }
    }

    /// Adds a parameter.
    pub fn param(self, name: impl Into<String>, ty: impl Into<ParamType>) -> Self {
        self.push(Param { name: name.into(), ty: ty.into(), default: None, origin: Origin::default() })
    }

    /// Adds a parameter that a call may leave out, if it leaves out all that follow.
    pub fn param_or(self, name: impl Into<String>, ty: impl Into<ParamType>, default: impl Into<DefaultValue>) -> Self {
        let default = Some(default.into());
        self.push(Param { name: name.into(), ty: ty.into(), default, origin: Origin::default() })
    }

    fn push(mut self, param: Param) -> Self {
        self.last = Part::Param(self.signature.params.len());
        self.signature.params.push(param);
        self
    }

    /// States that callers in Python pass the parameters that follow by their names alone; its text is `*`. Stated twice, the first counts.
    ///
    /// ```
    /// use tvm_ffi_codegen::{ScalarType, Signature};
    ///
    /// let sig = Signature::builder("f").param("x", ScalarType::Int64).keyword_only().param("y", ScalarType::Int64).build()?;
    /// assert_eq!(sig.to_string(), "f(x: int64, *, y: int64)");
    /// # Ok::<(), tvm_ffi_codegen::SignatureError>(())
    /// ```
    pub fn keyword_only(mut self) -> Self {
        self.signature.positional.get_or_insert(self.signature.params.len());
        self
    }

    /// States what the function returns; nothing, unless called.
    pub fn returns(mut self, ty: impl Into<ParamType>) -> Self {
        self.signature.ret = Some(ty.into()).filter(|ty| *ty != ParamType::None);
        self.last = Part::Result;
        self
    }

    /// Adds a comparison that has to hold once all symbols are bound.
    pub fn constraint(mut self, left: impl Into<Dim>, op: CompareOp, right: impl Into<Dim>) -> Self {
        self.last = Part::Constraint(self.signature.constraints.len());
        self.signature.constraints.push(Constraint::new(left, op, right));
        self
    }

    /// States the place of the part that was stated last, in the source of the compiler's user: of a parameter, the result or a constraint, or
    /// of the signature itself where no part is stated yet. A part without a place has the signature's.
    ///
    /// An error that the wrapper raises for the part ends in the place, as a line of its backtrace: `File "model.py", line 7, in forward`. A Python
    /// user sees that line in the traceback. Places are no part of the signature's text, and two signatures are equal wherever they are from.
    ///
    /// ```
    /// use tvm_ffi_codegen::spec::{CompareOp, Part};
    /// use tvm_ffi_codegen::{DLDataType, Signature, TensorType, dim};
    ///
    /// let sig = Signature::builder("forward")
    ///     .at("model.py", 3, "forward")
    ///     .param("x", TensorType::new(["n"], DLDataType::FLOAT32))
    ///     .at("model.py", 4, "forward")
    ///     .constraint(dim("n") % 16, CompareOp::Eq, 0)
    ///     .build()?;
    /// let shown = |part| sig.place(part).map(ToString::to_string);
    /// assert_eq!(shown(Part::Param(0)).as_deref(), Some("File \"model.py\", line 4, in forward"));
    /// assert_eq!(shown(Part::Constraint(0)).as_deref(), Some("File \"model.py\", line 3, in forward"));
    /// # Ok::<(), tvm_ffi_codegen::SignatureError>(())
    /// ```
    pub fn at(mut self, file: impl Into<String>, line: u32, function: impl Into<String>) -> Self {
        self.signature.set_place(self.last, Place::new(file, line, function));
        self
    }

    /// States which dtypes tensors may have in place of the stated ones; none, unless called.
    pub fn dtype_policy(mut self, policy: DTypePolicy) -> Self {
        self.signature.dtype_policy = policy;
        self
    }

    /// The signature, checked.
    ///
    /// # Errors
    /// Every mistake of the signature, each with its path.
    pub fn build(mut self) -> Result<Signature, SignatureError> {
        self.signature.params.iter_mut().for_each(Param::settle_default);
        let types = self.signature.params.iter_mut().map(|param| &mut param.ty).chain(&mut self.signature.ret);
        types.for_each(ParamType::fold_dims);
        let count = self.signature.params.len();
        self.signature.positional = self.signature.positional.filter(|positional| *positional < count);
        let mut mistakes = Checker::check(&self.signature);
        mistakes.iter_mut().for_each(|mistake| mistake.locate(&self.spans));
        match mistakes.is_empty() {
            true => Ok(self.signature),
            false => Err(SignatureError { name: self.signature.name, mistakes }),
        }
    }
}
