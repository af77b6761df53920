//! Host functions as text: the programs of `fixtures/host` on every executor, wrong programs beside their messages, and
//! the limits of the language.

mod generated;
mod guide;
mod matches;
mod operations;
mod printing;
mod rows;

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use tvm_ffi_codegen::artifact::LibraryBuilder;
use tvm_ffi_codegen::diagnostic::{Diagnose, DiagnosticKind};
use tvm_ffi_codegen::lower::{RuntimeHelpers, lower};
use tvm_ffi_codegen::runtime::registry::get_global;
use tvm_ffi_codegen::runtime::{Any, DLDevice, Tensor};
use tvm_ffi_codegen::{DLDataType, HostProgram, Kernel, LowerError, Signature, image::Image};

use crate::support::library::{Library, Loaded, Prepared};
use crate::support::sig;

const NO_IMAGES: [(&str, Image); 0] = [];

fn fixture(name: &str) -> (PathBuf, String) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/host").join(name);
    let text = fs::read_to_string(&path).unwrap();
    (path, text)
}

/// Compares a fixture with what it should be, or writes it.
fn compare(path: PathBuf, text: &str, actual: &str) {
    if std::env::var_os("TVM_FFI_CODEGEN_BLESS").is_some_and(|v| v == "1") {
        return fs::write(path, actual).unwrap();
    }
    for (number, (want, got)) in (1..).zip(text.lines().zip(actual.lines())) {
        assert_eq!(got, want, "{}:{number}", path.display());
    }
    assert_eq!(actual, text);
}

/// The program after a line `program:`, up to a line `end`.
fn program<'t>(lines: &mut impl Iterator<Item = &'t str>, out: &mut String) -> String {
    let mut program = String::new();
    for line in lines.by_ref() {
        let _ = writeln!(out, "{line}");
        if line == "end" {
            return program;
        }
        let _ = writeln!(program, "{line}");
    }
    panic!("a program without `end`:\n{program}");
}

fn library(program: &HostProgram) -> Result<Library, String> {
    Library::new(program.functions().map(|(signature, kernel)| (signature.clone(), kernel.clone())).collect())
}

/// An argument: a number, a truth value, a text, `None`, a vector of float32, zeros such as `int8[3]`, a dtype or a
/// device such as `dtype:int8`, or a global function's name.
fn argument(text: &str) -> Any {
    let vector = |list: &str| {
        let values: Vec<f32> = list.split_whitespace().map(|value| value.parse().unwrap()).collect();
        Any::from(Tensor::from_slice(&values, &[values.len() as i64]).unwrap())
    };
    match text {
        "None" => Any::none(),
        "True" => Any::from(true),
        "False" => Any::from(false),
        _ if text.starts_with('"') => Any::from(text.trim_matches('"')),
        _ if text.starts_with("dtype:") => Any::from(text["dtype:".len()..].parse::<DLDataType>().unwrap()),
        _ if text.starts_with("device:") => Any::from(text["device:".len()..].parse::<DLDevice>().unwrap()),
        _ if text.ends_with(']') && !text.starts_with('[') => {
            let (dtype, size) = text.trim_end_matches(']').split_once('[').unwrap();
            Tensor::zeros(&[size.parse().unwrap()], dtype.parse().unwrap(), DLDevice::CPU).unwrap().into()
        }
        _ if text.starts_with('[') => vector(text.trim_matches(['[', ']'])),
        _ => match (text.parse::<i64>(), text.parse::<f64>()) {
            (Ok(number), _) => Any::from(number),
            (_, Ok(number)) => Any::from(number),
            _ => Any::from(get_global(text).unwrap_or_else(|| panic!("no function {text}"))),
        },
    }
}

/// The outcome of a call, and the elements of its tensors.
fn outcome(loaded: &mut Loaded<'_>, call: &str) -> String {
    let (name, args) = call.trim_end_matches(')').split_once('(').unwrap();
    let args: Vec<Any> = args.split(", ").filter(|arg| !arg.is_empty()).map(argument).collect();
    let mut text = loaded.call(name, &args).to_string();
    for elements in args.iter().filter_map(|arg| arg.cast::<Tensor>().ok()?.to_vec::<f32>().ok()) {
        let _ = write!(text, "; {elements:?}");
    }
    loaded.unload();
    text
}

/// Runs the calls of a fixture on every executor.
fn run_alike(name: &str, min_calls: usize) {
    crate::calls::callees::register();
    let (path, text) = fixture(name);
    let mut actual = String::new();
    let mut lines = text.lines().filter(|line| !line.starts_with("expect: ")).peekable();
    let mut calls = 0;
    while let Some(line) = lines.next() {
        let _ = writeln!(actual, "{line}");
        if line != "program:" {
            continue;
        }
        let text = program(&mut lines, &mut actual);
        let parsed = HostProgram::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let library = library(&parsed).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let mut prepared = Prepared::new(&library).unwrap();
        while let Some(line) = lines.next_if(|line| *line != "program:") {
            let _ = writeln!(actual, "{line}");
            let Some(call) = line.strip_prefix("call: ") else { continue };
            let found = prepared.run(|loaded| outcome(loaded, call)).unwrap_or_else(|e| panic!("{call}: {e}"));
            let _ = writeln!(actual, "expect: {found}");
            calls += 1;
        }
    }
    assert!(calls >= min_calls, "{calls} calls");
    compare(path, &text, &actual);
}

