//! The wrapper of one function: the fast path, the route to the slow path, the kernel call, and the result.
//!
//! Dependencies of the files: `locations` ← `call`, `status` ← `result` ← `stated`; `locations` ← `env_state`,
//! `slow_path`. This file combines them with the [fast path](super::fast_path).

mod call;
mod env_state;
mod locations;
mod originals;
mod records;
mod result;
mod slow_path;
mod stated;
mod status;

use super::args;
use super::body::{self, Closure, Code, Enclosing, Extra, Form};
use super::convention::params::beside_status;
use super::convention::{Convention, KernelReturn, returns_value, writes_result};
use super::encode::{self, Encoded, Options, Scratch};
use super::error::LowerError;
use super::fast_path::{self, Checks, Context, Dims, SeenDevices};
use super::ffi_call;
use super::kernel::{Kernel, KernelCode};
use super::launch::Failure;
use super::plan::Plan;
use super::problem::ReturnProblem;
use super::protocol::{self, helpers, state_offset};
use super::unit::{ModulePool, Unit};
use crate::ir::{FuncRef, FunctionBuilder, MemFlags, Type, Value};
use crate::spec::{ParamType, Signature};

use call::OnDevice;
use env_state::States;
use locations::LocationTable;
use originals::Originals;
use result::{BoundScratch, Owned, Packer, Status};
use slow_path::{Prologue, Route, SlowPath};

/// Lowers a wrapper into the unit, with the closures that its body creates.
pub(super) fn lower(into: &mut Unit, signature: &Signature, kernel: &Kernel) -> Result<FuncRef, LowerError> {
    let asks_for_device = kernel.stated_args().is_some_and(|args| !args::tensors_with_device_id(args).is_empty());
    let needs_devices = kernel.launch_spec().is_some() || asks_for_device;
    let plan = Plan::new(signature, kernel.stated_convention(), needs_devices);
    let descriptor = describe(into, &plan)?;
    let symbol = into.symbol(signature);
    let mut closures = Vec::new();
    let body = match &kernel.code {
        KernelCode::Body(build) => {
            // symbols of parts don't get the prefix of a system library
            let enclosing = Enclosing { wrapper: &signature.symbol(), is_c: false, captured: &[] };
            let lowered = body::lower(into, signature, enclosing, &**build)?;
            closures = lowered.closures;
            Some(lowered.code)
        }
        _ => None,
    };
    let func = into.module.export(symbol, ffi_call::safe_call_signature());
    define(into, func, plan, descriptor, kernel, body)?;
    lower_closures(into, closures)?;
    Ok(func)
}

/// Lowers a body into the unit as a C function, with the closures that it creates.
pub(super) fn lower_c_function(into: &mut Unit, signature: &Signature, body: &Kernel) -> Result<FuncRef, LowerError> {
    let function = || signature.name().to_owned();
    let KernelCode::Body(build) = &body.code else {
        return Err(LowerError::KernelReturn { function: function(), problem: ReturnProblem::NoBody });
    };
    let symbol = into.c_symbol(signature);
    let enclosing = Enclosing { wrapper: &symbol, is_c: true, captured: &[] };
    let lowered = body::lower(into, signature, enclosing, &**build)?;
    lower_closures(into, lowered.closures)?;
    match lowered.code {
        Code { form: Form::Function(func), extras, .. } if extras.is_empty() => Ok(func),
        _ => Err(LowerError::Internal { function: function(), missing: "the arguments of a C function".to_owned() }),
    }
}

/// Lowers the closures that a body creates.
fn lower_closures(into: &mut Unit, mut closures: Vec<Closure>) -> Result<(), LowerError> {
    // a closure's body may create more closures
    while let Some(closure) = closures.pop() {
        let Closure { func, symbol, signature, build, captured } = closure;
        let kernel = Kernel::of_body(build);
        kernel.check(&signature)?;
        let KernelCode::Body(build) = &kernel.code else { continue };
        let plan = Plan::new(&signature, kernel.stated_convention(), false);
        let descriptor = describe(into, &plan)?;
        let enclosing = Enclosing { wrapper: &symbol, is_c: false, captured: &captured };
        let lowered = body::lower(into, &signature, enclosing, &**build)?;
        closures.extend(lowered.closures);
        define(into, func, plan, descriptor, &kernel, Some(lowered.code))?;
    }
    Ok(())
}

