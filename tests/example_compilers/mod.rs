//! The example compilers: the number of lines that they need for TVM FFI, and the errors of their language.

use std::fs;
use std::path::{Path, PathBuf};

use tvm_ffi_codegen::runtime::{Any, AnyView, Array, Function, Module, ObjectRef, Tensor, registry};

#[cfg(feature = "cranelift")]
#[allow(dead_code)] // writing libraries, and the examples' host, are unused
mod cranelift;
#[path = "../../examples/dsl/mod.rs"]
#[allow(dead_code)] // the code generator is unused
mod dsl;
#[path = "../../examples/dsl/host.rs"]
mod host;
#[cfg(feature = "_llvm")]
#[allow(dead_code)] // as above
mod llvm;

/// The integration of a compiler, in one mode, has fewer lines than this.
const LIMIT: usize = 60;

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples")
}

/// The code lines of a file, each with its section: the last comment of the form `// -- section --` before it.
fn code(file: &Path) -> Vec<(String, String)> {
    let mut section = String::new();
    let mut code = Vec::new();
    for line in fs::read_to_string(file).unwrap().lines().map(str::trim) {
        match line.strip_prefix("// -- ").and_then(|line| line.strip_suffix(" --")) {
            Some(name) => section = name.to_owned(),
            None if line.is_empty() || line.starts_with("//") => {}
            None => code.push((section.clone(), line.to_owned())),
        }
    }
    code
}

/// The integration of each compiler is in one file. Its lines are counted as `rustfmt` formats them, with imports but
/// without blank lines and comments. The lines of the first section count for both modes.
#[test]
fn integration_lines() {
    for compiler in ["dsl-cranelift", "dsl-llvm"] {
        let folder = examples().join(compiler);
        let lines = code(&folder.join("integration.rs"));
        let of = |section: &str| lines.iter().filter(|(known, _)| known == section).count();
        let [both, here, ahead] = ["both modes", "in this process", "ahead of time"].map(of);
        assert_eq!(both + here + ahead, lines.len(), "{compiler}: each line is in a section");
        assert!(both > 0 && here > 0 && ahead > 0, "{compiler}: no section is empty");
        println!(
            "{compiler}: {} lines in this process, {} ahead of time; {both} of them for both",
            both + here,
            both + ahead
        );
        assert!(both + here < LIMIT, "{compiler}: {} lines in this process", both + here);
        assert!(both + ahead < LIMIT, "{compiler}: {} lines ahead of time", both + ahead);

        let words = lines.iter().flat_map(|(_, line)| line.split(|c: char| !c.is_alphanumeric() && c != '_'));
        assert_eq!(
            words.filter(|word| *word == "unsafe").count(),
            1,
            "{compiler}: the author vouches for the kernels once"
        );
        let wide = lines.iter().find(|(_, line)| line.len() > 120 || line.matches(';').count() > 1);
        assert_eq!(wide, None, "{compiler}: a line has one statement");
    }
}

/// No other part of a compiler refers to TVM FFI, so the count includes all lines.
#[test]
fn only_the_integration_knows_of_tvm_ffi() {
    let mut files: Vec<PathBuf> =
        ["dsl-cranelift/codegen.rs", "dsl-llvm/codegen.rs"].map(|f| examples().join(f)).into();
    let front_end = fs::read_dir(examples().join("dsl")).unwrap().map(|entry| entry.unwrap().path());
    files.extend(front_end.filter(|f| f.extension().is_some_and(|e| e == "rs") && !f.ends_with("host.rs")));
    assert!(files.len() > 7);
    for file in files {
        let known = code(&file).into_iter().find(|(_, line)| line.to_lowercase().contains("ffi"));
        assert_eq!(known, None, "{}", file.display());
    }
}

/// The source of a program with an error, and the error's message.
const ERRORS: [(&str, &str); 13] = [
    ("kernel f(x: float32[n]) { x[0] = y; }", "k.dsl:1:34: there is no `y`"),
    ("kernel f(x: float32[n]) {\n  for i in n { x[i] = 1.0 }\n}", "k.dsl:2:27: expected `;`, found `}`"),
    ("kernel f(x: float32[n]) { for i in n { x[i] = i; } }", "k.dsl:1:47: expected float32, found int64"),
    (
        "kernel f(x: float32[n]?) { for i in n { x[i] = 1.0; } }",
        "k.dsl:1:41: `x` may be missing; ask `if given(x)` before",
    ),
    ("kernel f(x: float32[n, m]) { x[0] = 1.0; }", "k.dsl:1:30: `x` has 2 dimensions, found 1"),
    ("kernel f(n: int64) -> int64 { if n > 0 { return n; } }", "k.dsl:1:54: expected a `return`"),
    ("kernel f(n: int64) -> int64 { return n // n; }", "k.dsl:1:38: expected a number above 0 as divisor"),
    ("kernel f(s: str) { raise E(\"{} {}\", s); }", "k.dsl:1:20: the message has 2 values, found 1"),
    ("kernel f(k: int64?) -> int64 { return k; }", "k.dsl:1:39: `k` may be missing; ask `if given(k)` before"),
    ("kernel f(x: [float32]) {}", "k.dsl:1:13: the elements of a list are of type int64 or float64"),
    ("kernel f(p: (int64, str)) {}", "k.dsl:1:21: the items of a tuple are scalars and tensors"),
    ("kernel f(s: str) -> str { return s; }", "k.dsl:1:27: expected a call that returns a text"),
    (
        "extern g(float32[n]) -> int64;\nkernel f(p: (float32[n], int64)) -> int64 { return g(p.0); }",
        "k.dsl:2:54: `p[0]` is no parameter, so it can't be passed on",
    ),
];

