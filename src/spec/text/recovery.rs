//! Continues parsing after an error, so all grammar errors of a source are reported together.
//!
//! No error may be a consequence of another. Parsing therefore only continues where the next item of a list certainly
//! begins:
//!
//! - All brackets of the part (the signature, or its launch) are paired. If one is missing, it is unknown which list
//!   a comma belongs to.
//! - A comma ends the item with the error, unless it could belong to the erroneous item itself: `x: Map str, int8`
//!   lacks brackets, and `int8` isn't a parameter. After such a comma, parsing continues at the first item that
//!   begins unambiguously.
//!
//! Otherwise parsing ends, and only the errors found so far are reported.

use super::parser::{Parsed, Parser, STAR};
use super::suggestion::suggestion;
use super::words::{ARG_FORMS, FLAGS, VALUES, bracket_of};
use crate::spec::dim::{CompareOp, DimOp};
use crate::spec::element;
use crate::spec::parse_error::{MAX_ERRORS, SyntaxError};
use crate::spec::token::Token;

/// A comma-separated list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum List {
    /// A signature's parameters.
    Parameters,
    /// The constraints after `where`.
    Constraints,
    /// The parameters of a launch's kernel.
    Args,
}

impl List {
    /// Whether a token outside the items' brackets ends the list.
    fn ends(self, token: Token<'_>) -> bool {
        match self {
            List::Parameters => token == Token::Close,
            List::Constraints => matches!(token, Token::At | Token::End),
            List::Args => token == Token::CloseList,
        }
    }

