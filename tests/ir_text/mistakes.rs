//! No text panics or takes more than linear time.

use std::time::{Duration, Instant};

use tvm_ffi_codegen::ir::{Module, ParseError};
use tvm_ffi_codegen::lower::{RuntimeHelpers, lower};
use tvm_ffi_codegen::{Kernel, Signature};

use crate::support::dice::Dice;

fn text() -> String {
    let signature: Signature = r#"f(x: Tensor([n], float32), k: int64, s: str = "a") -> int64"#.parse().unwrap();
    lower(&signature, &Kernel::symbol("k"), RuntimeHelpers::Import).unwrap().to_string()
}

fn error(text: &str) -> ParseError {
    text.parse::<Module>().unwrap_err()
}

#[test]
fn errors_are_values_with_places() {
    let found = error("local fn f() {\nblock0:\n    x = iconst.i46 \"ä\"\n    return\n}\n");
    assert_eq!((found.line, found.column), (3, 9));
    assert_eq!((found.expected.as_str(), found.found.as_str()), ("an operation", "`iconst.i46`"));
    assert_eq!(found.to_string(), "line 3, column 9: expected an operation, found `iconst.i46`");
    // columns count characters
    assert_eq!(error("loc0 \"ä\" 1\n").column, 10);
    let big = error("data0 state \"a\" align 1, 40000000 bytes\ndata1 state \"b\" align 1, 40000000 bytes\n");
    assert_eq!((big.line, big.found.as_str()), (2, "80000000 bytes"));
}

#[test]
fn no_text_panics() {
    let text = text();
    let mut errors = 0;
    // cut off at many characters
    for (end, _) in text.char_indices().step_by(13) {
        errors += usize::from(text[..end].parse::<Module>().is_err());
    }
    // words and signs that are missing, doubled, swapped or replaced by others of the text
    let places: Vec<usize> = text.char_indices().filter(|(_, c)| !c.is_alphanumeric()).map(|(at, _)| at).collect();
    let mut dice = Dice::new(11);
    let mut place = |end: usize| places[dice.below(end)];
    for _ in 0..300 {
        let mut ends = [place(places.len()), place(places.len()), place(places.len())];
        ends.sort_unstable();
        let [a, b, c] = ends;
        for changed in [
            format!("{}{}", &text[..a], &text[b..]),
            format!("{}{}{}", &text[..b], &text[a..b], &text[b..]),
            format!("{}{}{}{}", &text[..a], &text[b..c], &text[a..b], &text[c..]),
        ] {
            errors += usize::from(changed.parse::<Module>().is_err());
        }
    }
    assert!(errors > 1000, "{errors}");
    for odd in
        ["", "\n\n", "# only a comment", "@", "\"", "data0 \"\\", "data0 \"\\u{110000}\" align 1 = \"\"", "((((((", "}"]
    {
        let _ = odd.parse::<Module>();
    }
}

#[test]
fn time_is_linear() {
    let function = |count: usize| {
        let lines: String = (0..count).map(|i| format!("    x{} = add.i64 x{i}, x{i}\n", i + 1)).collect();
        format!("local fn f(i64) -> i64 {{\nentry(x0: i64):\n{lines}    return x{count}\n}}\n")
    };
    let functions = |count: usize| -> String {
        (0..count)
            .map(|i| format!("local fn f{i}() {{\nb:\n    call @f{}()\n    return\n}}\n", count - 1 - i))
            .collect()
    };
    let strings = |count: usize| format!("data0 \"{}\" align 1 = \"{}\"", "\\u{a}".repeat(count), "\\\"".repeat(count));
    let takes = |text: String| {
        (0..3)
            .map(|_| {
                let start = Instant::now();
                let _ = text.parse::<Module>();
                start.elapsed()
            })
            .min()
            .unwrap_or_default()
    };
    for make in [&function as &dyn Fn(usize) -> String, &functions, &strings] {
        let (short, long) = (takes(make(2_000)), takes(make(40_000)));
        println!("{short:?}, 20 times as long: {long:?}");
        assert!(long < short * 150 + Duration::from_millis(50), "{short:?}, 20 times as long: {long:?}");
    }
}
