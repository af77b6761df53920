//! Values that generated code takes from outside and checks against stated types: results of calls, and captured values
//! of closures.
//!
//! `bind`, which checks arguments, checks these values as well, with the same messages. They have a signature of their
//! own: an integer parameter for each variable that the function knows already, then a parameter for each value. Types
//! that only need a comparison of the type index are compared inline. `bind` is called only if the comparison fails: it
//! converts an int to a float, or raises an error.

use super::abi::{ANY_SIZE, PAYLOAD, TYPE_INDEX, store_any};
use super::convention::{Convention, TensorForm};
use super::encode::{self, Encoded, Scratch};
use super::fast_path::{self, Checks, Context, Dims, SeenDevices};
use super::plan::Plan;
use super::protocol::{SignatureDescriptor, field, helpers};
use super::unit::ModulePool;
use crate::ir::{ConvertOp, FunctionBuilder, Hint, IntCC, MemFlags, StackSlot, Type, Value};
use crate::spec::{DTypePolicy, Dim, ParamType, Signature, TensorType};
use tvm_ffi_runtime::abi::TypeIndex;

/// Values with their stated types.
pub(super) struct Expected<'a> {
    /// Each value: its name in messages, and its type.
    pub values: Vec<(String, ParamType)>,
    /// The source of the values, in messages: ``called by `f(x: int64)` ``.
    pub place: String,
    /// The dtypes that tensors may have instead of the stated ones.
    pub dtype_policy: DTypePolicy,
    /// The variables that the function knows; the types need not use all of them.
    pub known: Vec<Known<'a>>,
}

/// A variable whose value the function knows.
#[derive(Clone, Copy)]
pub(super) struct Known<'a> {
    pub name: &'a str,
    /// The path of the value that defines the variable, in messages; see [`origin`].
    pub origin: &'a str,
    /// An `I64`.
    pub value: Value,
}

/// Checked values.
pub(super) struct Taken {
    /// For each value, the arguments that convention `flat` passes for a parameter of its type, except variables.
    pub values: Vec<Vec<Value>>,
    /// The variables that the function didn't know before, in order of first appearance.
    pub vars: Vec<Bound>,
}

/// A variable bound by a value. It is 0 if only optional values have it and all of them are None.
pub(super) struct Bound {
    pub name: String,
    /// An `I64`.
    pub value: Value,
}

impl<'a> Expected<'a> {
    /// The same values, for a function that knows these variables.
    pub(super) fn knowing<'k>(self, known: impl IntoIterator<Item = Known<'k>>) -> Expected<'k> {
        let Expected { values, place, dtype_policy, .. } = self;
        Expected { values, place, dtype_policy, known: known.into_iter().collect() }
    }
}

/// The checks of values in one function.
#[derive(Default)]
pub(super) struct ValueChecks {
    /// The scratch memory shared by checks whose results don't point into it.
    shared: Option<StackSlot>,
    /// The bytes of all scratch memory, including `shared_bytes` for the shared slot.
    bytes: u32,
    shared_bytes: u32,
    /// Whether some check calls `bind` for every value. Then it is best to link the function to `bind` itself
    /// (`Unit::always_binds`).
    always_binds: bool,
}

impl ValueChecks {
    /// Whether some check calls `bind` for every value.
    pub(super) fn always_binds(&self) -> bool {
        self.always_binds
    }

