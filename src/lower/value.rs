//! Values that generated code takes from elsewhere by stated types: results of calls, values that a closure captured.
//!
//! Such values are checked by the routine that checks arguments, `bind`, and in its words. A signature of their own has a parameter for
//! each value, behind an integer for each symbol that the function knows already. Types that need no more than a comparison of the type
//! index are compared inline, and `bind` is called only where they differ: it converts an int for a float, or raises.

use super::abi::{ANY_SIZE, PAYLOAD, TYPE_INDEX, store_any};
use super::convention::{Convention, TensorForm};
use super::encode::{self, Encoded, Scratch};
use super::fast_path::{self, Checks, Context, Dims, SeenDevices};
use super::plan::Plan;
use super::protocol::{SignatureDescriptor, field, helpers};
use super::unit::Pool;
use crate::ir::{ConvertOp, FunctionBuilder, Hint, IntCC, MemFlags, StackSlot, Type, Value};
use crate::spec::{DTypePolicy, Dim, ParamType, Signature, TensorType};
use tvm_ffi_runtime::abi::TypeIndex;

/// Values as they are stated.
pub(super) struct Expected<'a> {
    /// Each value: its name in messages, and its type.
    pub values: Vec<(String, ParamType)>,
    /// Where the values are, in messages: ``called by `f(x: int64)` ``.
    pub place: String,
    /// The dtypes that tensors may have in place of the stated ones.
    pub dtype_policy: DTypePolicy,
    /// The symbols that the function knows. Types may leave some of them out.
    pub known: Vec<Known<'a>>,
}

/// A symbol that a function knows.
#[derive(Clone, Copy)]
pub(super) struct Known<'a> {
    pub name: &'a str,
    /// The path of the value that the symbol is from, in messages: [`origin`] tells it.
    pub origin: &'a str,
    /// An `I64`.
    pub value: Value,
}

/// Values that have been checked.
pub(super) struct Taken {
    /// For each value what convention `flat` passes for a parameter of its type, but for symbols.
    pub values: Vec<Vec<Value>>,
    /// The symbols that the function didn't know, in order of first appearance.
    pub symbols: Vec<Bound>,
}

/// A symbol that a value has bound. Where only optional values have it and all of them are None, it is 0.
pub(super) struct Bound {
    pub name: String,
    /// An `I64`.
    pub value: Value,
}

impl<'a> Expected<'a> {
    /// The same, in a function that knows these symbols.
    pub(super) fn knowing<'k>(self, known: impl IntoIterator<Item = Known<'k>>) -> Expected<'k> {
        let Expected { values, place, dtype_policy, .. } = self;
        Expected { values, place, dtype_policy, known: known.into_iter().collect() }
    }
}

/// The checks of values in one function.
#[derive(Default)]
pub(super) struct ValueChecks {
    /// The scratch memory of the checks whose values don't point there.
    shared: Option<StackSlot>,
    /// The bytes of all scratch memory, of which that of the shared slot are so many.
    bytes: u32,
    shared_bytes: u32,
    /// A check calls `bind` whatever the value is, so that the function is best linked to `bind` itself (`Unit::always_binds`).
    always_binds: bool,
}

impl ValueChecks {
    /// Whether a check calls `bind` whatever the value is.
    pub(super) fn always_binds(&self) -> bool {
        self.always_binds
    }

