//! Tokens of the source of a signature, or of host functions.

use std::fmt;

use super::dim::{CompareOp, DimOp};
use super::parse_error::{MAX_ERRORS, SyntaxError};
use super::quote::quoted_len;

/// A position in the source: a byte offset at the start of a character.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Pos(usize);

impl Pos {
    /// The position before the first character.
    pub(super) const START: Pos = Pos(0);

    pub(crate) fn offset(self) -> usize {
        self.0
    }

    /// The position `bytes` bytes further on.
    pub(crate) fn behind(self, bytes: usize) -> Pos {
        Pos(self.0 + bytes)
    }

    /// The error at this position of the source, where a token of `len` bytes is.
    pub(crate) fn error(self, text: &str, len: usize, message: String) -> SyntaxError {
        SyntaxError::new(text, self.0..self.0 + len, message)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Token<'a> {
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
    /// Punctuation that only host functions have.
    Sign(&'static str),
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
            Token::Sign(sign) => sign,
            Token::End => return f.write_str("the end"),
        };
        write!(f, "`{symbol}`")
    }
}

/// All tokens of a source, and the index of the next one.
pub(crate) struct Tokens<'a> {
    /// Each with its position and its length in bytes.
    tokens: Vec<(Pos, Token<'a>, usize)>,
    next: usize,
    end: Pos,
}

/// A comment in the source of host functions: `# ...` up to the end of the line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommentLine<'a> {
    /// The index of the token after it.
    pub token: usize,
    /// The byte of its `#`.
    pub at: usize,
    /// With its `#`, without white space at its end.
    pub text: &'a str,
    /// The byte after the token before it on the same line.
    pub behind: Option<usize>,
    /// True if an empty line follows.
    pub is_apart: bool,
}

impl<'a> CommentLine<'a> {
    /// The documentation of the function after it, if the line is one of `## ...`.
    pub(crate) fn doc(&self) -> Option<&'a str> {
        let text = self.text.strip_prefix("##").filter(|_| self.behind.is_none())?;
        Some(text.strip_prefix(' ').unwrap_or(text))
    }
}

impl<'a> Tokens<'a> {
    pub(super) fn new(text: &'a str) -> Result<Self, SyntaxError> {
        let mut tokens: Vec<(Pos, Token<'a>, usize)> = Vec::new();
        let mut next = 0;
        while let Some((at, rest, first)) = after_space(text, next) {
            let is_path = rest.starts_with('.') && matches!(tokens.last(), Some((_, Token::CloseList, _)));
            let (token, len) = match is_path && rest[1..].starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
                // `t[0].n`
                true => (Token::Sign("."), 1),
                false => token(rest, first).map_err(|message| Pos(at).error(text, first.len_utf8(), message))?,
            };
            tokens.push((Pos(at), token, len));
            next = at + len;
        }
        Ok(Tokens { tokens, next: 0, end: Pos(text.len()) })
    }

    /// The tokens of host functions, the comments between them, and the errors: wrong characters, and strings that
    /// don't end.
    pub(crate) fn of_host(text: &'a str) -> (Self, Vec<CommentLine<'a>>, Vec<SyntaxError>) {
        let (mut tokens, mut comments, mut errors) = (Vec::new(), Vec::new(), Vec::new());
        let mut next = 0;
        while let Some((at, rest, first)) = after_space(text, next) {
            if first == '#' {
                let len = line_len(rest);
                let token_before = tokens.last().map(|(pos, _, len): &(Pos, _, usize)| pos.0 + len);
                let behind = token_before.filter(|end| !text[*end..at].contains('\n'));
                let after = rest[len..].strip_prefix('\n').unwrap_or_default();
                let is_apart = after[..line_len(after)].trim().is_empty() && after.contains('\n');
                let comment = CommentLine { token: tokens.len(), at, text: rest[..len].trim_end(), behind, is_apart };
                comments.push(comment);
                next = at + len;
                continue;
            }
            match host_token(rest, first) {
                Ok((token, len)) => {
                    tokens.push((Pos(at), token, len));
                    next = at + len;
                }
                Err(message) => {
                    errors.push(Pos(at).error(text, first.len_utf8(), message));
                    // what follows an unclosed quote isn't code
                    next = at + if first == '"' { line_len(rest) } else { first.len_utf8() };
                    if errors.len() == MAX_ERRORS {
                        break;
                    }
                }
            }
        }
        (Tokens { tokens, next: 0, end: Pos(text.len()) }, comments, errors)
    }