#[test]
fn programs_run_alike_on_every_executor() {
    run_alike("programs.txt", 40);
}

#[test]
fn dispatching_programs_run_alike_on_every_executor() {
    run_alike("dispatch.txt", 40);
}

/// All errors of a program: those of the text, or those of its bodies.
fn errors(text: &str) -> String {
    let program = match HostProgram::parse(text) {
        Ok(program) => program,
        Err(error) => return error.to_string(),
    };
    let mut found = Vec::new();
    for (signature, kernel) in program.functions() {
        found.extend(lower(signature, kernel, RuntimeHelpers::Import).err().map(|error| error.to_string()));
    }
    found.join("\n")
}

#[test]
fn wrong_programs_have_their_messages() {
    let (path, text) = fixture("wrong.txt");
    let mut actual = String::new();
    let mut lines = text.lines().filter(|line| !line.starts_with("> "));
    let mut programs = 0;
    while let Some(line) = lines.next() {
        let _ = writeln!(actual, "{line}");
        if line == "program:" {
            let text = program(&mut lines, &mut actual);
            let found = errors(&text);
            assert!(!found.is_empty(), "no error in\n{text}");
            found.lines().for_each(|line| writeln!(actual, "> {line}").unwrap());
            programs += 1;
        }
    }
    assert!(programs >= 20, "{programs} programs");
    compare(path, &text, &actual);
}

