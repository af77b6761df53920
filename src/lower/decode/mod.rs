//! The good path: takes the arguments apart, under conditions that accept what callers nearly always pass. The order in which errors
//! are reported is not theirs but `bind`'s.
//!
//! Parameters are taken one after the other, each condition a branch that makes the next load safe. What is optional comes after what
//! a call always passes.
//!
//! Some signatures leave the checks to `bind` alone ([`needs_bind`]): those with containers whose elements are checked, with symbols that only
//! optional tensors carry, and the like. Then `bind` is asked before all else, and the values are taken from what it has made.
//!
//! No load here may count as of memory that doesn't change: it may be what `bind` has just written.

mod dims;
mod scalar;
pub(super) mod tensor;

pub(super) use dims::Deferred;

use super::fields;
use super::kernel::convention::has_null;
use super::program::{self, Devices, SharedId};
use super::wrapper::{Bound, Held, Lowerer, PAYLOAD, TYPE_INDEX};
use crate::ir::{ConvertOp, Hint, IntCC, MemFlags, StackSlot, Type, Value};
use crate::spec::{Device, Dim, ParamType, Signature, TensorShape};
use tvm_ffi_runtime::abi::{TVMFFIObject, TypeIndex};

/// An object's cell follows its header (c_api.h).
pub(super) const HEADER: i32 = size_of::<TVMFFIObject>() as i32;

/// Where a `TVMFFIAny` is.
#[derive(Clone, Copy)]
pub(super) struct Place {
    base: Value,
    offset: i32,
}

impl Place {
    pub(super) fn new(base: Value, offset: i32) -> Self {
        Place { base, offset }
    }

    fn type_index(self, l: &mut Lowerer<'_>) -> Value {
        l.b.load(Type::I32, self.base, self.offset + TYPE_INDEX, MemFlags::ALIGNED)
    }

    fn payload(self, l: &mut Lowerer<'_>, ty: Type) -> Value {
        l.b.load(ty, self.base, self.offset + PAYLOAD, MemFlags::ALIGNED)
    }
}

/// The device of a tensor.
pub(super) struct SeenDevice {
    /// The tensor's number in the signature: what is optional comes later.
    order: usize,
    /// Its slot, where it shares one.
    pub slot: Option<usize>,
    /// Its stream may be asked for.
    pub has_stream: bool,
    /// As one `I64`; 0 where the tensor is absent.
    device: Value,
}

/// Whether a wrapper's arguments always go through `bind`.
pub(super) fn needs_bind(signature: &Signature) -> bool {
    !dims::can_decide(signature)
        || signature.params().iter().any(|param| has_slow_type(&param.ty))
        || has_loose_device(signature)
}

/// Whether the type has what the good path can't check.
fn has_slow_type(ty: &ParamType) -> bool {
    match ty {
        ParamType::Object(_) => true,
        ParamType::Array(inner) | ParamType::List(inner) => **inner != ParamType::Any,
        ParamType::Map(key, value) | ParamType::Dict(key, value) => {
            **key != ParamType::Any || **value != ParamType::Any
        }
        // compact strides of any rank are as many as the sizes; of strides that are expressions, some are neither compared nor solved;
        // whether a byte offset can be added depends on the device
        ParamType::Tensor(tensor) => {
            let computed = |stride: &Dim| matches!(stride, Dim::Binary(..));
            tensor.shape == TensorShape::Any
                || tensor.device == Device::Any
                || tensor.strides().unwrap_or_default().iter().any(computed)
        }
        _ => ty.inner().into_iter().any(has_slow_type),
    }
}

/// Whether tensors share a device that only an optional one may say. And tensors that may be anywhere say where others of that kind
/// may be.
fn has_loose_device(signature: &Signature) -> bool {
    let devices = Devices::of(signature);
    let mut firm = vec![false; devices.slots()];
    let mut optional = vec![0; devices.slots()];
    for param in signature.params() {
        count_devices(&param.ty, &devices, true, &mut firm, &mut optional);
    }
    firm.iter().zip(&optional).any(|(firm, optional)| !firm && *optional > 1)
}

