//! The printed text of a program is read back to the same program.

use std::fs;
use std::path::Path;

use tvm_ffi_codegen::artifact::LibraryBuilder;
use tvm_ffi_codegen::explain::{Stage, explain};
use tvm_ffi_codegen::lower::{Recipe, RuntimeHelpers};
use tvm_ffi_codegen::spec::KernelArg;
use tvm_ffi_codegen::{Backend, Body, HostProgram, Kernel, LowerError, OptLevel, Signature};

use super::{NO_IMAGES, fixture, program};
use crate::support::sig;
use crate::support::text::reads_back;

/// The module of a program's functions, as text.
fn module(program: &HostProgram) -> String {
    let recipe = Recipe { helpers: RuntimeHelpers::Import, ..Recipe::default() };
    let recipe = program.functions().fold(recipe, |recipe, (signature, kernel)| recipe.function(signature, kernel));
    let recipe = program.c_functions().fold(recipe, |recipe, (signature, kernel)| recipe.function(signature, kernel));
    let lowered = recipe.lower().unwrap_or_else(|errors| panic!("{errors:?}"));
    let docs = program.functions().map(|(signature, _)| {
        format!("{:?} {:?}", signature.doc(), signature.location(tvm_ffi_codegen::spec::Part::Signature))
    });
    format!("{}{:?}", lowered.module, docs.collect::<Vec<_>>())
}

/// Prints a program, reads it back, and compares both.
#[track_caller]
fn read_back(text: &str) -> String {
    let before = HostProgram::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let printed = before.to_string();
    let after = HostProgram::parse(&printed).unwrap_or_else(|error| panic!("{error}\n{printed}"));
    assert_eq!(after.to_string(), printed);
    assert_eq!(before.globals().collect::<Vec<_>>(), after.globals().collect::<Vec<_>>());
    assert_eq!(module(&after), module(&before), "{printed}");
    printed
}

#[test]
fn programs_are_read_back() {
    let (programs, dispatch) = (fixture("programs.txt").1, fixture("dispatch.txt").1);
    let mut lines = programs.lines().chain(dispatch.lines());
    let mut programs = 0;
    while let Some(line) = lines.next() {
        if line == "program:" {
            read_back(&program(&mut lines, &mut String::new()));
            programs += 1;
        }
    }
    assert!(programs >= 10, "{programs} programs");
}

#[test]
fn the_documents_programs_are_read_back() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/host-text.md");
    let doc = fs::read_to_string(path).unwrap();
    let programs = doc.split("## Three programs").nth(1).unwrap();
    let programs = programs.split("```text\n").nth(1).unwrap().split("\n```").next().unwrap();
    // launches need images
    let is_launch = |line: &str| line.trim_start().starts_with("launch ");
    let without: Vec<&str> = programs.lines().filter(|line| !is_launch(line)).collect();
    let printed = read_back(&without.join("\n"));
    assert!(printed.contains("let y = alloc([m, n], float32, like=x);  # the workspace\n"), "{printed}");
    let whole = HostProgram::parse(programs).unwrap().to_string();
    assert_eq!(HostProgram::parse(&whole).unwrap().to_string(), whole);
    assert!(whole.contains("    launch second grid=n block=256 args=[x, sums, y];\n"), "{whole}");
}

#[test]
fn the_form_is_canonical() {
    let text = "# first\n\n# of one\nregister  one as \"a.one\" ;\n## Gives 1.\n##\n##   More.\n\
                @\"m.py\":3 \"f\"  one( ) -> int64 {  # in\n\
                return 1 ;}  # out\nextern refuse(n:int64){raise \"a b\"(\"{}\\x01\",n);}\n\
                f(x:Tensor([n],float32))@my_kernel dltensor\n\
                returns=status;\nnative(n: int64) @ g args=[int32(n)];\n# last";
    let expected = "# first\n\n# of one\nregister one as \"a.one\";\n\n## Gives 1.\n##\n##   More.\n\
                    @ \"m.py\":3 \"f\"\n\
                    one() -> int64 {\n  # in\n  return 1;\n}  # out\n\nextern refuse(n: int64) {\n  \
                    raise \"a b\"(\"{}\\x01\", n);\n}\n\n\
                    f(x: Tensor([n], float32)) @ my_kernel dltensor returns=status;\n\
                    native(n: int64) @ g args=[int32(n)];\n\n# last\n";
    let program = HostProgram::parse(text).unwrap();
    assert_eq!(program.to_string(), expected);
    assert_eq!(HostProgram::parse(expected).unwrap().to_string(), expected);
}

