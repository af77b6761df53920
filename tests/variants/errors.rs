//! Wrong keys, rows and variants.

use tvm_ffi_codegen::diagnostic::{Diagnostic, DiagnosticKind};
use tvm_ffi_codegen::dispatch::DispatchTable;
use tvm_ffi_codegen::runtime::Function;
use tvm_ffi_codegen::{Dispatch, Engine, EngineError};

use super::{KEYS, PICK, pick, variant};
use crate::support::sig;

/// The error of a dispatch that is compiled in this process.
fn error(dispatch: &Dispatch) -> EngineError {
    // SAFETY: the bodies read no memory.
    match unsafe { dispatch.compile(&Engine::new().unwrap()) } {
        Err(error) => error,
        Ok(_) => panic!("{dispatch:?}"),
    }
}

/// The error of a dispatch with rows, as text.
fn error_of(rows: &[(&str, &str)]) -> String {
    error(&pick(rows)).to_string()
}

#[test]
fn errors_of_grammar_come_all_at_once_with_their_places() {
    let (signature, kernel) = variant("one", "float32", 1);
    let dispatch = Dispatch::new(&sig(PICK), ["x.dtype", "n %", "BLOCK"])
        .variant("float32, True, 1 => return; 2", &signature, &kernel)
        .variant("float16, tru(, 2", &signature, &kernel)
        .variant("float16, True # half", &signature, &kernel);
    let found = dispatch.functions().unwrap_err();
    let errors: Vec<_> = found.errors.iter().map(|error| (error.text.trim(), error.message.as_str())).collect();
    let end = " => forward symbol \"one\"();";
    assert_eq!(
        errors,
        [
            ("n %,", "expected a value, found the end"),
            (
                format!("float32, True, 1 => return; 2{end}").as_str(),
                "expected the end of the row's patterns, found `=`"
            ),
            (format!("float16, tru(, 2{end}").as_str(), "expected the end of the row's patterns, found `(`"),
            (format!("float16, True # half{end}").as_str(), "expected the end of the row's patterns, found a comment"),
        ]
    );
    let second = &found.errors[1];
    assert_eq!((second.line, second.column, second.got()), (7, 22, Some("`=`")));
    // the engine's error has the same parts
    let error = error(&dispatch);
    assert_eq!(error.to_string(), found.to_string());
    let diagnostic = Diagnostic::of(&error);
    assert_eq!((diagnostic.kind, diagnostic.errors.len()), (DiagnosticKind::Kernel, 4));
}

#[test]
fn keys_that_can_not_be_compared_are_errors() {
    let (signature, kernel) = variant("one", "float32", 1);
    let of = |keys: &[&str], row: &str| {
        let dispatch = Dispatch::new(&sig(PICK), keys.iter().copied()).variant(row, &signature, &kernel);
        error(&dispatch).to_string()
    };
    assert!(of(&["m"], "1").contains("line 3: `m`: no value has this name\n"), "{}", of(&["m"], "1"));
    assert!(of(&["x"], "1").contains("keys are integers, truth values, dtypes"), "{}", of(&["x"], "1"));
    let found = of(&["x.dtype", "n"], "1, 1");
    assert!(found.contains("expected a dtype or `_` for `x.dtype`, got 1"), "{found}");
    assert!(found.contains("1, 1 => forward symbol \"one\"();"), "{found}");
    let found = of(&["n"], "1, 2");
    assert!(found.contains("expected 1 patterns, one for each key, got 2"), "{found}");
    // without keys there is nothing to match
    assert!(of(&[], "1").contains("expected a value, found `{`"), "{}", of(&[], "1"));
    assert!(error(&Dispatch::new(&sig(PICK), KEYS)).to_string().contains("expected 1 to 1024 rows, got 0"));
}

/// C19.11
#[test]
fn rows_that_never_run_or_overlap_are_errors() {
    let unreachable = error_of(&[("float32, _, _", "float32"), ("float32, True, 1", "float32")]);
    let line = "float32, True, 1 => forward symbol \"pick_2\"();";
    assert!(unreachable.contains("row 2 never runs"), "{unreachable}");
    assert!(unreachable.contains(line), "{unreachable}");
    let overlapping = error_of(&[("float32, _, 1", "float32"), ("float32, True, _", "float32")]);
    assert!(overlapping.contains("float32, True, _ => forward symbol \"pick_2\"();"), "{overlapping}");
    // the values that both have come first
    let stated = [("float32, True, 1", "float32"), ("float32, _, 1", "float32"), ("float32, True, _", "float32")];
    // SAFETY: the bodies read no memory.
    assert!(unsafe { pick(&stated).compile(&Engine::new().unwrap()) }.is_ok());
    // a constant that the signature excludes
    let of_float32 = sig("pick(x: Tensor([n], float32), BLOCK: int64) -> int64");
    let (signature, kernel) = variant("one", "int8", 1);
    let excluded = error(&Dispatch::new(&of_float32, ["x.dtype"]).variant("int8", &signature, &kernel)).to_string();
    assert!(excluded.contains("`x.dtype` is always float32, so int8 never holds"), "{excluded}");
}

/// C19.7
#[test]
fn variants_take_the_arguments_of_the_dispatch() {
    let (signature, kernel) = (sig("one(x: Tensor([n], float32)) -> int64"), super::text("{ return 1; }"));
    let found = error(&Dispatch::new(&sig(PICK), KEYS).variant("float32, _, _", &signature, &kernel)).to_string();
    assert!(found.contains("`one(x: Tensor([n], float32)) -> int64` takes 1 arguments, got 2"), "{found}");
    // two functions of one name
    let (one, kernel) = variant("pick", "float32", 1);
    let found = error(&Dispatch::new(&sig(PICK), KEYS).variant("float32, _, _", &one, &kernel)).to_string();
    assert!(found.contains("`pick`"), "{found}");
}

#[test]
fn a_table_has_the_keys_of_its_dispatch() {
    let on_miss = Function::from_packed(|_| Ok(0.into()));
    let table = DispatchTable::new("grow", ["a", "b"], on_miss, None).unwrap();
    // SAFETY: the bodies read no memory.
    let made = unsafe { pick(&super::ROWS).compile_growing(&Engine::new().unwrap(), &table) };
    let found = made.err().unwrap().to_string();
    assert!(found.contains("the table `grow` has 2 key names (`a`, `b`), expected 3"), "{found}");
}
