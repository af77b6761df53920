//! The text form of a signature, read: the inverse of its `Display`. The grammar is in `docs/signatures.md`.
//!
//! No word is reserved: where one stands says what it is. What the grammar lets through and the builder doesn't, such as
//! a name that is used twice, comes back as the builder's list of mistakes.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use super::builder::SignatureBuilder;
use super::dim::{Constraint, Dim, DimOp};
use super::mistake::SignatureError;
use super::param::{DefaultValue, ParamType};
use super::path::{Part, Step};
use super::policy::DTypePolicy;
use super::quote::unquote;
use super::signature::Signature;
use super::span::{SpanOf, Spans};
use super::tensor::{Device, TensorType};
use super::token::{Pos, Token, Tokens};
use recovery::List;

mod dims;
mod launch;
mod recovery;
mod suggestion;
#[cfg(test)]
mod tests;
mod types;

/// The error of a text that doesn't follow the grammar, with its place: the first mistake of the text, which has [the others](Self::more).
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SyntaxError {
    /// The line, from 1.
    pub line: usize,
    /// The character in that line, from 1; one past the last at its end.
    pub column: usize,
    /// The problem: what was expected, and what was found.
    pub message: String,
    /// The line's text.
    pub text: String,
    /// The bytes of the whole text that were found in place of what was expected; none at the text's end.
    pub span: Range<usize>,
    /// What was expected, and what was found.
    pub(super) mismatch: Option<Box<(String, String)>>,
    /// The mistakes behind this one.
    pub(super) more: Vec<SyntaxError>,
}

impl SyntaxError {
    /// The forms that could stand there, in words; `None` where a form could, and this one means nothing (a keyword that is given twice, a number that
    /// doesn't fit in 64 bits).
    pub fn expected(&self) -> Option<&str> {
        self.mismatch.as_ref().map(|mismatch| mismatch.0.as_str())
    }

    /// The token that was got in place of what is [expected](Self::expected), as the message shows it.
    pub fn got(&self) -> Option<&str> {
        self.mismatch.as_ref().map(|mismatch| mismatch.1.as_str())
    }

    /// The further mistakes of the text, in its order; they have none themselves. Reading goes on behind a mistake where the next parameter, constraint, item of a launch
    /// or argument of a kernel certainly begins, so that none of them is a consequence of another. There are at most 31.
    ///
    /// ```
    /// use tvm_ffi_codegen::{ParseError, Signature};
    ///
    /// let text = "f(x: fp16, y int8) where n = 1";
    /// let Err(ParseError::Syntax(error)) = text.parse::<Signature>() else { panic!("no mistake") };
    /// let more: Vec<_> = error.more().iter().map(|mistake| (mistake.column, mistake.got())).collect();
    /// assert_eq!((error.column, error.got()), (6, Some("`fp16`")));
    /// assert_eq!(more, [(14, Some("`int8`")), (28, Some("`=`"))]);
    /// ```
    pub fn more(&self) -> &[SyntaxError] {
        &self.more
    }

    /// Writes the mistake without those behind it.
    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // a tab stays one, so that the caret stands where the terminal puts the character
        let before = self.text.chars().take(self.column.saturating_sub(1));
        let indent: String = before.map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        write!(f, "{}\n  {}\n  {indent}^", self.message, self.text)
    }
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.show(f)?;
        self.more.iter().try_for_each(|mistake| {
            f.write_str("\n")?;
            mistake.show(f)
        })
    }
}

impl std::error::Error for SyntaxError {}

/// The error of reading a signature from its text.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ParseError {
    /// The text doesn't follow the grammar: all mistakes of this kind are here.
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
    /// The text follows the grammar, and the signature has mistakes: all of them are here.
    #[error(transparent)]
    Mistakes(#[from] SignatureError),
}

impl FromStr for Signature {
    type Err = ParseError;

    /// Reads the text form.
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
        let mut parser = Parser::new(text, Tokens::new(text)?);
        let read = parser.signature(false);
        let spans = std::mem::take(&mut parser.spans);
        let mut signature = parser.finish(read)?;
        signature.spans = spans;
        Ok(signature.build()?)
    }
}

impl FromStr for Dim {
    type Err = SyntaxError;

    /// Reads the text form: `n`, `4 * c + 1`, `(h + 2 * pad - k) // s + 1`.
    fn from_str(text: &str) -> Result<Self, SyntaxError> {
        Parser::read(text, |parser| parser.dim(dims::OPERAND))
    }
}

