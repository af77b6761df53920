//! The C parameters that a native kernel states, in place of those of its convention.

use super::call::{device_id, returns};
use super::result::{self, Owned};
use crate::ir::{Type, Value};
use crate::lower::convention::params;
use crate::lower::encode::{self, Subject};
use crate::lower::fast_path::Context;
use crate::lower::kernel::{Kernel, Target};
use crate::lower::launch;
use crate::lower::unit::{Pool, Unit};
use crate::spec::Signature;

/// Readies the C parameters that a kernel states; `None` for one whose convention lays them out.
pub(super) fn prepare<'a>(
    into: &mut Unit,
    signature: &'a Signature,
    kernel: &'a Kernel,
) -> Option<launch::Prepared<'a>> {
    let spec = kernel.stated_args()?;
    let called = encode::shown(signature, Subject::Call);
    let name = match kernel.target() {
        Some(Target::Symbol(name)) => name,
        _ => signature.name(),
    };
    Some(launch::prepare_call(&mut into.pool, spec, signature, &called, name))
}

/// The values of the C parameters that a kernel states, of those of convention `flat`. Where one can't be passed, everything that is owned is
/// released, and the error's code returned.
pub(super) fn arguments(
    cx: &mut Context<'_, '_, '_>,
    pool: &mut Pool,
    (kernel, prepared): (&Kernel, &launch::Prepared<'_>),
    flat: &[Value],
    owned: &Owned<'_>,
) -> Vec<Value> {
    let signature = cx.plan.signature;
    let params = params::params(signature, kernel.stated_convention(), returns(signature, kernel));
    let asked = kernel.stated_args().into_iter().flat_map(|args| args.tensors_with_device_id());
    let device_ids = asked.map(|name| (name.to_owned(), device_id(cx, name))).collect();
    let c = &mut cx.checks;
    let (device, number) = (c.b.i64(0), c.b.iconst(Type::I32, 0));
    let params: Vec<_> = params.iter().zip(flat.iter().copied()).collect();
    let written: Vec<Value> =
        params.iter().filter(|(param, _)| launch::is_written(param)).map(|(_, value)| *value).collect();
    let inputs = launch::Inputs { params, device, kind: None, number, device_ids };
    match launch::arguments(c.b, pool, prepared, &inputs) {
        Ok(launch::Arguments { mut values, failed, code }) => {
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