#[test]
fn errors_are_values_with_places() {
    let text = "f(n: int64) -> int64 {\n  let m = n + ;\n  retrun m;\n}\ng(x: fp16);";
    let error = HostProgram::parse(text).unwrap_err();
    let places: Vec<_> = error.errors.iter().map(|e| (e.line, e.column, &text[e.span.clone()])).collect();
    assert_eq!(places, [(2, 15, ";"), (3, 10, "m"), (5, 6, "fp16")]);
    let diagnostic = error.diagnostic();
    assert_eq!((diagnostic.kind, diagnostic.errors.len()), (DiagnosticKind::Kernel, 3));
    assert!(diagnostic.to_json().contains(r#""line":5"#), "{}", diagnostic.to_json());

    let kernel = Kernel::text("{\n  return n + 1.5;\n}", NO_IMAGES).unwrap();
    let error = lower(&sig("f(n: int64) -> int64"), &kernel, RuntimeHelpers::Import).unwrap_err();
    let LowerError::Body { errors, .. } = &error else { panic!("{error}") };
    let place = errors[0].place.as_ref().unwrap();
    assert_eq!((place.line, place.column, place.text.as_str()), (2, 12, "  return n + 1.5;"));
    let detail = &error.diagnostic().errors[0];
    assert_eq!((detail.line, detail.column, detail.span.clone()), (Some(2), Some(12), Some(13..14)));
}

#[test]
fn one_text_reports_at_most_32_errors() {
    let wrong = "  let a = ;\n".repeat(100);
    assert_eq!(HostProgram::parse(&format!("f() {{\n{wrong}}}")).unwrap_err().errors.len(), 32);
    let wrong = "  let a = b;\n".repeat(100);
    let kernel = Kernel::text(&format!("{{\n{wrong}}}"), NO_IMAGES).unwrap();
    match lower(&sig("f()"), &kernel, RuntimeHelpers::Import) {
        Err(LowerError::Body { errors, .. }) => assert_eq!(errors.len(), 32),
        other => panic!("{other:?}"),
    }
}

/// Runs a closure on a small stack, as hosts' threads may have.
fn on_a_small_stack(run: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(512 << 10).spawn(run).unwrap().join().unwrap();
}

/// A text with something nested that deep.
fn nested(open: &str, inside: &str, close: &str, depth: usize) -> String {
    format!("{{ {}{inside}{} return n; }}", open.repeat(depth), close.repeat(depth))
}

#[test]
fn nesting_has_limits_on_a_small_stack() {
    on_a_small_stack(|| {
        let signature: Signature = sig("f(n: int64, x: Tensor([n], int64)) -> int64");
        let deep = |depth: usize| {
            let chains = (0..depth)
                .fold("n".to_owned(), |e, i| if i % 2 == 0 { format!("{e} + n") } else { format!("({e}) * n") });
            [
                nested("if n > 0 { ", "", "}", depth - 1),
                nested("while n < 0 { ", "", "}", depth - 1),
                nested("match n { 1 => { ", "", "} else => { } }", (depth - 1) / 2),
                nested("try { ", "", "} catch e { raise e; }", depth - 1),
                format!("{{ let a = {}n{}; return a; }}", "(".repeat(depth - 1), ")".repeat(depth - 1)),
                format!("{{ let a = {}n; return a; }}", "~".repeat(depth)),
                format!("{{ let a = {}n{}; return a; }}", "x[".repeat(depth - 1), "]".repeat(depth - 1)),
                format!("{{ let a = {chains}; return a; }}"),
                format!("{{ let a = {}n{}; return a; }}", "abs(".repeat(depth - 1), ")".repeat(depth - 1)),
                format!("{{ let a = {}n{}; return a; }}", "min(1, ".repeat(depth - 1), ")".repeat(depth - 1)),
                format!("{{ let a = {}n{}; return n; }}", "int64(".repeat(depth - 1), ")".repeat(depth - 1)),
                format!(
                    "{{ let a = {}n{}; return n; }}",
                    "if n > 1 { 1 } else { (".repeat(depth / 6),
                    ") }".repeat(depth / 6)
                ),
                format!(
                    "{{ let a = {}n{}; return n; }}",
                    "call symbol g(".repeat(depth - 2),
                    ") -> int64".repeat(depth - 2)
                ),
                format!("{{ if n > 0 {{ }}{} return n; }}", " else if n > 1 { }".repeat(depth - 2)),
            ]
        };
        for text in deep(60) {
            let kernel = Kernel::text(&text, NO_IMAGES).unwrap_or_else(|e| panic!("{e}"));
            lower(&signature, &kernel, RuntimeHelpers::Import).unwrap_or_else(|e| panic!("{e}"));
        }
        for text in deep(140).into_iter().chain(deep(100_000)) {
            let error = Kernel::text(&text, NO_IMAGES).unwrap_err();
            let problem = &error.errors[0].message;
            assert!(problem.starts_with("expected at most 64 "), "{problem}");
        }
    });
}

#[test]
fn no_input_panics_and_time_is_linear() {
    let (_, programs) = fixture("programs.txt");
    let bytes: Vec<char> = programs.chars().collect();
    for at in (0..bytes.len()).step_by(7) {
        let without: String = bytes.iter().take(at).chain(bytes.iter().skip(at + 1)).take(at + 400).collect();
        let _ = HostProgram::parse(&without);
        let _ = Kernel::text(&without, NO_IMAGES);
    }
    let long = format!("f(n: int64) -> int64 {{ {} return n; }}", "let a = n + 1 * (n // 2); ".repeat(20_000));
    let start = std::time::Instant::now();
    assert!(HostProgram::parse(&long).is_ok());
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
}

#[test]
fn a_program_becomes_a_library_with_docs_globals_and_c_functions() {
    let text = "register one as \"host_text.one\";\n## Gives 1.\none() -> int64 { return 1; }\n\
                extern refuse(n: int64) { raise ValueError(\"{}\", n); }\n@ \"m.py\":3 \"f\" checks(n: int8);\n\
                native(x: Tensor([n], float32)) @ my_kernel dltensor returns=status;";
    let program = HostProgram::parse(text).unwrap();
    let names: Vec<&str> = program.functions().map(|(signature, _)| signature.name()).collect();
    assert_eq!(names, ["one", "checks", "native"]);
    assert_eq!(program.functions().next().unwrap().0.doc(), Some("Gives 1."));
    assert_eq!(program.c_functions().count(), 1);
    assert_eq!(program.globals().collect::<Vec<_>>(), [("one", "host_text.one")]);
    let object = LibraryBuilder::new().program(&program).emit().unwrap();
    assert_eq!(object.functions(), names);
    let has = |name: &[u8]| object.as_bytes().windows(name.len()).any(|window| window == name);
    assert!(has(b"host_text.one") && has(b"\0refuse\0") && has(b"my_kernel"));
}

/// The errors of a program whose functions are compiled together.
fn errors_of_library(text: &str) -> String {
    let program = HostProgram::parse(text).unwrap_or_else(|error| panic!("{error}"));
    LibraryBuilder::new().program(&program).emit().unwrap_err().to_string()
}

/// C19.6, C19.7
#[test]
fn forwarded_calls_are_checked_with_their_module() {
    let error = errors_of_library("extern f(n: int64) { forward global host.f(n); }");
    assert!(
        error.contains("forward: a C function has no arguments of TVM FFI to pass on; call the function"),
        "{error}"
    );
    let of_two = "f(n: int64, x: Tensor([m], float32)) -> Any { forward symbol g(n > 1); }\n";
    let error = errors_of_library(&format!("{of_two}g(a: bool, n: int64) -> Any {{ return n; }}"));
    assert!(error.contains("call of `g`: `g(a: bool, n: int64) -> Any` takes 2 arguments, got 3"), "{error}");
    let error = errors_of_library(&format!("{of_two}g(a: bool, n: int64, x: Tensor([m], int8)) {{ }}"));
    assert!(error.contains("for x, got a tensor of 1 dimensions of float32"), "{error}");
    // the function's own checks convert an integer to a float, and the callee gets the integer
    let fine = "f(x: float64) -> Any { forward symbol g(); }\ng(n: int64) -> Any { return n; }";
    assert!(LibraryBuilder::new().program(&HostProgram::parse(fine).unwrap()).emit().is_ok());
}
