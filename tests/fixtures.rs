//! Runs the files of `fixtures/` on every executor. `fixtures/README.md` explains their format.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use tvm_ffi_codegen::engine::SymbolResolver;
use tvm_ffi_codegen::image::Image;
use tvm_ffi_codegen::lower::{
    BIND_SYMBOL, Convention, LAUNCH_SYMBOLS, REPORT_SYMBOL, RuntimeHelpers, TAKE_RESULT_SYMBOL, lower,
};
use tvm_ffi_codegen::spec::{KernelArg, Part, SourceLocation};
use tvm_ffi_codegen::{Kernel, KernelReturn, Signature, embed};

use crate::calls;
use crate::support::args::Place;
use crate::support::exec::{Outcome, Prepared, Program, Returned};
use crate::support::kernels::{self, Noted};
use crate::support::layout::{Gives, gives};
use crate::support::parallel;
use crate::support::recorder;
use crate::support::value::{Call, parse::parse_call};

const BLESS: &str = "TVM_FFI_CODEGEN_BLESS";

#[test]
fn all() {
    let bless = std::env::var_os(BLESS).is_some_and(|v| v == "1");
    let (mut problems, mut calls) = (Vec::new(), 0);
    for (found, count) in parallel::map(&fixture_files(), |path| run_file(path, bless)) {
        problems.extend(found);
        calls += count;
    }
    println!("{calls} calls");
    assert!(
        problems.is_empty(),
        "{} of {calls} calls are not as expected; run with {BLESS}=1 to accept what they do now\n\n{}",
        problems.len(),
        problems.join("\n\n")
    );
}

/// Runs a file; returns its problems and the number of its calls.
fn run_file(path: &Path, bless: bool) -> (Vec<String>, usize) {
    let text = fs::read_to_string(path).unwrap();
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    let mut file = File { name: &name, bless, blessed: String::new(), problems: Vec::new(), calls: 0 };
    file.run(&text);
    if bless && file.blessed != text {
        fs::write(path, &file.blessed).unwrap();
    }
    (file.problems, file.calls)
}

#[test]
fn modules_import_what_embed_says() {
    // the list has the helpers for modules that don't define them
    let of_launches = LAUNCH_SYMBOLS.into_iter().flatten();
    let helpers: Vec<_> = [BIND_SYMBOL, REPORT_SYMBOL, TAKE_RESULT_SYMBOL].into_iter().chain(of_launches).collect();
    let names: BTreeSet<&str> = embed::runtime_symbols().map(|(name, _)| name).collect();
    assert!(helpers.iter().all(|name| names.contains(name)));
    // kernels may call the C library's functions too
    let c = SymbolResolver::new();
    let others = |name: &&str| !helpers.contains(name) && c.resolve(name).is_none();
    let known: BTreeSet<&str> = names.into_iter().filter(others).collect();
    let kernels: BTreeSet<&str> = kernels::NATIVE.iter().map(|(name, _)| *name).chain(["record"]).collect();
    let mut imported = BTreeSet::new();
    for (heading, signature, kernel) in signatures() {
        let module = lower(&signature, &kernel, RuntimeHelpers::Define).unwrap();
        for (_, import) in module.imports() {
            let name = import.name.as_str();
            let of_runtime = known.contains(name);
            assert!(of_runtime || kernels.contains(name) || c.resolve(name).is_some(), "{heading}: {name}");
            if of_runtime {
                imported.insert(name.to_owned());
            }
        }
    }
    let of_runtime = |name: &&str| known.contains(name);
    imported.extend(calls::imports().filter(of_runtime).map(str::to_owned));
    // the list has no other functions: each is imported by a fixture, or by a body that calls
    assert!(
        imported.iter().eq(&known),
        "{:?}",
        known.iter().filter(|name| !imported.contains(**name)).collect::<Vec<_>>()
    );
}

/// The files, in order.
pub fn fixture_files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let mut files: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "txt"));
    files.sort();
    assert!(!files.is_empty());
    files
}