    /// Checks the expected `TVMFFIAny`s at `values`, and continues with their contents. If one is rejected, the error
    /// is raised, and `refused` is called in a cold block that it must terminate. It gets the code and an address of
    /// the rejected values, which is a copy if only this path would need their own address.
    ///
    /// The contents are borrowed. The owner of the `TVMFFIAny`s must keep them alive and in place while the contents
    /// are used, because `Any`, `str` and `bytes` may point there. Contents may also point into scratch memory in the
    /// function's frame. `bind` creates such contents for a string that isn't an object, a Tensor passed as a
    /// `DLTensor*`, or an Array passed for a Shape. Each check with such contents has its own scratch memory. So its
    /// contents stay valid until the same check runs again, in the next turn of a loop.
    ///
    /// # Errors
    /// The types have errors or need too much of the frame; the string says which. You can't use the function under
    /// construction afterwards.
    pub(super) fn check(
        &mut self,
        b: &mut FunctionBuilder<'_>,
        pool: &mut ModulePool,
        expected: &Expected<'_>,
        values: Value,
        refused: impl FnOnce(&mut FunctionBuilder<'_>, Value, Value),
    ) -> Result<Taken, String> {
        let known = expected.mentioned();
        let signature = signature(expected, &known)?;
        let mut plan = Plan::new(&signature, Convention::Flat, false);
        let origins: Vec<_> = known.iter().map(|known| known.origin).collect();
        let descriptor =
            encode::encode_values(&mut pool.constants, &signature, &plan.devices, &expected.place, &origins)?;
        let bind = Bind { descriptor, known: &known, values: expected.values.len() };
        if expected.values.iter().all(|(_, ty)| is_plain(ty)) {
            let (slow_path, join) = (b.cold_block(), b.block());
            let mut taken = take(b, &plan, Source::Given { values, slow_path }, known.len())?;
            let types: Vec<_> = taken.flat().map(|value| b.type_of(*value)).collect();
            b.jump(join, &taken.flat().copied().collect::<Vec<_>>());
            b.switch_to(slow_path);
            let scratch = self.scratch(b, expected, &descriptor)?;
            let address = bind.call(b, pool, values, scratch, true, refused);
            plan.binds_first = true;
            let bound = take(b, &plan, Source::Bound { address, scratch, descriptor }, known.len())?;
            b.jump(join, &bound.flat().copied().collect::<Vec<_>>());
            b.switch_to(join);
            let joined: Vec<_> = types.into_iter().map(|ty| b.block_param(join, ty)).collect();
            taken.values.iter_mut().flatten().zip(joined).for_each(|(value, joined)| *value = joined);
            return Ok(taken);
        }
        self.always_binds = true;
        let scratch = self.scratch(b, expected, &descriptor)?;
        let address = bind.call(b, pool, values, scratch, false, refused);
        plan.binds_first = true;
        take(b, &plan, Source::Bound { address, scratch, descriptor }, known.len())
    }

    /// Returns scratch memory for a check.
    fn scratch(
        &mut self,
        b: &mut FunctionBuilder<'_>,
        expected: &Expected<'_>,
        descriptor: &Encoded,
    ) -> Result<StackSlot, String> {
        let wanted = descriptor.scratch.bytes;
        let own = expected.values.iter().any(|(_, ty)| may_point_to_scratch(ty));
        let more = if own { wanted } else { wanted.saturating_sub(self.shared_bytes) };
        self.bytes = self.bytes.saturating_add(more);
        if self.bytes > Scratch::MOST {
            let max = Scratch::MOST;
            return Err(format!("the checks of values need {} bytes of stack, and may use {max}", self.bytes));
        }
        if own {
            return Ok(b.slot(wanted.max(1), 8));
        }
        self.shared_bytes = self.shared_bytes.max(wanted);
        let shared = *self.shared.get_or_insert_with(|| b.slot(1, 8));
        b.grow_slot(shared, wanted);
        Ok(shared)
    }
}

impl Expected<'_> {
    /// The known variables that the types mention.
    fn mentioned(&self) -> Vec<Known<'_>> {
        let mut known = Vec::new();
        for (_, ty) in &self.values {
            ty.for_each_dim(&mut |dim| {
                dim.for_each_var(&mut |name| {
                    let fresh = !known.iter().any(|known: &Known<'_>| known.name == name);
                    known.extend(self.known.iter().find(|known| fresh && known.name == name));
                });
            });
        }
        known
    }
}

/// The signature of the values.
fn signature(expected: &Expected<'_>, known: &[Known<'_>]) -> Result<Signature, String> {
    let names = known.iter().map(|known| known.name);
    Signature::of_values(names, expected.values.iter().cloned(), expected.dtype_policy).map_err(|errors| {
        let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
        errors.join("; ")
    })
}

