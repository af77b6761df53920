//! Bodies that call: on every executor, with every call of the runtime on record.

pub mod callees;
mod cases;
mod codes;
mod embedded;
mod graphs;
mod threads;

use tvm_ffi_codegen::runtime::{AsObject, Error};

use crate::support::library::{Loaded, Prepared, Reply};
use crate::support::recording::{Trace, failing_with, record};
use cases::{CASES, Case};

impl Case {
    /// Calls the function, and unloads the library.
    fn call(&self, loaded: &mut Loaded<'_>) -> Reply {
        if self.imports {
            let (own, imported) = (callees::module(), callees::module());
            own.import_module(&imported).unwrap();
            loaded.set_context(own);
        }
        let reply = loaded.call(self.name, &(self.args)());
        loaded.unload();
        reply
    }
}

/// What generated code did, and what came of it.
fn traced(run: impl FnOnce() -> Reply) -> (String, Trace) {
    let (reply, trace) = record(run);
    (reply.to_string(), trace)
}

/// The symbols that the cases import.
pub fn imports() -> impl Iterator<Item = &'static str> {
    CASES.iter().flat_map(|case| case.library.imports())
}

/// Tries something on all cases, and tells of every one that fails.
fn on_each_case(test: impl Fn(&Case) -> Result<(), String>) {
    let problems: Vec<String> =
        CASES.iter().filter_map(|case| test(case).err().map(|e| format!("{}: {e}", case.name))).collect();
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
}

#[test]
fn every_case_runs_alike_on_every_executor() {
    on_each_case(|case| {
        let (text, trace) = Prepared::new(&case.library)?.run(|loaded| traced(|| case.call(loaded)))?;
        if text.starts_with("code") == case.succeeds {
            return Err(format!("gives {text}\n{trace}"));
        }
        println!("{}: {text}\n{trace}", case.name);
        Ok(())
    });
}

/// The code with which a call fails: an error's usual one, or another.
fn code_of(at: usize) -> i32 {
    if at.is_multiple_of(2) { -1 } else { 7 }
}

/// A call whose fallible call number `at` fails.
#[derive(PartialEq, Debug)]
struct Faulty {
    /// The error that was raised; `None` where there are not as many calls.
    injected: Option<String>,
    /// The error object that came up is the injected one.
    untouched: bool,
    text: String,
    trace: Trace,
}

fn faulty(case: &Case, prepared: &mut Prepared<'_>, at: usize) -> Result<Faulty, String> {
    prepared.run(|loaded| {
        let (reply, mut trace) = failing_with(at, code_of(at), || case.call(loaded));
        let injected = trace.injected.take();
        let untouched = matches!((&reply.error, &injected), (Some(error), Some(injected)) if is_same(error, injected));
        Faulty { injected: injected.map(|error| error.to_string()), untouched, text: reply.to_string(), trace }
    })
}

fn is_same(one: &Error, other: &Error) -> bool {
    one.as_object().ptr_eq(other.as_object())
}

#[test]
fn every_call_may_fail() {
    on_each_case(|case| {
        let (mut prepared, mut at) = (Prepared::new(&case.library)?, 0);
        loop {
            let faulty = faulty(case, &mut prepared, at).map_err(|e| format!("call {at} fails: {e}"))?;
            let Some(injected) = &faulty.injected else { break };
            let wrong = |what: &str| Err(format!("call {at} fails: {what}: {faulty:#?}"));
            // of an import that can't be looked up the body tells itself, with the text of the error
            let looked = faulty.text.starts_with("code -1; RuntimeError: the look-up of the function `");
            let tells = looked && faulty.text.ends_with(&injected.to_string());
            if !case.catches
                && !tells
                && (!faulty.untouched || faulty.text != format!("code {}; {injected}", code_of(at)))
            {
                return wrong("another error comes up");
            }
            let released =
                if case.moves { faulty.trace.releases_no_more_than_it_got() } else { faulty.trace.mirrors() };
            if let Err(problem) = released {
                return wrong(&problem);
            }
            at += 1;
        }
        Ok(())
    });
}