/// Encodes the descriptor of a signature.
fn describe(into: &mut Unit, plan: &Plan<'_>) -> Result<Encoded, LowerError> {
    let signature = plan.signature;
    let options = Options { fold_all: plan.convention == Convention::DlTensor, forward_args: plan.forward_args };
    let descriptor = encode::encode(&mut into.pool.constants, signature, &plan.devices, options)?;
    if descriptor.scratch.bytes > Scratch::MOST {
        let function = signature.name().to_owned();
        let (bytes, largest) = (descriptor.scratch.bytes, descriptor.scratch.largest());
        return Err(LowerError::TooLarge { function, bytes, max: Scratch::MOST, largest });
    }
    Ok(descriptor)
}

/// Defines a declared wrapper.
fn define(
    into: &mut Unit,
    func: FuncRef,
    plan: Plan<'_>,
    descriptor: Encoded,
    kernel: &Kernel,
    body: Option<Code>,
) -> Result<(), LowerError> {
    let signature = plan.signature;
    let states = if plan.forward_args { States::default() } else { States::new(into, signature) };
    let on_device = OnDevice::new(into, signature, kernel);
    let packer = Packer::new(into, signature);
    let stated = stated::prepare(into, signature, kernel);
    into.always_binds |= plan.binds_first;
    into.module.functions[func].param_facts = plan.param_facts();
    let Unit { module, pool, .. } = into;
    let locations = LocationTable::new(pool, signature, &module.functions[func].name);
    let has_records = signature.has_records();
    let func = if has_records { records::enclose(module, func, signature) } else { func };
    let body_needs = |extra| body.as_ref().is_some_and(|body| body.extras.contains(&extra));
    let originals =
        (body_needs(Extra::Originals) || !kernel.arguments().is_empty()).then(|| Originals::new(signature, pool));
    let bind = helpers::bind(module);
    let slow_path = SlowPath {
        descriptor,
        table: pool.data,
        bind,
        passed: plan.passed,
        has_result: plan.has_result,
        keeps_handle: body_needs(Extra::Handle),
        originals: originals.as_ref(),
        locations,
        owned: has_records.then(|| state_offset(signature) as i32 + protocol::state::OWNED),
    };
    let route = Route::new(&slow_path, &plan, module, func);
    let mut b = FunctionBuilder::new(module, func);
    let prologue = Prologue::new(&mut b, &slow_path, route);
    let mut cx = Context {
        checks: Checks::new(&mut b, prologue.slow_path),
        dims: Dims::new(&plan),
        devices: SeenDevices::default(),
        headers: Vec::new(),
        plan: &plan,
    };
    match plan.forward_args {
        true => forward(&mut cx, pool, kernel, &prologue),
        false => {
            let target = NativeKernel { kernel, on_device: on_device.as_ref(), stated: stated.as_ref() };
            let outside = Outside { states: &states, packer, originals: originals.as_ref() };
            unpack(&mut cx, pool, target, body, &prologue, descriptor.binding_size, outside);
        }
    }
    let finished = cx.checks.finish();
    b.finish();
    finished.map_err(|missing| LowerError::Internal { function: signature.name().to_owned(), missing })
}

/// Writes a wrapper whose kernel takes the argument array.
fn forward(cx: &mut Context<'_, '_, '_>, pool: &mut ModulePool, kernel: &Kernel, prologue: &Prologue) {
    // if the binder has made the checks, the values of the arguments aren't needed
    if prologue.bound.is_none() {
        require_arity(cx, prologue);
        fast_path::lower(cx, prologue.given.args, false);
    }
    let c = &mut cx.checks;
    let given = prologue.join(c.b);
    let args = vec![c.b.param(0), given.args, given.num_args];
    call_native(cx, pool, NativeKernel { kernel, on_device: None, stated: None }, args, &[], Owned::default());
}