/// The signatures and kernels of all fixtures, each with its heading: `file: signature @ kernel`. A kernel at an
/// address is replaced by a symbol.
pub fn signatures() -> Vec<(String, Signature, Kernel)> {
    let (mut found, mut seen) = (Vec::new(), HashSet::new());
    for path in fixture_files() {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).unwrap();
        let mut signature: Option<Signature> = None;
        let mut lines = text.lines().enumerate().map(|(i, raw)| (i + 1, raw)).peekable();
        while let Some((number, raw)) = lines.next() {
            let Some(line) = split_line(number, raw) else { continue };
            match (line.key, &signature) {
                ("signature", _) => signature = line.value.parse().ok(),
                ("places", Some(plain)) => signature = Some(with_locations(plain, line.value).unwrap()),
                ("kernel", Some(signature)) => {
                    let value = with_block(line.value, &mut lines, &mut |_| {});
                    let heading = format!("{name}: {signature} @ {}", value.replace('\n', " "));
                    if seen.insert(heading.clone()) {
                        found.push((heading, signature.clone(), kernel(&value, signature)));
                    }
                }
                _ => {}
            }
        }
    }
    found
}

/// The calls of all fixtures, by the text of their signature.
pub fn calls() -> HashMap<String, Vec<Call>> {
    let mut found: HashMap<String, Vec<Call>> = HashMap::new();
    for path in fixture_files() {
        let text = fs::read_to_string(path).unwrap();
        let mut signature = String::new();
        for line in text.lines().enumerate().filter_map(|(i, raw)| split_line(i + 1, raw)) {
            match line.key {
                "signature" => {
                    signature = line.value.parse().map_or_else(|_| String::new(), |s: Signature| s.to_string())
                }
                "call" => found.entry(signature.clone()).or_default().extend(parse_call(line.value)),
                _ => {}
            }
        }
    }
    found
}

/// The value of a `kernel:` line, with the block of a body that goes on below: lines that are indented, and the last
/// one with its `}`.
fn with_block<'t>(
    value: &str,
    lines: &mut std::iter::Peekable<impl Iterator<Item = (usize, &'t str)>>,
    taken: &mut dyn FnMut(&str),
) -> String {
    let mut block = value.to_owned();
    while let Some((_, raw)) = lines.next_if(|(_, raw)| raw.starts_with([' ', '}'])) {
        taken(raw);
        block.push('\n');
        block.push_str(raw);
    }
    block
}

fn kernel(text: &str, signature: &Signature) -> Kernel {
    match text.strip_prefix("address ") {
        Some(rest) => parse_kernel(&format!("symbol {rest}"), signature).unwrap().0,
        None if text == "record" => {
            let kernel = Kernel::symbol("record");
            match gives(signature) {
                Gives::Written => kernel.returns(KernelReturn::Status),
                Gives::Nothing | Gives::Tensor | Gives::Value => kernel,
            }
        }
        None => parse_kernel(text, signature).unwrap().0,
    }
}

struct File<'a> {
    name: &'a str,
    bless: bool,
    /// The corrected contents of the file.
    blessed: String,
    problems: Vec<String>,
    calls: usize,
}

/// A line that is neither blank nor a comment.
pub struct Line<'a> {
    number: usize,
    pub key: &'a str,
    pub value: &'a str,
}

