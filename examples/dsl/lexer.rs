//! Text to tokens.

use super::syntax::{Place, Result};

#[derive(Clone, PartialEq, Debug)]
pub enum TokenKind {
    Word(String),
    Int(i64),
    Float(f64),
    /// Between quotation marks.
    Text(String),
    /// A line that begins with `##`.
    Doc(String),
    Sign(&'static str),
    End,
}

#[derive(Clone, Debug)]
pub struct Token {
    pub kind: TokenKind,
    pub place: Place,
}

/// Longer signs come first.
const SIGNS: [&str; 26] = [
    "->", "==", "!=", "<=", ">=", "//", "(", ")", "[", "]", "{", "}", ",", ":", ";", ".", "?", "+", "-", "*", "/", "%",
    "<", ">", "=", "|",
];

pub fn tokens(text: &str) -> Result<Vec<Token>> {
    let mut tokens = Vec::new();
    let mut last = Place { line: 1, column: 1 };
    for (number, line) in (1u32..).zip(text.lines()) {
        let mut rest = line;
        loop {
            rest = rest.trim_start();
            let column = line[..line.len() - rest.len()].chars().count() as u32 + 1;
            last = Place { line: number, column };
            let Some(first) = rest.chars().next() else { break };
            let (kind, length) = match first {
                '#' => match rest.strip_prefix("##") {
                    Some(doc) => (TokenKind::Doc(doc.trim().to_owned()), rest.len()),
                    None => break,
                },
                '"' => text_token(rest).ok_or_else(|| (last, "the text has no end".to_owned()))?,
                '0'..='9' => number_token(rest).map_err(|problem| (last, problem))?,
                'a'..='z' | 'A'..='Z' | '_' => {
                    let length = run(rest, |c| c.is_ascii_alphanumeric() || c == '_');
                    (TokenKind::Word(rest[..length].to_owned()), length)
                }
                _ => match SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
                    Some(sign) => (TokenKind::Sign(sign), sign.len()),
                    None => return Err((last, format!("unexpected {first:?}"))),
                },
            };
            tokens.push(Token { kind, place: last });
            rest = &rest[length..];
        }
    }
    tokens.push(Token { kind: TokenKind::End, place: last });
    Ok(tokens)
}

/// The length of the characters at the beginning that are so.
fn run(text: &str, is_so: impl Fn(char) -> bool) -> usize {
    text.find(|c| !is_so(c)).unwrap_or(text.len())
}

/// A text has no escapes.
fn text_token(rest: &str) -> Option<(TokenKind, usize)> {
    let length = rest[1..].find('"')?;
    Some((TokenKind::Text(rest[1..=length].to_owned()), length + 2))
}

fn number_token(rest: &str) -> std::result::Result<(TokenKind, usize), String> {
    let whole = run(rest, |c| c.is_ascii_digit());
    match rest[whole..].strip_prefix('.') {
        Some(fraction) if fraction.starts_with(|c: char| c.is_ascii_digit()) => {
            let length = whole + 1 + run(fraction, |c| c.is_ascii_digit());
            let value = rest[..length].parse().map_err(|e| format!("{e}"))?;
            Ok((TokenKind::Float(value), length))
        }
        _ => Ok((TokenKind::Int(rest[..whole].parse().map_err(|e| format!("{e}"))?), whole)),
    }
}