/// The values from outside its module that a wrapper uses, besides its kernel.
struct Outside<'a> {
    states: &'a States,
    packer: Option<Packer>,
    /// The caller's own arguments, if the kernel needs them.
    originals: Option<&'a Originals>,
}

impl Outside<'_> {
    /// The address of the caller's own arguments.
    fn arguments(&self, b: &mut FunctionBuilder<'_>, prologue: &Prologue, has_result: bool) -> Value {
        match (self.originals, prologue.bound) {
            (Some(originals), Some(_)) => b.structured(|c| originals.array(c, c.param(1), c.param(2)).value()),
            _ => b.structured(|c| originals::of_this_call(c, has_result).value()),
        }
    }

    /// The addresses of the arguments that a native kernel takes as they came.
    fn passed_on(&self, cx: &mut Context<'_, '_, '_>, prologue: &Prologue, kernel: &Kernel) -> Vec<Value> {
        if kernel.arguments().is_empty() {
            return Vec::new();
        }
        let b = &mut *cx.checks.b;
        let all = self.arguments(b, prologue, cx.plan.has_result);
        let number = |name: &String| cx.plan.signature.passed().position(|param| param.name == *name);
        let numbers = kernel.arguments().iter().filter_map(number);
        numbers.map(|number| ffi_call::copy_of_argument(b, all, number)).collect()
    }
}

/// Writes a wrapper that passes the arguments' values to its kernel.
fn unpack(
    cx: &mut Context<'_, '_, '_>,
    pool: &mut ModulePool,
    target: NativeKernel<'_>,
    body: Option<Code>,
    prologue: &Prologue,
    binding_size: i64,
    outside: Outside<'_>,
) {
    let takes_values = match body.as_ref().map(|body| &body.form) {
        Some(Form::Straight(body)) => body.has_effects(),
        Some(Form::Function(_)) => true,
        None => !matches!(target.kernel.code, KernelCode::CheckOnly),
    };
    let bound = prologue.bound.map(|slot| BoundScratch { slot, binding_size });
    match bound {
        None => require_arity(cx, prologue),
        Some(BoundScratch { slot, binding_size }) => cx.dims.preload(&mut cx.checks, cx.plan, slot, binding_size),
    }
    let mut values = fast_path::lower(cx, prologue.given.args, takes_values);
    let sizes = result::sizes(cx);
    call::streams(cx, pool, &mut values);
    outside.states.take(cx, pool, &mut values);
    let allocated = result::allocate(cx, pool, bound, &values, &sizes, outside.packer);
    let mut args: Vec<Value> = values.into_iter().flatten().collect();
    args.extend(allocated.iter().flat_map(|allocated| allocated.passed.iter().copied()));
    if cx.plan.convention == Convention::Flat {
        args.extend(cx.plan.signature.dim_vars().into_iter().map(|name| cx.dims.var(&mut cx.checks, name)));
    }
    let owned = Owned { allocated, written: None };
    match (target.kernel.target(), body) {
        (Some(_), _) => {
            let passed_on = outside.passed_on(cx, prologue, target.kernel);
            call_native(cx, pool, target, args, &passed_on, owned);
        }
        (None, Some(body)) => call_body(cx, pool, (body, &outside), args, owned, prologue),
        (None, None) => result::success(&mut cx.checks, owned.allocated),
    }
}

/// Requires the number of arguments after defaults are filled in, and a non-null array unless that number is 0.
fn require_arity(cx: &mut Context<'_, '_, '_>, prologue: &Prologue) {
    let (c, passed) = (&mut cx.checks, cx.plan.passed);
    let count = c.b.iconst(Type::I32, passed as i64);
    c.require_equal(prologue.given.num_args, count);
    if passed > 0 {
        c.require_non_null(prologue.given.args);
    }
}

/// A kernel that isn't a body, with its work for device kernels and its stated C parameters.
#[derive(Clone, Copy)]
struct NativeKernel<'a> {
    kernel: &'a Kernel,
    on_device: Option<&'a OnDevice<'a>>,
    stated: Option<&'a args::Call<'a>>,
}

