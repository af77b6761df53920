//! Compares wrappers with upstream's C++ functions of the same types. Both accept and receive the same values, except
//! for the differences in `docs/reference/upstream.md`.

use std::collections::HashMap;

use tvm_ffi_codegen::runtime::abi::symbol::min_version;

use crate::support::exec::{Prepared, Program};
use crate::support::kernels::Noted;
use crate::support::value::parse::parse_call;
use crate::support::{parallel, recorder, sig};

const TABLE: &str = include_str!("../../fixtures/upstream/converters.table");
const DOCUMENT: &str = include_str!("../../docs/reference/upstream.md");

/// The outcome for a value: the function receives this value, or refuses with this kind of error.
#[derive(Clone, PartialEq, Debug)]
enum Verdict<T> {
    Gets(T),
    Refused(String),
}

/// The C++ function for one type, read from the table.
struct Upstream<'a> {
    /// The type in a signature, and in C++.
    ours: &'a str,
    cpp: &'a str,
    /// The outcomes of values that aren't refused with a TypeError.
    verdicts: HashMap<&'a str, Verdict<&'a str>>,
    /// Values whose object the function takes away from the caller.
    moves: Vec<&'a str>,
}

/// Parses the table: the values, and their outcomes in upstream's functions.
fn read_table(text: &'static str) -> (Vec<&'static str>, Vec<Upstream<'static>>) {
    let (mut values, mut functions) = (Vec::new(), Vec::<Upstream>::new());
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#') && *line != "values") {
        let Some(line) = line.strip_prefix("  ") else {
            // the C++ type never contains ` = `, but a signature's type may
            let (ours, cpp) = line.rsplit_once(" = ").unwrap();
            functions.push(Upstream { ours, cpp, verdicts: HashMap::new(), moves: Vec::new() });
            continue;
        };
        let Some(function) = functions.last_mut() else {
            values.push(line);
            continue;
        };
        let (value, got) = line.split_once(" -> ").unwrap_or((line, line));
        let unmoved = got.strip_suffix(", moved");
        function.moves.extend(unmoved.map(|_| value));
        let verdict = match got.strip_prefix("error ") {
            Some(kind) => Verdict::Refused(kind.to_owned()),
            None => Verdict::Gets(unmoved.unwrap_or(got)),
        };
        function.verdicts.insert(value, verdict);
    }
    (values, functions)
}

/// A row of the document's table.
struct Row {
    line: &'static str,
    parameters: Patterns,
    cpp: Patterns,
    values: Patterns,
    upstream: &'static str,
    here: &'static str,
}

/// The texts between backticks in a cell, and how often each was used. No text matches everything.
struct Patterns(Vec<(&'static str, usize)>);

impl Patterns {
    fn read(cell: &'static str) -> Self {
        Patterns(cell.split('`').skip(1).step_by(2).map(|pattern| (pattern, 0)).collect())
    }

    /// The index of the first pattern that matches a text.
    fn find(&self, text: &str) -> Option<usize> {
        self.0.iter().position(|(pattern, _)| is_like(text, pattern))
    }

    fn takes(&self, text: &str) -> bool {
        self.0.is_empty() || self.find(text).is_some()
    }

    fn count(&mut self, text: &str) {
        if let Some(place) = self.find(text) {
            self.0[place].1 += 1;
        }
    }
}

/// Whether a pattern matches a text; `*` matches any text.
fn is_like(text: &str, pattern: &str) -> bool {
    match pattern.split_once('*') {
        None => text == pattern,
        Some((start, rest)) => text.strip_prefix(start).is_some_and(|text| {
            text.char_indices().map(|(i, _)| i).chain([text.len()]).any(|i| is_like(&text[i..], rest))
        }),
    }
}

fn read_document(text: &'static str) -> Vec<Row> {
    let rows = text.lines().skip_while(|line| !line.starts_with("| parameter |")).skip(2);
    let rows = rows.take_while(|line| line.starts_with('|'));
    let read = |line: &'static str| {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        let ["", parameters, cpp, values, upstream, here, why, ""] = cells[..] else { panic!("{line}") };
        assert!(!why.is_empty(), "{line}");
        let [parameters, cpp, values] = [parameters, cpp, values].map(Patterns::read);
        Row { line, parameters, cpp, values, upstream, here }
    };
    rows.map(read).collect()
}

/// A wrapper for a type, whose kernel notes what it receives.
struct Wrapper<'p> {
    prepared: Prepared<'p>,
    known: HashMap<String, Verdict<Vec<Noted>>>,
}