impl File<'_> {
    fn problem(&mut self, line: usize, what: impl std::fmt::Display) {
        self.problems.push(format!("fixtures/{}:{line}: {what}", self.name));
    }

    /// Copies a line unchanged.
    fn keep(&mut self, text: &str) {
        self.blessed.push_str(text);
        self.blessed.push('\n');
    }

    fn run(&mut self, text: &str) {
        let mut lines = text.lines().enumerate().map(|(i, raw)| (i + 1, raw)).peekable();
        let mut signature: Option<Signature> = None;
        let mut program: Option<(Program, Convention)> = None;
        while let Some((number, raw)) = lines.next() {
            let Some(line) = split_line(number, raw) else {
                if !raw.trim().is_empty() && !raw.starts_with('#') {
                    self.problem(number, format!("`{raw}` is not `key: value`"));
                }
                self.keep(raw);
                continue;
            };
            self.keep(raw);
            match line.key {
                "signature" => {
                    program = None;
                    signature = line.value.parse().map_err(|e| self.problem(number, e)).ok();
                }
                "places" => {
                    program = None;
                    let Some(plain) = &signature else { continue };
                    signature = with_locations(plain, line.value).map_err(|e| self.problem(number, e)).ok();
                }
                "kernel" => {
                    let value = with_block(line.value, &mut lines, &mut |raw| self.keep(raw));
                    let Some(signature) = signature.clone() else { continue };
                    let made = parse_kernel(&value, &signature)
                        .and_then(|(kernel, convention)| Ok((Program::new(signature, kernel)?, convention)));
                    program = made.map_err(|e| self.problem(number, e)).ok();
                }
                "call" => {
                    // all calls of one kernel share the preparation
                    let Some((program, convention)) = &program else {
                        self.problem(number, "a call needs a signature and a kernel above it, free of errors");
                        continue;
                    };
                    match Prepared::new(program) {
                        Ok(mut prepared) => {
                            self.call(&mut prepared, (&program.signature, *convention), &line, &mut lines);
                            while let Some(line) = self.next_call(&mut lines) {
                                self.call(&mut prepared, (&program.signature, *convention), &line, &mut lines);
                            }
                        }
                        Err(e) => self.problem(number, e),
                    }
                }
                "expect" => self.problem(number, "an `expect:` without a `call:` before it"),
                other => self.problem(number, format!("`{other}` is no key")),
            }
        }
    }

    /// The next line if it is a call, skipping comments and blank lines.
    fn next_call<'t>(
        &mut self,
        lines: &mut std::iter::Peekable<impl Iterator<Item = (usize, &'t str)>>,
    ) -> Option<Line<'t>> {
        loop {
            let (number, raw) = *lines.peek()?;
            match split_line(number, raw) {
                Some(line) if line.key == "call" => {
                    lines.next();
                    self.keep(raw);
                    return Some(line);
                }
                None if raw.trim().is_empty() || raw.starts_with('#') => {
                    lines.next();
                    self.keep(raw);
                }
                _ => return None,
            }
        }
    }

    fn call<'t>(
        &mut self,
        prepared: &mut Prepared<'_>,
        (signature, convention): (&Signature, Convention),
        line: &Line<'_>,
        lines: &mut std::iter::Peekable<impl Iterator<Item = (usize, &'t str)>>,
    ) {
        self.calls += 1;
        let expected = lines.next_if(|(number, raw)| split_line(*number, raw).is_some_and(|l| l.key == "expect"));
        let expected_text = expected.map(|(_, raw)| raw.split_once(':').map_or("", |(_, e)| e).trim());
        let outcome = parse_call(line.value).and_then(|call| {
            let outcome = prepared.run(&call)?;
            outcome.follows_contract(signature, &call, convention)?;
            Ok((outcome, call))
        });
        let actual = match outcome {
            Ok((outcome, call)) => show(&outcome, &call, signature),
            Err(e) => {
                self.problem(line.number, e);
                if let Some((_, raw)) = expected {
                    self.keep(raw);
                }
                return;
            }
        };
        if actual.starts_with("BROKEN") || (!self.bless && expected_text != Some(&actual)) {
            let expected = expected_text.unwrap_or("(no `expect:` line)");
            self.problem(line.number, format!("{}\n  expected: {expected}\n  actual:   {actual}", line.value));
        }
        self.keep(&format!("expect: {actual}"));
    }
}

/// A line of a fixture, unless it is blank, a comment or malformed.
pub fn split_line(number: usize, raw: &str) -> Option<Line<'_>> {
    let (key, value) = raw.split_once(':')?;
    let plain = !key.is_empty() && key.chars().all(|c| c.is_ascii_lowercase());
    plain.then(|| Line { number, key, value: value.trim() })
}

/// A signature with places. Each is a part and its line in the file `model.dsl`:
/// `signature 3, x 4, result 5, where[0] 6`.
fn with_locations(signature: &Signature, text: &str) -> Result<Signature, String> {
    let mut placed = signature.clone();
    for place in text.split(',') {
        let (name, line) = place.trim().split_once(' ').ok_or_else(|| format!("`{place}` is no part and line"))?;
        let number = name.strip_prefix("where[").and_then(|rest| rest.strip_suffix(']')?.parse().ok());
        let part = match (name, number) {
            ("signature", _) => Part::Signature,
            ("result", _) => Part::Result,
            (_, Some(number)) => Part::Constraint(number),
            _ => {
                let param = signature.params().iter().position(|param| param.name == name);
                Part::Param(param.ok_or_else(|| format!("no part is called `{name}`"))?)
            }
        };
        let line = line.parse().map_err(|e| format!("`{line}`: {e}"))?;
        placed =
            placed.with_location(part, SourceLocation::new("model.dsl", line, "forward")).map_err(|e| e.to_string())?;
    }
    Ok(placed)
}

