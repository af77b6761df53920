//! Parses `match`.

use super::{HostParser, Read};
use crate::host::tree::{At, Block, Match, MatchKey, MatchRow, Pattern, StatementKind};
use crate::spec::{CompareOp, DimOp, Token};

const PATTERN: &str = "a pattern: a constant, `range(a, b)` or `_`";

impl HostParser<'_> {
    pub(super) fn match_(&mut self) -> Read<StatementKind> {
        self.p.tokens.next();
        let keys = self.match_keys()?;
        let (mut rows, mut otherwise) = (Vec::new(), None);
        self.in_block(|parser| {
            while parser.peek() != Token::Sign("}") && otherwise.is_none() {
                if parser.word("else") {
                    otherwise = Some(parser.row_block()?);
                } else {
                    rows.push(parser.match_row()?);
                }
            }
            Ok(())
        })?;
        Ok(StatementKind::Match(Box::new(Match { keys, rows, otherwise })))
    }

    /// The keys up to the `{`.
    fn match_keys(&mut self) -> Read<Vec<MatchKey>> {
        let mut keys = vec![self.match_key()?];
        while self.p.eat(Token::Comma) {
            keys.push(self.match_key()?);
        }
        Ok(keys)
    }

    pub(super) fn match_key(&mut self) -> Read<MatchKey> {
        let is_named = matches!(self.peek(), Token::Name(_) | Token::Text(_)) && self.second() == Token::Equals;
        let name = match is_named {
            true => {
                let name = self.label("the name of a key")?;
                self.p.expect(Token::Equals)?;
                Some(name)
            }
            false => None,
        };
        Ok(MatchKey { name, value: self.expr()? })
    }

    fn match_row(&mut self) -> Read<MatchRow> {
        let start = self.start();
        let patterns = self.match_patterns()?;
        let span = self.since(start);
        Ok(MatchRow { span, patterns, block: self.row_block()? })
    }

    /// The patterns of a row.
    pub(super) fn match_patterns(&mut self) -> Read<Vec<At<Pattern>>> {
        let mut patterns = vec![self.pattern()?];
        while self.p.eat(Token::Comma) {
            patterns.push(self.pattern()?);
        }
        Ok(patterns)
    }

    /// `=>` with a block, or with a statement that has none.
    fn row_block(&mut self) -> Read<Block> {
        let at = self.p.tokens.mark();
        let is_adjacent = self.p.tokens.pos_at(at).offset() + 1 == self.p.tokens.pos_at(at + 1).offset();
        if self.peek() != Token::Equals || self.second() != Token::Compare(CompareOp::Gt) || !is_adjacent {
            return Err(self.p.expected("`=>`").into());
        }
        self.p.tokens.next();
        self.p.tokens.next();
        match self.peek() {
            Token::Sign("{") => self.block(),
            Token::Name("if" | "match" | "while" | "for" | "try") => {
                Err(self.p.expected("`{`, or a statement without blocks").into())
            }
            _ => {
                let start = self.start();
                let statement = self.simple_statement(start)?;
                Ok(Block { span: self.since(start), statements: vec![statement] })
            }
        }
    }

    fn pattern(&mut self) -> Read<At<Pattern>> {
        let start = self.start();
        let value = match self.peek() {
            Token::Name("_") => self.one(Pattern::Any),
            Token::Name(name @ ("True" | "False")) => self.one(Pattern::Bool(name == "True")),
            Token::Name("range") if self.second() == Token::Open => self.range_pattern()?,
            Token::Integer(_) | Token::Op(DimOp::Sub) => Pattern::Int(self.pattern_integer()?),
            Token::Text(_) => Pattern::Text(self.text()?),
            Token::Name(name) if !crate::host::RESERVED.contains(&name) => self.one(Pattern::Name(name.to_owned())),
            _ => return Err(self.p.expected(PATTERN).into()),
        };
        Ok(At { span: self.since(start), value })
    }

    /// A pattern of one token.
    fn one(&mut self, pattern: Pattern) -> Pattern {
        self.p.tokens.next();
        pattern
    }

    /// `range(a, b)`
    fn range_pattern(&mut self) -> Read<Pattern> {
        self.p.tokens.next();
        self.p.expect(Token::Open)?;
        let start = self.pattern_integer()?;
        self.p.expect(Token::Comma)?;
        let end = self.pattern_integer()?;
        self.p.expect(Token::Close)?;
        Ok(Pattern::Range(start, end))
    }

    /// An integer with its sign.
    fn pattern_integer(&mut self) -> Read<i128> {
        let is_negative = self.p.eat(Token::Op(DimOp::Sub));
        let Token::Integer(digits) = self.peek() else { return Err(self.p.expected("an integer").into()) };
        let Ok(value) = digits.parse::<i128>() else {
            return Err(self.p.error(self.p.tokens.peek().0, format!("`{digits}` fits in no type")).into());
        };
        self.p.tokens.next();
        Ok(if is_negative { -value } else { value })
    }
}
