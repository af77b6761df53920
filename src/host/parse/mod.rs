//! The parser of host functions: its state, its limits, and how it goes on after an error.
//!
//! After an error in a statement, parsing continues after that statement, but only if all brackets of the text match.
//! If they don't, the end of the statement is unknown, and the parser reports the first error alone.

mod expr;
mod file;
mod matches;
mod statement;

use std::ops::Range;
use std::sync::Arc;

use crate::spec::{CommentLine, MAX_ERRORS, Parser, SyntaxError, Token, Tokens, did_you_mean};

use super::error::HostTextError;
use super::tree::{At, Comment, File, MatchKey, Pattern, Text};
use super::words::RESERVED;

/// The maximum depth of nested blocks and expressions together.
const MAX_DEPTH: usize = 64;

/// Parses a file of functions. `images` are the names of the images that launches may use; `None` allows any.
pub(crate) fn file(text: &str, images: Option<&[&str]>) -> Result<File, HostTextError> {
    HostParser::run(text, images, HostParser::file)
}

/// Parses the block of a body.
pub(crate) fn block(text: &str, images: &[&str]) -> Result<Text, HostTextError> {
    HostParser::run(text, Some(images), |parser| {
        let block = Arc::new(parser.block()?);
        parser.p.end("the end of the text, after the block")?;
        Ok(Text { block, comments: Arc::clone(&parser.comments) })
    })
}

/// Parses a key of a `match` and nothing else.
pub(crate) fn match_key(text: &str) -> Result<MatchKey, HostTextError> {
    part(text, "the end of the key", |parser| parser.match_key())
}

/// Parses the patterns of a row of a `match` and nothing else.
pub(crate) fn match_patterns(text: &str) -> Result<Vec<At<Pattern>>, HostTextError> {
    part(text, "the end of the row's patterns", |parser| parser.match_patterns())
}

/// Parses a part of a statement that can stand on a line with others, so it has no comment.
fn part<T>(text: &str, end: &str, read: fn(&mut HostParser<'_>) -> Read<T>) -> Result<T, HostTextError> {
    HostParser::run(text, Some(&[]), |parser| {
        let read = read(parser)?;
        parser.p.end(end)?;
        match parser.comments.first() {
            Some(comment) => {
                let problem = format!("expected {end}, found a comment");
                Err(SyntaxError::new(text, comment.at..comment.at, problem).into())
            }
            None => Ok(read),
        }
    })
}

/// The result of a parsing step. The boxed error keeps the stack frames of nested steps small.
type Read<T> = Result<T, Box<SyntaxError>>;

struct HostParser<'a> {
    p: Parser<'a>,
    lines: Vec<CommentLine<'a>>,
    /// All comments, for the tree.
    comments: Arc<[Comment]>,
    images: Option<&'a [&'a str]>,
    errors: Vec<SyntaxError>,
    /// Whether each bracket of the text has its match.
    is_paired: bool,
    /// The number of open blocks.
    blocks: usize,
    /// The number of open expressions.
    open: usize,
    /// The greatest depth of an expression so far.
    deepest: usize,
}

