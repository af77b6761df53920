//! The good path: takes the arguments apart, under conditions that accept what callers nearly always pass. The order in which errors
//! are reported is not theirs but `bind`'s.
//!
//! What a call always passes goes in rounds over a few parameters, each of which makes the next one's memory readable: the arguments;
//! what they point at; what that points at. What is optional comes after that, one by one.
//!
//! Some signatures leave the checks to `bind` alone ([`needs_bind`]): those with containers whose elements are checked, with symbols that only
//! optional tensors carry, and the like. Then a first condition says that the arguments are what `bind` has made of the caller's, and the
//! values are taken from these.
//!
//! No load here may count as of memory that doesn't change: the second time around, it is what `bind` has just written.

mod dims;
mod scalar;
pub(super) mod tensor;

pub(super) use dims::Deferred;

use super::kernel::convention::has_null;
use super::program::{self, Devices, SharedId};
use super::wrapper::{Bound, Held, Lowerer, PAYLOAD, TYPE_INDEX};
use crate::ir::{ConvertOp, Hint, IntCC, MemFlags, Type, Value};
use crate::spec::{Device, Dim, ParamType, Signature, TensorShape};
use tensor::Tensor;
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
    /// The tensor's number in the signature: rounds come to what is inside tuples later.
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

/// How many parameters go through their rounds together. With more, what lies between the rounds doesn't fit into registers; and the
/// time that allocating them takes grows with the square of how much is alive at once.
const GROUP: usize = 4;
/// More symbols than these wait in the frame until they are asked for.
pub(super) const FEW_SYMBOLS: usize = 8;

/// A parameter, or an item of a tuple, between rounds.
struct Pending<'a> {
    ty: &'a ParamType,
    place: Place,
    /// The parameter's name, where it is one.
    name: Option<&'a str>,
    stage: Stage<'a>,
}