impl<'p> Wrapper<'p> {
    /// The outcome for a value.
    fn verdict(&mut self, value: &str) -> Verdict<Vec<Noted>> {
        if let Some(known) = self.known.get(value) {
            return known.clone();
        }
        let outcome = parse_call(value).and_then(|call| self.prepared.run(&call));
        let outcome = outcome.unwrap_or_else(|e| panic!("{value}: {e}"));
        let verdict = match outcome.error {
            Some((kind, _)) => Verdict::Refused(kind),
            None => Verdict::Gets(outcome.received),
        };
        self.known.insert(value.to_owned(), verdict.clone());
        verdict
    }
}

/// The wrapper for a type, which may include a result type.
fn program(ty: &str) -> Program {
    let (parameter, result) = ty.split_once(" -> ").unwrap_or((ty, "None"));
    let signature = sig(&format!("f(a: {parameter}) -> {result}"));
    let program = recorder::kernel(&signature).and_then(|kernel| Program::new(signature, kernel));
    program.unwrap_or_else(|e| panic!("{ty}: {e}"))
}

#[test]
fn wrappers_take_what_upstream_takes() {
    let (values, functions) = read_table(TABLE);
    let mut rows = read_document(DOCUMENT);
    assert!(!values.is_empty() && !functions.is_empty() && !rows.is_empty());
    let refused = Verdict::Refused("TypeError".to_owned());
    let mut problems = Vec::new();
    let judge = |function: &Upstream<'static>| {
        let program = program(function.ours);
        let prepared = Prepared::new(&program).unwrap_or_else(|e| panic!("{}: {e}", function.ours));
        let mut wrapper = Wrapper { prepared, known: HashMap::new() };
        let verdict = |value: &&str| {
            let here = wrapper.verdict(value);
            // Upstream's function received a value of exactly its type. The kernel must receive the same for both
            // values.
            let agree = match (function.verdicts.get(value).unwrap_or(&refused), &here) {
                (Verdict::Gets(got), Verdict::Gets(_)) => here == wrapper.verdict(got),
                (Verdict::Refused(theirs), Verdict::Refused(here)) => theirs == here,
                _ => false,
            };
            (here, agree)
        };
        values.iter().map(verdict).collect::<Vec<_>>()
    };
    // in parallel, because this test would be the slowest
    let verdicts = parallel::map(&functions, judge);
    for (function, verdicts) in functions.iter().zip(verdicts) {
        let (ours, cpp) = (function.ours, function.cpp);
        for (value, (here, agree)) in values.iter().zip(verdicts) {
            let theirs = function.verdicts.get(value).unwrap_or(&refused);
            let moves = function.moves.contains(value);
            if agree && !moves {
                continue;
            }
            // as in the document's table
            let (theirs, here) = match (theirs, &here) {
                (Verdict::Gets(_), Verdict::Gets(_)) if moves => ("moves", "accepts"),
                (Verdict::Gets(_), Verdict::Gets(_)) => ("converts", "accepts"),
                (Verdict::Gets(_), Verdict::Refused(here)) => ("accepts", &**here),
                (Verdict::Refused(theirs), Verdict::Gets(_)) => (&**theirs, "accepts"),
                (Verdict::Refused(theirs), Verdict::Refused(here)) => (&**theirs, &**here),
            };
            let mut told = false;
            for row in rows.iter_mut().filter(|row| (row.upstream, row.here) == (theirs, here)) {
                if row.parameters.takes(ours) && row.cpp.takes(cpp) && row.values.takes(value) {
                    row.parameters.count(ours);
                    row.cpp.count(cpp);
                    row.values.count(value);
                    told = true;
                }
            }
            if !told {
                problems.push(format!("| `{ours}` | `{cpp}` | `{value}` | {theirs} | {here} |"));
            }
        }
    }
    for row in &rows {
        for (pattern, times) in [&row.parameters, &row.cpp, &row.values].into_iter().flat_map(|patterns| &patterns.0) {
            if *times == 0 {
                problems.push(format!("no difference needs `{pattern}` in the row {}", row.line));
            }
        }
    }
    assert!(problems.is_empty(), "docs/reference/upstream.md doesn't say what there is:\n{}", problems.join("\n"));
}

/// The document's table of versions agrees with the versions that `inspect` tells.
#[test]
fn c_functions_have_the_versions_of_the_document() {
    let rows = DOCUMENT.lines().filter(|line| line.starts_with("| 0."));
    let cells = rows.map(|row| row.trim_matches(['|', ' ']).split_once(" | ").unwrap());
    let mut checked = 0;
    for (version, names) in cells {
        for name in names.split('`').filter(|name| name.starts_with("TVMFFI")) {
            let needed = min_version([name]).map(|version| version.to_string());
            assert_eq!(needed.as_deref(), Some(version), "{name}");
            checked += 1;
        }
    }
    assert!(checked >= 10, "{checked}");
    assert_eq!(
        min_version(["TVMFFIHandleInitOnce", "TVMFFIFunctionCall", "puts"]),
        min_version(["TVMFFIHandleInitOnce"])
    );
    assert_eq!(min_version(["puts"]), None);
}