fn count_devices(ty: &ParamType, devices: &Devices, always: bool, firm: &mut [bool], optional: &mut [usize]) {
    if let ParamType::Tensor(tensor) = ty
        && let (slot, SharedId::OfSlot) = devices.place(&tensor.device)
    {
        firm[slot] |= always;
        optional[slot] += usize::from(!always);
    }
    let always = always && matches!(ty, ParamType::Tuple(_));
    ty.inner().into_iter().for_each(|inner| count_devices(inner, devices, always, firm, optional));
}

/// The values of more parameters and symbols than these wait in the frame until the kernel is called: they don't fit into registers,
/// and the time that allocating them takes grows with the square of how much is alive at once.
const FEW_VALUES: usize = 10;
/// More symbols than these wait in the frame until they are asked for.
const FEW_SYMBOLS: usize = 8;

/// Whether a wrapper has many symbols, and many values with the parameters'.
pub(super) fn has_many(signature: &Signature) -> (bool, bool) {
    let symbols = signature.names_in_dims().len();
    (symbols > FEW_SYMBOLS, symbols + signature.params().len() > FEW_VALUES)
}

/// A parameter, or an item of a tuple.
#[derive(Clone, Copy)]
struct Item<'a> {
    ty: &'a ParamType,
    place: Place,
    /// The parameter's name, where it is one.
    name: Option<&'a str>,
}