#[test]
fn errors_of_programs_have_places() {
    for (text, expected) in ERRORS {
        let error = dsl::read("k.dsl", text).map(drop).unwrap_err().to_string();
        assert_eq!(error.lines().next(), Some(expected), "{text}");
    }
    let deep = format!("kernel f(n: int64) -> int64 {{ return {}n{}; }}", "(".repeat(10_000), ")".repeat(10_000));
    let error = dsl::read("k.dsl", &deep).map(drop).unwrap_err().to_string();
    assert!(error.contains("expected at most 128 levels"), "{}", &error[..60]);
    let long = format!("kernel f(n: int64) -> int64 {{ return n{}; }}", " + n".repeat(10_000));
    assert!(dsl::read("k.dsl", &long).is_err());
}

/// An index is checked unless it is certainly in range.
#[test]
fn indices_are_checked_unless_they_are_inside() {
    let checks = |index: &str| {
        let text = format!("kernel f(x: float32[n, m]) {{ for i in n, j in m {{ x[{index}] = 1.0; }} }}");
        dsl::read("k.dsl", &text).unwrap().kernels[0].outside.len()
    };
    assert_eq!(["i, j", "j, i", "i, 0", "i + 0, j"].map(checks), [0, 2, 1, 1]);
}

/// The compilers.
const COMPILERS: &[fn(&str) -> Module] = &[
    #[cfg(feature = "cranelift")]
    cranelift::compile,
    #[cfg(feature = "_llvm")]
    llvm::compile,
];

/// The host gets the objects that the kernel's caller has passed, and may keep them.
#[test]
fn parameters_are_passed_on_as_they_came() {
    registry::set_global("example_compilers.keep", Function::from_typed(keep), true).unwrap();
    let text = "extern example_compilers.keep(float32[n]?, [float64], (int64, float32[n])) -> int64;\n\
                kernel keep(x: float32[n]?, list: [float64], pair: (int64, float32[n])) -> int64 {\n\
                    let first = example_compilers.keep(x, list, pair);\n\
                    return 10 * example_compilers.keep(x, list, pair) + first;\n\
                }\n";
    for compile in COMPILERS {
        let keep = compile(text).get_function("keep").unwrap().unwrap();
        let x = Tensor::from_slice(&[5.0f32], &[1]).unwrap();
        let list = Array::<f64>::from_iter([1.0]);
        let pair = Array::<Any>::from_iter([Any::from(3), x.clone().into()]);
        let objects = [Any::from(x.clone()), list.clone().into(), pair.clone().into()].map(|any| any.cast().unwrap());
        let counts = || objects.each_ref().map(ObjectRef::strong_count);
        let before = counts();
        assert_eq!(keep.call((&x, &list, &pair)).unwrap().cast::<i64>().unwrap(), 22);
        assert_eq!(keep.call((AnyView::none(), &list, &pair)).unwrap().cast::<i64>().unwrap(), 11);
        let kept: Vec<Any> = KEPT.take();
        assert_eq!(kept.len(), 12);
        for (i, any) in kept.iter().enumerate().filter(|(i, _)| ![6, 9].contains(i)) {
            assert!(any.cast::<ObjectRef>().unwrap().ptr_eq(&objects[i % 3]), "{i}");
        }
        assert_eq!(counts(), [before[0] + 2, before[1] + 4, before[2] + 4]);
        drop(kept);
        assert_eq!(counts(), before);
    }
}

thread_local! {
    static KEPT: std::cell::RefCell<Vec<Any>> = const { std::cell::RefCell::new(Vec::new()) };
}

/// Keeps what it gets, and returns how many tensors there are.
fn keep(x: Any, list: Any, pair: Any) -> i64 {
    let tensors = 1 + i64::from(x.cast::<Tensor>().is_ok());
    KEPT.with_borrow_mut(|kept| kept.extend([x, list, pair]));
    tensors
}

/// All kernels of the examples, called as the examples call them.
#[test]
fn kernels_compute_what_plain_rust_does() {
    for compile in COMPILERS {
        host::run(&compile(include_str!("../../examples/dsl/kernels.dsl"))).unwrap();
    }
}

