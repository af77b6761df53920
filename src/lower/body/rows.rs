//! The rows of a `match` as boxes of integers: which rows never run, and which overlap.
//!
//! A key has a range of integers as its values; other constants are numbered. A row has a range for each key.

use std::collections::HashMap;
use std::ops::Range;

/// The values of all keys: a range for each.
pub(super) type Values = Vec<Range<i128>>;

/// A mistake in a row. Rows are numbered from 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Mistake {
    /// Rows before it hold for all its values.
    Hidden { row: usize },
    /// It overlaps an earlier row in these values. No row before both states them.
    Overlap { earlier: usize, row: usize, common: Values },
}

/// The maximum number of boxes that cover the values without a row. If there are more, the row counts as one that runs.
const MOST_PIECES: usize = 2048;

/// The mistakes of rows, at most one for each.
pub(super) fn mistakes(rows: &[Values]) -> Vec<Mistake> {
    let mut first: HashMap<&Values, usize> = HashMap::with_capacity(rows.len());
    let mut found = Vec::new();
    for (row, values) in rows.iter().enumerate() {
        let overlaps: Vec<(usize, Values)> =
            (0..row).filter_map(|earlier| Some((earlier, intersection(&rows[earlier], values)?))).collect();
        // a row that never runs states its values, too
        first.entry(values).or_insert(row);
        if are_covered(values, overlaps.iter().map(|(_, common)| common)) {
            found.push(Mistake::Hidden { row });
            continue;
        }
        let is_stated = |earlier: usize, common: &Values| {
            *common == rows[earlier] || first.get(common).is_some_and(|stated| *stated < earlier)
        };
        let mistake = overlaps.into_iter().find(|(earlier, common)| !is_stated(*earlier, common));
        found.extend(mistake.map(|(earlier, common)| Mistake::Overlap { earlier, row, common }));
    }
    found
}

/// Whether each of the values is in one of the boxes.
pub(super) fn are_covered<'v>(values: &Values, boxes: impl Iterator<Item = &'v Values>) -> bool {
    let mut rest = vec![values.clone()];
    for cut in boxes {
        let mut left = Vec::with_capacity(rest.len());
        for piece in rest {
            match intersection(&piece, cut) {
                Some(common) => cut_out(piece, &common, &mut left),
                None => left.push(piece),
            }
        }
        if left.is_empty() || left.len() > MOST_PIECES {
            return left.is_empty();
        }
        rest = left;
    }
    false
}

/// The values that are in both boxes; `None` if there are none.
fn intersection(one: &Values, other: &Values) -> Option<Values> {
    one.iter()
        .zip(other)
        .map(|(one, other)| {
            let common = one.start.max(other.start)..one.end.min(other.end);
            (!common.is_empty()).then_some(common)
        })
        .collect()
}

/// Adds what a box has outside of a part of it, as boxes.
fn cut_out(mut whole: Values, part: &Values, pieces: &mut Vec<Values>) {
    for (at, part) in part.iter().enumerate() {
        let range = whole[at].clone();
        for side in [range.start..part.start, part.end..range.end] {
            if !side.is_empty() {
                let mut piece = whole.clone();
                piece[at] = side;
                pieces.push(piece);
            }
        }
        whole[at] = part.clone();
    }
}

/// Ranges in ascending order, with those joined that touch.
pub(super) fn union(mut ranges: Vec<Range<i128>>) -> Vec<Range<i128>> {
    ranges.sort_by_key(|range| range.start);
    let mut joined: Vec<Range<i128>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}