/// What has become of an item.
enum Outcome<'a> {
    /// What the kernel takes.
    Values(Vec<Value>),
    /// The same, out of the way until the kernel is called.
    Held(Vec<Held>),
    Items(Vec<Outcome<'a>>),
    /// Optional: looked at when all others are done.
    Late(&'a ParamType, Place),
}

impl Lowerer<'_> {
    /// Checks the arguments and gives what the kernel takes for each parameter; nothing yet for streams.
    pub(super) fn decode(&mut self, signature: &Signature) -> Vec<Vec<Value>> {
        if let Some(scratch) = self.from_bind {
            self.preload(signature, scratch);
        }
        let mut at = 0;
        let mut items = Vec::with_capacity(signature.params().len());
        for param in signature.params() {
            let place = Place::new(self.args, at);
            at += if param.is_passed() { super::wrapper::ANY_SIZE } else { 0 };
            items.push(Item { ty: &param.ty, place, name: Some(&param.name) });
        }
        let values = self.run(&items);
        for constraint in signature.constraints() {
            self.constrain(constraint);
        }
        self.settle();
        values
    }

    /// Asks for the streams, in their places.
    pub(super) fn streams(&mut self, signature: &Signature, values: &mut [Vec<Value>]) {
        for (param, values) in signature.params().iter().zip(values) {
            if param.ty == ParamType::EnvStream {
                *values = vec![self.stream(signature, &param.name)];
            }
        }
    }

    /// Takes the values of all symbols from `bind`'s notes.
    fn preload(&mut self, signature: &Signature, slot: StackSlot) {
        let scratch = self.b.stack_addr(slot);
        let first = program::notes_offset(signature.passed().count());
        for (i, name) in (0..).zip(signature.names_in_dims()) {
            let offset = (first + i * self.note_size) as i32;
            let value = match self.many_symbols {
                true => Held::Slot(slot, offset, Type::I64),
                false => Held::Value(self.b.load(Type::I64, scratch, offset, MemFlags::ALIGNED)),
            };
            self.bound.push(Bound { name: name.to_owned(), value, is_size: false });
        }
    }

    /// All that is always passed, then what is optional.
    fn run(&mut self, items: &[Item<'_>]) -> Vec<Vec<Value>> {
        let mut outcomes: Vec<Outcome<'_>> = items.iter().map(|item| Outcome::Late(item.ty, item.place)).collect();
        // numbers first: dimensions may name them, wherever they stand
        let (numbers, others): (Vec<_>, Vec<_>) =
            items.iter().zip(&mut outcomes).partition(|(item, _)| item.ty.as_scalar().is_some());
        let mut tensors = Vec::new();
        for (item, outcome) in numbers.into_iter().chain(others) {
            match item.ty {
                ParamType::Tensor(ty) => tensors.push(((item.place, ty), outcome)),
                _ => {
                    *outcome = item.decode(self);
                    self.put_away(outcome);
                }
            }
        }
        for some in tensors.chunks_mut(tensor::TOGETHER) {
            let arguments: Vec<_> = some.iter().map(|(argument, _)| *argument).collect();
            let values = tensor::decode(self, &arguments);
            for ((_, outcome), values) in some.iter_mut().zip(values) {
                **outcome = Outcome::Values(values);
                self.put_away(outcome);
            }
        }
        self.decide_deferred();
        outcomes.into_iter().map(|outcome| outcome.finish(self)).collect()
    }

    /// Where there are many values: keeps none in a register that somebody takes later.
    fn put_away(&mut self, outcome: &mut Outcome<'_>) {
        if self.many_values {
            self.settle();
            if self.takes_values {
                outcome.hold(self);
            }
        }
    }

    /// What is optional: its values, or as many zeros. What comes from inside it is not known behind it.
    fn optional(&mut self, inner: &ParamType, place: Place) -> Vec<Value> {
        let (bound, devices, seen) = (self.bound.len(), self.devices.len(), self.seen_devices.len());
        let (kinds, known) = (self.kinds.len(), self.known.len());
        let type_index = place.type_index(self);
        let absent = self.b.icmp_imm(IntCC::Eq, type_index, i64::from(TypeIndex::NONE.0));
        let (none, some, join) = (self.b.block(), self.b.block(), self.b.block());
        self.b.branch(absent, none, some, Hint::None);
        self.b.switch_to(some);
        let item = Item { ty: inner, place, name: None };
        let mut values: Vec<Value> = self.apart(|l| l.run(&[item]).into_iter().flatten().collect());
        if !has_null(inner) {
            let given = self.b.iconst(Type::I8, 1);
            values.insert(0, given);
        }
        let count = values.len();
        values.extend(self.seen_devices[seen..].iter().map(|seen| seen.device));
        self.b.jump(join, &values);
        self.b.switch_to(none);
        let zeros: Vec<Value> = values.iter().map(|value| self.zero(self.b.type_of(*value))).collect();
        self.b.jump(join, &zeros);
        self.b.switch_to(join);
        let mut joined: Vec<Value> = Vec::with_capacity(values.len());
        for value in values {
            let ty = self.b.type_of(value);
            joined.push(self.b.block_param(join, ty));
        }
        for (seen, device) in self.seen_devices[seen..].iter_mut().zip(joined.drain(count..)) {
            seen.device = device;
        }
        self.bound.truncate(bound);
        self.devices.truncate(devices);
        self.kinds.truncate(kinds);
        self.known.truncate(known);
        joined
    }

    fn zero(&mut self, ty: Type) -> Value {
        match ty {
            Type::Ptr => self.b.ptr_const(0),
            Type::F32 => self.b.f32(0.0),
            Type::F64 => self.b.f64(0.0),
            Type::Bool => self.b.bconst(false),
            ty => self.b.iconst(ty, 0),
        }
    }

    /// The device of the first tensor that is there, of those that `take` picks; else another.
    pub(super) fn first_device(&mut self, otherwise: Value, take: impl Fn(&SeenDevice) -> bool) -> Value {
        let mut candidates: Vec<_> = self.seen_devices.iter().filter(|seen| take(seen)).collect();
        candidates.sort_by_key(|seen| seen.order);
        let candidates: Vec<Value> = candidates.into_iter().map(|seen| seen.device).collect();
        let mut device = otherwise;
        for candidate in candidates.into_iter().rev() {
            // a device is never all zero bits, as kinds of devices count from 1
            let there = self.b.icmp_imm(IntCC::Ne, candidate, 0);
            device = self.b.select(there, candidate, device);
        }
        device
    }

    /// The current stream of the first device that a tensor is on.
    fn stream(&mut self, signature: &Signature, name: &str) -> Value {
        let none = self.b.i64(0);
        let device = self.first_device(none, |seen| seen.has_stream);
        let there = self.b.icmp_imm(IntCC::Ne, device, 0);
        self.require_stream(there, signature, name);
        let (kind, id) = (fields::first(&mut self.b, device), fields::second(&mut self.b, device));
        let get = self.import("TVMFFIEnvGetStream", &[Type::I32, Type::I32], Some(Type::Ptr));
        match self.b.call(get, &[kind, id]) {
            Some(stream) => stream,
            None => self.b.ptr_const(0),
        }
    }
}

impl<'a> Item<'a> {
    fn decode(self, l: &mut Lowerer<'_>) -> Outcome<'a> {
        let place = self.place;
        Outcome::Values(match self.ty {
            ParamType::Scalar(ty) => {
                let scalar = scalar::decode(l, place, *ty);
                // `bind` has compared it, where it is not the first to say its value
                if let (Some(name), Some(wide), false) = (self.name, scalar.wide, l.from_bind.is_some()) {
                    l.bind(name, wide, false);
                }
                vec![scalar.value]
            }
            ParamType::Tensor(tensor) => tensor::decode(l, &[(place, tensor)]).concat(),
            ParamType::Str => string(l, place, TypeIndex::SMALL_STR, TypeIndex::STR),
            ParamType::Bytes => string(l, place, TypeIndex::SMALL_BYTES, TypeIndex::BYTES),
            ParamType::DType => {
                require_index(l, place, TypeIndex::DATA_TYPE);
                vec![place.payload(l, Type::I32)]
            }
            ParamType::Device => {
                require_index(l, place, TypeIndex::DEVICE);
                vec![place.payload(l, Type::I64)]
            }
            ParamType::Any => {
                let type_index = place.type_index(l);
                let plain = l.b.icmp_imm(IntCC::Ne, type_index, i64::from(TypeIndex::OBJECT_RVALUE_REF.0));
                l.require(plain);
                vec![l.b.ptr_add_imm(place.base, i64::from(place.offset))]
            }
            ParamType::None => {
                require_index(l, place, TypeIndex::NONE);
                Vec::new()
            }
            ParamType::Int(value) => constant(l, place, TypeIndex::INT, *value),
            ParamType::Bool(value) => constant(l, place, TypeIndex::BOOL, i64::from(*value)),
            ParamType::Shape(dims) => shape(l, place, dims.as_deref()),
            ParamType::Array(_) => span(l, place, TypeIndex::ARRAY),
            ParamType::Function => vec![object(l, place, TypeIndex::FUNCTION)],
            ParamType::Module => vec![object(l, place, TypeIndex::MODULE)],
            ParamType::List(_) => vec![object(l, place, TypeIndex::LIST)],
            ParamType::Map(..) => vec![object(l, place, TypeIndex::MAP)],
            ParamType::Dict(..) => vec![object(l, place, TypeIndex::DICT)],
            // `bind` has looked at its type
            ParamType::Object(_) => vec![place.payload(l, Type::Ptr)],
            ParamType::EnvStream => Vec::new(),
            ParamType::Tuple(types) => return tuple(l, place, types),
            ParamType::Optional(inner) => return Outcome::Late(inner, place),
        })
    }
}

impl Outcome<'_> {
    /// Puts what is done out of the way.
    fn hold(&mut self, l: &mut Lowerer<'_>) {
        if let Outcome::Values(values) = self {
            *self = Outcome::Held(values.iter().map(|value| l.hold(*value)).collect());
        }
    }

    /// What the kernel takes.
    fn finish(self, l: &mut Lowerer<'_>) -> Vec<Value> {
        match self {
            Outcome::Values(values) => values,
            Outcome::Held(values) => values.into_iter().map(|held| l.held(held)).collect(),
            Outcome::Items(items) => items.into_iter().flat_map(|item| item.finish(l)).collect(),
            Outcome::Late(inner, place) => l.optional(inner, place),
        }
    }
}

fn tuple<'a>(l: &mut Lowerer<'_>, place: Place, types: &'a [ParamType]) -> Outcome<'a> {
    let object = object(l, place, TypeIndex::ARRAY);
    let data = l.b.load(Type::Ptr, object, HEADER, MemFlags::ALIGNED);
    let size = l.b.load(Type::I64, object, HEADER + 8, MemFlags::ALIGNED);
    let count = l.b.i64(types.len() as i64);
    l.require_equal(size, count);
    let decode = |(i, ty): (i32, &'a ParamType)| {
        let place = Place::new(data, i * super::wrapper::ANY_SIZE);
        Item { ty, place, name: None }.decode(l)
    };
    Outcome::Items((0..).zip(types).map(decode).collect())
}

/// Data and size, which follow an object's header. What is empty may have no address, which is a doubt.
fn span(l: &mut Lowerer<'_>, place: Place, index: TypeIndex) -> Vec<Value> {
    let object = object(l, place, index);
    let data = l.b.load(Type::Ptr, object, HEADER, MemFlags::ALIGNED);
    l.require_there(data);
    let size = l.b.load(Type::I64, object, HEADER + 8, MemFlags::ALIGNED);
    vec![data, size]
}

fn shape(l: &mut Lowerer<'_>, place: Place, dims: Option<&[Dim]>) -> Vec<Value> {
    let span = span(l, place, TypeIndex::SHAPE);
    if let (Some(dims), [data, size]) = (dims, &span[..]) {
        let rank = l.b.i64(dims.len() as i64);
        l.require_equal(*size, rank);
        for (d, dim) in (0i32..).zip(dims) {
            let got = l.b.load(Type::I64, *data, 8 * d, MemFlags::ALIGNED);
            l.match_dim(dim, got, true);
        }
    }
    span
}

fn require_index(l: &mut Lowerer<'_>, place: Place, index: TypeIndex) {
    let type_index = place.type_index(l);
    let expected = l.b.iconst(Type::I32, i64::from(index.0));
    l.require_equal(type_index, expected);
}

fn constant(l: &mut Lowerer<'_>, place: Place, index: TypeIndex, value: i64) -> Vec<Value> {
    require_index(l, place, index);
    let payload = place.payload(l, Type::I64);
    let expected = l.b.i64(value);
    l.require_equal(payload, expected);
    Vec::new()
}

/// An object of a static type.
fn object(l: &mut Lowerer<'_>, place: Place, index: TypeIndex) -> Value {
    require_index(l, place, index);
    let payload = place.payload(l, Type::Ptr);
    l.require_there(payload);
    payload
}

/// Characters of a small string, or of an object; a borrowed string is a doubt.
fn string(l: &mut Lowerer<'_>, place: Place, small: TypeIndex, object: TypeIndex) -> Vec<Value> {
    let type_index = place.type_index(l);
    let (inside, outside, join) = (l.b.block(), l.b.block(), l.b.block());
    let (data, size) = (l.b.block_param(join, Type::Ptr), l.b.block_param(join, Type::I64));
    let is_small = l.b.icmp_imm(IntCC::Eq, type_index, i64::from(small.0));
    l.b.branch(is_small, inside, outside, Hint::None);
    l.b.switch_to(inside);
    let characters = l.b.ptr_add_imm(place.base, i64::from(place.offset + PAYLOAD));
    let len = l.b.load(Type::I32, place.base, place.offset + TYPE_INDEX + 4, MemFlags::ALIGNED);
    let len = l.b.convert(ConvertOp::ZExt, Type::I64, len);
    l.b.jump(join, &[characters, len]);
    l.b.switch_to(outside);
    let payload = place.payload(l, Type::Ptr);
    let is_object = l.b.icmp_imm(IntCC::Eq, type_index, i64::from(object.0));
    let there = l.b.icmp_imm(IntCC::Ne, payload, 0);
    for condition in [is_object, there] {
        l.require(condition);
    }
    let characters = l.b.load(Type::Ptr, payload, HEADER, MemFlags::ALIGNED);
    let len = l.b.load(Type::I64, payload, HEADER + 8, MemFlags::ALIGNED);
    l.b.jump(join, &[characters, len]);
    l.b.switch_to(join);
    vec![data, size]
}
