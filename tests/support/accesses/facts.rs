//! Facts about terms, which hold on every path to a place.

use std::collections::HashMap;

use tvm_ffi_codegen::ir::{BinaryOp, IntCC};

use super::terms::{Node, Term, Terms};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Fact {
    NotZero(Term),
    /// The terms are equal, the smaller number first.
    Equal(Term, Term),
}

/// The facts that a function's conditions may imply, by their numbers.
#[derive(Default, Debug)]
pub struct Table {
    numbers: HashMap<Fact, usize>,
    /// The terms that a fact says to be equal to a term, with the number of that fact.
    equals: HashMap<Term, Vec<(usize, Term)>>,
    /// The facts that follow from a condition that holds, or doesn't.
    implied: HashMap<(Term, bool), Vec<usize>>,
}

/// A set of facts: a bit for each number of the function's [`Table`].
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Facts(Vec<u64>);

impl Table {
    /// Finds the facts that follow from a condition that holds, and from one that doesn't.
    pub fn add(&mut self, terms: &Terms<'_>, condition: Term) {
        for holds in [true, false] {
            if !self.implied.contains_key(&(condition, holds)) {
                let mut facts = Vec::new();
                self.learn(terms, condition, holds, &mut facts);
                self.implied.insert((condition, holds), facts);
            }
        }
    }

    fn learn(&mut self, terms: &Terms<'_>, condition: Term, holds: bool, facts: &mut Vec<usize>) {
        match terms.node(condition) {
            Node::Not(inner) => self.learn(terms, inner, !holds, facts),
            Node::Binary(BinaryOp::And, a, b) if holds => {
                self.learn(terms, a, true, facts);
                self.learn(terms, b, true, facts);
            }
            Node::Binary(BinaryOp::Or, a, b) if !holds => {
                self.learn(terms, a, false, facts);
                self.learn(terms, b, false, facts);
            }
            Node::Compare(cc, a, b) => match (cc, holds) {
                (IntCC::Eq, true) | (IntCC::Ne, false) => facts.push(self.equal(a.min(b), a.max(b))),
                (IntCC::Ne, true) | (IntCC::Eq, false) if terms.node(b) == Node::Const(0) => {
                    self.not_zero(terms, a, facts);
                }
                (IntCC::Ne, true) | (IntCC::Eq, false) if terms.node(a) == Node::Const(0) => {
                    self.not_zero(terms, b, facts);
                }
                _ => {}
            },
            _ => {}
        }
    }

    /// A bit that is set in all operands, or their unsigned minimum, isn't 0: so none of them is.
    fn not_zero(&mut self, terms: &Terms<'_>, term: Term, facts: &mut Vec<usize>) {
        facts.push(self.number(Fact::NotZero(term)));
        if let Node::Binary(BinaryOp::And | BinaryOp::UMin, a, b) = terms.node(term) {
            self.not_zero(terms, a, facts);
            self.not_zero(terms, b, facts);
        }
    }

    fn equal(&mut self, a: Term, b: Term) -> usize {
        let before = self.numbers.len();
        let number = self.number(Fact::Equal(a, b));
        if number == before {
            self.equals.entry(a).or_default().push((number, b));
            self.equals.entry(b).or_default().push((number, a));
        }
        number
    }

    fn number(&mut self, fact: Fact) -> usize {
        let next = self.numbers.len();
        *self.numbers.entry(fact).or_insert(next)
    }

    /// Returns true if the facts say that a term isn't 0.
    pub fn is_not_zero(&self, facts: &Facts, term: Term) -> bool {
        self.numbers.get(&Fact::NotZero(term)).is_some_and(|&number| facts.contains(number))
    }

    /// The constant that a term equals.
    pub fn constant(&self, facts: &Facts, terms: &Terms<'_>, term: Term) -> Option<i64> {
        let mut class = vec![term];
        let mut next = 0;
        while let Some(&term) = class.get(next) {
            if let Node::Const(value) = terms.node(term) {
                return Some(value);
            }
            for &(number, other) in self.equals.get(&term).into_iter().flatten() {
                if facts.contains(number) && !class.contains(&other) {
                    class.push(other);
                }
            }
            next += 1;
        }
        None
    }

    /// The facts, and those that follow from a condition.
    pub fn after(&self, facts: &Facts, condition: Term, holds: bool) -> Facts {
        let mut facts = facts.clone();
        self.implied.get(&(condition, holds)).into_iter().flatten().for_each(|&number| facts.insert(number));
        facts
    }
}

impl Facts {
    fn contains(&self, number: usize) -> bool {
        self.0.get(number / 64).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    fn insert(&mut self, number: usize) {
        let words = self.0.len().max(number / 64 + 1);
        self.0.resize(words, 0);
        self.0[number / 64] |= 1 << (number % 64);
    }

    /// The facts that hold here and there.
    pub fn both(mut self, other: &Self) -> Self {
        self.0.truncate(other.0.len());
        self.0.iter_mut().zip(&other.0).for_each(|(word, other)| *word &= other);
        self
    }

    /// All facts of both sets.
    pub fn and(&self, other: &Self) -> Self {
        let [mut all, fewer] =
            if self.0.len() < other.0.len() { [other, self] } else { [self, other] }.map(Clone::clone);
        all.0.iter_mut().zip(&fewer.0).for_each(|(word, other)| *word |= other);
        all
    }
}