/// Names that may be taken for parts of others, or that mean something in C or in a signature.
const NAMES: [[&str; 2]; 14] = [
    ["s", "s_size"],
    ["s", "s_data"],
    ["s_size", "s_size_"],
    ["x", "x_size0"],
    ["x", "x_shape0"],
    ["x_given", "x"],
    ["double", "p_double"],
    ["int", "long"],
    ["volatile", "register"],
    ["NULL", "uint8_t"],
    ["n", "value"],
    ["data", "size"],
    ["handle", "args"],
    ["where", "dtype_policy"],
];

#[test]
fn names_of_parameters_are_any() {
    let elements = Tensor::from_slice(&[5.0f32, 7.0], &[2]).unwrap();
    // a type of the language, an expression with a parameter `NAME` that evaluates to 7, and the argument for that
    // numbers have no parts with names of their own, so one type stands for all of them
    let types: [(&str, &str, Any); 7] = [
        ("int64", "NAME", 7.into()),
        ("str", "if NAME == \"seven\" then 7 else 0", "seven".into()),
        ("float32[2]", "if NAME[1] == 7.0 then 7 else 0", elements.clone().into()),
        ("float32[2]?", "if given(NAME) then (if NAME[1] == 7.0 then 7 else 0) else 0", elements.into()),
        ("int64?", "if given(NAME) then NAME else 0", 7.into()),
        ("[float64]", "if NAME[1] == 7.0 then len(NAME) + 5 else 0", Array::<f64>::from_iter([5.0, 7.0]).into()),
        ("(int64, float32)", "if NAME.1 == 5.0 then NAME.0 else 0", Array::<i64>::from_iter([7, 5]).into()),
    ];
    for (i, (first, value, first_arg)) in types.iter().enumerate() {
        for (j, (second, other, second_arg)) in types.iter().enumerate() {
            // the last three have parts with names as others have, so each of them meets texts alone
            if i.max(j) >= 4 && ![*first, *second].contains(&"str") {
                continue;
            }
            let mut text = "extern host.seven(int64, str) -> int64;\n".to_owned();
            for (i, [a, b]) in NAMES.into_iter().enumerate() {
                let sum = format!("100 * ({}) + ({})", value.replace("NAME", a), other.replace("NAME", b));
                text += &format!("kernel f{i}({a}: {first}, {b}: {second}) -> int64 {{ return {sum}; }}\n");
                text += &format!("kernel g{i}({b}: {second}, {a}: {first}) -> int64 {{ return {sum}; }}\n");
            }
            for compile in COMPILERS {
                let module = compile(&text);
                for (i, names) in NAMES.iter().enumerate() {
                    let call = |name: String, args: [&Any; 2]| {
                        let function = module.get_function(&name).unwrap().unwrap();
                        function.call((args[0], args[1])).unwrap().cast::<i64>().unwrap()
                    };
                    let found = [
                        call(format!("f{i}"), [first_arg, second_arg]),
                        call(format!("g{i}"), [second_arg, first_arg]),
                    ];
                    assert_eq!(found, [707, 707], "{names:?}: {first}, {second}");
                }
            }
        }
    }
}

/// Symbols, new tensors and parameters of external functions can have such names too.
#[test]
fn names_of_symbols_and_results_are_any() {
    registry::set_global("example_compilers.pick", Function::from_typed(|_: String, n: i64| n), true).unwrap();
    let text = "extern example_compilers.pick(str, int64) -> int64;\n\
                kernel miscompiled(s: str, s_size: int64) -> int64 { return s_size; }\n\
                kernel symbol(double: float32[int], double_size0: int64) -> int64 { return 100 * int + double_size0; }\n\
                kernel made(result_data: float32[long], value: int64) -> float32[long] {\n\
                    for i in long { result[i] = result_data[i] + float32(value); }\n\
                }\n\
                kernel double(s: str, s_size: int64) -> int64 {\n\
                    if s_size < 0 { raise ValueError(\"{} and {}\", s, s_size); }\n\
                    let s_data = example_compilers.pick(s, s_size);\n\
                    return s_data;\n\
                }\n";
    for compile in COMPILERS {
        let module = compile(text);
        let get = |name: &str| module.get_function(name).unwrap().unwrap();
        assert_eq!(get("miscompiled").call(("abc", 100)).unwrap().cast::<i64>().unwrap(), 100);
        let x = Tensor::from_slice(&[5.0f32, 7.0], &[2]).unwrap();
        assert_eq!(get("symbol").call((&x, 3)).unwrap().cast::<i64>().unwrap(), 203);
        let made = get("made").call((&x, 1)).unwrap().cast::<Tensor>().unwrap();
        assert_eq!(made.to_vec::<f32>().unwrap(), [6.0, 8.0]);
        assert_eq!(get("double").call(("abc", 100)).unwrap().cast::<i64>().unwrap(), 100);
        assert_eq!(get("double").call(("abc", -1)).unwrap_err().message(), "abc and -1");
    }
}