impl FromStr for Constraint {
    type Err = SyntaxError;

    /// Reads the text form: `n % 16 == 0`.
    fn from_str(text: &str) -> Result<Self, SyntaxError> {
        Parser::read(text, Parser::constraint)
    }
}

impl FromStr for ParamType {
    type Err = SyntaxError;

    /// Reads the text form of a parameter's or a result's type. In a tensor's, a name that is no dtype's own is a parameter's, as in a
    /// result; [`SignatureBuilder::build`] refuses it elsewhere. Mistakes that are none of grammar, such as a negative
    /// size, are found there too.
    fn from_str(text: &str) -> Result<Self, SyntaxError> {
        Parser::read(text, Parser::param_type)
    }
}

impl FromStr for TensorType {
    type Err = SyntaxError;

    /// Reads the text form, as [`ParamType`] does: `Tensor([n, 4], float32, align=16)`.
    fn from_str(text: &str) -> Result<Self, SyntaxError> {
        Parser::read(text, |parser| {
            if parser.eat(Token::Name("Tensor")) { parser.tensor() } else { Err(parser.expected("`Tensor`")) }
        })
    }
}

impl FromStr for Device {
    type Err = SyntaxError;

    /// Reads a kind of device with or without a number: `cpu`, `cuda`, `cuda:1`, `cuda:any`; or `any`.
    fn from_str(text: &str) -> Result<Self, SyntaxError> {
        if text == "any" {
            return Ok(Device::Any);
        }
        let parser = Parser::new(text, Tokens::none());
        let (kind, id) = parser.kind_and_id(Pos::START, text)?;
        Ok(Device::Kind(kind, id))
    }
}

/// The mark before parameters that are passed by their names alone.
const STAR: Token<'_> = Token::Op(DimOp::Mul);

struct Parser<'a> {
    tokens: Tokens<'a>,
    text: &'a str,
    /// Whether the result is being read, which may refer to parameters.
    in_result: bool,
    /// The places of the parts that have been read.
    spans: Spans,
    /// The mistakes behind which reading went on.
    mistakes: Vec<SyntaxError>,
}

/// The parts of a list of parameters that it may have once, as far as they have been read, and the number of its parameters.
#[derive(Default)]
struct Seen {
    star: bool,
    policy: bool,
    params: usize,
}

type Parsed<T> = Result<T, SyntaxError>;

impl<'a> Parser<'a> {
    fn new(text: &'a str, tokens: Tokens<'a>) -> Self {
        Parser { tokens, text, in_result: false, spans: Spans::default(), mistakes: Vec::new() }
    }

    /// Reads a piece of a signature that stands alone, to the end of the text.
    fn read<T>(text: &'a str, piece: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        let mut parser = Parser::new(text, Tokens::new(text)?);
        parser.in_result = true;
        let read = piece(&mut parser)?;
        parser.end("the end")?;
        Ok(read)
    }

    /// The end of the text, where `what` could stand.
    fn end(&self, what: &str) -> Parsed<()> {
        match self.tokens.peek() {
            (_, Token::End) => Ok(()),
            _ => Err(self.expected(what)),
        }
    }

    /// Reads a part, whose parts are inside of its span.
    fn spanned<T>(&mut self, of: impl Into<SpanOf>, read: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        let open = self.spans.open(of, self.tokens.peek().0.offset());
        let read = read(self)?;
        self.spans.close(open, self.tokens.end_of_last());
        Ok(read)
    }

    /// Reads a part, whose own parts stand beside it.
    fn spanned_alone<T>(&mut self, of: impl Into<SpanOf>, read: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        let start = self.tokens.peek().0.offset();
        let read = read(self)?;
        self.spans.add(of, start..self.tokens.end_of_last());
        Ok(read)
    }

    /// A signature, to the end of the text or to the `@` of its launch.
    fn signature(&mut self, launched: bool) -> Parsed<SignatureBuilder> {
        let name = self.spanned_alone(Part::Signature, |parser| parser.name("the function's name"))?;
        let mut signature = self.parameters(Signature::builder(name))?;
        let start = self.tokens.mark();
        signature = match self.result(signature, launched) {
            Ok(signature) => signature,
            Err(mistake) => {
                self.recover_at_where(mistake, start)?;
                Signature::builder("")
            }
        };
        if self.eat(Token::Name("where")) {
            signature = self.constraints(signature, launched)?;
        }
        Ok(signature)
    }