/// Whether the fast path accepts nearly all values of a type.
fn is_plain(ty: &ParamType) -> bool {
    match ty {
        ParamType::Scalar(_)
        | ParamType::Str
        | ParamType::Bytes
        | ParamType::DType
        | ParamType::Device
        | ParamType::Any
        | ParamType::None
        | ParamType::Int(_)
        | ParamType::Bool(_)
        | ParamType::Function
        | ParamType::Module => true,
        ParamType::List(_) | ParamType::Map(..) | ParamType::Dict(..) => {
            ty.inner().into_iter().all(|inner| *inner == ParamType::Any)
        }
        _ => false,
    }
}

/// Whether the contents of a value may point to memory written by `bind`.
fn may_point_to_scratch(ty: &ParamType) -> bool {
    match ty {
        ParamType::Str | ParamType::Bytes | ParamType::Shape(_) | ParamType::Any | ParamType::Array(_) => true,
        ParamType::Tensor(tensor) => Convention::Flat.form(tensor) == TensorForm::Descriptor,
        ParamType::Optional(_) | ParamType::Tuple(_) | ParamType::Record { .. } => {
            ty.inner().into_iter().any(may_point_to_scratch)
        }
        _ => false,
    }
}

/// A call of `bind`.
struct Bind<'a> {
    descriptor: Encoded,
    known: &'a [Known<'a>],
    /// Number of values.
    values: usize,
}

impl Bind<'_> {
    /// Calls `bind`, continues if it accepts, and returns the address of the converted values. `rarely` means that the
    /// code almost never runs.
    fn call(
        &self,
        b: &mut FunctionBuilder<'_>,
        pool: &ModulePool,
        values: Value,
        scratch: StackSlot,
        rarely: bool,
        refused: impl FnOnce(&mut FunctionBuilder<'_>, Value, Value),
    ) -> Value {
        let args = self.args(b, values, rarely);
        let table = b.data_addr(pool.data, 0);
        let descriptor = b.iconst(Type::I32, i64::from(self.descriptor.offset));
        let num_args = match rarely {
            false => b.i64((self.known.len() + self.values) as i64),
            // Load the count: Cranelift would share a small constant with earlier code and keep it in a register across
            // the calls in between
            true => {
                let params = field!(SignatureDescriptor, params);
                let count = b.load(params.ty, table, self.descriptor.offset as i32 + params.offset, MemFlags::READONLY);
                b.convert(ConvertOp::ZExt, Type::I64, count)
            }
        };
        let scratch = b.stack_addr(scratch);
        let bind = helpers::bind(b.module());
        if let Some(code) = b.call(bind, &[table, descriptor, args, num_args, scratch]) {
            let accepted = if rarely { b.cold_block() } else { b.block() };
            let bad = b.cold_block();
            let ok = b.icmp_imm(IntCC::Eq, code, 0);
            b.branch(ok, accepted, bad, Hint::Likely);
            b.switch_to(bad);
            let values = b.ptr_add_imm(args, self.known.len() as i64 * i64::from(ANY_SIZE));
            refused(b, code, values);
            b.switch_to(accepted);
        }
        scratch
    }

    /// The known variables, then the values. Code that almost never runs always copies the values. Then only loads and
    /// stores use the values' own address, so no register has to keep it.
    fn args(&self, b: &mut FunctionBuilder<'_>, values: Value, rarely: bool) -> Value {
        if self.known.is_empty() && !rarely {
            return values;
        }
        let slot = b.slot(ANY_SIZE as u32 * (self.known.len() + self.values) as u32, 8);
        let args = b.stack_addr(slot);
        let mut to = 0;
        for known in self.known {
            let at = b.ptr_add_imm(args, to);
            store_any(b, at, TypeIndex::INT, known.value);
            to += i64::from(ANY_SIZE);
        }
        for from in (0..self.values as i32).map(|number| number * ANY_SIZE) {
            for word in [TYPE_INDEX, PAYLOAD] {
                let value = b.load(Type::I64, values, from + word, MemFlags::ALIGNED);
                b.store(value, args, to as i32 + from + word, MemFlags::ALIGNED);
            }
        }
        args
    }
}

