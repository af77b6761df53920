//! Tokens of a signature's text.

use std::fmt;

use super::text::SyntaxError;

/// A place in the text: a byte offset at the start of a character.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Pos(usize);

impl Pos {
    /// The error at this place of the text.
    pub(super) fn error(self, text: &str, message: String) -> SyntaxError {
        let (before, after) = text.split_at_checked(self.0).unwrap_or((text, ""));
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let rest = after.split('\n').next().unwrap_or_default();
        SyntaxError {
            line: before.matches('\n').count() + 1,
            column: before[start..].chars().count() + 1,
            message,
            text: format!("{}{}", &before[start..], rest.trim_end()),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Token<'a> {
    /// A letter or `_`, then letters, digits, `_`, `.` and `$`.
    Name(&'a str),
    /// Decimal digits, maybe with a minus sign.
    Number(&'a str),
    /// What stands between double quotes.
    Text(&'a str),
    Open,
    Close,
    OpenList,
    CloseList,
    Comma,
    Colon,
    Equals,
    Arrow,
    End,
}

impl fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let symbol = match self {
            Token::Name(text) | Token::Number(text) => text,
            Token::Text(text) => return write!(f, "{text:?}"),
            Token::Open => "(",
            Token::Close => ")",
            Token::OpenList => "[",
            Token::CloseList => "]",
            Token::Comma => ",",
            Token::Colon => ":",
            Token::Equals => "=",
            Token::Arrow => "->",
            Token::End => return f.write_str("the end"),
        };
        write!(f, "`{symbol}`")
    }
}

/// All tokens of a text, and which one is next.
pub(super) struct Tokens<'a> {
    tokens: Vec<(Pos, Token<'a>)>,
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
            let (token, len) = token(rest, first).map_err(|message| Pos(at).error(text, message))?;
            tokens.push((Pos(at), token));
            at += len;
        }
        Ok(Tokens { tokens, next: 0, end: Pos(text.len()) })
    }

    /// The next token and its place.
    pub(super) fn peek(&self) -> (Pos, Token<'a>) {
        self.tokens.get(self.next).copied().unwrap_or((self.end, Token::End))
    }

    /// Goes past the next token.
    pub(super) fn next(&mut self) {
        self.next += 1;
    }
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$')
}

/// The token at the start of the text, which begins with `first`, and how many bytes it takes.
fn token(rest: &str, first: char) -> Result<(Token<'_>, usize), String> {
    let symbol = match first {
        '(' => Token::Open,
        ')' => Token::Close,
        '[' => Token::OpenList,
        ']' => Token::CloseList,
        ',' => Token::Comma,
        ':' => Token::Colon,
        '=' => Token::Equals,
        '-' if rest.starts_with("->") => return Ok((Token::Arrow, 2)),
        '"' => {
            let inside = &rest[1..];
            let end = inside.find('"').ok_or("a text that doesn't end: expected `\"`")?;
            return Ok((Token::Text(&inside[..end]), end + 2));
        }
        '-' | '0'..='9' => {
            let len = 1 + rest[1..].find(|c| !is_name(c)).unwrap_or(rest.len() - 1);
            let (word, digits) = (&rest[..len], rest[..len].trim_start_matches('-'));
            return match (word, digits.bytes().all(|b| b.is_ascii_digit())) {
                ("-", _) => Err("`-` starts neither a number nor `->`".to_owned()),
                (_, true) => Ok((Token::Number(word), len)),
                (_, false) => Err(format!("`{word}` is neither a number nor a name")),
            };
        }
        _ if first.is_ascii_alphabetic() || first == '_' => {
            let len = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
            return Ok((Token::Name(&rest[..len]), len));
        }
        _ => return Err(format!("unexpected character {first:?}")),
    };
    Ok((symbol, 1))
}