impl<'a> HostParser<'a> {
    fn run<T>(
        text: &'a str,
        images: Option<&'a [&'a str]>,
        read: impl FnOnce(&mut Self) -> Read<T>,
    ) -> Result<T, HostTextError> {
        let (tokens, lines, errors) = Tokens::of_host(text);
        // a wrong token may hide others, so these errors are reported alone
        if !errors.is_empty() {
            return Err(HostTextError::new(errors));
        }
        let is_paired = is_paired(&tokens);
        let comment = |line: &CommentLine<'_>| {
            let CommentLine { at, text, behind, is_apart, .. } = *line;
            Comment { at, text: text.to_owned(), behind, is_apart }
        };
        let comments = lines.iter().map(comment).collect();
        let mut parser = HostParser {
            p: Parser::new(text, tokens),
            lines,
            comments,
            images,
            errors: Vec::new(),
            is_paired,
            blocks: 0,
            open: 0,
            deepest: 0,
        };
        match read(&mut parser) {
            Ok(read) if parser.errors.is_empty() => Ok(read),
            read => Err(HostTextError::new(parser.errors.into_iter().chain(read.err().map(|error| *error)).collect())),
        }
    }

    fn peek(&self) -> Token<'a> {
        self.p.tokens.peek().1
    }

    /// The token after the next one.
    fn second(&self) -> Token<'a> {
        self.p.tokens.at(self.p.tokens.mark() + 1)
    }

    fn sign(&mut self, sign: &'static str) -> bool {
        self.p.eat(Token::Sign(sign))
    }

    fn expect_sign(&mut self, sign: &'static str) -> Read<()> {
        Ok(self.p.expect(Token::Sign(sign))?)
    }

    fn word(&mut self, word: &str) -> bool {
        self.p.eat(Token::Name(word))
    }

    fn expect_word(&mut self, word: &str) -> Read<()> {
        if self.word(word) { Ok(()) } else { Err(self.p.expected(&format!("`{word}`")).into()) }
    }

    fn start(&self) -> usize {
        self.p.tokens.peek().0.offset()
    }

    /// The bytes from a position to the last token.
    fn since(&self, start: usize) -> Range<usize> {
        start..self.p.tokens.end_of_last().max(start)
    }

    /// A new name for a value.
    fn new_name(&mut self, what: &str) -> Read<At<String>> {
        let start = self.start();
        match self.peek() {
            Token::Name(name) if RESERVED.contains(&name) || name == "result" => Err(self
                .p
                .error(self.p.tokens.peek().0, format!("`{name}` is a word of the language; choose {what}"))
                .into()),
            Token::Name(name) if name.contains('.') => Err(self
                .p
                .error(self.p.tokens.peek().0, format!("`{name}` has a dot; choose {what} without one"))
                .into()),
            Token::Name(name) => {
                self.p.tokens.next();
                Ok(At { span: self.since(start), value: name.to_owned() })
            }
            _ => Err(self.p.expected(what).into()),
        }
    }

    /// A name or a string.
    fn label(&mut self, what: &str) -> Read<String> {
        match self.peek() {
            Token::Text(_) => self.utf8(),
            _ => Ok(self.p.spanned_label(what)?.0),
        }
    }

    /// The error for a name that isn't one of the known ones.
    fn unknown(&self, expected: &str, name: &str, known: &[&str]) -> SyntaxError {
        self.p.mismatch(self.p.tokens.peek().0, expected, Token::Name(name), &did_you_mean(name, known))
    }

    /// Records an error and moves behind the statement or function that begins at a token.
    ///
    /// # Errors
    /// The error, if parsing can't go on.
    fn recover(&mut self, error: Box<SyntaxError>, start: usize) -> Read<()> {
        if !self.is_paired || self.errors.len() + 1 >= MAX_ERRORS {
            return Err(error);
        }
        let found = self.number_at(error.span.start);
        let to = self.end_of_statement(start, found);
        self.errors.push(*error);
        self.p.tokens.go_to(to);
        Ok(())
    }

    fn number_at(&self, byte: usize) -> usize {
        self.p.tokens.number_at(byte)
    }

    /// The token after the statement that begins at a token and has an error at another one.
    fn end_of_statement(&self, start: usize, found: usize) -> usize {
        let has_block =
            matches!(self.p.tokens.at(start), Token::Name("if" | "match" | "while" | "for" | "try" | "extern"))
                || matches!(self.p.tokens.at(start + 1), Token::Open);
        let mut depth = 0_usize;
        for at in start.. {
            match self.p.tokens.at(at) {
                Token::End => return at,
                Token::Open | Token::OpenList | Token::Sign("{") => depth += 1,
                Token::Sign("}") if depth == 0 => return at,
                Token::Sign("}") => {
                    depth -= 1;
                    let goes_on = matches!(self.p.tokens.at(at + 1), Token::Name("else" | "catch"));
                    if depth == 0 && at >= found && has_block && !goes_on {
                        return at + 1;
                    }
                }
                Token::Close | Token::CloseList => depth = depth.saturating_sub(1),
                Token::Sign(";") if depth == 0 && at >= found => return at + 1,
                _ => {}
            }
        }
        start
    }
}

/// Whether each bracket has its match.
fn is_paired(tokens: &Tokens<'_>) -> bool {
    let mut open = Vec::new();
    for at in 0..tokens.count() {
        match tokens.at(at) {
            Token::Open => open.push(Token::Close),
            Token::OpenList => open.push(Token::CloseList),
            Token::Sign("{") => open.push(Token::Sign("}")),
            close @ (Token::Close | Token::CloseList | Token::Sign("}")) if open.pop() != Some(close) => return false,
            _ => {}
        }
    }
    open.is_empty()
}
