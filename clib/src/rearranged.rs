//! Functions that reorder the caller's arguments for another function, and can drop its result.

use codegen::runtime as tvm_ffi;
use codegen::runtime::{Any, AnyView, Array, Error, Function, Result};

use crate::error::other;

/// Where an argument of the wrapped function comes from.
enum Source {
    /// The caller's argument at this index.
    Caller(usize),
    /// A value fixed when the function was created.
    Constant(Any),
}

/// A function that calls another one with its own arguments in another order, and with constants. `sources` has an
/// entry for each argument of the other function. An entry is the index of a caller's argument, from 0, or -1 for the
/// next of the `constants`. With `drops_result`, the result is released and None is returned.
///
/// Callers such as XLA pass all inputs before all outputs, whatever the function's order, and take no results.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_rearranged(
    function: Function,
    sources: Array<i64>,
    constants: Array<Any>,
    drops_result: bool,
) -> Result<Function> {
    let mut constants = constants.iter().cloned();
    let sources: Vec<Source> = sources
        .iter()
        .map(|number| match usize::try_from(number) {
            Ok(number) => Ok(Source::Caller(number)),
            Err(_) => constants
                .next()
                .map(Source::Constant)
                .ok_or_else(|| other("sources: fewer constants than entries of -1")),
        })
        .collect::<Result<_>>()?;
    let expected = sources.iter().map(|source| if let Source::Caller(number) = source { number + 1 } else { 0 }).max();
    let expected = expected.unwrap_or(0);
    Ok(Function::from_packed(move |args: &[AnyView<'_>]| {
        if args.len() < expected {
            let message =
                format!("expected at least {expected} arguments in front of the function, got {}", args.len());
            return Err(Error::new("TypeError", &message));
        }
        let passed: Vec<AnyView<'_>> = sources
            .iter()
            .map(|source| match source {
                // the length check above makes the index valid
                Source::Caller(number) => args[*number],
                Source::Constant(value) => value.as_view(),
            })
            .collect();
        let result = function.call_packed(&passed)?;
        Ok(if drops_result { Any::none() } else { result })
    }))
}
