//! Sizes, strides and constraints, read.

use super::{Parsed, Parser};
use crate::spec::builder::SignatureBuilder;
use crate::spec::check::MAX_DIM_DEPTH;
use crate::spec::dim::{Constraint, Dim, DimOp};
use crate::spec::path::{Part, Step};
use crate::spec::token::Token;

pub(super) const OPERAND: &str = "an integer, a name or `(`";

impl Parser<'_> {
    /// What follows `where`.
    pub(super) fn constraints(&mut self, mut signature: SignatureBuilder) -> Parsed<SignatureBuilder> {
        for number in 0.. {
            let constraint = self.spanned_alone(Part::Constraint(number), Self::constraint)?;
            signature = signature.constraint(constraint.left, constraint.op, constraint.right);
            if !self.eat(Token::Comma) {
                break;
            }
        }
        Ok(signature)
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

    /// What follows the `[`.
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

    /// Operations of one rank, from left to right; factors bind first. With them comes how deep they are nested: what is
    /// deeper than the builder takes isn't made, as nothing could walk or even free it.
    fn operations(&mut self, what: &str, factors: bool, parentheses: usize) -> Parsed<(Dim, usize)> {
        let (mut left, mut depth) = self.operand(what, factors, parentheses)?;
        while let (pos, Token::Op(op)) = self.tokens.peek()
            && op.is_factor() == factors
        {
            self.tokens.next();
            let (right, right_depth) = self.operand(OPERAND, factors, parentheses)?;
            depth = 1 + depth.max(right_depth);
            if depth > MAX_DIM_DEPTH {
                let problem = format!("expected at most {MAX_DIM_DEPTH} operations inside each other");
                return Err(self.error(pos, problem));
            }
            left = Dim::binary(op, left, right);
        }
        Ok((left, depth))
    }

    fn operand(&mut self, what: &str, of_factors: bool, parentheses: usize) -> Parsed<(Dim, usize)> {
        if !of_factors {
            return self.operations(what, true, parentheses);
        }
        let (pos, token) = self.tokens.peek();
        match token {
            Token::Name(name) => {
                self.tokens.next();
                Ok((Dim::from(name), 0))
            }
            Token::Integer(_) | Token::Op(DimOp::Sub) => Ok((Dim::Const(self.integer(what)?), 0)),
            // none that the text form needs is deeper than operations are
            Token::Open if parentheses == MAX_DIM_DEPTH => {
                Err(self.error(pos, format!("expected at most {MAX_DIM_DEPTH} parentheses inside each other")))
            }
            Token::Open => {
                self.tokens.next();
                let inside = self.operations(OPERAND, false, parentheses + 1)?;
                self.expect(Token::Close)?;
                Ok(inside)
            }
            _ => Err(self.expected(what)),
        }
    }
}