    /// Checks the `TVMFFIAny`s at `values`, as many as are expected, and goes on with what is inside of them. Where one is refused, the
    /// error is raised, and `refused` gets the code in a cold block that it has to end, and an address of the refused values: a copy
    /// where nothing else needs their own address there.
    ///
    /// The values are borrowed: whoever owns the `TVMFFIAny`s keeps them as long as the taken values are used, and at the same place, as
    /// `Any`, `str` and `bytes` may point there. Values may also point to scratch memory in the function's frame: what `bind` makes of a
    /// string that isn't an object, of a Tensor that is passed as a `DLTensor*`, of an Array that stands for a Shape. Each check whose values do so
    /// has scratch memory of its own, so that they are good until the same check runs again, in the next turn of a loop.
    ///
    /// # Errors
    /// The types have mistakes, or need too much of the frame; the text says which. The function under construction is then of no use.
    pub(super) fn check(
        &mut self,
        b: &mut FunctionBuilder<'_>,
        pool: &mut Pool,
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

    /// Scratch memory for a check.
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
            let most = Scratch::MOST;
            return Err(format!("the checks of values need {} bytes of stack, and may use {most}", self.bytes));
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
    /// The known symbols that the types mention.
    fn mentioned(&self) -> Vec<Known<'_>> {
        let mut known = Vec::new();
        for (_, ty) in &self.values {
            ty.for_each_dim(&mut |dim| {
                dim.for_each_symbol(&mut |name| {
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
    Signature::of_values(names, expected.values.iter().cloned(), expected.dtype_policy).map_err(|mistakes| {
        let mistakes: Vec<_> = mistakes.iter().map(ToString::to_string).collect();
        mistakes.join("; ")
    })
}

/// Whether the fast path takes nearly all values of a type.
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

/// Whether what is taken out of a value may point to the memory that `bind` has written.
fn may_point_to_scratch(ty: &ParamType) -> bool {
    match ty {
        ParamType::Str | ParamType::Bytes | ParamType::Shape(_) | ParamType::Any | ParamType::Array(_) => true,
        ParamType::Tensor(tensor) => Convention::Flat.form(tensor) == TensorForm::Descriptor,
        ParamType::Optional(_) | ParamType::Tuple(_) => ty.inner().into_iter().any(may_point_to_scratch),
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
    /// Calls `bind` and goes on where it accepts; gives the address of what it made. `rarely` says that the code hardly ever runs.
    fn call(
        &self,
        b: &mut FunctionBuilder<'_>,
        pool: &Pool,
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
            // Cranelift keeps a small constant that the code before has too in a register, all through the calls on the way
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

    /// The symbols that the function knows, then the values. Code that hardly ever runs gets a copy in any case: where nothing but loads
    /// and stores needs the values' own address, no register keeps it.
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

/// Values that are taken apart.
enum Source {
    /// As they came, behind no symbols. The values that the fast path refuses are for the slow path.
    Given { values: Value, slow_path: crate::ir::Block },
    /// As `bind` has made them at an address, in its scratch memory.
    Bound { address: Value, scratch: StackSlot, descriptor: Encoded },
}

impl Taken {
    fn flat(&self) -> impl Iterator<Item = &Value> {
        self.values.iter().flatten()
    }
}

/// Takes values apart, which stand behind so many symbols.
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
    let symbols = plan
        .signature
        .symbols()
        .into_iter()
        .map(|name| Bound { name: name.to_owned(), value: cx.dims.symbol(&mut cx.checks, name) });
    let symbols = symbols.collect();
    cx.checks.finish().map_err(|missing| format!("lowering lacks {missing}; this is a bug of tvm-ffi-codegen"))?;
    Ok(Taken { values, symbols })
}

/// The path of the value that a symbol of a signature is from, in messages: of the first size or stride that is the symbol alone, else of
/// the first that has it. `bind` may find its value elsewhere, where optional values are None.
pub(super) fn origin(signature: &Signature, symbol: &str) -> String {
    let mut found: Option<(bool, String)> = None;
    for param in signature.params() {
        if param.name == symbol {
            return symbol.to_owned();
        }
        paths(&param.name, &param.ty, &mut |path, dim| {
            let (mut has, alone) = (false, matches!(dim, Dim::Symbol(_)));
            dim.for_each_symbol(&mut |name| has |= name == symbol);
            if has && found.as_ref().is_none_or(|(known, _)| alone && !known) {
                found = Some((alone, path));
            }
        });
    }
    // what only containers have is at no fixed path
    found.map_or_else(|| "elements of containers".to_owned(), |(_, path)| path)
}

/// Calls `each` with the sizes and strides outside of containers, and the path of each.
fn paths<'a>(path: &str, ty: &'a ParamType, each: &mut dyn FnMut(String, &'a Dim)) {
    match ty {
        ParamType::Tensor(tensor) => tensor_paths(path, tensor, each),
        ParamType::Shape(Some(dims)) => dims.iter().enumerate().for_each(|(d, dim)| each(format!("{path}[{d}]"), dim)),
        ParamType::Optional(inner) => paths(path, inner, each),
        ParamType::Tuple(items) => {
            items.iter().enumerate().for_each(|(i, item)| paths(&format!("{path}[{i}]"), item, each));
        }
        _ => {}
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
