//! Random signatures, with correct and incorrect random calls. All executors agree with each other and with the model
//! of the contract. Correct calls succeed.
//!
//! `PROPTEST_CASES` sets the number of signatures, `TVM_FFI_CODEGEN_CALLS` that of the calls of each, and
//! `TVM_FFI_CODEGEN_SEED` repeats a run.

pub mod agreement;
pub mod calls;
pub mod signatures;
mod texts;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use tvm_ffi_codegen::Signature;
use tvm_ffi_codegen::runtime::AnyView;

use crate::support::args::{Arguments, Form};
use crate::support::exec::{Outcome, Prepared, Program};
use crate::support::random::{run, stated_or};
use crate::support::value::Call;
use crate::support::{model, show};
pub use agreement::Behind;
use agreement::check;

/// The number of signatures in a default run; 1,000 of them make 100,000 calls.
const SIGNATURES: u32 = 30;
/// The number of calls per signature in a default run.
const CALLS: usize = 100;

/// The number of calls per signature. With thousands, a run spends its time on calls instead of compilations.
fn calls_per_signature() -> usize {
    std::env::var("TVM_FFI_CODEGEN_CALLS").ok().and_then(|stated| stated.parse().ok()).unwrap_or(CALLS)
}

/// The numbers of accepted calls, of rejected calls by reason, and of calls that weren't made.
#[derive(Default)]
struct Counts {
    accepted: Cell<u64>,
    untrusted: Cell<u64>,
    refused: RefCell<BTreeMap<String, u64>>,
    /// The calls of executors: several for each of the calls above.
    executed: Cell<u64>,
}

impl Counts {
    fn count(&self, outcome: Option<Outcome>, executions: usize) {
        let Some(outcome) = outcome else { return self.untrusted.set(self.untrusted.get() + 1) };
        self.executed.set(self.executed.get() + executions as u64);
        match &outcome.error {
            None => self.accepted.set(self.accepted.get() + 1),
            Some((_, message)) => *self.refused.borrow_mut().entry(kind_of(message)).or_default() += 1,
        }
    }

    fn print(&self) {
        let (accepted, untrusted) = (self.accepted.get(), self.untrusted.get());
        let refused = self.refused.borrow();
        println!("{accepted} calls accepted, {} refused, {untrusted} not made", refused.values().sum::<u64>());
        println!("{} calls of executors", self.executed.get());
        println!("refused: {refused:?}");
    }
}

/// The kind of error without names: `shape`, `type of`, ...
fn kind_of(message: &str) -> String {
    let what = message.strip_prefix("Mismatched ").unwrap_or(message);
    let what = what.split(" on argument").next().unwrap_or_default();
    let what = what.split(" when calling").next().unwrap_or_default();
    match what.split_once(" of ") {
        Some((kind, _)) => format!("{kind} of"),
        None if matches!(what, "constraint" | "argument array" | "stream") => what.to_owned(),
        None => {
            let part = what.rsplit_once('.').map_or("entry of a shape", |(_, part)| part);
            part.split('[').next().unwrap_or_default().to_owned()
        }
    }
}

#[test]
fn executors_and_the_model_agree_on_random_calls() {
    agree_on_calls_of(stated_or(SIGNATURES), signatures::signature());
}

#[test]
fn executors_and_the_model_agree_on_large_numbers() {
    // fewer cases, because these signatures are all of one kind
    agree_on_calls_of(stated_or(SIGNATURES) / 5, signatures::large_signature());
}

fn agree_on_calls_of(cases: u32, signatures: impl Strategy<Value = Signature>) {
    let strategy = (signatures, 0u8..8, vec(calls::plan(), calls_per_signature()));
    let counts = Counts::default();
    run(cases, &strategy, |(signature, choice, plans)| {
        let behind = Behind::choose(&signature, choice);
        let fail = |problem| TestCaseError::fail(format!("{signature}\n{problem}"));
        let program = behind.kernel(&signature).and_then(|kernel| Program::new(signature.clone(), kernel));
        let program = program.map_err(fail)?;
        let mut prepared = Prepared::new(&program).map_err(fail)?;
        for plan in &plans {
            let outcome = check(&mut prepared, &signature, behind, plan).map_err(TestCaseError::fail)?;
            counts.count(outcome, prepared.executions());
        }
        Ok(())
    });
    counts.print();
}

#[test]
fn values_are_what_the_model_takes_them_for() {
    run(stated_or(1000), &any::<u64>(), |seed| {
        let call = Call::new([calls::any_value(seed, false)]);
        for form in [Form::DlTensor, Form::Object] {
            let arguments = Arguments::new(&call, form);
            // SAFETY: there is one argument, alive.
            let view = unsafe { AnyView::from_raw(arguments.array().read()) };
            prop_assert_eq!(show::brief(view), model::brief(&call.args[0].1));
            prop_assert!(arguments.counts_kept());
        }
        Ok(())
    });
}