enum Stage<'a> {
    Start,
    TensorHeader(Tensor<'a>),
    TensorContents(Tensor<'a>),
    /// A cell of data and size behind an object's header.
    Span(Value),
    Sizes {
        data: Value,
        size: Value,
        dims: &'a [Dim],
    },
    TupleCell(Value),
    Items(Vec<Pending<'a>>),
    /// Optional: looked at when all others are done.
    Late,
    Done(Vec<Value>),
    /// Done, and out of the way until the kernel is called.
    Held(Vec<Held>),
}

impl Lowerer<'_> {
    /// Checks the arguments and gives what the kernel takes for each parameter; nothing yet for streams.
    pub(super) fn decode(&mut self, signature: &Signature) -> Vec<Vec<Value>> {
        if self.from_bind {
            self.preload(signature);
        }
        let mut at = 0;
        let mut pending = Vec::with_capacity(signature.params().len());
        for param in signature.params() {
            let place = Place::new(self.args, at);
            at += if param.is_passed() { super::wrapper::ANY_SIZE } else { 0 };
            pending.push(Pending { ty: &param.ty, place, name: Some(&param.name), stage: Stage::Start });
        }
        let values = self.run(pending);
        for constraint in signature.constraints() {
            self.constrain(constraint);
        }
        self.branch();
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

    /// Requires that `bind` has made the arguments, and takes the values of all symbols from its notes.
    fn preload(&mut self, signature: &Signature) {
        let scratch = self.b.stack_addr(self.scratch);
        let bound = self.b.icmp(IntCC::Eq, self.args, scratch);
        self.conditions.holds(bound);
        self.branch();
        let first = program::notes_offset(signature.passed().count());
        for (i, name) in (0..).zip(signature.names_in_dims()) {
            let offset = (first + i * self.note_size) as i32;
            let value = match self.many_symbols {
                true => Held::Slot(self.scratch, offset, Type::I64),
                false => Held::Value(self.b.load(Type::I64, scratch, offset, MemFlags::ALIGNED)),
            };
            self.bound.push(Bound { name: name.to_owned(), value, is_size: false });
        }
    }

    /// All rounds, then what is optional.
    fn run(&mut self, mut pending: Vec<Pending<'_>>) -> Vec<Vec<Value>> {
        let many = pending.len() > GROUP;
        // numbers first: dimensions may name them, wherever they stand
        for group in pending.chunks_mut(GROUP) {
            let scalars = group.iter_mut().filter(|item| item.ty.as_scalar().is_some());
            scalars.for_each(|item| item.step(self));
            if many {
                self.branch();
                group.iter_mut().for_each(|item| item.hold(self));
            }
        }
        for group in pending.chunks_mut(GROUP) {
            while group.iter().any(Pending::is_open) {
                for item in &mut *group {
                    item.step(self);
                }
                self.branch();
            }
            if many {
                group.iter_mut().for_each(|item| item.hold(self));
            }
        }
        self.decide_deferred();
        self.branch();
        pending.into_iter().map(|item| item.finish(self)).collect()
    }

    /// What is optional: its values, or as many zeros. What comes from inside it is not known behind it.
    fn optional(&mut self, inner: &ParamType, place: Place) -> Vec<Value> {
        let (bound, devices, seen) = (self.bound.len(), self.devices.len(), self.seen_devices.len());
        let type_index = place.type_index(self);
        let absent = self.b.icmp_imm(IntCC::Eq, type_index, i64::from(TypeIndex::NONE.0));
        let (none, some, join) = (self.b.block(), self.b.block(), self.b.block());
        self.b.branch(absent, none, some, Hint::None);
        self.b.switch_to(some);
        let item = Pending { ty: inner, place, name: None, stage: Stage::Start };
        let mut values: Vec<Value> = self.run(vec![item]).into_iter().flatten().collect();
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
        let kind = self.b.convert(ConvertOp::Truncate, Type::I32, device);
        let shift = self.b.i64(32);
        let id = self.b.binary(crate::ir::BinaryOp::LShr, device, shift);
        let id = self.b.convert(ConvertOp::Truncate, Type::I32, id);
        let get = self.import("TVMFFIEnvGetStream", &[Type::I32, Type::I32], Some(Type::Ptr));
        match self.b.call(get, &[kind, id]) {
            Some(stream) => stream,
            None => self.b.ptr_const(0),
        }
    }
}

impl<'a> Pending<'a> {
    fn is_open(&self) -> bool {
        match &self.stage {
            Stage::Done(_) | Stage::Held(_) | Stage::Late => false,
            Stage::Items(items) => items.iter().any(Pending::is_open),
            _ => true,
        }
    }

    /// One round.
    fn step(&mut self, l: &mut Lowerer<'_>) {
        self.stage = match std::mem::replace(&mut self.stage, Stage::Late) {
            Stage::Start => self.start(l),
            Stage::TensorHeader(mut tensor) => {
                tensor.header(l);
                Stage::TensorContents(tensor)
            }
            Stage::TensorContents(tensor) => Stage::Done(tensor.contents(l)),
            Stage::Span(object) => {
                let data = l.b.load(Type::Ptr, object, HEADER, MemFlags::ALIGNED);
                let size = l.b.load(Type::I64, object, HEADER + 8, MemFlags::ALIGNED);
                // what is empty may have no address
                let there = l.b.icmp_imm(IntCC::Ne, data, 0);
                l.conditions.holds(there);
                match self.ty {
                    ParamType::Shape(Some(dims)) => {
                        let rank = l.b.i64(dims.len() as i64);
                        l.conditions.equal(size, rank);
                        Stage::Sizes { data, size, dims }
                    }
                    _ => Stage::Done(vec![data, size]),
                }
            }
            Stage::Sizes { data, size, dims } => {
                for (d, dim) in (0i32..).zip(dims) {
                    let got = l.b.load(Type::I64, data, 8 * d, MemFlags::ALIGNED);
                    l.match_dim(dim, got, true);
                }
                Stage::Done(vec![data, size])
            }
            Stage::TupleCell(object) => self.items(l, object),
            Stage::Items(mut items) => {
                items.iter_mut().for_each(|item| item.step(l));
                Stage::Items(items)
            }
            stage @ (Stage::Late | Stage::Done(_) | Stage::Held(_)) => stage,
        };
    }

    fn start(&self, l: &mut Lowerer<'_>) -> Stage<'a> {
        let place = self.place;
        match self.ty {
            ParamType::Scalar(ty) => {
                let scalar = scalar::decode(l, place, *ty);
                // `bind` has compared it, where it is not the first to say its value
                if let (Some(name), Some(wide), false) = (self.name, scalar.wide, l.from_bind) {
                    l.bind(name, wide, false);
                }
                Stage::Done(vec![scalar.value])
            }
            ParamType::Tensor(tensor) => Stage::TensorHeader(Tensor::argument(l, place, tensor)),
            ParamType::Str => Stage::Done(string(l, place, TypeIndex::SMALL_STR, TypeIndex::STR)),
            ParamType::Bytes => Stage::Done(string(l, place, TypeIndex::SMALL_BYTES, TypeIndex::BYTES)),
            ParamType::DType => {
                require_index(l, place, TypeIndex::DATA_TYPE);
                Stage::Done(vec![place.payload(l, Type::I32)])
            }
            ParamType::Device => {
                require_index(l, place, TypeIndex::DEVICE);
                Stage::Done(vec![place.payload(l, Type::I64)])
            }
            ParamType::Any => {
                let type_index = place.type_index(l);
                let plain = l.b.icmp_imm(IntCC::Ne, type_index, i64::from(TypeIndex::OBJECT_RVALUE_REF.0));
                l.conditions.holds(plain);
                let address = l.b.ptr_add_imm(place.base, i64::from(place.offset));
                Stage::Done(vec![address])
            }
            ParamType::None => {
                require_index(l, place, TypeIndex::NONE);
                Stage::Done(Vec::new())
            }
            ParamType::Int(value) => constant(l, place, TypeIndex::INT, *value),
            ParamType::Bool(value) => constant(l, place, TypeIndex::BOOL, i64::from(*value)),
            ParamType::Shape(_) => Stage::Span(object(l, place, TypeIndex::SHAPE)),
            ParamType::Array(_) => Stage::Span(object(l, place, TypeIndex::ARRAY)),
            ParamType::Function => Stage::Done(vec![object(l, place, TypeIndex::FUNCTION)]),
            ParamType::Module => Stage::Done(vec![object(l, place, TypeIndex::MODULE)]),
            ParamType::List(_) => Stage::Done(vec![object(l, place, TypeIndex::LIST)]),
            ParamType::Map(..) => Stage::Done(vec![object(l, place, TypeIndex::MAP)]),
            ParamType::Dict(..) => Stage::Done(vec![object(l, place, TypeIndex::DICT)]),
            // `bind` has looked at its type
            ParamType::Object(_) => Stage::Done(vec![place.payload(l, Type::Ptr)]),
            ParamType::Tuple(_) => Stage::TupleCell(object(l, place, TypeIndex::ARRAY)),
            ParamType::Optional(_) => Stage::Late,
            ParamType::EnvStream => Stage::Done(Vec::new()),
        }
    }

    fn items(&self, l: &mut Lowerer<'_>, object: Value) -> Stage<'a> {
        let ParamType::Tuple(types) = self.ty else { return Stage::Done(Vec::new()) };
        let data = l.b.load(Type::Ptr, object, HEADER, MemFlags::ALIGNED);
        let size = l.b.load(Type::I64, object, HEADER + 8, MemFlags::ALIGNED);
        let count = l.b.i64(types.len() as i64);
        l.conditions.equal(size, count);
        let item = |(i, ty): (i32, &'a ParamType)| {
            let place = Place::new(data, i * super::wrapper::ANY_SIZE);
            Pending { ty, place, name: None, stage: Stage::Start }
        };
        Stage::Items((0..).zip(types).map(item).collect())
    }

    /// Puts what is done out of the way.
    fn hold(&mut self, l: &mut Lowerer<'_>) {
        if let Stage::Done(values) = &self.stage {
            self.stage = Stage::Held(values.iter().map(|value| l.hold(*value)).collect());
        }
    }

    /// What the kernel takes.
    fn finish(self, l: &mut Lowerer<'_>) -> Vec<Value> {
        match (self.stage, self.ty) {
            (Stage::Done(values), _) => values,
            (Stage::Held(values), _) => values.into_iter().map(|held| l.held(held)).collect(),
            (Stage::Items(items), _) => items.into_iter().flat_map(|item| item.finish(l)).collect(),
            (_, ParamType::Optional(inner)) => l.optional(inner, self.place),
            // no other stage is left after the rounds
            _ => Vec::new(),
        }
    }
}

fn require_index(l: &mut Lowerer<'_>, place: Place, index: TypeIndex) {
    let type_index = place.type_index(l);
    let expected = l.b.iconst(Type::I32, i64::from(index.0));
    l.conditions.equal(type_index, expected);
}

fn constant<'a>(l: &mut Lowerer<'_>, place: Place, index: TypeIndex, value: i64) -> Stage<'a> {
    require_index(l, place, index);
    let payload = place.payload(l, Type::I64);
    let expected = l.b.i64(value);
    l.conditions.equal(payload, expected);
    Stage::Done(Vec::new())
}

/// An object of a static type.
fn object(l: &mut Lowerer<'_>, place: Place, index: TypeIndex) -> Value {
    require_index(l, place, index);
    let payload = place.payload(l, Type::Ptr);
    let there = l.b.icmp_imm(IntCC::Ne, payload, 0);
    l.conditions.holds(there);
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
        let next = l.b.block();
        l.b.branch(condition, next, l.doubt, Hint::Likely);
        l.b.switch_to(next);
    }
    let characters = l.b.load(Type::Ptr, payload, HEADER, MemFlags::ALIGNED);
    let len = l.b.load(Type::I64, payload, HEADER + 8, MemFlags::ALIGNED);
    l.b.jump(join, &[characters, len]);
    l.b.switch_to(join);
    vec![data, size]
}
