//! The fast path of arguments: conditions that accept the arguments that callers nearly always pass, and the values for
//! the kernel. The conditions are not in the order in which errors are reported; the binder determines that order.
//!
//! Arguments are processed one after the other. Each condition is a branch that makes the next load safe. Optional
//! arguments come after those that a call always passes.
//!
//! If the [plan](Plan::binds_first) leaves all checks to the binder, the arguments here are those that the binder has
//! written.
//!
//! Don't mark a load here as a load of constant memory: the binder may just have written the memory.

use super::checks::{Checks, zero};
use super::context::{AnyRef, Context};
use super::scalar;
use super::state::Saved;
use super::tensor;
use crate::ir::{BinaryOp, ConvertOp, FunctionBuilder, Hint, IntCC, MemFlags, Type, Value};
use crate::lower::abi::{ANY_SIZE, CELL_DATA, CELL_SIZE, PAYLOAD, TYPE_INDEX};
use crate::lower::convention::has_null;
use crate::spec::{Dim, ParamType};
use tvm_ffi_runtime::abi::TypeIndex;

/// A parameter, or an item of a tuple.
#[derive(Clone, Copy)]
struct Item<'a> {
    ty: &'a ParamType,
    arg: AnyRef,
    /// The parameter's name; `None` for an item of a tuple.
    name: Option<&'a str>,
}

