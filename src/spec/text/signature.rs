//! Parses signatures: their parameters, defaults and results.

use super::parser::{Parsed, Parser, STAR};
use super::recovery::List;
use crate::spec::builder::SignatureBuilder;
use crate::spec::dim::DimOp;
use crate::spec::param::{DefaultValue, ParamType};
use crate::spec::path::{Part, Step};
use crate::spec::policy::DTypePolicy;
use crate::spec::quote::unquote;
use crate::spec::signature::Signature;
use crate::spec::token::Token;

/// Which parts of a parameter list that may only occur once have been parsed, and the number of parameters.
#[derive(Default)]
struct Seen {
    star: bool,
    policy: bool,
    params: usize,
}

impl Parser<'_> {
    /// A signature, up to the end of the source or the `@` of its launch.
    pub(super) fn signature(&mut self, launched: bool) -> Parsed<SignatureBuilder> {
        let name = self.spanned_alone(Part::Signature, |parser| parser.name("the function's name"))?;
        let mut signature = self.parameters(Signature::builder(name))?;
        let start = self.tokens.mark();
        signature = match self.result(signature, launched) {
            Ok(signature) => signature,
            Err(error) => {
                self.recover_at_where(error, start)?;
                Signature::builder("")
            }
        };
        if self.eat(Token::Name("where")) {
            signature = self.constraints(signature, launched)?;
        }
        Ok(signature)
    }

    /// The parameters in their parentheses. If there are errors, the returned builder is incomplete, since no
    /// signature is built then.
    fn parameters(&mut self, mut signature: SignatureBuilder) -> Parsed<SignatureBuilder> {
        self.expect(Token::Open)?;
        let mut seen = Seen::default();
        while !self.eat(Token::Close) {
            let start = self.tokens.mark();
            signature = match self.parameter(signature, &mut seen) {
                Ok(signature) => signature,
                Err(error) => {
                    self.recover(error, start, List::Parameters)?;
                    Signature::builder("")
                }
            };
        }
        Ok(signature)
    }

    /// A parameter, `*` or the policy, with the comma after it.
    fn parameter(&mut self, mut signature: SignatureBuilder, seen: &mut Seen) -> Parsed<SignatureBuilder> {
        let pos = self.tokens.peek().0;
        if self.eat(STAR) {
            if seen.star {
                return Err(self.error(pos, "`*` is given twice".to_owned()));
            }
            seen.star = true;
            self.expect(Token::Comma)?;
            if self.tokens.peek().1 == Token::Close {
                return Err(self.expected("a parameter's name"));
            }
            return Ok(signature.keyword_only());
        }
        let open = self.spans.open(Part::Param(seen.params), pos.offset());
        let expected = if seen.star { "a parameter's name or `)`" } else { "a parameter's name, `*` or `)`" };
        let name = self.spanned_alone(Step::Name, |parser| parser.name(expected))?;
        if name == "dtype_policy" && self.eat(Token::Equals) {
            if seen.policy {
                return Err(self.error(pos, "`dtype_policy` is given twice".to_owned()));
            }
            seen.policy = true;
            signature = signature.dtype_policy(self.dtype_policy()?);
            self.spans.drop_open(open);
        } else {
            signature = self.param(signature, name)?;
            self.spans.close(open, self.tokens.end_of_last());
            seen.params += 1;
        }
        self.separator(Token::Close)?;
        Ok(signature)
    }

    /// The result, if there is one, and any parts after it.
    fn result(&mut self, mut signature: SignatureBuilder, launched: bool) -> Parsed<SignatureBuilder> {
        let mut expected = "`->`, `where` or the end";
        if self.eat(Token::Arrow) {
            self.in_result = true;
            signature = signature.returns(self.spanned(Part::Result, Self::param_type)?);
            expected = "`where` or the end";
        }
        match self.tokens.peek().1 {
            Token::Name("where") => Ok(signature),
            _ => self.end_of_signature(expected, launched).map(|()| signature),
        }
    }

    /// The end of the source, where other things could be; for a signature with a launch, the position of its `@`.
    pub(super) fn end_of_signature(&self, expected: &str, launched: bool) -> Parsed<()> {
        match self.tokens.peek().1 {
            Token::At if launched => Ok(()),
            // the caller reports a missing launch
            Token::End => Ok(()),
            _ => Err(self.expected(if launched { "`@`" } else { expected })),
        }
    }

    /// The part after a parameter's name.
    fn param(&mut self, signature: SignatureBuilder, name: &str) -> Parsed<SignatureBuilder> {
        self.expect(Token::Colon)?;
        let ty = self.param_type()?;
        if !self.eat(Token::Equals) {
            return Ok(signature.param(name, ty));
        }
        let default = self.spanned_alone(Step::Default, |parser| parser.default(&ty))?;
        Ok(signature.param_or(name, ty, default))
    }

    fn default(&mut self, ty: &ParamType) -> Parsed<DefaultValue> {
        let (pos, token) = self.tokens.peek();
        let value = match token {
            Token::Name("True") => DefaultValue::Bool(true),
            Token::Name("False") => DefaultValue::Bool(false),
            Token::Name("None") => DefaultValue::None,
            Token::Name("nan") => DefaultValue::Float(f64::NAN),
            Token::Text(text) => match ty {
                ParamType::Device => DefaultValue::Device(self.one_device(pos, text)?),
                ParamType::Optional(inner) if **inner == ParamType::Device => {
                    DefaultValue::Device(self.one_device(pos, text)?)
                }
                _ => DefaultValue::Str(unquote(text).map_err(|(at, problem)| {
                    // after the quote
                    pos.behind(1 + at).error(self.text, "\\".len(), problem)
                })?),
            },
            _ => return self.default_number(),
        };
        self.tokens.next();
        Ok(value)
    }

    fn default_number(&mut self) -> Parsed<DefaultValue> {
        let start = self.tokens.peek().0;
        let negative = self.eat(Token::Op(DimOp::Sub));
        let (pos, token) = self.tokens.peek();
        let float = match token {
            Token::Integer(digits) => {
                let value = self.in_64_bits(start, negative, digits)?;
                self.tokens.next();
                return Ok(DefaultValue::Int(value));
            }
            // a number that doesn't fit in 64 bits isn't a token
            Token::Float(digits) => digits.parse().unwrap_or(f64::INFINITY),
            Token::Name("inf") => f64::INFINITY,
            _ if negative => return Err(self.expected("a number")),
            _ => {
                return Err(self.mismatch(pos, "a number, `True`, `False`, `None` or a text in quotes", token, ""));
            }
        };
        self.tokens.next();
        Ok(DefaultValue::Float(if negative { -float } else { float }))
    }

    fn dtype_policy(&mut self) -> Parsed<DTypePolicy> {
        let (_, Token::Text(text)) = self.tokens.peek() else {
            return Err(self.expected(&expected_policies()));
        };
        let all = text.parse().map_err(|_| self.expected(&expected_policies()))?;
        self.tokens.next();
        Ok(all)
    }
}

fn expected_policies() -> String {
    let names = DTypePolicy::NAMES.iter().map(|(_, name)| *name).collect::<Vec<_>>().join(", ");
    format!("policies in quotes, such as `\"sign+bool\"` (they are {names}; or exact)")
}
