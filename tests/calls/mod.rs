//! Bodies that make calls, on every executor. Every call of the runtime is recorded.

pub mod callees;
mod cases;
mod codes;
mod counts;
mod embedded;
#[cfg(all(target_os = "linux", not(feature = "external-runtime")))]
mod embedded_libraries;
mod graphs;
mod threads;

use tvm_ffi_codegen::runtime::{Any, AsObject, Error, ObjectRef};

use crate::support::library::{Loaded, Prepared, Reply};
use crate::support::modules;
use crate::support::recording::{Trace, failing_with, record};
use cases::{CASES, Case};

impl Case {
    /// Calls the function, and unloads the library.
    fn call(&self, loaded: &mut Loaded<'_>) -> Reply {
        if self.imports {
            let (own, imported) = (modules::echo_and_fail(), modules::echo_and_fail());
            own.import_module(&imported).unwrap();
            loaded.set_context(own);
        }
        let args = (self.args)();
        let before = references(&args, None);
        let reply = loaded.call(self.name, &args);
        loaded.unload();
        assert_eq!(references(&args, object(&reply.value)), before, "{}: references to the arguments", self.name);
        reply
    }
}

fn object(value: &Any) -> Option<ObjectRef> {
    value.cast().ok()
}

/// The reference counts of the objects among values, not counting the result's own references.
fn references(values: &[Any], result: Option<ObjectRef>) -> Vec<Option<u32>> {
    let result = result.as_ref();
    let is_result = |object: &ObjectRef| result.is_some_and(|result| result.ptr_eq(object));
    let count = |object: ObjectRef| object.strong_count() - if is_result(&object) { 2 } else { 0 };
    values.iter().map(|value| object(value).map(count)).collect()
}

/// The outcome of generated code, and its trace.
fn traced(run: impl FnOnce() -> Reply) -> (String, Trace) {
    let (reply, trace) = record(run);
    (reply.to_string(), trace)
}

/// The symbols that the cases import.
#[cfg(not(feature = "external-runtime"))]
pub fn imports() -> impl Iterator<Item = &'static str> {
    CASES.iter().flat_map(|case| case.library.imports())
}

/// Runs a test on all cases, and reports all failures.
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

/// The code that a failing call returns: an error's usual one, or another.
fn code_of(at: usize) -> i32 {
    if at.is_multiple_of(2) { -1 } else { 7 }
}

/// The outcome of a call whose fallible call number `at` fails.
#[derive(PartialEq, Debug)]
struct Faulty {
    /// The injected error; `None` if there are fewer calls.
    injected: Option<String>,
    /// Whether the function raised the injected error object itself.
    untouched: bool,
    text: String,
    trace: Trace,
}

fn faulty(case: &Case, prepared: &mut Prepared<'_>, at: usize) -> Result<Faulty, String> {
    prepared.run(|loaded| {
        // the value and all errors except the injected one are dropped before the recording ends
        let ((text, error), mut trace) = failing_with(at, code_of(at), || {
            let reply = case.call(loaded);
            (reply.to_string(), reply.error.map(|error| error.as_object().as_ptr()))
        });
        let injected = trace.injected.take();
        let untouched = error.is_some() && error == injected.as_ref().map(|error| error.as_object().as_ptr());
        Faulty { injected: injected.map(|error| error.to_string()), untouched, text, trace }
    })
}

fn is_same(one: &Error, other: &Error) -> bool {
    one.as_object().ptr_eq(other.as_object())
}

/// Each allocation of generated code is one of these calls; a called function reports missing memory with its code.
#[test]
fn every_call_may_fail() {
    on_each_case(|case| {
        let (mut prepared, mut at) = (Prepared::new(&case.library)?, 0);
        loop {
            let faulty = faulty(case, &mut prepared, at).map_err(|e| format!("call {at} fails: {e}"))?;
            let wrong = |what: &str| Err(format!("call {at} fails: {what}: {faulty:#?}"));
            let released =
                if case.moves { faulty.trace.releases_no_more_than_it_got() } else { faulty.trace.mirrors() };
            if let Err(problem) = released {
                return wrong(&problem);
            }
            if !faulty.trace.left.is_empty() {
                return wrong(&format!("{:?} are left", faulty.trace.left));
            }
            let Some(injected) = &faulty.injected else { break };
            // if an import can't be looked up, the body raises its own error, which includes the original message
            let looked = faulty.text.starts_with("code -1; RuntimeError: the look-up of the function `");
            let tells = looked && faulty.text.ends_with(&injected.to_string());
            if !case.catches
                && !tells
                && (!faulty.untouched || faulty.text != format!("code {}; {injected}", code_of(at)))
            {
                return wrong("another error comes up");
            }
            at += 1;
        }
        Ok(())
    });
}
