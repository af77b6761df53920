//! Facts about terms, which hold on every path to a place.

use std::collections::BTreeSet;

use tvm_ffi_codegen::ir::{BinaryOp, IntCC};

use super::terms::{Node, Term, Terms};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Fact {
    NotZero(Term),
    /// The terms are equal, the smaller number first.
    Equal(Term, Term),
}

/// A set of facts.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Facts(BTreeSet<Fact>);

impl Facts {
    /// The facts that hold here and there.
    pub fn both(&self, other: &Self) -> Self {
        Facts(self.0.intersection(&other.0).copied().collect())
    }

    /// All facts of both sets.
    pub fn and(&self, other: &Self) -> Self {
        Facts(self.0.union(&other.0).copied().collect())
    }

    /// Adds what follows from a condition that holds or doesn't.
    pub fn learn(&mut self, terms: &Terms<'_>, condition: Term, holds: bool) {
        match terms.node(condition) {
            Node::Not(inner) => self.learn(terms, inner, !holds),
            Node::Binary(BinaryOp::And, a, b) if holds => {
                self.learn(terms, a, true);
                self.learn(terms, b, true);
            }
            Node::Binary(BinaryOp::Or, a, b) if !holds => {
                self.learn(terms, a, false);
                self.learn(terms, b, false);
            }
            Node::Compare(cc, a, b) => match (cc, holds) {
                (IntCC::Eq, true) | (IntCC::Ne, false) => _ = self.0.insert(Fact::Equal(a.min(b), a.max(b))),
                (IntCC::Ne, true) | (IntCC::Eq, false) if terms.node(b) == Node::Const(0) => self.not_zero(terms, a),
                (IntCC::Ne, true) | (IntCC::Eq, false) if terms.node(a) == Node::Const(0) => self.not_zero(terms, b),
                _ => {}
            },
            _ => {}
        }
    }

    /// A bit that is set in all operands, or their unsigned minimum, isn't 0: so none of them is.
    fn not_zero(&mut self, terms: &Terms<'_>, term: Term) {
        self.0.insert(Fact::NotZero(term));
        if let Node::Binary(BinaryOp::And | BinaryOp::UMin, a, b) = terms.node(term) {
            self.not_zero(terms, a);
            self.not_zero(terms, b);
        }
    }

    /// True if the facts say that a term isn't 0.
    pub fn is_not_zero(&self, term: Term) -> bool {
        self.0.contains(&Fact::NotZero(term))
    }

    /// The terms that equal a term, itself included.
    fn equal(&self, term: Term) -> BTreeSet<Term> {
        let mut class = BTreeSet::from([term]);
        loop {
            let before = class.len();
            for fact in &self.0 {
                if let Fact::Equal(a, b) = *fact
                    && (class.contains(&a) || class.contains(&b))
                {
                    class.extend([a, b]);
                }
            }
            if class.len() == before {
                return class;
            }
        }
    }

    /// The constant that a term equals.
    pub fn constant(&self, terms: &Terms<'_>, term: Term) -> Option<i64> {
        self.equal(term).into_iter().find_map(|term| match terms.node(term) {
            Node::Const(value) => Some(value),
            _ => None,
        })
    }
}
