//! Adds to LLVM's listings the IR lines that they were generated from. The origins come from the same module compiled
//! with debug information, and are applied to the module compiled without.
//!
//! The lines of both listings are compared, and a line gets an origin only where they agree.

use std::collections::HashMap;

use crate::backend::TextLine;

/// Returns the LLVM IR `plain` unchanged, with origins from the debug information of `located`.
pub(super) fn llvm_ir(plain: &str, located: &str) -> Vec<TextLine> {
    let ir_lines = locations(located);
    let mut functions = functions(located);
    let mut out = Vec::new();
    let mut rest = plain.lines();
    while let Some(text) = rest.next() {
        out.push(TextLine::plain(text));
        if !is_definition(text) {
            continue;
        }
        let located = functions.next().unwrap_or_default();
        let of_function = located.iter().skip(1).copied().zip(rest.by_ref());
        for (with_location, text) in of_function {
            let (code, location) = split_location(with_location);
            let ir_line = location.filter(|_| is_same(code, text)).and_then(|location| ir_lines.get(location).copied());
            out.push(TextLine { text: text.to_owned(), ir_line });
        }
    }
    out
}

/// The lines of each function's definition.
fn functions(text: &str) -> impl Iterator<Item = Vec<&str>> {
    let mut lines = text.lines();
    std::iter::from_fn(move || {
        let first = lines.by_ref().find(|line| is_definition(line))?;
        let mut function = vec![first];
        for line in lines.by_ref() {
            function.push(line);
            if line == "}" {
                break;
            }
        }
        Some(function)
    })
}

fn is_definition(line: &str) -> bool {
    line.starts_with("define ")
}

/// The line of each location, by its metadata number. Line 0 means none.
fn locations(text: &str) -> HashMap<&str, u32> {
    let location = |line| -> Option<(&str, u32)> {
        let (number, content) = str::strip_prefix(line, '!')?.split_once(" = ")?;
        let fields = content.trim_start_matches("distinct ").strip_prefix("!DILocation(line: ")?;
        let digits = fields.split(|c: char| !c.is_ascii_digit()).next()?;
        Some((number, digits.parse().ok().filter(|line| *line > 0)?))
    };
    text.lines().filter_map(location).collect()
}

/// An instruction without its location, and the number of the location's metadata.
fn split_location(line: &str) -> (&str, Option<&str>) {
    match line.split_once(", !dbg !") {
        // further metadata may follow
        Some((code, number)) => (code, number.split(|c: char| !c.is_ascii_digit()).next()),
        None => (line, None),
    }
}

/// Whether two lines are equal except for metadata and attribute numbers, and for metadata after a location.
fn is_same(located: &str, plain: &str) -> bool {
    let located = without_numbers(located);
    let plain = without_numbers(plain);
    plain == located || plain.strip_prefix(&located).is_some_and(|rest| rest.starts_with(", !"))
}

/// The line without metadata and attribute numbers.
fn without_numbers(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut in_number = false;
    for c in line.chars() {
        if in_number && c.is_ascii_digit() {
            continue;
        }
        in_number = matches!(c, '!' | '#');
        out.push(c);
    }
    out
}

/// Returns the assembly `plain` unchanged, with origins from the `.loc` directives of `located`. Debug information is
/// interleaved there with the same lines.
pub(super) fn assembly(plain: &str, located: &str) -> Vec<TextLine> {
    let mut out: Vec<TextLine> = Vec::new();
    let mut rest = plain.lines().peekable();
    let mut ir_line = None;
    for with_location in located.lines() {
        let trimmed = with_location.trim_start();
        if let Some(operands) = trimmed.strip_prefix(".loc") {
            let line = operands.split_whitespace().nth(1).and_then(|line| line.parse().ok());
            ir_line = line.filter(|line| *line > 0);
        } else if let Some(text) = rest.next_if(|text| is_same_assembly(with_location, text)) {
            let is_instruction = text.starts_with('\t') && !trimmed.starts_with(['.', '#']);
            out.push(TextLine { text: text.to_owned(), ir_line: ir_line.filter(|_| is_instruction) });
            if trimmed.starts_with(".cfi_startproc") {
                ir_line = None;
            }
        }
    }
    out.extend(rest.map(TextLine::plain));
    out
}

/// Whether two lines are equal. Temporary labels have different numbers if there is debug information, and comments
/// differ.
fn is_same_assembly(located: &str, plain: &str) -> bool {
    let code = |line: &str| line.split_once('#').map_or(line, |(code, _)| code).trim_end().to_owned();
    let (located, plain) = (code(located), code(plain));
    let is_temporary = |line: &str| line.starts_with(".Ltmp");
    located == plain || is_temporary(&located) && is_temporary(&plain)
}
