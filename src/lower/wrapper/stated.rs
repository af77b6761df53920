//! The C parameters that a native kernel states, instead of those of its convention.

use super::call::{device_ids, returns};
use super::result::{self, Owned};
use crate::ir::{Type, Value};
use crate::lower::args;
use crate::lower::convention::params;
use crate::lower::encode::{self, Subject};
use crate::lower::fast_path::Context;
use crate::lower::kernel::{Kernel, NativeTarget};
use crate::lower::unit::{ModulePool, Unit};
use crate::spec::Signature;

/// Prepares the C parameters that a kernel states; `None` for a kernel that uses its convention's parameters.
pub(super) fn prepare<'a>(into: &mut Unit, signature: &'a Signature, kernel: &'a Kernel) -> Option<args::Call<'a>> {
    let args = kernel.stated_args()?;
    let called = encode::shown(signature, Subject::Call);
    let name = match kernel.target() {
        Some(NativeTarget::Symbol(name)) => name,
        _ => signature.name(),
    };
    let caller = into.pool.constants.text(&format!("Cannot call kernel `{name}` when calling: `{called}`"));
    Some(args::Call { args, signature, caller })
}

/// Computes the stated C parameters from those of convention `flat`. If a parameter can't be passed, the wrapper
/// releases everything owned and returns the error's code.
pub(super) fn arguments(
    cx: &mut Context<'_, '_, '_>,
    pool: &mut ModulePool,
    (kernel, call): (&Kernel, &args::Call<'_>),
    flat: &[Value],
    owned: &Owned<'_>,
) -> Vec<Value> {
    let signature = cx.plan.signature;
    let params = params::params(signature, kernel.stated_convention(), returns(signature, kernel));
    let device_ids = device_ids(cx, call.args);
    let c = &mut cx.checks;
    let params: Vec<_> = params.iter().zip(flat.iter().copied()).collect();
    let written: Vec<Value> =
        params.iter().filter(|(param, _)| args::is_written(param)).map(|(_, value)| *value).collect();
    match args::arguments(c.b, pool, call, &args::Inputs { params, device_ids }) {
        Ok(args::Arguments { mut values, failed, code }) => {
            let here = c.b.current();
            c.b.switch_to(failed);
            result::leave(c, code, owned);
            c.b.switch_to(here);
            values.extend(written);
            values
        }
        Err(missing) => {
            c.missing(missing, Type::I32);
            flat.to_vec()
        }
    }
}
