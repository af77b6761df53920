//! Calling a kernel: the transfer of control, and the environment's streams.

use super::locations;
use crate::ir::{Hint, IntCC, Type, Value};
use crate::lower::args;
use crate::lower::body::{Code, Form};
use crate::lower::capi;
use crate::lower::convention::{KernelReturn, params};
use crate::lower::encode::{self, Subject};
use crate::lower::fast_path::{Checks, Context, device_parts};
use crate::lower::kernel::{Kernel, NativeTarget};
use crate::lower::launch;
use crate::lower::protocol::{Piece, helpers};
use crate::lower::unit::{ModulePool, Unit};
use crate::spec::{KernelArg, Launch, ParamType, Part, Signature};

/// A wrapper's work for device kernels.
pub(super) enum OnDevice<'a> {
    Launch(launch::Prepared<'a>),
    FirstUses(launch::FirstUses),
}

impl<'a> OnDevice<'a> {
    /// Adds the kernels to the module; `None` for a host kernel.
    pub(super) fn new(into: &mut Unit, signature: &'a Signature, kernel: &'a Kernel) -> Option<Self> {
        let called = encode::shown(signature, Subject::Call);
        let Unit { module, pool, drivers, handles, prefix, launches, .. } = into;
        let into = launch::ModuleParts { module, pool, drivers, handles, prefix, launches };
        match kernel.target()? {
            NativeTarget::Launch(spec) => {
                Some(OnDevice::Launch(launch::prepare(into, spec, signature, &called, false)))
            }
            NativeTarget::FirstUses(specs) => launch::first_uses(into, specs, &called).map(OnDevice::FirstUses),
            NativeTarget::Symbol(_) | NativeTarget::Address(_) => None,
        }
    }
}

/// The ids of devices that are passed as kernel arguments, by tensor name.
pub(super) fn device_ids(cx: &mut Context<'_, '_, '_>, args: &[KernelArg]) -> Vec<(String, Value)> {
    args::tensors_with_device_id(args).into_iter().map(|name| (name.to_owned(), device_id(cx, name))).collect()
}

/// The id of the device that a tensor parameter is on.
fn device_id(cx: &mut Context<'_, '_, '_>, name: &str) -> Value {
    let tensor = cx.plan.signature.type_at(name).and_then(ParamType::as_tensor);
    let order = tensor.and_then(|tensor| cx.plan.tensors.iter().position(|known| std::ptr::eq(*known, tensor)));
    let c = &mut cx.checks;
    let none = c.b.i64(0);
    let device = cx.devices.first(c.b, none, |seen| Some(seen.order) == order);
    let [_, number] = device_parts(c.b, device);
    number
}

/// Launches a kernel and continues if it succeeds; returns the block and the code that a failed launch ends with.
pub(super) fn launch(
    cx: &mut Context<'_, '_, '_>,
    pool: &mut ModulePool,
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
    let launch = kernel.launch_spec().map(|spec| &spec.launch);
    let args = launch.and_then(Launch::stated_args).unwrap_or_default().iter();
    let values = launch.map_or(&[][..], Launch::globals).iter().map(|(_, value)| value);
    let device_ids = device_ids(cx, &args.chain(values).cloned().collect::<Vec<_>>());
    let c = &mut cx.checks;
    let inputs = launch::Inputs { args: args::Inputs { params, device_ids }, device, kind, number, shot: None };
    match launch::emit(c.b, pool, prepared, &inputs) {
        Ok(failure) => Some(failure),
        Err(missing) => {
            c.missing(missing, Type::I32);
            None
        }
    }
}

/// Calls a native kernel through its target, or does the first-use work of kernels; returns its C result.
pub(super) fn native(
    cx: &mut Context<'_, '_, '_>,
    pool: &mut ModulePool,
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
        NativeTarget::Symbol(name) => {
            let callee = c.b.module().import(name, sig);
            c.b.call(callee, args)
        }
        NativeTarget::Address(address) => {
            let sig = c.b.signature(sig);
            let callee = c.b.ptr_const(*address);
            c.b.call_indirect(sig, callee, args)
        }
        NativeTarget::Launch(_) | NativeTarget::FirstUses(_) => None,
    }
}

/// The C return type of a native kernel; nothing for a kernel without a C prototype.
pub(super) fn returns(signature: &Signature, kernel: &Kernel) -> KernelReturn {
    kernel.return_kind(signature).unwrap_or(KernelReturn::Nothing)
}

/// Calls a body, or inlines a branch-free one; returns its status.
pub(super) fn body(c: &mut Checks<'_, '_>, body: Code, args: &[Value]) -> Option<Value> {
    match body.form {
        Form::Function(func) => c.b.call(func, args),
        Form::Straight(body) => c.b.inline(&body, args),
    }
}

/// Inserts the streams at their positions among the values. A stream that the caller may pass has two values before:
/// whether it has, and its handle.
pub(super) fn streams(cx: &mut Context<'_, '_, '_>, pool: &mut ModulePool, values: &mut [Vec<Value>]) {
    for (number, (param, values)) in cx.plan.signature.params().iter().zip(values).enumerate() {
        *values = match (&param.ty, &values[..]) {
            (ParamType::EnvStream, _) => vec![stream(cx, pool, number, &param.name)],
            (ParamType::Stream, [given, handle]) => vec![passed(cx, pool, (number, &param.name), [*given, *handle])],
            _ => continue,
        };
    }
}

/// The stream that the caller has passed, or the current one for None.
fn passed(
    cx: &mut Context<'_, '_, '_>,
    pool: &mut ModulePool,
    (number, name): (usize, &str),
    [given, handle]: [Value; 2],
) -> Value {
    let b = &mut *cx.checks.b;
    let (current, known) = (b.block(), b.block());
    let result = b.block_param(known, Type::Ptr);
    let given = b.icmp_imm(IntCC::Ne, given, 0);
    b.branch_with(given, (known, &[handle]), (current, &[]), Hint::None);
    b.switch_to(current);
    let own = stream(cx, pool, number, name);
    cx.checks.b.jump(known, &[own]);
    cx.checks.b.switch_to(known);
    result
}

/// The current stream of the first device that a tensor is on.
fn stream(cx: &mut Context<'_, '_, '_>, pool: &mut ModulePool, number: usize, name: &str) -> Value {
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

/// Raises an error if no tensor is present that determines the stream's device.
fn require_stream(
    c: &mut Checks<'_, '_>,
    pool: &mut ModulePool,
    present: Value,
    signature: &Signature,
    (number, name): (usize, &str),
) {
    let shown = encode::shown(signature, Subject::Param(number));
    let text = format!(
        "Mismatched {name} when calling: `{shown}`, expected a tensor that decides the device of the stream, got None \
         for each"
    );
    let template = pool.constants.template("ValueError", &[Piece::Text(&text)]);
    c.b.structured(|c| {
        c.require(c.val(present), || {
            let code = helpers::raise(c, pool.data, template, None);
            locations::append(c, pool, signature, Part::Param(number), code);
            c.ret(code);
        });
    });
}
