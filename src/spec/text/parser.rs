//! The parser's state, and the steps that all parts of the grammar share.

use std::fmt;

use crate::spec::dim::DimOp;
use crate::spec::parse_error::SyntaxError;
use crate::spec::quote::unquote_bytes;
use crate::spec::span::{SpanOf, Spans};
use crate::spec::token::{Pos, Token, Tokens};

/// The marker before keyword-only parameters.
pub(super) const STAR: Token<'_> = Token::Op(DimOp::Mul);

/// Parses the source from its current token on.
pub(crate) struct Parser<'a> {
    pub(crate) tokens: Tokens<'a>,
    pub(crate) text: &'a str,
    /// Whether a result is being parsed, which may refer to parameters.
    pub(super) in_result: bool,
    /// The spans of the parsed parts.
    pub(super) spans: Spans,
    /// The errors after which parsing continued.
    pub(crate) errors: Vec<SyntaxError>,
}

/// The result of a parsing step, or the error at which it stopped.
pub(super) type Parsed<T> = Result<T, SyntaxError>;

impl<'a> Parser<'a> {
    pub(crate) fn new(text: &'a str, tokens: Tokens<'a>) -> Self {
        Parser { tokens, text, in_result: false, spans: Spans::default(), errors: Vec::new() }
    }

    /// Parses a standalone part of a signature, up to the end of the source.
    pub(super) fn read<T>(text: &'a str, piece: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        let mut parser = Parser::new(text, Tokens::new(text)?);
        parser.in_result = true;
        let read = piece(&mut parser)?;
        parser.end("the end")?;
        Ok(read)
    }

    /// Expects the end of the source; `what` describes what else could be there.
    pub(crate) fn end(&self, what: &str) -> Parsed<()> {
        match self.tokens.peek() {
            (_, Token::End) => Ok(()),
            _ => Err(self.expected(what)),
        }
    }

    /// Parses a part whose inner parts lie in its span.
    pub(super) fn spanned<T>(&mut self, of: impl Into<SpanOf>, read: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        let open = self.spans.open(of, self.tokens.peek().0.offset());
        let read = read(self)?;
        self.spans.close(open, self.tokens.end_of_last());
        Ok(read)
    }

    /// Parses a part whose inner parts lie next to its span.
    pub(super) fn spanned_alone<T>(
        &mut self,
        of: impl Into<SpanOf>,
        read: impl FnOnce(&mut Self) -> Parsed<T>,
    ) -> Parsed<T> {
        let start = self.tokens.peek().0.offset();
        let read = read(self)?;
        self.spans.add(of, start..self.tokens.end_of_last());
        Ok(read)
    }

    pub(crate) fn truth(&mut self) -> Parsed<bool> {
        match self.tokens.peek() {
            (_, Token::Name(name @ ("True" | "False"))) => {
                self.tokens.next();
                Ok(name == "True")
            }
            _ => Err(self.expected("`True` or `False`")),
        }
    }

    /// Digits with an optional minus sign.
    pub(crate) fn integer(&mut self, what: &str) -> Parsed<i64> {
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

    pub(crate) fn in_64_bits(&self, start: Pos, negative: bool, digits: &str) -> Parsed<i64> {
        let sign = if negative { "-" } else { "" };
        // apply the sign first: -2^63 fits and 2^63 doesn't
        let value =
            digits.parse().ok().and_then(|value: i128| i64::try_from(if negative { -value } else { value }).ok());
        value.ok_or_else(|| self.error(start, format!("`{sign}{digits}` doesn't fit in 64 bits")))
    }

    pub(crate) fn name(&mut self, what: &str) -> Parsed<&'a str> {
        match self.tokens.peek() {
            (_, Token::Name(name)) => {
                self.tokens.next();
                Ok(name)
            }
            _ => Err(self.expected(what)),
        }
    }

    pub(crate) fn eat(&mut self, token: Token<'_>) -> bool {
        let is = self.tokens.peek().1 == token;
        if is {
            self.tokens.next();
        }
        is
    }

    pub(crate) fn expect(&mut self, token: Token<'_>) -> Parsed<()> {
        if self.eat(token) { Ok(()) } else { Err(self.expected(&token.to_string())) }
    }

    /// A comma, or the closing token, which is left for the loop that looks for it.
    pub(crate) fn separator(&mut self, close: Token<'_>) -> Parsed<()> {
        if self.tokens.peek().1 == close || self.eat(Token::Comma) {
            return Ok(());
        }
        Err(self.expected(&format!("`,` or {close}")))
    }

    /// The closing token, optionally after a comma.
    pub(super) fn close(&mut self, close: Token<'_>) -> Parsed<()> {
        self.separator(close)?;
        self.expect(close)
    }

    /// The bytes of a string of host functions, without its escapes.
    pub(crate) fn string_bytes(&mut self, what: &str) -> Parsed<Vec<u8>> {
        let (pos, token) = self.tokens.peek();
        let Token::Text(text) = token else { return Err(self.expected(what)) };
        let bytes = unquote_bytes(text).map_err(|(at, problem)| pos.behind(1 + at).error(self.text, 1, problem))?;
        self.tokens.next();
        Ok(bytes)
    }

    /// A string of host functions in UTF-8, without its escapes.
    pub(crate) fn string(&mut self, what: &str) -> Parsed<String> {
        let pos = self.tokens.peek().0;
        let bytes = self.string_bytes(what)?;
        String::from_utf8(bytes).map_err(|_| self.error(pos, "the text isn't UTF-8".to_owned()))
    }

    pub(crate) fn expected(&self, what: &str) -> SyntaxError {
        let (pos, found) = self.tokens.peek();
        self.mismatch(pos, what, found, "")
    }

    /// The error for a token where another one is expected; `more` is appended to its message.
    pub(crate) fn mismatch(&self, pos: Pos, expected: &str, found: impl fmt::Display, more: &str) -> SyntaxError {
        let mismatch = Box::new((expected.to_owned(), found.to_string()));
        // give each suggestion only once
        let is_known = self.errors.iter().any(|error| error.mismatch.as_ref() == Some(&mismatch));
        let (found, more) = (&mismatch.1, if is_known { "" } else { more });
        let mut error = self.error(pos, format!("expected {expected}, found {found}{more}"));
        error.mismatch = Some(mismatch);
        error
    }

    pub(crate) fn error(&self, pos: Pos, message: String) -> SyntaxError {
        pos.error(self.text, self.tokens.len_at(pos), message)
    }
}
