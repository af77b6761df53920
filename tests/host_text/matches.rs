//! `match` compared with a model: its mistakes, the row that runs, and the limits.

use std::cell::Cell;
use std::ops::Range;

use proptest::collection::vec;
use proptest::strategy::Strategy;
use tvm_ffi_codegen::lower::{RuntimeHelpers, lower};
use tvm_ffi_codegen::{Kernel, LowerError};

use super::{NO_IMAGES, outcome};
use crate::support::library::{Library, Prepared};
use crate::support::random::{run, stated_or};
use crate::support::sig;

/// The values of a key in these tests; the type is larger, so no rows hold for all values.
const VALUES: Range<i64> = 0..5;

/// A pattern: each value, or a range.
type Pattern = Option<Range<i64>>;
type Row = [Pattern; 2];

fn text(pattern: &Pattern) -> String {
    match pattern {
        None => "_".to_owned(),
        Some(range) if range.end - range.start == 1 => range.start.to_string(),
        Some(range) => format!("range({}, {})", range.start, range.end),
    }
}

fn holds(row: &Row, point: [i64; 2]) -> bool {
    row.iter().zip(point).all(|(pattern, value)| pattern.as_ref().is_none_or(|range| range.contains(&value)))
}

/// Points for each value, and one for all values that no constant has.
fn points() -> impl Iterator<Item = [i64; 2]> {
    (VALUES.start..=VALUES.end).flat_map(|a| (VALUES.start..=VALUES.end).map(move |b| [a, b]))
}

fn points_of(row: &Row) -> Vec<[i64; 2]> {
    points().filter(|point| holds(row, *point)).collect()
}

/// The rows with a mistake, by C19.11, with whether they never run.
fn mistakes(rows: &[Row]) -> Vec<(usize, bool)> {
    let mut found = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let own = points_of(row);
        if own.iter().all(|point| rows[..at].iter().any(|earlier| holds(earlier, *point))) {
            found.push((at, true));
            continue;
        }
        let overlaps = |earlier: usize| {
            let of_earlier = points_of(&rows[earlier]);
            let common: Vec<_> = own.iter().copied().filter(|point| of_earlier.contains(point)).collect();
            let is_stated = || rows[..earlier].iter().any(|row| points_of(row) == common);
            !common.is_empty() && common != of_earlier && !is_stated()
        };
        if (0..at).any(overlaps) {
            found.push((at, false));
        }
    }
    found
}

fn block(rows: &[Row], end: &str) -> String {
    let row = |(number, [a, b]): (usize, &Row)| format!("  {}, {} => return {number};\n", text(a), text(b));
    let rows: String = rows.iter().enumerate().map(row).collect();
    format!("{{\n match a, b {{\n{rows}{end} }}\n return -2;\n}}")
}

#[test]
fn rows_run_and_are_refused_as_stated() {
    // most patterns are small, so that rows without mistakes are found
    let pattern = (0..9_i64, 1..4_i64).prop_map(|(start, count)| match start {
        start if start < VALUES.end => Some(start..(start + count / 2 + 1).min(VALUES.end)),
        _ => None,
    });
    crate::calls::callees::register();
    let (fine, wrong) = (Cell::new(0), Cell::new(0));
    // fewer cases might have too few of either kind
    run(stated_or(300).max(300), &vec((pattern.clone(), pattern), 1..6), |rows| {
        let rows: Vec<Row> = rows.into_iter().map(|(a, b)| [a, b]).collect();
        let covers_all = points().all(|point| rows.iter().any(|row| holds(row, point)));
        let end = if covers_all { "" } else { "  else => return -1;\n" };
        let signature = sig("f(a: int64, b: int64) -> int64");
        let kernel = Kernel::text(&block(&rows, end), NO_IMAGES).unwrap();
        let expected = mistakes(&rows);
        match lower(&signature, &kernel, RuntimeHelpers::Import) {
            Ok(_) => {
                assert!(expected.is_empty(), "{expected:?} in {}", block(&rows, end));
                fine.set(fine.get() + 1);
                if fine.get() % 10 == 1 {
                    let library = Library::new(vec![(signature, kernel)]).unwrap();
                    let mut prepared = Prepared::new(&library).unwrap();
                    for point in points() {
                        let [a, b] = point;
                        let row = rows.iter().position(|row| holds(row, point)).map_or(-1, |row| row as i64);
                        let found = prepared.run(|loaded| outcome(loaded, &format!("f({a}, {b})"))).unwrap();
                        assert_eq!(found, format!("int {row}"), "{point:?} in {}", block(&rows, end));
                    }
                }
            }
            Err(LowerError::Body { errors, .. }) => {
                let found = errors.iter().map(|error| {
                    let line = error.place.as_ref().unwrap().line;
                    (line - 3, error.problem.contains("never runs"))
                });
                assert_eq!(found.collect::<Vec<_>>(), expected, "{}", block(&rows, end));
                wrong.set(wrong.get() + 1);
            }
            Err(other) => panic!("{other}"),
        }
        Ok(())
    });
    let (fine, wrong) = (fine.get(), wrong.get());
    println!("{fine} without mistakes, {wrong} with some");
    assert!(fine > 10 && wrong > 10, "{fine} {wrong}");
}

/// C19.11: a row that never runs is one before both rows that share its values.
#[test]
fn a_row_that_never_runs_states_its_values() {
    let rows = [[Some(3..5), Some(1..3)], [Some(4..5), Some(1..3)], [Some(4..5), None], [None, Some(1..3)]];
    assert_eq!(mistakes(&rows), [(1, true), (2, false)]);
    let kernel = Kernel::text(&block(&rows, "  else => return -1;\n"), NO_IMAGES).unwrap();
    let error = lower(&sig("f(a: int64, b: int64) -> int64"), &kernel, RuntimeHelpers::Import).unwrap_err();
    let LowerError::Body { errors, .. } = error else { panic!("{error}") };
    let lines: Vec<usize> = errors.iter().map(|error| error.place.as_ref().unwrap().line).collect();
    assert_eq!(lines, [4, 5], "{errors:?}");
}

/// C19.11
#[test]
fn keys_and_rows_have_limits() {
    let error = |text: &str| {
        let kernel = Kernel::text(text, NO_IMAGES).unwrap();
        lower(&sig("f(n: int64)"), &kernel, RuntimeHelpers::Import).map_err(|error| error.to_string())
    };
    let rows = |count: usize| {
        let rows: String = (0..count).map(|row| format!("{row} => return; ")).collect();
        format!("{{ match n {{ {rows} }} }}")
    };
    assert!(error(&rows(1024)).is_ok());
    assert!(error(&rows(1025)).unwrap_err().contains("expected 1 to 1024 rows, got 1025"));
    let keys = |count: usize| {
        format!("{{ match {} {{ {} => return; }} }}", ["n"; 15][..count].join(", "), ["1"; 15][..count].join(", "))
    };
    assert!(error(&keys(14)).is_ok());
    assert!(error(&keys(15)).unwrap_err().contains("expected 1 to 14 keys, got 15"));
}
