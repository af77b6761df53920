//! The call of a kernel: how control gets there, and the environment's part in it.

use super::places;
use crate::ir::{Hint, IntCC, Type, Value};
use crate::lower::body::Code;
use crate::lower::capi;
use crate::lower::convention::{KernelReturn, params};
use crate::lower::encode::{self, Subject};
use crate::lower::fast_path::{Checks, Context, device_parts};
use crate::lower::kernel::{Kernel, Target};
use crate::lower::launch;
use crate::lower::protocol::{Piece, helpers};
use crate::lower::unit::{Pool, Unit};
use crate::spec::{ParamType, Part, Signature};

/// The work of a wrapper on kernels of devices.
pub(super) enum OnDevice<'a> {
    Launch(launch::Prepared<'a>),
    FirstUses(launch::FirstUses),
}

impl<'a> OnDevice<'a> {
    /// Adds the kernels to the module; `None` for a kernel of the host.
    pub(super) fn new(into: &mut Unit, signature: &'a Signature, kernel: &'a Kernel) -> Option<Self> {
        let called = encode::shown(signature, Subject::Call);
        let Unit { module, pool, drivers, launches, .. } = into;
        let into = launch::Into { module, pool, drivers, launches };
        match kernel.target()? {
            Target::Launch(spec) => Some(OnDevice::Launch(launch::prepare(into, spec, signature, &called))),
            Target::FirstUses(specs) => launch::first_uses(into, specs, &called).map(OnDevice::FirstUses),
            Target::Symbol(_) | Target::Address(_) => None,
        }
    }
}

/// The number of the device that a tensor parameter is on.
pub(super) fn device_id(cx: &mut Context<'_, '_, '_>, name: &str) -> Value {
    let param = cx.plan.signature.params().iter().find(|param| param.name == name);
    let tensor = param.and_then(|param| param.ty.as_tensor());
    let order = tensor.and_then(|tensor| cx.plan.tensors.iter().position(|known| std::ptr::eq(*known, tensor)));
    let c = &mut cx.checks;
    let none = c.b.i64(0);
    let device = cx.devices.first(c.b, none, |seen| Some(seen.order) == order);
    let [_, number] = device_parts(c.b, device);
    number
}

/// Launches a kernel, after which the code goes on where the launch has succeeded; gives the end of one that has failed.
pub(super) fn launch(
    cx: &mut Context<'_, '_, '_>,
    pool: &mut Pool,
    kernel: &Kernel,
    prepared: &launch::Prepared<'_>,
    args: &[Value],
) -> Option<launch::Failure> {
    let c = &mut cx.checks;
    let params = params::params(cx.plan.signature, kernel.stated_convention(), KernelReturn::Status);
    let (device, kind, number) = match prepared.is_on_cpu() {
        true => (launch::cpu(c.b), None, c.b.iconst(Type::I32, 0)),
        false => {
            let none = c.b.i64(0);
            let device = cx.devices.first(c.b, none, |seen| seen.has_stream);
            let [kind, number] = device_parts(c.b, device);
            (device, Some(kind), number)
        }
    };
    let params = params.iter().zip(args.iter().copied()).collect();
    let asked = kernel.launch_spec().into_iter().flat_map(|spec| spec.tensors_with_device_id());
    let device_ids = asked.map(|name| (name.to_owned(), device_id(cx, name))).collect();
    let c = &mut cx.checks;
    let inputs = launch::Inputs { params, device, kind, number, device_ids };
    match launch::emit(c.b, pool, prepared, &inputs) {
        Ok(failure) => Some(failure),
        Err(missing) => {
            c.missing(missing, Type::I32);
            None
        }
    }
}

/// Calls a native kernel by its target, or does the first uses of kernels; gives its C result.
pub(super) fn native(
    cx: &mut Context<'_, '_, '_>,
    pool: &mut Pool,
    kernel: &Kernel,
    on_device: Option<&OnDevice<'_>>,
    args: &[Value],
) -> Option<Value> {
    let sig = kernel.func_sig(cx.plan.signature);
    let c = &mut cx.checks;
    if let Some(OnDevice::FirstUses(uses)) = on_device {
        let parts = device_parts(c.b, *args.first()?);
        return Some(launch::emit_first_uses(c.b, pool, uses, parts));
    }
    match kernel.target()? {
        Target::Symbol(name) => {
            let callee = c.b.module().import(name, sig);
            c.b.call(callee, args)
        }
        Target::Address(address) => {
            let sig = c.b.signature(sig);
            let callee = c.b.ptr_const(*address);
            c.b.call_indirect(sig, callee, args)
        }
        Target::Launch(_) | Target::FirstUses(_) => None,
    }
}

/// What a native kernel returns; nothing for a kernel that has no C prototype.
pub(super) fn returns(signature: &Signature, kernel: &Kernel) -> KernelReturn {
    kernel.returns(signature).unwrap_or(KernelReturn::Nothing)
}

/// Calls a body, or inlines a straight one; gives its status.
pub(super) fn body(c: &mut Checks<'_, '_>, body: Code, args: &[Value]) -> Option<Value> {
    match body {
        Code::Function { func, .. } => c.b.call(func, args),
        Code::Straight(body) => c.b.inline(&body, args),
    }
}

/// Puts the streams in their places among the values.
pub(super) fn streams(cx: &mut Context<'_, '_, '_>, pool: &mut Pool, values: &mut [Vec<Value>]) {
    for (number, (param, values)) in cx.plan.signature.params().iter().zip(values).enumerate() {
        if param.ty == ParamType::EnvStream {
            *values = vec![stream(cx, pool, number, &param.name)];
        }
    }
}

/// The current stream of the first device that a tensor is on.
fn stream(cx: &mut Context<'_, '_, '_>, pool: &mut Pool, number: usize, name: &str) -> Value {
    let c = &mut cx.checks;
    let none = c.b.i64(0);
    let device = cx.devices.first(c.b, none, |seen| seen.has_stream);
    let present = c.b.icmp_imm(IntCC::Ne, device, 0);
    require_stream(c, pool, present, cx.plan.signature, (number, name));
    let parts = device_parts(c.b, device);
    let get = capi::import(c.b.module(), capi::ENV_GET_STREAM);
    match c.b.call(get, &parts) {
        Some(stream) => stream,
        None => c.missing("the result of TVMFFIEnvGetStream".to_owned(), Type::Ptr),
    }
}

/// Raises where no tensor is present whose device has a stream.
fn require_stream(
    c: &mut Checks<'_, '_>,
    pool: &mut Pool,
    present: Value,
    signature: &Signature,
    (number, name): (usize, &str),
) {
    let shown = encode::shown(signature, Subject::Param(number));
    let text = format!(
        "Mismatched {name} when calling: `{shown}`, expected a tensor whose device has the stream, got None for each"
    );
    let template = pool.constants.template("ValueError", &[Piece::Text(&text)]);
    let (next, bad) = (c.b.block(), c.b.cold_block());
    c.b.branch(present, next, bad, Hint::Likely);
    c.b.switch_to(bad);
    let table = c.b.data_addr(pool.data, 0);
    let template = c.b.iconst(Type::I32, i64::from(template));
    // the template takes nothing from a context
    let report = helpers::report(c.b.module());
    if let Some(code) = c.b.call(report, &[table, template, table]) {
        places::append(c.b, pool, signature, Part::Param(number), code);
        c.b.ret(Some(code));
    }
    c.b.switch_to(next);
}