    /// A copy of the tokens from one index to another, as a source of its own.
    pub(crate) fn window(&self, tokens: std::ops::Range<usize>) -> Self {
        let end = self.tokens.get(tokens.end).map_or(self.end, |(pos, ..)| *pos);
        let tokens = self.tokens.get(tokens).unwrap_or_default().to_vec();
        Tokens { tokens, next: 0, end }
    }

    /// The number of tokens.
    pub(crate) fn count(&self) -> usize {
        self.tokens.len()
    }

    /// The position of the token with this index.
    pub(crate) fn pos_at(&self, number: usize) -> Pos {
        self.tokens.get(number).map_or(self.end, |(pos, ..)| *pos)
    }

    /// No tokens, for a source that is parsed without them.
    pub(super) const fn none() -> Self {
        Tokens { tokens: Vec::new(), next: 0, end: Pos::START }
    }

    /// The next token and its position.
    pub(crate) fn peek(&self) -> (Pos, Token<'a>) {
        self.tokens.get(self.next).map_or((self.end, Token::End), |(pos, token, _)| (*pos, *token))
    }

    /// The byte offset after the last token that was consumed.
    pub(crate) fn end_of_last(&self) -> usize {
        let last = self.next.checked_sub(1).and_then(|last| self.tokens.get(last));
        last.map_or(0, |(pos, _, len)| pos.0 + len)
    }

    /// The length in bytes of the token at a position; 0 if none begins there.
    pub(crate) fn len_at(&self, pos: Pos) -> usize {
        let at = self.tokens.binary_search_by_key(&pos.0, |(pos, _, _)| pos.0);
        at.ok().and_then(|at| self.tokens.get(at)).map_or(0, |(_, _, len)| *len)
    }

    /// The index of the next token, to return to it later.
    pub(crate) fn mark(&self) -> usize {
        self.next
    }

    /// Moves to the token with this index.
    pub(crate) fn go_to(&mut self, mark: usize) {
        self.next = mark;
    }

    /// The token with this index; the end token after the last one.
    pub(crate) fn at(&self, number: usize) -> Token<'a> {
        self.tokens.get(number).map_or(Token::End, |(_, token, _)| *token)
    }

    /// The index of the token that contains a byte, or of the first one after it.
    pub(crate) fn number_at(&self, byte: usize) -> usize {
        self.tokens.partition_point(|(pos, _, len)| pos.0 + len <= byte)
    }

    /// Consumes the next token.
    pub(crate) fn next(&mut self) {
        self.next += 1;
    }
}

/// The first character from an offset on that isn't white space: its offset, the source from it on, and itself.
fn after_space(text: &str, from: usize) -> Option<(usize, &str, char)> {
    let rest = text[from..].trim_start();
    Some((text.len() - rest.len(), rest, rest.chars().next()?))
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

/// Punctuation of host functions alone.
const HOST_SIGNS: [&str; 9] = ["{", "}", ";", "/", ".", "&", "|", "^", "~"];

/// A token of host functions.
fn host_token(rest: &str, first: char) -> Result<(Token<'_>, usize), String> {
    if first == '"' && quoted_len(&rest[1..line_len(rest)]).is_none() {
        return Err("a text that doesn't end on its line: expected `\"`".to_owned());
    }
    let known = SIGNS.iter().any(|(sign, _)| rest.starts_with(sign));
    let sign = HOST_SIGNS.into_iter().find(|sign| rest.starts_with(sign)).filter(|_| !known);
    sign.map_or_else(|| token(rest, first), |sign| Ok((Token::Sign(sign), sign.len())))
}

fn line_len(rest: &str) -> usize {
    rest.find('\n').unwrap_or(rest.len())
}

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