    /// The token that closes a bracket. Parameters contain no comparisons, so `<` is treated as another language's
    /// bracket.
    fn closing(self, open: Token<'_>) -> Option<Token<'static>> {
        match open {
            Token::Compare(CompareOp::Lt) if self == List::Parameters => Some(ANGLE),
            _ => closing(open),
        }
    }

    /// Whether a token closes a bracket.
    fn closes(self, token: Token<'_>) -> bool {
        closes(token) || self == List::Parameters && token == ANGLE
    }
}

/// The token that closes a bracket of the grammar.
fn closing(open: Token<'_>) -> Option<Token<'static>> {
    match open {
        Token::Open => Some(Token::Close),
        Token::OpenList => Some(Token::CloseList),
        _ => None,
    }
}

/// Whether a token closes a bracket of the grammar.
fn closes(token: Token<'_>) -> bool {
    matches!(token, Token::Close | Token::CloseList)
}

/// The token that closes an angle bracket of other languages.
const ANGLE: Token<'static> = Token::Compare(CompareOp::Gt);

impl Parser<'_> {
    /// The result of parsing to the end of the source or, if there are errors, all of them.
    pub(crate) fn finish<T>(self, read: Parsed<T>) -> Parsed<T> {
        let mut errors = self.errors.into_iter();
        match errors.next() {
            None => read,
            Some(first) => Err(SyntaxError { more: errors.chain(read.err()).collect(), ..first }),
        }
    }

    /// Moves from an error in a list's item, which begins at the token `start`, to the item where parsing continues,
    /// or to the list's end.
    ///
    /// # Errors
    /// The error, if parsing can't continue.
    pub(super) fn recover(&mut self, error: SyntaxError, start: usize, list: List) -> Parsed<()> {
        let to = self.next_piece(&error, start, list);
        self.go_on(error, to)
    }

    /// Moves from an error after the parameters, in a part that begins at the token `start`, to the constraints.
    ///
    /// # Errors
    /// The error, if parsing can't continue.
    pub(super) fn recover_at_where(&mut self, error: SyntaxError, start: usize) -> Parsed<()> {
        let from = self.tokens.number_at(error.span.start);
        let mut words = self.outside(start).filter(|at| self.tokens.at(*at) == Token::Name("where"));
        // a variable may have that name too
        let to = words.next().filter(|at| *at >= from && self.piece_begins(at + 1, List::Constraints));
        let to = to.filter(|_| words.next().is_none());
        drop(words);
        self.go_on(error, to)
    }

    /// Moves from an error in a launch's item, which begins at the token `start`, to the next item.
    ///
    /// # Errors
    /// The error, if parsing can't continue.
    pub(super) fn recover_at_item(&mut self, error: SyntaxError, start: usize) -> Parsed<()> {
        let found = self.tokens.number_at(error.span.start);
        // a misspelt item would be a second error in the same place
        let is_exact = |at| matches!(self.tokens.at(at), Token::Name(name) if VALUES.contains(&name));
        let begins = |at| self.item_begins(at) && (at != found || is_exact(at));
        let to = self.outside(start).find(|at| *at >= found.max(start + 1) && begins(*at));
        self.go_on(error, to)
    }

    /// Moves from an error after which the rest of the signature can't be parsed to the `@` of its launch.
    ///
    /// # Errors
    /// The error, if parsing can't continue.
    pub(super) fn recover_at_launch(&mut self, error: SyntaxError) -> Parsed<()> {
        let to = self.launch_sign().flatten();
        self.go_on(error, to)
    }

    /// Records the error and moves to a token.
    fn go_on(&mut self, error: SyntaxError, to: Option<usize>) -> Parsed<()> {
        match to {
            Some(to) if self.errors.len() + 1 < MAX_ERRORS => {
                self.errors.push(error);
                self.tokens.go_to(to);
                Ok(())
            }
            _ => Err(error),
        }
    }

    /// The `@` before the launch: `Some(None)` if the source has no `@`, and `None` if an `@` is in an unexpected
    /// position.
    fn launch_sign(&self) -> Option<Option<usize>> {
        let all = (0..).take_while(|at| self.tokens.at(*at) != Token::End);
        let mut signs = all.filter(|at| self.tokens.at(*at) == Token::At);
        match (signs.next(), signs.next()) {
            (None, _) => Some(None),
            (Some(sign @ 1..), None) if self.tokens.at(sign + 1) == Token::Name("launch") => Some(Some(sign)),
            _ => None,
        }
    }

    /// The first item of a list that can be parsed after an error, or the list's end.
    fn next_piece(&self, error: &SyntaxError, start: usize, list: List) -> Option<usize> {
        if !self.is_paired(start) {
            return None;
        }
        let found = self.tokens.number_at(error.span.start);
        let mut end = self.end_of_piece(start, found, list)?;
        let is_sure = found != end && !self.is_split(error, found) && !self.leaves_commas(start, end, list);
        if found == end && list == List::Constraints && self.tokens.at(end) == Token::Comma {
            // the comma may be one operand too early; then the next item begins with that operand
            end = self.end_of_piece(end + 1, end + 1, list)?;
        }
        while self.tokens.at(end) == Token::Comma {
            let next = end + 1;
            if list.ends(self.tokens.at(next)) {
                end = next;
                break;
            }
            if is_sure && self.is_word(next) || self.piece_begins(next, list) {
                return Some(next);
            }
            end = self.end_of_piece(next, next, list)?;
        }
        self.may_follow(end + 1, list).then_some(end)
    }

    /// Whether a token may follow a list. The closing token itself may be misplaced, because the list's last item has
    /// an error: `f(x: ) int8`.
    fn may_follow(&self, at: usize, list: List) -> bool {
        let token = self.tokens.at(at);
        match list {
            List::Parameters => matches!(token, Token::Arrow | Token::Name("where") | Token::At | Token::End),
            List::Constraints => true,
            List::Args => token == Token::End || self.item_begins(at),
        }
    }

    /// The comma after the item that begins at the token `start`, or the list's end: the first of these at or after
    /// the token `from`.
    fn end_of_piece(&self, start: usize, from: usize, list: List) -> Option<usize> {
        let mut open = Vec::new();
        for at in start.. {
            let token = self.tokens.at(at);
            if open.is_empty() && at >= from && (token == Token::Comma || list.ends(token)) {
                return Some(at);
            }
            if token == Token::End {
                break;
            }
            open.extend(list.closing(token));
            if list.closes(token) && open.pop() != Some(token) {
                break;
            }
        }
        None
    }

    /// Whether a token is a word. Other signs may be typos.
    fn is_word(&self, at: usize) -> bool {
        matches!(self.tokens.at(at), Token::Name(_) | Token::Integer(_) | Token::Float(_) | Token::Text(_) | STAR)
    }

    /// Whether an item's brackets end too early, so the rest of their contents follows them: `x: Tensor([n]),
    /// float32`, or a keyword such as `align=16`.
    fn is_split(&self, error: &SyntaxError, found: usize) -> bool {
        match self.tokens.at(found) {
            Token::Close | Token::CloseList => error.expected().is_some_and(|expected| expected.starts_with("`,`")),
            Token::Equals => error.expected() == Some("`:`"),
            _ => false,
        }
    }

    /// Whether an item has a word without its brackets, so the commas of their contents are outside.
    fn leaves_commas(&self, start: usize, end: usize, list: List) -> bool {
        (start..end).any(|at| {
            let (Token::Name(name), next) = (self.tokens.at(at), self.tokens.at(at + 1)) else { return false };
            match list {
                List::Parameters => match bracket_of(name) {
                    Some(bracket) => next != bracket,
                    // the arguments of an unknown type
                    None => at > start && matches!(next, Token::OpenList | Token::Name(_) | Token::Integer(_)),
                },
                // an item without a comparison is never taken for a constraint
                List::Constraints => true,
                List::Args => {
                    let functions = DimOp::FUNCTIONS.into_iter().map(DimOp::sign);
                    let forms: Vec<_> = ARG_FORMS.iter().copied().chain(functions).collect();
                    next != Token::Open && suggestion(name, &forms).is_some()
                }
            }
        })
    }

    /// Whether a token certainly begins an item of the list.
    fn piece_begins(&self, at: usize, list: List) -> bool {
        let next = self.tokens.at(at + 1);
        match (list, self.tokens.at(at)) {
            (List::Parameters, Token::Name(name)) => {
                next == Token::Colon || name == "dtype_policy" && next == Token::Equals
            }
            (List::Parameters, token) => token == STAR && next == Token::Comma,
            (List::Constraints, first) => {
                let is_operand = matches!(first, Token::Name(_) | Token::Integer(_) | Token::Open);
                let end = self.end_of_piece(at, at, list).filter(|_| is_operand).unwrap_or(at);
                self.outside_in(at, end).any(|at| matches!(self.tokens.at(at), Token::Compare(_) | Token::Equals))
            }
            (List::Args, Token::Name(name)) => match next {
                Token::Comma | Token::CloseList => true,
                Token::Open => ARG_FORMS.contains(&name) || element::scalar(name).is_some(),
                _ => false,
            },
            (List::Args, _) => false,
        }
    }

    /// Whether an item of a launch begins at a token. An item has a value and may be misspelt, or is a flag that isn't
    /// a variable in a dimension.
    fn item_begins(&self, at: usize) -> bool {
        let (Token::Name(name), next) = (self.tokens.at(at), self.tokens.at(at + 1)) else { return false };
        if next == Token::Equals {
            return suggestion(name, VALUES).is_some();
        }
        let before = at.checked_sub(1).map_or(Token::End, |before| self.tokens.at(before));
        let is_operand = matches!(before, Token::Op(_) | Token::Compare(_) | Token::Equals);
        FLAGS.contains(&name) && !is_operand && matches!(next, Token::Name(_) | Token::End)
    }

    /// The tokens outside brackets from the token `start` to the end of its part; none if the part's brackets aren't
    /// paired.
    fn outside(&self, start: usize) -> impl Iterator<Item = usize> {
        let end = if self.is_paired(start) { self.end_of_part(start) } else { start };
        self.outside_in(start, end)
    }

    /// The tokens outside brackets in a range whose brackets are paired.
    fn outside_in(&self, start: usize, end: usize) -> impl Iterator<Item = usize> {
        let mut depth = 0_usize;
        (start..end).filter(move |at| {
            let token = self.tokens.at(*at);
            depth = depth.saturating_sub(usize::from(closes(token))) + usize::from(closing(token).is_some());
            depth == 0
        })
    }

    /// The end of the part that contains a token: the signature, or the launch after `@`.
    fn end_of_part(&self, of: usize) -> usize {
        (of..).find(|at| matches!(self.tokens.at(*at), Token::At | Token::End)).unwrap_or(of)
    }

    /// Whether all brackets of the token's part are paired, and it is certain which part the token belongs to.
    fn is_paired(&self, of: usize) -> bool {
        let Some(sign) = self.launch_sign() else { return false };
        let start = sign.filter(|sign| *sign < of).map_or(0, |sign| sign + 1);
        let mut open = Vec::new();
        for at in start..self.end_of_part(start) {
            let token = self.tokens.at(at);
            open.extend(closing(token));
            if closes(token) && open.pop() != Some(token) {
                return false;
            }
        }
        open.is_empty()
    }
}
