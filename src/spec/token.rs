//! Tokens of a signature's source.

use std::fmt;

use super::dim::{CompareOp, DimOp};
use super::parse_error::SyntaxError;
use super::quote::quoted_len;

/// A position in the source: a byte offset at the start of a character.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Pos(usize);

impl Pos {
    /// The position before the first character.
    pub(super) const START: Pos = Pos(0);

    pub(super) fn offset(self) -> usize {
        self.0
    }

    /// The position `bytes` bytes further on.
    pub(super) fn behind(self, bytes: usize) -> Pos {
        Pos(self.0 + bytes)
    }

    /// The error at this position of the source, where a token of `len` bytes is.
    pub(super) fn error(self, text: &str, len: usize, message: String) -> SyntaxError {
        let (before, after) = text.split_at_checked(self.0).unwrap_or((text, ""));
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let rest = after.split('\n').next().unwrap_or_default();
        SyntaxError {
            line: before.matches('\n').count() + 1,
            column: before[start..].chars().count() + 1,
            message,
            text: format!("{}{}", &before[start..], rest.trim_end()),
            span: self.0..self.0 + len,
            mismatch: None,
            more: Vec::new(),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Token<'a> {
    /// A letter or `_`, then letters, digits, `_`, `.` and `$`.
    Name(&'a str),
    /// Decimal digits.
    Integer(&'a str),
    /// Digits with a point, an exponent or both; finite.
    Float(&'a str),
    /// The contents of a double-quoted string, with escapes as written.
    Text(&'a str),
    Open,
    Close,
    OpenList,
    CloseList,
    Comma,
    Colon,
    Equals,
    Arrow,
    Ellipsis,
    Op(DimOp),
    Compare(CompareOp),
    At,
    End,
}

impl fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let symbol = match self {
            Token::Name(text) | Token::Integer(text) | Token::Float(text) => text,
            Token::Text(text) => return write!(f, "\"{text}\""),
            Token::Open => "(",
            Token::Close => ")",
            Token::OpenList => "[",
            Token::CloseList => "]",
            Token::Comma => ",",
            Token::Colon => ":",
            Token::Equals => "=",
            Token::Arrow => "->",
            Token::Ellipsis => "...",
            Token::Op(op) => op.sign(),
            Token::Compare(op) => op.sign(),
            Token::At => "@",
            Token::End => return f.write_str("the end"),
        };
        write!(f, "`{symbol}`")
    }
}

/// All tokens of a source, and the index of the next one.
pub(super) struct Tokens<'a> {
    /// Each with its position and its length in bytes.
    tokens: Vec<(Pos, Token<'a>, usize)>,
    next: usize,
    end: Pos,
}

impl<'a> Tokens<'a> {
    pub(super) fn new(text: &'a str) -> Result<Self, SyntaxError> {
        let mut tokens = Vec::new();
        let mut at = 0;
        loop {
            let rest = &text[at..];
            at += rest.len() - rest.trim_start().len();
            let rest = &text[at..];
            let Some(first) = rest.chars().next() else { break };
            let (token, len) = token(rest, first).map_err(|message| Pos(at).error(text, first.len_utf8(), message))?;
            tokens.push((Pos(at), token, len));
            at += len;
        }
        Ok(Tokens { tokens, next: 0, end: Pos(text.len()) })
    }

    /// No tokens, for a source that is parsed without them.
    pub(super) const fn none() -> Self {
        Tokens { tokens: Vec::new(), next: 0, end: Pos::START }
    }

    /// The next token and its position.
    pub(super) fn peek(&self) -> (Pos, Token<'a>) {
        self.tokens.get(self.next).map_or((self.end, Token::End), |(pos, token, _)| (*pos, *token))
    }

    /// The byte offset after the last token that was consumed.
    pub(super) fn end_of_last(&self) -> usize {
        let last = self.next.checked_sub(1).and_then(|last| self.tokens.get(last));
        last.map_or(0, |(pos, _, len)| pos.0 + len)
    }

    /// The length in bytes of the token at a position; 0 if none begins there.
    pub(super) fn len_at(&self, pos: Pos) -> usize {
        let at = self.tokens.binary_search_by_key(&pos.0, |(pos, _, _)| pos.0);
        at.ok().and_then(|at| self.tokens.get(at)).map_or(0, |(_, _, len)| *len)
    }

    /// The index of the next token, to return to it later.
    pub(super) fn mark(&self) -> usize {
        self.next
    }

    /// Moves to the token with this index.
    pub(super) fn go_to(&mut self, mark: usize) {
        self.next = mark;
    }

    /// The token with this index; the end token after the last one.
    pub(super) fn at(&self, number: usize) -> Token<'a> {
        self.tokens.get(number).map_or(Token::End, |(_, token, _)| *token)
    }

    /// The index of the token that contains a byte, or of the first one after it.
    pub(super) fn number_at(&self, byte: usize) -> usize {
        self.tokens.partition_point(|(pos, _, len)| pos.0 + len <= byte)
    }

    /// Consumes the next token.
    pub(super) fn next(&mut self) {
        self.next += 1;
    }
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$')
}

/// The number of bytes at the start of the source that could belong to a name.
fn name_len(rest: &str) -> usize {
    rest.find(|c| !is_name(c)).unwrap_or(rest.len())
}

/// Operators and punctuation. A token precedes any prefix of it.
const SIGNS: [(&str, Token<'_>); 21] = [
    ("...", Token::Ellipsis),
    ("->", Token::Arrow),
    ("//", Token::Op(DimOp::FloorDiv)),
    ("==", Token::Compare(CompareOp::Eq)),
    ("!=", Token::Compare(CompareOp::Ne)),
    ("<=", Token::Compare(CompareOp::Le)),
    (">=", Token::Compare(CompareOp::Ge)),
    ("<", Token::Compare(CompareOp::Lt)),
    (">", Token::Compare(CompareOp::Gt)),
    ("=", Token::Equals),
    ("+", Token::Op(DimOp::Add)),
    ("-", Token::Op(DimOp::Sub)),
    ("*", Token::Op(DimOp::Mul)),
    ("%", Token::Op(DimOp::Mod)),
    ("(", Token::Open),
    (")", Token::Close),
    ("[", Token::OpenList),
    ("]", Token::CloseList),
    (",", Token::Comma),
    (":", Token::Colon),
    ("@", Token::At),
];

/// The token at the start of the source, which begins with `first`, and its length in bytes.
fn token(rest: &str, first: char) -> Result<(Token<'_>, usize), String> {
    if first.is_ascii_alphabetic() || first == '_' {
        let len = name_len(rest);
        return Ok((Token::Name(&rest[..len]), len));
    }
    if first.is_ascii_digit() {
        return number(rest);
    }
    if let Some(inside) = rest.strip_prefix('"') {
        let end = quoted_len(inside).ok_or("a text that doesn't end: expected `\"`")?;
        return Ok((Token::Text(&inside[..end]), end + 2));
    }
    if let Some((sign, token)) = SIGNS.iter().find(|(sign, _)| rest.starts_with(sign)) {
        return Ok((*token, sign.len()));
    }
    match first {
        '/' => Err("expected `//`, found `/`".to_owned()),
        '!' => Err("expected `!=`, found `!`".to_owned()),
        _ => Err(format!("unexpected character {first:?}")),
    }
}

fn number(rest: &str) -> Result<(Token<'_>, usize), String> {
    let mut len = name_len(rest);
    // the sign of an exponent belongs to the number, other signs don't
    let exponent = rest[..len].strip_suffix(['e', 'E']).is_some_and(|digits| digits.parse::<f64>().is_ok());
    if exponent && rest[len..].starts_with(['+', '-']) {
        len += 1 + name_len(&rest[len + 1..]);
    }
    let word = &rest[..len];
    if word.bytes().all(|b| b.is_ascii_digit()) {
        return Ok((Token::Integer(word), len));
    }
    match word.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok((Token::Float(word), len)),
        Ok(_) => Err(format!("`{word}` doesn't fit in 64 bits")),
        Err(_) => Err(format!("`{word}` is neither a number nor a name")),
    }
}
