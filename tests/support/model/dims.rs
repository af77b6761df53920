//! Sizes, strides and symbols: they are bound, solved for, compared or deferred.

use tvm_ffi_codegen::Dim;
use tvm_ffi_codegen::spec::DimOp;

use super::{At, Checked, Model, listed};

/// A size or stride whose expression can't be decided yet.
pub(super) struct Deferred<'a> {
    dim: &'a Dim,
    got: i64,
    /// A stride may be negative.
    stride: bool,
    /// The subject in messages, and the path after `from`.
    what: String,
    from: String,
}

impl<'a> Model<'a> {
    fn value_of(&self, name: &str) -> Option<i64> {
        self.symbols.get(name).map(|(value, _)| *value)
    }

    /// The value of an expression, if the value and all intermediate results fit in 64 bits.
    pub(super) fn eval(&self, dim: &Dim) -> Option<i64> {
        let Dim::Binary(op, x, y) = dim else {
            return match dim {
                Dim::Const(number) => Some(*number),
                Dim::Var(name) => self.value_of(name),
                _ => unreachable!("the model knows no {dim:?}"),
            };
        };
        let (x, y) = (i128::from(self.eval(x)?), i128::from(self.eval(y)?));
        let value = match op {
            DimOp::Add => x + y,
            DimOp::Sub => x - y,
            DimOp::Mul => x * y,
            DimOp::FloorDiv | DimOp::Mod | DimOp::CeilDiv if y == 0 => return None,
            DimOp::Min => x.min(y),
            DimOp::Max => x.max(y),
            // `ceil(x / y)` is `-floor(-x / y)`
            DimOp::CeilDiv if y > 0 => -(-x).div_euclid(y),
            DimOp::CeilDiv => -x.div_euclid(-y),
            DimOp::FloorDiv => x.div_euclid(y.abs()) * y.signum() - i128::from(y < 0 && x.rem_euclid(y.abs()) != 0),
            // the remainder has the divisor's sign
            DimOp::Mod if y < 0 => -(-x).rem_euclid(-y),
            DimOp::Mod => x.rem_euclid(y),
            other => unreachable!("the model knows no {other:?}"),
        };
        i64::try_from(value).ok()
    }

    /// The value of the only unbound symbol for which the expression has the value `got`.
    fn solve(&self, dim: &Dim, symbol: &str, got: i64) -> Option<i64> {
        let (op, x, y) = match dim {
            Dim::Const(_) => return None,
            Dim::Var(_) => return Some(got),
            Dim::Binary(op, x, y) => (op, x, y),
            other => unreachable!("the model knows no {other:?}"),
        };
        let left = count(x, symbol) == 1;
        let (inner, other) = if left { (x, self.eval(y)?) } else { (y, self.eval(x)?) };
        let (got, other) = (i128::from(got), i128::from(other));
        let got = match op {
            DimOp::Add => got - other,
            DimOp::Sub if left => got + other,
            DimOp::Sub => other - got,
            DimOp::Mul if other != 0 && got % other == 0 => got / other,
            _ => return None,
        };
        self.solve(inner, symbol, i64::try_from(got).ok()?)
    }

    /// Whether solving divides by 0. A factor of 0 doesn't determine the other factor.
    fn meets_zero(&self, dim: &Dim, symbol: &str) -> bool {
        let Dim::Binary(op, x, y) = dim else { return false };
        let (inner, other) = if count(x, symbol) == 1 { (x, y) } else { (y, x) };
        let factor = *op == DimOp::Mul && self.eval(other) == Some(0);
        factor || self.divides_by_zero(other) || self.meets_zero(inner, symbol)
    }

    fn divides_by_zero(&self, dim: &Dim) -> bool {
        let Dim::Binary(op, x, y) = dim else { return false };
        let here = matches!(op, DimOp::FloorDiv | DimOp::Mod | DimOp::CeilDiv) && self.eval(y) == Some(0);
        here || self.divides_by_zero(x) || self.divides_by_zero(y)
    }

    /// The values of an expression's symbols: `a = 2 from x.shape[0], b = 3 from n`.
    pub(super) fn values(&self, dim: &Dim) -> String {
        let value = |name: &&str| {
            let (value, from) = self.symbols.get(*name)?;
            Some(format!("{name} = {value} from {from}"))
        };
        names(dim).iter().filter_map(value).collect::<Vec<_>>().join(", ")
    }