    /// The parameters in their parentheses. With mistakes it is no signature that comes back, as none is built then.
    fn parameters(&mut self, mut signature: SignatureBuilder) -> Parsed<SignatureBuilder> {
        self.expect(Token::Open)?;
        let mut seen = Seen::default();
        while !self.eat(Token::Close) {
            let start = self.tokens.mark();
            signature = match self.parameter(signature, &mut seen) {
                Ok(signature) => signature,
                Err(mistake) => {
                    self.recover(mistake, start, List::Parameters)?;
                    Signature::builder("")
                }
            };
        }
        Ok(signature)
    }

    /// A parameter, `*` or the policy, with the comma behind it.
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

    /// The result, where there is one, and what may follow it.
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

    /// The end of the text, where other things could stand; of a signature that has a launch, the place of its `@`.
    fn end_of_signature(&self, expected: &str, launched: bool) -> Parsed<()> {
        match self.tokens.peek().1 {
            Token::At if launched => Ok(()),
            // a launch that is missing is told by who wants it
            Token::End => Ok(()),
            _ => Err(self.expected(if launched { "`@`" } else { expected })),
        }
    }

    /// What follows a parameter's name.
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
                    // behind the quote
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
            // one that doesn't fit in 64 bits is no token
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

    fn truth(&mut self) -> Parsed<bool> {
        match self.tokens.peek() {
            (_, Token::Name(name @ ("True" | "False"))) => {
                self.tokens.next();
                Ok(name == "True")
            }
            _ => Err(self.expected("`True` or `False`")),
        }
    }

    /// Digits, with a minus sign or without.
    fn integer(&mut self, what: &str) -> Parsed<i64> {
        let start = self.tokens.peek().0;
        let negative = self.eat(Token::Op(DimOp::Sub));
        match self.tokens.peek() {
            (_, Token::Integer(digits)) => {
                let value = self.in_64_bits(start, negative, digits)?;
                self.tokens.next();
                Ok(value)
            }
            _ if negative => Err(self.expected("an integer after `-`")),
            _ => Err(self.expected(what)),
        }
    }

    fn in_64_bits(&self, start: Pos, negative: bool, digits: &str) -> Parsed<i64> {
        let sign = if negative { "-" } else { "" };
        // signed before it has to fit, as -2^63 does and 2^63 doesn't
        let value =
            digits.parse().ok().and_then(|value: i128| i64::try_from(if negative { -value } else { value }).ok());
        value.ok_or_else(|| self.error(start, format!("`{sign}{digits}` doesn't fit in 64 bits")))
    }

    fn name(&mut self, what: &str) -> Parsed<&'a str> {
        match self.tokens.peek() {
            (_, Token::Name(name)) => {
                self.tokens.next();
                Ok(name)
            }
            _ => Err(self.expected(what)),
        }
    }

    fn eat(&mut self, token: Token<'_>) -> bool {
        let is = self.tokens.peek().1 == token;
        if is {
            self.tokens.next();
        }
        is
    }

    fn expect(&mut self, token: Token<'_>) -> Parsed<()> {
        if self.eat(token) { Ok(()) } else { Err(self.expected(&token.to_string())) }
    }

    /// A comma, or the closing token, which is left for the loop that looks for it.
    fn separator(&mut self, close: Token<'_>) -> Parsed<()> {
        if self.tokens.peek().1 == close || self.eat(Token::Comma) {
            return Ok(());
        }
        Err(self.expected(&format!("`,` or {close}")))
    }

    /// The closing token, maybe after a comma.
    fn close(&mut self, close: Token<'_>) -> Parsed<()> {
        self.separator(close)?;
        self.expect(close)
    }

    fn expected(&self, what: &str) -> SyntaxError {
        let (pos, found) = self.tokens.peek();
        self.mismatch(pos, what, found, "")
    }

    /// The error of a token where another one is expected; `more` is appended to its message.
    fn mismatch(&self, pos: Pos, expected: &str, found: impl fmt::Display, more: &str) -> SyntaxError {
        let found = found.to_string();
        let mut error = self.error(pos, format!("expected {expected}, found {found}{more}"));
        error.mismatch = Some(Box::new((expected.to_owned(), found)));
        error
    }

    fn error(&self, pos: Pos, message: String) -> SyntaxError {
        pos.error(self.text, self.tokens.len_at(pos), message)
    }
}

fn expected_policies() -> String {
    let names = DTypePolicy::NAMES.iter().map(|(_, name)| *name).collect::<Vec<_>>().join(", ");
    format!("policies in quotes, such as `\"sign+bool\"` (they are {names}; or exact)")
}
