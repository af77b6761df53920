//! Parses the text form of a signature, the inverse of its `Display`. `docs/reference/signatures.md` defines the
//! grammar.
//!
//! No word is reserved: the context determines its meaning. Errors that the grammar permits but the builder rejects,
//! such as a name that is used twice, are returned as the builder's list of errors.

use std::str::FromStr;

use super::dim::{Constraint, Dim};
use super::param::ParamType;
use super::parse_error::{ParseError, SyntaxError};
use super::signature::Signature;
use super::tensor::{Device, TensorType};
use super::token::{Pos, Token, Tokens};

pub(crate) use launch::{HostItems, LaunchLocal};
pub(crate) use parser::Parser;
pub(crate) use suggestion::did_you_mean;

mod dims;
mod kernel_arg;
mod launch;
mod parser;
mod recovery;
mod signature;
mod suggestion;
#[cfg(test)]
mod tests;
mod types;
mod words;

impl FromStr for Signature {
    type Err = ParseError;

    /// Parses the text form.
    ///
    /// ```
    /// use tvm_ffi_codegen::Signature;
    ///
    /// let sig: Signature = "scale(x: Tensor([n], float32, align=16), factor: float64)".parse()?;
    /// assert_eq!(sig.params().len(), 2);
    /// assert_eq!(sig.to_string().parse(), Ok(sig));
    ///
    /// let error = "scale(x: Tensr([n], float32))".parse::<Signature>().unwrap_err();
    /// assert!(error.to_string().starts_with("expected a type, found `Tensr`"));
    /// # Ok::<(), tvm_ffi_codegen::spec::ParseError>(())
    /// ```
    fn from_str(text: &str) -> Result<Self, ParseError> {
        Parser::new(text, Tokens::new(text)?).whole_signature()
    }
}

impl Parser<'_> {
    /// The signature that the whole source is.
    pub(crate) fn whole_signature(mut self) -> Result<Signature, ParseError> {
        let read = self.signature(false);
        let spans = std::mem::take(&mut self.spans);
        let mut signature = self.finish(read)?;
        signature.spans = spans;
        Ok(signature.build()?)
    }
}

impl FromStr for Dim {
    type Err = SyntaxError;

    /// Parses the text form: `n`, `4 * c + 1`, `(h + 2 * pad - k) // s + 1`.
    fn from_str(text: &str) -> Result<Self, SyntaxError> {
        Parser::read(text, |parser| parser.dim(dims::OPERAND))
    }
}

impl FromStr for Constraint {
    type Err = SyntaxError;

    /// Parses the text form: `n % 16 == 0`.
    fn from_str(text: &str) -> Result<Self, SyntaxError> {
        Parser::read(text, Parser::constraint)
    }
}

impl FromStr for ParamType {
    type Err = SyntaxError;

    /// Parses the text form of a parameter's or result's type. In a tensor type, a name that isn't a dtype is a
    /// parameter's name, as in a result; [`SignatureBuilder::build`](super::SignatureBuilder::build) rejects it
    /// elsewhere. It also finds errors outside the grammar, such as a negative size.
    fn from_str(text: &str) -> Result<Self, SyntaxError> {
        Parser::read(text, Parser::param_type)
    }
}

impl FromStr for TensorType {
    type Err = SyntaxError;

    /// Parses the text form, like [`ParamType`]: `Tensor([n, 4], float32, align=16)`.
    fn from_str(text: &str) -> Result<Self, SyntaxError> {
        Parser::read(text, |parser| {
            if parser.eat(Token::Name("Tensor")) { parser.tensor() } else { Err(parser.expected("`Tensor`")) }
        })
    }
}

impl FromStr for Device {
    type Err = SyntaxError;

    /// Parses a kind of device with or without a number: `cpu`, `cuda`, `cuda:1`, `cuda:any`; or `any`.
    fn from_str(text: &str) -> Result<Self, SyntaxError> {
        if text == "any" {
            return Ok(Device::Any);
        }
        let parser = Parser::new(text, Tokens::none());
        let (kind, id) = parser.kind_and_id(Pos::START, text)?;
        Ok(Device::Kind(kind, id))
    }
}