#[test]
fn values_have_the_parentheses_that_they_need() {
    let text = "f(n: int64, v: float64, p: bool, g: Function, cfg: Tuple[int64, int64], if: int64) -> int64 {
  let a = (n + 1) * 2 - (3 - n) - -n;
  let b = -(n + 1) // ~n;
  let c = p and (not p or n == 1) and not (p or p);
  let d = n << 1 << (n >> 2) & 3 | n ^ (1 & n);
  let e = (not p) == (n < 3);
  let h = (call g(n, \"a\\\"\\n\", key=None) -> int64) + 1;
  let i = call g(call g(-1.5) -> Any, [][0]) -> int64;
  let k = if p { n } else if c { let w = n; w } else { (if p { 1 } else { 2 }) + 1 };
  let l = if p { n } else { 2 };
  let m = (if p { n } else { 2 }) + 1;
  let o = if p { let w = n; (if w > 1 { 1 } else { 2 }) } else { 2 };
  while { let w = n * 2; w > x } with x = n, y = 1e30 { continue x + 1, -inf; }
  for z in range(0, -n, 2) { if not p { break; } else { continue; } }
  var q;
  q = call g() -> Any;
  call g(param(n), param(cfg[1]), param(if), move(q), array(1, None), shape([n, 1]), bytes(\"\\xff\\x00\"));
  let t = closure [by: int64 = n] inner(x: int64) -> int64 { return x + by; };
  try { call t(1); } catch err { if err.kind == \"KeyError\" { raise err; } raise \"K\"(\"{} {}\", n, True) from err; }
  ensure p, ValueError(\"{}\", n);
  @ \"a.py\":1 \"f\";
  @ 2;
  @ none;
  return ((int64(v)) + param(if));
}";
    let text = text.replace(", [][0]", ", 1");
    let printed = read_back(&text);
    for line in [
        "  let a = (n + 1) * 2 - (3 - n) - -n;",
        "  let b = -(n + 1) // ~n;",
        "  let c = p and (not p or n == 1) and not (p or p);",
        "  let d = n << 1 << (n >> 2) & 3 | n ^ 1 & n;",
        "  let e = (not p) == (n < 3);",
        "  let h = (call g(n, \"a\\\"\\n\", key=None) -> int64) + 1;",
        "  let l = if p { n } else { 2 };",
        "  let m = (if p { n } else { 2 }) + 1;",
        "    (if w > 1 { 1 } else { 2 })",
        "  } with x = n, y = 1e30 {",
        "  return int64(v) + param(if);",
    ] {
        assert!(printed.lines().any(|printed| printed == line), "{line}\n{printed}");
    }
}

#[test]
fn c_functions_of_rust_are_read_back() {
    let checked = Kernel::body(|b| {
        let n = b.arg("n");
        b.if_(n.gt(3), || b.raise("ValueError", "no {}", [n]));
        b.ret(n + 1);
    });
    let text = Kernel::text("{ return call global host.next(n) -> int64; }", NO_IMAGES).unwrap();
    let [f, g, h] = ["f(n: int64) -> int64", "g(n: int64) -> int64", "h(n: int64) -> int64"].map(sig);
    let program = HostProgram::of_all([(&f, &checked)], [(&g, &checked), (&h, &text)]).unwrap();
    let block = "{\n  if n > 3 {\n    raise ValueError(\"no {}\", n);\n  }\n  return n + 1;\n}\n";
    let expected = format!(
        "f(n: int64) -> int64 {block}\nextern g(n: int64) -> int64 {block}\n\
         extern h(n: int64) -> int64 {{\n  return call global host.next(n) -> int64;\n}}\n"
    );
    assert_eq!(program.to_string(), expected);
    read_back(&expected);
    let object = |program: &HostProgram| LibraryBuilder::new().program(program).emit().unwrap().into_bytes();
    assert!(object(&program) == object(&HostProgram::parse(&expected).unwrap()));
    let names = |functions: Vec<(&Signature, &Kernel)>| -> Vec<String> {
        functions.iter().map(|(signature, _)| signature.name().to_owned()).collect()
    };
    assert_eq!(names(program.functions().collect()), ["f"]);
    assert_eq!(names(program.c_functions().collect()), ["g", "h"]);
    let error = HostProgram::of_all([], [(&g, &Kernel::symbol("my_kernel"))]).unwrap_err().to_string();
    assert!(error.contains("isn't a body, as a C function's kernel has to be"), "{error}");
}

/// Any body prints. The text reads back as long as its blocks nest within the limit.
#[test]
fn printed_texts_nest_up_to_the_limit() {
    fn nest(b: &Body<'_>, depth: usize) {
        match depth {
            0 => b.raise("ValueError", "deep", ()),
            _ if depth.is_multiple_of(2) => b.if_(b.arg("n").gt(0), || nest(b, depth - 1)),
            _ => b.for_range(0, b.arg("n"), |_| nest(b, depth - 1)),
        }
    }
    let signature = sig("f(n: int64)");
    let reads = |depth: usize| {
        let kernel = Kernel::body(move |b| nest(b, depth));
        let text = HostProgram::of([(&signature, &kernel)]).unwrap().to_string();
        assert_eq!(text.matches("{\n").count(), depth + 1);
        HostProgram::parse(&text).map(|read| assert_eq!(read.to_string(), text))
    };
    let most = (1..80).take_while(|depth| reads(*depth).is_ok()).count();
    assert!((60..=64).contains(&most), "{most}");
    for depth in most + 1..80 {
        let error = reads(depth).unwrap_err();
        assert!(error.errors[0].message.starts_with("expected at most 64 "), "{error}");
    }
    // values are named before an expression gets that deep
    let kernel = Kernel::body(|b| {
        let value = (0..500).fold(b.arg("n"), |value, _| !(value + 1));
        b.ret(value);
    });
    reads_back(&[(sig("g(n: int64) -> int64"), kernel)]);
}

#[test]
fn kernels_of_text_keep_their_names_and_comments() {
    let text = Kernel::text("{ # first\n  let twice = 2 * n; # second\n  return twice; }", NO_IMAGES).unwrap();
    let of_rust = Kernel::body(|b| b.ret(b.arg("n") + 1));
    let native = Kernel::symbol("my_kernel").args(KernelArg::list("int32(n)").unwrap());
    let [f, g, h] = ["f(n: int64) -> int64", "g(n: int64) -> int64", "h(n: int64)"].map(sig);
    let program = HostProgram::of([(&f, &text), (&g, &of_rust), (&h, &native)]).unwrap();
    let expected = "f(n: int64) -> int64 {\n  # first\n  let twice = 2 * n;  # second\n  return twice;\n}\n\n\
                    g(n: int64) -> int64 {\n  return n + 1;\n}\n\nh(n: int64) @ my_kernel args=[int32(n)];\n";
    assert_eq!(program.to_string(), expected);
    read_back(expected);
    let level = OptLevel::default();
    assert_eq!(
        explain(&g, &of_rust, Stage::Body, Backend::default(), level).unwrap(),
        "g(n: int64) -> int64 {\n  return n + 1;\n}\n"
    );
    let address = Kernel::address(8 as *const u8);
    let error = HostProgram::of([(&h, &address)]).unwrap_err();
    assert!(matches!(error, LowerError::NoText { .. }), "{error}");
}
