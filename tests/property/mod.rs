//! Random signatures, with correct and incorrect random calls. All executors agree with each other and with the model
//! of the contract. Correct calls succeed.
//!
//! `PROPTEST_CASES` sets the number of signatures (each gets [`CALLS`] calls), and `TVM_FFI_CODEGEN_SEED` repeats a
//! run.

pub mod calls;
pub mod signatures;
mod texts;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use tvm_ffi_codegen::lower::Convention;
use tvm_ffi_codegen::runtime::AnyView;
use tvm_ffi_codegen::{Kernel, ParamType, Signature};

use crate::support::args::{Arguments, Form};
use crate::support::exec::{Outcome, Prepared, Program, Returned};
use crate::support::model::{self, Accepted, Prediction};
use crate::support::random::{run, stated_or};
use crate::support::value::Call;
use crate::support::{recorder, show};
use calls::Plan;

/// The number of signatures in a default run; 1,000 of them make 100,000 calls.
const SIGNATURES: u32 = 30;
/// The number of calls per signature.
const CALLS: usize = 100;

/// The code that the wrapper calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Behind {
    Nothing,
    /// A body that returns the first scalar.
    Echo,
    Recorder,
}

impl Behind {
    /// A kernel that fits the signature.
    pub fn choose(signature: &Signature, choice: u8) -> Self {
        let first = signature.params().iter().find_map(|p| p.ty.as_scalar());
        match signature.ret() {
            None if choice == 0 => Behind::Nothing,
            Some(ParamType::Scalar(ty)) if choice < 4 && first == Some(*ty) => Behind::Echo,
            _ => Behind::Recorder,
        }
    }

    pub fn kernel(self, signature: &Signature) -> Result<Kernel, String> {
        match self {
            Behind::Nothing => Ok(Kernel::check_only()),
            Behind::Echo => {
                let first = signature.params().iter().find(|p| p.ty.as_scalar().is_some());
                let name = first.map(|p| p.name.clone()).unwrap_or_default();
                Ok(Kernel::body(move |b| b.ret(b.arg(&name))))
            }
            Behind::Recorder => recorder::kernel(signature),
        }
    }
}

/// The numbers of accepted calls, of rejected calls by reason, and of calls that weren't made.
#[derive(Default)]
struct Counts {
    accepted: Cell<u32>,
    untrusted: Cell<u32>,
    refused: RefCell<BTreeMap<String, u32>>,
}

impl Counts {
    fn count(&self, outcome: &Outcome) {
        match &outcome.error {
            None => self.accepted.set(self.accepted.get() + 1),
            Some((_, message)) => *self.refused.borrow_mut().entry(kind_of(message)).or_default() += 1,
        }
    }

    fn print(&self) {
        let (accepted, untrusted) = (self.accepted.get(), self.untrusted.get());
        let refused = self.refused.borrow();
        println!("{accepted} calls accepted, {} refused, {untrusted} not made", refused.values().sum::<u32>());
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
    let strategy = (signatures, 0u8..8, vec(calls::plan(), CALLS));
    let counts = Counts::default();
    run(cases, &strategy, |(signature, choice, plans)| {
        let behind = Behind::choose(&signature, choice);
        let fail = |problem| TestCaseError::fail(format!("{signature}\n{problem}"));
        let program = behind.kernel(&signature).and_then(|kernel| Program::new(signature.clone(), kernel));
        let program = program.map_err(fail)?;
        let mut prepared = Prepared::new(&program).map_err(fail)?;
        for plan in &plans {
            check(&mut prepared, &signature, behind, plan, &counts)?;
        }
        Ok(())
    });
    counts.print();
}

fn check(
    prepared: &mut Prepared<'_>,
    signature: &Signature,
    behind: Behind,
    plan: &Plan,
    counts: &Counts,
) -> Result<(), TestCaseError> {
    let call = plan.call(signature);
    let predicted = model::predict(signature, &call, Convention::Flat).filter(|predicted| {
        // a body relies on valid elements
        behind != Behind::Echo || matches!(predicted, Prediction::Refused(_)) || calls::elements_are_there(&call)
    });
    let Some(predicted) = predicted else {
        counts.untrusted.set(counts.untrusted.get() + 1);
        return Ok(());
    };
    let fail = |problem: String| TestCaseError::fail(format!("{signature}\n{call:?}\n{problem}"));
    let outcome = prepared.run(&call).map_err(fail)?;
    outcome.follows_contract(signature, &call, Convention::Flat).map_err(fail)?;
    match &predicted {
        Prediction::Refused(_) if outcome.result != Returned::Untouched => {
            return Err(fail(format!("refused, with a result: {outcome:?}")));
        }
        Prediction::Refused(_) => {}
        Prediction::Accepted(accepted) => succeeded(&outcome, accepted, signature, behind).map_err(fail)?,
    }
    if plan.is_right(signature) && outcome.code != Ok(0) {
        return Err(fail(format!("a right call fails: {outcome:?}")));
    }
    counts.count(&outcome);
    Ok(())
}

/// Checks that an accepted call had its kernel's effect.
fn succeeded(outcome: &Outcome, accepted: &Accepted, signature: &Signature, behind: Behind) -> Result<(), String> {
    let wrong = |what: &str| Err(format!("{what}: {outcome:?}"));
    if outcome.error.is_some() && accepted.tensors.is_none() && !signature.returned_tensors().is_empty() {
        // memory on that device may be unavailable
        return Ok(());
    }
    if outcome.code != Ok(0) || outcome.error.is_some() {
        return wrong("an accepted call fails");
    }
    if behind == Behind::Recorder && outcome.received.is_empty() && !accepted.words.is_empty() {
        return wrong("the kernel was not called");
    }
    if behind == Behind::Echo {
        let Returned::Plain(index, padding, payload) = outcome.result else { return wrong("no scalar") };
        let scalar = accepted.first_scalar.is_some_and(|s| model::same_result(s, (index, padding, payload)));
        return if scalar { Ok(()) } else { wrong("another scalar") };
    }
    let expected = accepted.tensors.clone().or_else(|| recorder::result(signature));
    let result = outcome.result.text()?;
    match (signature.ret(), expected) {
        (None, _) if result.is_some() => wrong("a result of a function without one"),
        (Some(_), None) if result.is_none() => wrong("no result"),
        (Some(_), Some(expected)) if result.as_ref() != Some(&expected) => wrong(&format!("expected {expected}")),
        _ => Ok(()),
    }
}

#[test]
fn values_are_what_the_model_takes_them_for() {
    run(stated_or(1000), &any::<u64>(), |seed| {
        let call = Call::new([calls::any_argument(seed)]);
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
