//! Parses sizes, strides and constraints.

use super::parser::{Parsed, Parser};
use super::recovery::List;
use crate::spec::builder::SignatureBuilder;
use crate::spec::check::MAX_DIM_DEPTH;
use crate::spec::dim::{Constraint, Dim, DimOp};
use crate::spec::path::{Part, Step};
use crate::spec::token::{Pos, Token};

pub(super) const OPERAND: &str = "an integer, a name or `(`";

impl Parser<'_> {
    /// The constraints after `where`.
    pub(super) fn constraints(&mut self, mut signature: SignatureBuilder, launched: bool) -> Parsed<SignatureBuilder> {
        for number in 0.. {
            let start = self.tokens.mark();
            let more = match self.constraint_and_comma(number, launched) {
                Ok((constraint, more)) => {
                    signature = signature.constraint(constraint.left, constraint.op, constraint.right);
                    more
                }
                Err(error) => {
                    self.recover(error, start, List::Constraints)?;
                    !matches!(self.tokens.peek().1, Token::At | Token::End)
                }
            };
            if !more {
                break;
            }
        }
        Ok(signature)
    }

    /// A constraint, and whether another one follows its comma.
    fn constraint_and_comma(&mut self, number: usize, launched: bool) -> Parsed<(Constraint, bool)> {
        let constraint = self.spanned_alone(Part::Constraint(number), Self::constraint)?;
        if self.eat(Token::Comma) {
            return Ok((constraint, true));
        }
        self.end_of_signature("`,` or the end", launched)?;
        Ok((constraint, false))
    }

    pub(super) fn constraint(&mut self) -> Parsed<Constraint> {
        let left = self.dim(OPERAND)?;
        let (_, Token::Compare(op)) = self.tokens.peek() else {
            return Err(self.expected("`==`, `!=`, `<`, `<=`, `>` or `>=`"));
        };
        self.tokens.next();
        Ok(Constraint::new(left, op, self.dim(OPERAND)?))
    }

    pub(super) fn dims(&mut self, what: &str, step: fn(usize) -> Step) -> Parsed<Vec<Dim>> {
        if !self.eat(Token::OpenList) {
            return Err(self.expected(what));
        }
        self.rest_of_dims(step)
    }

    /// The rest of a list after the `[`.
    pub(super) fn rest_of_dims(&mut self, step: fn(usize) -> Step) -> Parsed<Vec<Dim>> {
        let mut dims = Vec::new();
        while !self.eat(Token::CloseList) {
            let step = step(dims.len());
            dims.push(self.spanned_alone(step, |parser| parser.dim("an integer, a name, `(` or `]`"))?);
            self.separator(Token::CloseList)?;
        }
        Ok(dims)
    }

    pub(super) fn dim(&mut self, what: &str) -> Parsed<Dim> {
        Ok(self.operations(what, false, 0)?.0)
    }

    /// Operations of equal precedence, left-associative; factors bind tighter. Also returns the nesting depth.
    /// Expressions deeper than the builder accepts aren't created, because even freeing them recurses.
    fn operations(&mut self, what: &str, factors: bool, parentheses: usize) -> Parsed<(Dim, usize)> {
        let mut left = self.operand(what, factors, parentheses)?;
        while let (pos, Token::Op(op)) = self.tokens.peek()
            && op.is_factor() == factors
        {
            self.tokens.next();
            let right = self.operand(OPERAND, factors, parentheses)?;
            left = self.binary(pos, op, left, right)?;
        }
        Ok(left)
    }

    fn operand(&mut self, what: &str, of_factors: bool, parentheses: usize) -> Parsed<(Dim, usize)> {
        if !of_factors {
            return self.operations(what, true, parentheses);
        }
        let (_, token) = self.tokens.peek();
        match token {
            Token::Name(name) => {
                self.tokens.next();
                match DimOp::FUNCTIONS.into_iter().find(|op| op.sign() == name) {
                    // without parentheses, the name is a variable
                    Some(op) if self.tokens.peek().1 == Token::Open => self.function(op, parentheses),
                    _ => Ok((Dim::from(self.rest_of_path(name)?), 0)),
                }
            }
            Token::Integer(_) | Token::Op(DimOp::Sub) => Ok((Dim::Const(self.integer(what)?), 0)),
            Token::Open => {
                self.open(parentheses)?;
                let inside = self.operations(OPERAND, false, parentheses + 1)?;
                self.expect(Token::Close)?;
                Ok(inside)
            }
            _ => Err(self.expected(what)),
        }
    }

    /// The whole of a path that is treated as a single name: `x.shape[0]` of launches and kernel arguments, or
    /// `cfg.tile[0]`. `name` is its begin.
    pub(super) fn rest_of_path(&mut self, name: &str) -> Parsed<String> {
        let mut path = name.to_owned();
        loop {
            if self.eat(Token::OpenList) {
                let number = self.small::<usize>("a dimension's number")?;
                self.expect(Token::CloseList)?;
                path = format!("{path}[{number}]");
            } else if path.ends_with(']') && self.eat(Token::Sign(".")) {
                path = format!("{path}.{}", self.name("a field's name")?);
            } else {
                break;
            }
        }
        Ok(path)
    }

    /// A `(` inside `parentheses` others. The text form never needs more than the maximum depth of operations.
    fn open(&mut self, parentheses: usize) -> Parsed<()> {
        let (pos, _) = self.tokens.peek();
        if parentheses == MAX_DIM_DEPTH {
            return Err(self.error(pos, format!("expected at most {MAX_DIM_DEPTH} parentheses inside each other")));
        }
        self.tokens.next();
        Ok(())
    }

    /// The two operands of a function, in parentheses.
    fn function(&mut self, op: DimOp, parentheses: usize) -> Parsed<(Dim, usize)> {
        let (pos, _) = self.tokens.peek();
        self.open(parentheses)?;
        let (x, of_x) = self.operations(OPERAND, false, parentheses + 1)?;
        self.expect(Token::Comma)?;
        let (y, of_y) = self.operations(OPERAND, false, parentheses + 1)?;
        self.expect(Token::Close)?;
        self.binary(pos, op, (x, of_x), (y, of_y))
    }

    /// An operation, with its nesting depth.
    fn binary(&self, pos: Pos, op: DimOp, (x, of_x): (Dim, usize), (y, of_y): (Dim, usize)) -> Parsed<(Dim, usize)> {
        let depth = 1 + of_x.max(of_y);
        if depth > MAX_DIM_DEPTH {
            let problem = format!("expected at most {MAX_DIM_DEPTH} operations inside each other");
            return Err(self.error(pos, problem));
        }
        Ok((Dim::binary(op, x, y), depth))
    }
}
