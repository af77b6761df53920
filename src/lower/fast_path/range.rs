//! The values that a dimension can have if all checks hold. They show which checks other checks imply.

use crate::spec::{DimOp, ScalarType};

/// The values from a min to a max, both included. It is wider than 64 bits, to hold results that don't fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    min: i128,
    max: i128,
}

impl Range {
    /// Any `I64`.
    pub(super) const ANY: Range = Range { min: i64::MIN as i128, max: i64::MAX as i128 };
    /// A size.
    pub(super) const SIZE: Range = Range { min: 0, ..Range::ANY };

    /// The values from a min to a max.
    fn new((min, max): (i64, i64)) -> Range {
        Range { min: min.into(), max: max.into() }
    }

    /// A single value.
    pub(super) fn of(value: i64) -> Range {
        Range::new((value, value))
    }

    /// The values of an integer type.
    pub(super) fn of_type(ty: ScalarType) -> Range {
        ty.narrow_range().map_or(Range::ANY, Range::new)
    }

    /// The results of an operation on values of two ranges. They fit in 64 bits, except a sum, difference or product.
    pub(super) fn after(op: DimOp, x: Range, y: Range) -> Range {
        match op {
            DimOp::Add => Range { min: x.min + y.min, max: x.max + y.max },
            DimOp::Sub => Range { min: x.min - y.max, max: x.max - y.min },
            DimOp::Mul => {
                let corners = [x.min * y.min, x.min * y.max, x.max * y.min, x.max * y.max];
                let min = corners.into_iter().fold(i128::MAX, i128::min);
                let max = corners.into_iter().fold(i128::MIN, i128::max);
                Range { min, max }
            }
            DimOp::Min => Range { min: x.min.min(y.min), max: x.max.min(y.max) },
            DimOp::Max => Range { min: x.min.max(y.min), max: x.max.max(y.max) },
            DimOp::FloorDiv | DimOp::Mod | DimOp::CeilDiv => match y {
                Range { min: divisor @ 1.., max } if divisor == max => x.divided(op, divisor),
                _ => Range::ANY,
            },
        }
    }

    /// The results of a division by a positive number.
    fn divided(self, op: DimOp, divisor: i128) -> Range {
        let floor = |x: i128| x.div_euclid(divisor);
        match op {
            DimOp::Mod => Range { min: 0, max: divisor - 1 },
            DimOp::CeilDiv => Range { min: -floor(-self.min), max: -floor(-self.max) },
            _ => Range { min: floor(self.min), max: floor(self.max) },
        }
    }

    /// True if all values fit in 64 bits.
    pub(super) fn fits(self) -> bool {
        Range::ANY.min <= self.min && self.max <= Range::ANY.max
    }

    /// True if all values are 0 or more.
    pub(super) fn is_size(self) -> bool {
        self.min >= 0
    }

    /// The values that are in another range too, which a check requires. `other` if there are none: the check fails on
    /// each call, so later code can assume anything.
    pub(super) fn within(self, other: Range) -> Range {
        let (min, max) = (self.min.max(other.min), self.max.min(other.max));
        if min > max { other } else { Range { min, max } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPS: [DimOp; 8] =
        [DimOp::Add, DimOp::Sub, DimOp::Mul, DimOp::FloorDiv, DimOp::Mod, DimOp::CeilDiv, DimOp::Min, DimOp::Max];
    /// Numbers around 0 and at both ends.
    const NUMBERS: [i64; 11] = [i64::MIN, i64::MIN + 1, -7, -2, -1, 0, 1, 3, 8, i64::MAX - 1, i64::MAX];

    fn ranges() -> impl Iterator<Item = (i64, i64)> + Clone {
        NUMBERS
            .into_iter()
            .flat_map(|min| NUMBERS.into_iter().filter(move |max| min <= *max).map(move |max| (min, max)))
    }

    #[test]
    fn a_result_is_in_its_range_or_does_not_fit() {
        let mut checked = 0;
        for (of_x, of_y) in ranges().flat_map(|x| ranges().map(move |y| (x, y))) {
            for op in OPS {
                let results = Range::after(op, Range::new(of_x), Range::new(of_y));
                let inside = |(min, max): (i64, i64)| NUMBERS.into_iter().filter(move |x| (min..=max).contains(x));
                for (x, y) in inside(of_x).flat_map(|x| inside(of_y).map(move |y| (x, y))) {
                    let Some(result) = op.apply(x, y) else {
                        assert!(op.is_division() || !results.fits(), "{x} {op:?} {y} overflows, not in {results:?}");
                        continue;
                    };
                    let result = i128::from(result);
                    assert!((results.min..=results.max).contains(&result), "{x} {op:?} {y} isn't in {results:?}");
                    checked += 1;
                }
            }
        }
        assert!(checked > 500_000, "{checked}");
    }

    #[test]
    fn half_of_a_size_can_be_doubled() {
        let two = Range::of(2);
        let half = Range::after(DimOp::FloorDiv, Range::SIZE, two);
        assert!(half.is_size() && Range::after(DimOp::Mul, half, two).fits());
        assert!(!Range::after(DimOp::Mul, Range::SIZE, two).fits());
    }

    #[test]
    fn a_difference_of_sizes_fits() {
        let difference = Range::after(DimOp::Sub, Range::SIZE, Range::SIZE);
        assert!(difference.fits() && !difference.is_size());
        assert!(!Range::after(DimOp::Sub, Range::ANY, Range::SIZE).fits());
    }
}
