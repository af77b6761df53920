//! Building a signature; what is wrong with one.

use std::fmt;

use super::check::Checker;
use super::dim::{CompareOp, Constraint, Dim};
use super::param::{DefaultValue, Param, ParamType};
use super::policy::DTypePolicy;
use super::signature::Signature;

/// One mistake in a signature.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Mistake {
    /// The place of the mistake: `name`, `x`, `x.shape[1]`, `x.dtype`, ...
    pub path: String,
    /// The problem, and what would be right.
    pub problem: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.problem)
    }
}

/// The error of [`SignatureBuilder::build`]: all mistakes of one signature.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SignatureError {
    /// The signature's name, as given.
    pub name: String,
    /// At least one mistake, in order of appearance.
    pub mistakes: Vec<Mistake>,
}

impl fmt::Display for SignatureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.mistakes.len() == 1 { "" } else { "s" };
        write!(f, "signature `{}` has {} mistake{plural}", self.name.escape_debug(), self.mistakes.len())?;
        for mistake in &self.mistakes {
            write!(f, "\n  {mistake}")?;
        }
        Ok(())
    }
}

impl std::error::Error for SignatureError {}

/// The parts of a signature before they are checked, made by [`Signature::builder`].
#[derive(Clone, Debug)]
pub struct SignatureBuilder {
    signature: Signature,
}

impl SignatureBuilder {
    pub(super) fn new(name: String) -> Self {
        let signature = Signature {
            name,
            params: Vec::new(),
            ret: None,
            constraints: Vec::new(),
            dtype_policy: DTypePolicy::EXACT,
        };
        SignatureBuilder { signature }
    }

    /// Adds a parameter.
    pub fn param(mut self, name: impl Into<String>, ty: impl Into<ParamType>) -> Self {
        self.signature.params.push(Param { name: name.into(), ty: ty.into(), default: None });
        self
    }

    /// Adds a parameter that a call may leave out, if it leaves out all that follow.
    pub fn param_or(
        mut self,
        name: impl Into<String>,
        ty: impl Into<ParamType>,
        default: impl Into<DefaultValue>,
    ) -> Self {
        let default = Some(default.into());
        self.signature.params.push(Param { name: name.into(), ty: ty.into(), default });
        self
    }

    /// States what the function returns; nothing, unless called.
    pub fn returns(mut self, ty: impl Into<ParamType>) -> Self {
        self.signature.ret = Some(ty.into()).filter(|ty| *ty != ParamType::None);
        self
    }

    /// Adds a comparison that has to hold once all symbols are bound.
    pub fn constraint(mut self, left: impl Into<Dim>, op: CompareOp, right: impl Into<Dim>) -> Self {
        self.signature.constraints.push(Constraint::new(left, op, right));
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
        let mistakes = Checker::check(&self.signature);
        match mistakes.is_empty() {
            true => Ok(self.signature),
            false => Err(SignatureError { name: self.signature.name, mistakes }),
        }
    }
}
