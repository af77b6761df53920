//! One call of a signature with random arguments: all executors agree with each other and with the model of the
//! contract.

use tvm_ffi_codegen::lower::Convention;
use tvm_ffi_codegen::{Kernel, ParamType, Signature};

use super::calls::{self, Plan};
use crate::support::exec::{Outcome, Prepared, Returned};
use crate::support::model::{self, Accepted, Prediction};
use crate::support::recorder;

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

/// Makes a planned call on all executors. They agree with each other and with the model of the contract.
///
/// Returns the outcome; `None` for a call that isn't made, because nothing is promised for it.
pub fn check(
    prepared: &mut Prepared<'_>,
    signature: &Signature,
    behind: Behind,
    plan: &Plan,
) -> Result<Option<Outcome>, String> {
    let call = plan.call(signature);
    let predicted = model::predict(signature, &call, Convention::Flat).filter(|predicted| {
        // a body relies on valid elements
        behind != Behind::Echo || matches!(predicted, Prediction::Refused(_)) || calls::elements_are_there(&call)
    });
    let Some(predicted) = predicted else { return Ok(None) };
    let fail = |problem: String| format!("{signature}\n{call:?}\n{problem}");
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
    Ok(Some(outcome))
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