/// The source of values to take apart.
enum Source {
    /// The unmodified values, without variables before them. Values that the fast path rejects go to the slow path.
    Given { values: Value, slow_path: crate::ir::Block },
    /// The values converted by `bind`, at an address in its scratch memory.
    Bound { address: Value, scratch: StackSlot, descriptor: Encoded },
}

impl Taken {
    fn flat(&self) -> impl Iterator<Item = &Value> {
        self.values.iter().flatten()
    }
}

/// Takes apart values that follow `known` variables.
fn take(b: &mut FunctionBuilder<'_>, plan: &Plan<'_>, source: Source, known: usize) -> Result<Taken, String> {
    let (checks, from) = match source {
        Source::Given { values, slow_path } => (Checks::new(b, slow_path), values),
        Source::Bound { address, .. } => (Checks::trusting(b), address),
    };
    let (dims, devices) = (Dims::new(plan), SeenDevices::default());
    let mut cx = Context { checks, dims, devices, headers: Vec::new(), plan };
    if let Source::Bound { scratch, descriptor, .. } = source {
        cx.dims.preload(&mut cx.checks, plan, scratch, descriptor.binding_size);
    }
    let mut values = fast_path::lower(&mut cx, from, true);
    values.drain(..known);
    let vars = plan
        .signature
        .dim_vars()
        .into_iter()
        .map(|name| Bound { name: name.to_owned(), value: cx.dims.var(&mut cx.checks, name) });
    let vars = vars.collect();
    cx.checks.finish().map_err(|missing| format!("lowering lacks {missing}; this is a bug of tvm-ffi-codegen"))?;
    Ok(Taken { values, vars })
}

/// The path of the value that defines a variable of a signature, in messages: the first size or stride that is the
/// variable alone, otherwise the first that contains it. `bind` may use another value if optional values are None.
pub(super) fn origin(signature: &Signature, var: &str) -> String {
    let mut found: Option<(bool, String)> = None;
    for param in signature.params() {
        if param.name == var || signature.type_at(var).is_some() {
            return var.to_owned();
        }
        paths(&param.name, &param.ty, &mut |path, dim| {
            let (mut has, alone) = (false, matches!(dim, Dim::Var(_)));
            dim.for_each_var(&mut |name| has |= name == var);
            if has && found.as_ref().is_none_or(|(known, _)| alone && !known) {
                found = Some((alone, path));
            }
        });
    }
    // a variable found only in containers has no fixed path
    found.map_or_else(|| "elements of containers".to_owned(), |(_, path)| path)
}

/// Calls `each` with every size and stride outside containers, and its path.
fn paths<'a>(path: &str, ty: &'a ParamType, each: &mut dyn FnMut(String, &'a Dim)) {
    match ty {
        ParamType::Tensor(tensor) => tensor_paths(path, tensor, each),
        ParamType::Shape(Some(dims)) => dims.iter().enumerate().for_each(|(d, dim)| each(format!("{path}[{d}]"), dim)),
        ParamType::Optional(inner) => paths(path, inner, each),
        _ => {
            for (step, member) in ty.members() {
                paths(&format!("{path}{step}"), member, each);
            }
        }
    }
}

fn tensor_paths<'a>(path: &str, tensor: &'a TensorType, each: &mut dyn FnMut(String, &'a Dim)) {
    let (sizes, strides) = (tensor.shape.dims().unwrap_or_default(), tensor.strides().unwrap_or_default());
    for (member, dims) in [("shape", sizes), ("strides", strides)] {
        dims.iter().enumerate().for_each(|(d, dim)| each(format!("{path}.{member}[{d}]"), dim));
    }
}

#[cfg(all(test, feature = "_engine"))]
mod tests;