/// The progress of an item.
enum Outcome<'a> {
    /// Done: the values that the kernel receives.
    Values(Vec<Value>),
    /// Done, and spilled until the kernel is called.
    Saved(Vec<Saved>),
    Items(Vec<Outcome<'a>>),
    /// To be processed after all others.
    Late(&'a ParamType, AnyRef),
}

/// Checks the arguments at `args` and returns the kernel's values for each parameter; none yet for streams. Values are
/// spilled only if the kernel or the body uses them (`takes_values`).
pub(in crate::lower) fn lower(cx: &mut Context<'_, '_, '_>, args: Value, takes_values: bool) -> Vec<Vec<Value>> {
    let signature = cx.plan.signature;
    let mut at = 0;
    let mut items = Vec::with_capacity(signature.params().len());
    for param in signature.params() {
        items.push(Item { ty: &param.ty, arg: AnyRef { base: args, offset: at }, name: Some(&param.name) });
        at += if param.is_passed() { ANY_SIZE } else { 0 };
    }
    let spills = cx.plan.spills_values.then_some(takes_values);
    let values = Args { cx, spills }.run(&items);
    for constraint in signature.constraints() {
        cx.dims.constrain(&mut cx.checks, constraint);
    }
    cx.checks.flush();
    values
}

/// Lowers arguments.
struct Args<'c, 'b, 'm, 'p> {
    cx: &'c mut Context<'b, 'm, 'p>,
    /// Whether an argument's values are spilled as soon as they are known. Then no condition stays pending either.
    spills: Option<bool>,
}

impl Args<'_, '_, '_, '_> {
    /// Processes all items that are always passed, then the optional ones.
    fn run(&mut self, items: &[Item<'_>]) -> Vec<Vec<Value>> {
        let mut outcomes: Vec<Outcome<'_>> = items.iter().map(|item| Outcome::Late(item.ty, item.arg)).collect();
        // numbers first, because dimensions of any parameter may name them
        let (numbers, others): (Vec<_>, Vec<_>) =
            items.iter().zip(&mut outcomes).partition(|(item, _)| item.ty.as_scalar().is_some());
        let mut tensors = Vec::new();
        for (item, outcome) in numbers.into_iter().chain(others) {
            match item.ty {
                ParamType::Tensor(ty) => tensors.push(((item.arg, ty), outcome)),
                _ => {
                    *outcome = item.lower(self.cx);
                    self.spill(outcome);
                }
            }
        }
        for some in tensors.chunks_mut(tensor::TOGETHER) {
            let arguments: Vec<_> = some.iter().map(|(argument, _)| *argument).collect();
            let values = tensor::lower(self.cx, &arguments);
            for ((_, outcome), values) in some.iter_mut().zip(values) {
                **outcome = Outcome::Values(values);
                self.spill(outcome);
            }
        }
        self.cx.dims.decide_deferred(&mut self.cx.checks);
        outcomes.into_iter().map(|outcome| self.finish(outcome)).collect()
    }

    /// Spills an argument's values, if there are too many for registers.
    fn spill(&mut self, outcome: &mut Outcome<'_>) {
        let Some(takes_values) = self.spills else { return };
        let c = &mut self.cx.checks;
        c.flush();
        if takes_values && let Outcome::Values(values) = outcome {
            *outcome = Outcome::Saved(values.iter().map(|value| Saved::spill(c.b, *value)).collect());
        }
    }

    /// The values that the kernel receives.
    fn finish(&mut self, outcome: Outcome<'_>) -> Vec<Value> {
        match outcome {
            Outcome::Values(values) => values,
            Outcome::Saved(values) => values.into_iter().map(|saved| saved.reload(self.cx.checks.b)).collect(),
            Outcome::Items(items) => items.into_iter().flat_map(|item| self.finish(item)).collect(),
            Outcome::Late(inner, arg) => self.optional(inner, arg),
        }
    }

    /// The values of an optional argument, or the same number of zeros. Facts learned inside the branch aren't used
    /// after it.
    fn optional(&mut self, inner: &ParamType, arg: AnyRef) -> Vec<Value> {
        let mark = self.cx.dims.mark();
        let (of_slots, seen) = (self.cx.devices.of_slots.len(), self.cx.devices.all.len());
        let headers = self.cx.headers.len();
        let c = &mut self.cx.checks;
        let type_index = arg.type_index(c);
        let absent = c.b.icmp_imm(IntCC::Eq, type_index, i64::from(TypeIndex::NONE.0));
        let (none, some, join) = (c.b.block(), c.b.block(), c.b.block());
        c.b.branch(absent, none, some, Hint::None);
        c.b.switch_to(some);
        let outside = c.begin_apart();
        let mut values: Vec<Value> = self.run(&[Item { ty: inner, arg, name: None }]).into_iter().flatten().collect();
        let Context { checks: c, devices, .. } = &mut *self.cx;
        c.end_apart(outside);
        if !has_null(inner) {
            let given = c.b.iconst(Type::I8, 1);
            values.insert(0, given);
        }
        let count = values.len();
        values.extend(devices.all[seen..].iter().map(|seen| seen.device));
        c.b.jump(join, &values);
        c.b.switch_to(none);
        let zeros: Vec<Value> = values
            .iter()
            .map(|value| {
                let ty = c.b.type_of(*value);
                zero(c.b, ty)
            })
            .collect();
        c.b.jump(join, &zeros);
        c.b.switch_to(join);
        let mut joined: Vec<Value> = Vec::with_capacity(values.len());
        for value in values {
            let ty = c.b.type_of(value);
            joined.push(c.b.block_param(join, ty));
        }
        for (seen, device) in devices.all[seen..].iter_mut().zip(joined.drain(count..)) {
            (seen.device, seen.is_certain) = (device, false);
        }
        devices.of_slots.truncate(of_slots);
        self.cx.headers.truncate(headers);
        self.cx.dims.forget_since(mark);
        joined
    }
}

impl<'a> Item<'a> {
    fn lower(self, cx: &mut Context<'_, '_, '_>) -> Outcome<'a> {
        let arg = self.arg;
        let c = &mut cx.checks;
        Outcome::Values(match self.ty {
            ParamType::Scalar(ty) => {
                let scalar = scalar::lower(c, arg, *ty);
                if let (Some(name), Some(wide)) = (self.name, scalar.wide) {
                    cx.dims.bind_param(c, name, wide);
                }
                vec![scalar.value]
            }
            ParamType::Tensor(tensor) => tensor::lower(cx, &[(arg, tensor)]).concat(),
            ParamType::Str => string(c, arg, TypeIndex::SMALL_STR, TypeIndex::STR),
            ParamType::Bytes => string(c, arg, TypeIndex::SMALL_BYTES, TypeIndex::BYTES),
            ParamType::DType => {
                require_index(c, arg, TypeIndex::DATA_TYPE);
                vec![arg.payload(c, Type::I32)]
            }
            ParamType::Device => {
                require_index(c, arg, TypeIndex::DEVICE);
                vec![arg.payload(c, Type::I64)]
            }
            ParamType::Any => {
                let type_index = arg.type_index(c);
                let plain = c.b.icmp_imm(IntCC::Ne, type_index, i64::from(TypeIndex::OBJECT_RVALUE_REF.0));
                c.require(plain);
                vec![c.b.ptr_add_imm(arg.base, i64::from(arg.offset))]
            }
            ParamType::None => {
                require_index(c, arg, TypeIndex::NONE);
                Vec::new()
            }
            ParamType::Int(value) => constant(c, arg, TypeIndex::INT, *value),
            ParamType::Bool(value) => constant(c, arg, TypeIndex::BOOL, i64::from(*value)),
            ParamType::Shape(dims) => shape(cx, arg, dims.as_deref()),
            ParamType::Array(_) => span(c, arg, TypeIndex::ARRAY),
            ParamType::Function => vec![object(c, arg, TypeIndex::FUNCTION)],
            ParamType::Module => vec![object(c, arg, TypeIndex::MODULE)],
            ParamType::List(_) => vec![object(c, arg, TypeIndex::LIST)],
            ParamType::Map(..) => vec![object(c, arg, TypeIndex::MAP)],
            ParamType::Dict(..) => vec![object(c, arg, TypeIndex::DICT)],
            // the binder has already checked its type
            ParamType::Object(_) => vec![arg.payload(c, Type::Ptr)],
            ParamType::Stream => stream(c, arg),
            ParamType::EnvStream | ParamType::EnvState(_) => Vec::new(),
            ParamType::Tuple(_) | ParamType::Record { .. } => return tuple(cx, arg, &self.ty.inner()),
            ParamType::Optional(inner) => return Outcome::Late(inner, arg),
        })
    }
}

/// A tuple, or a record in the form that the binder has given it: an Array of its fields.
fn tuple<'a>(cx: &mut Context<'_, '_, '_>, arg: AnyRef, types: &[&'a ParamType]) -> Outcome<'a> {
    let c = &mut cx.checks;
    let object = object(c, arg, TypeIndex::ARRAY);
    let base = c.b.load(Type::Ptr, object, CELL_DATA, MemFlags::ALIGNED);
    let size = c.b.load(Type::I64, object, CELL_SIZE, MemFlags::ALIGNED);
    let count = c.b.i64(types.len() as i64);
    c.require_equal(size, count);
    let lower = |(i, ty): (i32, &&'a ParamType)| {
        let arg = AnyRef { base, offset: i * ANY_SIZE };
        Item { ty, arg, name: None }.lower(cx)
    };
    Outcome::Items((0..).zip(types).map(lower).collect())
}

/// The data pointer and size of an object's cell. An empty cell may have a NULL pointer; the slow path handles that.
fn span(c: &mut Checks<'_, '_>, arg: AnyRef, index: TypeIndex) -> Vec<Value> {
    let object = object(c, arg, index);
    let data = c.b.load(Type::Ptr, object, CELL_DATA, MemFlags::ALIGNED);
    c.require_non_null(data);
    let size = c.b.load(Type::I64, object, CELL_SIZE, MemFlags::ALIGNED);
    vec![data, size]
}

fn shape(cx: &mut Context<'_, '_, '_>, arg: AnyRef, dims: Option<&[Dim]>) -> Vec<Value> {
    let c = &mut cx.checks;
    let span = span(c, arg, TypeIndex::SHAPE);
    if let (Some(dims), [data, size]) = (dims, &span[..]) {
        let rank = c.b.i64(dims.len() as i64);
        c.require_equal(*size, rank);
        for (d, dim) in (0i32..).zip(dims) {
            let got = c.b.load(Type::I64, *data, 8 * d, MemFlags::ALIGNED);
            cx.dims.match_dim(c, dim, got, true);
        }
    }
    span
}

/// Whether a stream isn't None, an `I8`, and its handle. Nothing reads the handle of None.
fn stream(c: &mut Checks<'_, '_>, arg: AnyRef) -> Vec<Value> {
    let type_index = arg.type_index(c);
    let is = |b: &mut FunctionBuilder<'_>, index: TypeIndex| b.icmp_imm(IntCC::Eq, type_index, i64::from(index.0));
    let mut accepted = is(c.b, TypeIndex::NONE);
    for index in [TypeIndex::INT, TypeIndex::OPAQUE_PTR] {
        let other = is(c.b, index);
        accepted = c.b.binary(BinaryOp::Or, accepted, other);
    }
    c.require(accepted);
    let given = c.b.icmp_imm(IntCC::Ne, type_index, i64::from(TypeIndex::NONE.0));
    vec![c.b.convert(ConvertOp::ZExt, Type::I8, given), arg.payload(c, Type::Ptr)]
}

fn require_index(c: &mut Checks<'_, '_>, arg: AnyRef, index: TypeIndex) {
    let type_index = arg.type_index(c);
    let expected = c.b.iconst(Type::I32, i64::from(index.0));
    c.require_equal(type_index, expected);
}

fn constant(c: &mut Checks<'_, '_>, arg: AnyRef, index: TypeIndex, value: i64) -> Vec<Value> {
    require_index(c, arg, index);
    let payload = arg.payload(c, Type::I64);
    let expected = c.b.i64(value);
    c.require_equal(payload, expected);
    Vec::new()
}

/// An object of a static type.
fn object(c: &mut Checks<'_, '_>, arg: AnyRef, index: TypeIndex) -> Value {
    require_index(c, arg, index);
    let payload = arg.payload(c, Type::Ptr);
    c.require_non_null(payload);
    payload
}

/// The characters of a small string or of a string object. The slow path handles borrowed strings.
fn string(c: &mut Checks<'_, '_>, arg: AnyRef, small: TypeIndex, object: TypeIndex) -> Vec<Value> {
    let type_index = arg.type_index(c);
    let (inside, outside, join) = (c.b.block(), c.b.block(), c.b.block());
    let (data, size) = (c.b.block_param(join, Type::Ptr), c.b.block_param(join, Type::I64));
    let is_small = c.b.icmp_imm(IntCC::Eq, type_index, i64::from(small.0));
    c.b.branch(is_small, inside, outside, Hint::None);
    c.b.switch_to(inside);
    let characters = c.b.ptr_add_imm(arg.base, i64::from(arg.offset + PAYLOAD));
    let len = c.b.load(Type::I32, arg.base, arg.offset + TYPE_INDEX + 4, MemFlags::ALIGNED);
    let len = c.b.convert(ConvertOp::ZExt, Type::I64, len);
    c.b.jump(join, &[characters, len]);
    c.b.switch_to(outside);
    let payload = arg.payload(c, Type::Ptr);
    let is_object = c.b.icmp_imm(IntCC::Eq, type_index, i64::from(object.0));
    let non_null = c.b.icmp_imm(IntCC::Ne, payload, 0);
    for condition in [is_object, non_null] {
        c.require(condition);
    }
    let characters = c.b.load(Type::Ptr, payload, CELL_DATA, MemFlags::ALIGNED);
    let len = c.b.load(Type::I64, payload, CELL_SIZE, MemFlags::ALIGNED);
    c.b.jump(join, &[characters, len]);
    c.b.switch_to(join);
    vec![data, size]
}