    pub(super) fn unknown<'d>(&self, dim: &'d Dim) -> Vec<&'d str> {
        names(dim).into_iter().filter(|name| !self.symbols.contains_key(name)).collect()
    }

    /// Binds or compares an integer parameter that dimensions use.
    pub(super) fn integer_symbol(&mut self, at: &At, got: i64) -> Checked {
        let signature = self.signature;
        let Some(name) = signature.names_in_dims().into_iter().find(|name| *name == at.path) else { return Ok(()) };
        match self.symbols.get(name) {
            Some((value, from)) if *value != got => {
                let what = format!("value of {name} on argument #{}", at.argument);
                self.refuse("ValueError", &what, &format!("{value} ({name}, from {from})"), &got.to_string())
            }
            Some(_) => Ok(()),
            None => {
                self.symbols.insert(name, (got, at.from.clone()));
                Ok(())
            }
        }
    }

    /// Checks a size; `part` is its path within the parameter, such as `.shape[0]`.
    pub(super) fn size(&mut self, at: &At, part: &str, dim: &'a Dim, got: i64) -> Checked {
        let what = format!("{}{part} on argument #{}", at.path, at.argument);
        let got_text = got.to_string();
        // an expression without symbols is a constant too
        let constant = self.eval(dim).filter(|_| names(dim).is_empty());
        match constant {
            Some(size) if size == got => Ok(()),
            Some(size) => self.refuse("ValueError", &what, &size.to_string(), &got_text),
            // a size is never negative, even if a stride has bound the symbol
            _ if got < 0 => self.refuse("ValueError", &what, "a size of at least 0", &got_text),
            _ => self.matched(at, part, dim, got, false),
        }
    }

    /// Checks a stride; `compared` is false if the stride has no effect on addresses.
    pub(super) fn stride(&mut self, at: &At, part: &str, dim: &'a Dim, got: i64, compared: bool) -> Checked {
        let what = format!("{}{part} on argument #{}", at.path, at.argument);
        match dim {
            Dim::Const(stride) if compared && *stride != got => {
                self.refuse("ValueError", &what, &stride.to_string(), &got.to_string())
            }
            Dim::Var(name) if compared || !self.symbols.contains_key(&name[..]) => {
                self.matched(at, part, dim, got, true)
            }
            Dim::Binary(..) if compared => self.matched(at, part, dim, got, true),
            _ => Ok(()),
        }
    }

    fn matched(&mut self, at: &At, part: &str, dim: &'a Dim, got: i64, stride: bool) -> Checked {
        let what = format!("{}{part} on argument #{}", at.path, at.argument);
        let deferred = Deferred { dim, got, stride, what, from: format!("{}{part}", at.from) };
        if self.decide(&deferred)? {
            return Ok(());
        }
        if at.element {
            return self.undecided(&deferred);
        }
        self.deferred.push(deferred);
        Ok(())
    }

    /// Compares the value, or binds a symbol to it; `false` if neither is possible yet.
    fn decide(&mut self, deferred: &Deferred<'a>) -> Checked<bool> {
        let Deferred { dim, got, .. } = *deferred;
        let wrong =
            |model: &Self, expected: &str| model.refuse("ValueError", &deferred.what, expected, &got.to_string());
        let in_brackets = |text: String| if text.is_empty() { text } else { format!(" ({text})") };
        match (&self.unknown(dim)[..], dim) {
            ([], Dim::Var(name)) => match self.symbols.get(&name[..]) {
                Some((value, from)) if *value != got => wrong(self, &format!("{value} ({name}, from {from})")),
                _ => Ok(true),
            },
            ([], _) => match self.eval(dim) {
                Some(value) if value == got => Ok(true),
                Some(value) => match &self.values(dim)[..] {
                    "" => wrong(self, &value.to_string()),
                    values => wrong(self, &format!("{value} ({dim}, {values})")),
                },
                None => wrong(self, &format!("{dim} in 64 bits{}", in_brackets(self.values(dim)))),
            },
            ([name], _) if is_solvable(dim, name) && self.meets_zero(dim, name) => Ok(false),
            ([name], _) if is_solvable(dim, name) => {
                let solution = self.solve(dim, name, got).filter(|value| deferred.stride || *value >= 0);
                let Some(value) = solution else {
                    return wrong(self, &format!("{dim} for some {name}{}", in_brackets(self.values(dim))));
                };
                self.symbols.insert(name, (value, deferred.from.clone()));
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    fn undecided<T>(&self, Deferred { dim, got, what, .. }: &Deferred<'_>) -> Checked<T> {
        let unknown = self.unknown(dim);
        let have = if unknown.len() == 1 { "has" } else { "have" };
        let expected = format!("{dim}, where {} {have} no value", listed(&unknown));
        self.refuse("ValueError", what, &expected, &got.to_string())
    }

    /// Repeats the deferred checks as long as each pass binds a symbol.
    pub(super) fn decide_deferred(&mut self) -> Checked {
        let mut known = usize::MAX;
        while self.symbols.len() != known {
            known = self.symbols.len();
            for deferred in std::mem::take(&mut self.deferred) {
                if !self.decide(&deferred)? {
                    self.deferred.push(deferred);
                }
            }
        }
        self.deferred.first().map_or(Ok(()), |deferred| self.undecided(deferred))
    }
}

/// The symbols of an expression, each once, from left to right.
fn names(dim: &Dim) -> Vec<&str> {
    match dim {
        Dim::Const(_) => Vec::new(),
        Dim::Var(name) => vec![name],
        Dim::Binary(_, x, y) => {
            let mut all = names(x);
            let more = names(y).into_iter().filter(|name| !all.contains(name)).collect::<Vec<_>>();
            all.extend(more);
            all
        }
        other => unreachable!("the model knows no {other:?}"),
    }
}

/// The number of occurrences of a symbol.
fn count(dim: &Dim, symbol: &str) -> usize {
    match dim {
        Dim::Const(_) => 0,
        Dim::Var(name) => (name == symbol).into(),
        Dim::Binary(_, x, y) => count(x, symbol) + count(y, symbol),
        other => unreachable!("the model knows no {other:?}"),
    }
}

/// Whether the symbol occurs exactly once, and isn't in an operand of a division, `min` or `max`.
fn is_solvable(dim: &Dim, symbol: &str) -> bool {
    fn below_division(dim: &Dim, symbol: &str) -> bool {
        match dim {
            Dim::Binary(DimOp::FloorDiv | DimOp::Mod | DimOp::CeilDiv | DimOp::Min | DimOp::Max, ..) => {
                count(dim, symbol) > 0
            }
            Dim::Binary(_, x, y) => below_division(x, symbol) || below_division(y, symbol),
            _ => false,
        }
    }
    count(dim, symbol) == 1 && !below_division(dim, symbol)
}