/// Parses a kernel, and how it is called.
pub fn parse_kernel(text: &str, signature: &Signature) -> Result<(Kernel, Convention), String> {
    if text.starts_with('{') {
        let kernel = Kernel::text(text, std::iter::empty::<(&str, Image)>()).map_err(|e| e.to_string())?;
        return Ok((kernel, Convention::Flat));
    }
    if let Some((kernel, args)) = text.split_once(" args=") {
        let args = args.strip_prefix('[').and_then(|args| args.strip_suffix(']')).ok_or("expected a list of args")?;
        let args = KernelArg::list(args).map_err(|e| e.to_string())?;
        // with stated parameters the model can't predict `flat`, so this states another convention
        return Ok((parse_kernel(kernel, signature)?.0.args(args), Convention::DlTensor));
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    let flat = |kernel| Ok((kernel, Convention::Flat));
    let (kernel, mut rest) = match &words[..] {
        ["check"] => return flat(Kernel::check_only()),
        ["record"] => return flat(recorder::kernel(signature)?),
        ["symbol", name, rest @ ..] => (Kernel::symbol(*name), rest),
        ["address", name, rest @ ..] => {
            let address = kernels::native(name).ok_or_else(|| format!("no native kernel is called `{name}`"))?;
            (Kernel::address(address), rest)
        }
        _ => {
            return Err(format!(
                "`{text}` is no kernel: check, record, symbol NAME, address NAME or a block of host text"
            ));
        }
    };
    let stated = rest.first().and_then(|word| word.parse().ok());
    if stated.is_some() {
        rest = &rest[1..];
    }
    let convention = stated.unwrap_or_default();
    let kernel = if stated.is_some() { kernel.convention(convention) } else { kernel };
    let kernel = match rest {
        [] => kernel,
        ["nothing"] => kernel.returns(KernelReturn::Nothing),
        ["status"] => kernel.returns(KernelReturn::Status),
        ["value"] => kernel.returns(KernelReturn::Value),
        _ => {
            let expected = "a convention (flat, dltensor, memref, packed), and nothing, status or value";
            return Err(format!("`{text}`: behind a kernel's name may stand {expected}"));
        }
    };
    Ok((kernel, convention))
}

/// An outcome in the form of an `expect:` line.
pub fn show(outcome: &Outcome, call: &Call, signature: &Signature) -> String {
    let mut text = match (&outcome.code, &outcome.error) {
        (Ok(0), None) => "ok".to_owned(),
        (Ok(-1), Some((kind, message))) => format!("{kind}: {message}"),
        (Ok(0), Some(error)) => return format!("BROKEN: success, but raised {error:?}"),
        (Ok(code), Some((kind, message))) => format!("code {code}, {kind}: {message}"),
        (Ok(code), None) => format!("code {code}, no error"),
        (Err(trap), _) => return format!("BROKEN: {trap}"),
    };
    for place in &outcome.places {
        let _ = write!(text, "; {place}");
    }
    if outcome.code != Ok(0) {
        return match &outcome.result {
            Returned::Untouched => text,
            result => format!("BROKEN: failed, but the result is {result:x?}"),
        };
    }
    if !outcome.received.is_empty() {
        let received: Vec<String> = outcome.received.iter().map(show_noted).collect();
        let _ = write!(text, "; received = [{}]", received.join(", "));
    }
    match outcome.result.text() {
        Ok(result) if result.is_none() != signature.ret().is_none() => return format!("BROKEN: result {result:?}"),
        Ok(None) => {}
        Ok(Some(result)) => {
            let _ = write!(text, "; result = {result}");
        }
        Err(problem) => return format!("BROKEN: {problem}"),
    }
    for (Place { argument, path }, elements) in &outcome.changed {
        let label = call.args[*argument].0.as_deref();
        let name = label.or_else(|| signature.passed().nth(*argument).map(|param| &param.name[..]));
        let _ = write!(text, "; {}{path} = {elements}", name.unwrap_or("?"));
    }
    text
}

/// A value that a kernel has received: small numbers in decimal, others in hexadecimal.
fn show_noted(noted: &Noted) -> String {
    match noted {
        Noted::Word(word) if (-65536..=65536).contains(&(*word as i64)) => (*word as i64).to_string(),
        Noted::Word(word) => format!("{word:#x}"),
        Noted::Text(text) => text.clone(),
    }
}