/// Calls a native kernel and passes its result on. `passed_on` are the addresses of arguments that it takes as they
/// came.
fn call_native(
    cx: &mut Context<'_, '_, '_>,
    pool: &mut ModulePool,
    target: NativeKernel<'_>,
    mut args: Vec<Value>,
    passed_on: &[Value],
    owned: Owned<'_>,
) {
    let NativeKernel { kernel, on_device, stated } = target;
    let (c, signature) = (&mut cx.checks, cx.plan.signature);
    let packed = cx.plan.forward_args;
    let ret = signature.ret().or(packed.then_some(&ParamType::None));
    let written = ret.filter(|ret| packed || writes_result(ret));
    let written = written.map(|ret| (ret, result::owned_slot(c)));
    args.extend(written.map(|(_, slot)| slot));
    let returns = call::returns(signature, kernel);
    let beside = beside_status(signature, kernel.stated_convention(), returns);
    let beside = beside.map(|c_type| result::plain_slot(c, c_type.abi().ty));
    args.extend(beside.map(|(_, slot)| slot));
    let owned = Owned { written, ..owned };
    if let Some(stated) = stated {
        args = stated::arguments(cx, pool, (kernel, stated), &args, &owned);
    }
    args.extend(passed_on);
    if let Some(OnDevice::Launch(prepared)) = on_device {
        let failure = call::launch(cx, pool, kernel, prepared, &args);
        return launched(cx, pool, failure, owned);
    }
    let result = call::native(cx, pool, kernel, on_device, &args);
    let c = &mut cx.checks;
    match (returns, result) {
        (KernelReturn::Status, Some(status)) => {
            // the code of the first-use work has raised its error already
            let status = Status { kernel: Some(kernel).filter(|kernel| !kernel.is_on_device()), code: status };
            result::unless_failed(c, pool, signature, status, &owned);
            match beside {
                Some((ty, slot)) => {
                    let value = c.b.load(ty, slot, 0, MemFlags::ALIGNED);
                    result::value(c, signature, value);
                }
                None => result::written(c, pool, signature, owned),
            }
        }
        (KernelReturn::Value, Some(value)) => result::value(c, signature, value),
        _ => result::success(c, owned.allocated),
    }
}

/// Returns what the launched kernel fills. If the launch failed, returns the code of its error, which is already
/// raised.
fn launched(cx: &mut Context<'_, '_, '_>, pool: &mut ModulePool, failure: Option<Failure>, owned: Owned<'_>) {
    let c = &mut cx.checks;
    if let Some(Failure { block, code }) = failure {
        let here = c.b.current();
        c.b.switch_to(block);
        result::leave(c, code, &owned);
        c.b.switch_to(here);
    }
    result::written(c, pool, cx.plan.signature, owned);
}

/// Calls a body and returns its status. The body writes a scalar, a dtype or a device itself. Any other result that it
/// writes is checked.
fn call_body(
    cx: &mut Context<'_, '_, '_>,
    pool: &mut ModulePool,
    (body, outside): (Code, &Outside<'_>),
    mut args: Vec<Value>,
    owned: Owned<'_>,
    prologue: &Prologue,
) {
    let (c, signature, has_result) = (&mut cx.checks, cx.plan.signature, cx.plan.has_result);
    let written = signature.ret().filter(|ret| writes_result(ret) && !body.writes_to_caller);
    let written = written.map(|ret| (ret, result::owned_slot(c)));
    match written {
        Some((_, slot)) => args.push(slot),
        None if body.writes_to_caller || signature.ret().is_some_and(returns_value) => args.push(c.b.param(3)),
        None => {}
    }
    for extra in &body.extras {
        args.push(match extra {
            Extra::Originals => outside.arguments(c.b, prologue, has_result),
            Extra::Handle => c.b.param(0),
            Extra::Bound => prologue.given.args,
        });
    }
    let owned = Owned { written, ..owned };
    let Some(code) = call::body(c, body, &args) else { return };
    match (&owned.allocated, &owned.written) {
        (None, None) => c.b.ret(Some(code)),
        _ => {
            result::unless_failed(c, pool, signature, Status { kernel: None, code }, &owned);
            result::written(c, pool, signature, owned);
        }
    }
}
