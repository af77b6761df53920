//! Random calls of a signature. Each starts as a correct call, then maybe gets one or two changes, at any depth.

use std::collections::HashSet;
use std::fmt;

use proptest::collection::vec;
use proptest::prelude::*;
use tvm_ffi_codegen::runtime::abi::DLDevice;
use tvm_ffi_codegen::spec::{DType, DTypePolicy, DeviceId, DimOp, TensorShape};
use tvm_ffi_codegen::{DLDataType, DLDeviceType, Device, Dim, Layout, ParamType, ScalarType, Signature, TensorType};

use super::signatures::SYMBOLS;
use crate::support::dice::Dice;
use crate::support::value::{Call, Data, Strides, TensorSpec, Thing, Value};

/// The inputs from which a call is generated.
#[derive(Clone)]
pub struct Plan {
    /// The values of symbols.
    values: [i64; SYMBOLS.len()],
    /// The device number for tensors whose type doesn't state one.
    id: i32,
    seed: u64,
    /// A seed for each change.
    changes: Vec<u64>,
}

/// On one line, because a failure prints many of them.
impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Plan { values, id, seed, changes } = self;
        write!(f, "{values:?}, device {id}, seed {seed}, changes {changes:?}")
    }
}

pub fn plan() -> impl Strategy<Value = Plan> {
    let size = || 0i64..5;
    // the last symbol only occurs in strides, so it may be negative
    let values = [size().boxed(), size().boxed(), size().boxed(), size().boxed(), (-2i64..4).boxed()];
    let changes = prop_oneof![2 => Just(Vec::new()), 3 => vec(any::<u64>(), 1..3)];
    (values, 0i32..3, any::<u64>(), changes).prop_map(|(values, id, seed, changes)| Plan { values, id, seed, changes })
}

impl Plan {
    /// The plan of some numbers: those of a [`plan`] when they are in its ranges.
    pub const fn of(values: [i64; SYMBOLS.len()], id: i32, seed: u64, changes: Vec<u64>) -> Self {
        Plan { values, id, seed, changes }
    }

    pub fn call(&self, signature: &Signature) -> Call {
        let mut maker = Maker { plan: self, signature, dice: Dice::new(self.seed), is_plain: false };
        let (min, max) = signature.arity();
        let count = if maker.dice.one_in(2) { max } else { min + maker.dice.below(max - min + 1) };
        let args: Vec<Value> =
            signature.passed().take(count).map(|param| maker.argument(&param.name, &param.ty)).collect();
        let mut call = Call::new(args);
        for seed in &self.changes {
            change(&mut call, &mut Dice::new(*seed));
        }
        call.args.iter_mut().for_each(|(_, value)| keep_keys_apart(value));
        call
    }

    /// A call whose arguments all have the stated types, so a fast path converts none of them. Dimensions that overflow
    /// wrap, as they do in a wrapper that doesn't check for it.
    pub fn plain_call(&self, signature: &Signature) -> Call {
        let mut maker = Maker { plan: self, signature, dice: Dice::new(self.seed), is_plain: true };
        Call::new(signature.passed().map(|param| maker.argument(&param.name, &param.ty)).collect::<Vec<_>>())
    }

    /// True if the call is certainly accepted, independently of the model of the contract.
    pub fn is_right(&self, signature: &Signature) -> bool {
        let mut plain = true;
        for param in signature.params() {
            param.ty.for_each_dim(&mut |dim| plain &= !matches!(dim, Dim::Binary(..)));
            // the default of a symbol is only one of its possible values
            plain &= param.default.is_none() || !SYMBOLS.contains(&&param.name[..]);
            plain &= matches!(
                param.ty,
                ParamType::Scalar(_) | ParamType::Tensor(_) | ParamType::Str | ParamType::Optional(_)
            ) && param.ty.inner().iter().all(|inner| matches!(inner, ParamType::Scalar(_) | ParamType::Str));
        }
        plain
            && self.changes.is_empty()
            && signature.constraints().is_empty()
            && signature.returned_tensors().is_empty()
            // a stride may be negative, but a size may not
            && self.values.iter().all(|value| *value >= 0)
    }
}

/// The position of a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spot {
    Argument,
    /// An item of a tuple, which owns it.
    Item,
    /// In another container, where nothing is converted.
    Element,
}

/// Generates correct values.
struct Maker<'a> {
    plan: &'a Plan,
    signature: &'a Signature,
    dice: Dice,
    /// True for [`Plan::plain_call`].
    is_plain: bool,
}

/// The value of a dimension in 64 bits, without a check for overflow.
fn wrapped(dim: &Dim, value: &dyn Fn(&str) -> Option<i64>) -> i64 {
    let Dim::Binary(op, x, y) = dim else { return dim.eval(value).unwrap_or(0) };
    let (x, y) = (wrapped(x, value), wrapped(y, value));
    match op {
        DimOp::Add => x.wrapping_add(y),
        DimOp::Sub => x.wrapping_sub(y),
        DimOp::Mul => x.wrapping_mul(y),
        _ => op.apply(x, y).unwrap_or(0),
    }
}

impl Maker<'_> {
    /// The value of a dimension variable. Those of generated signatures are the [`SYMBOLS`].
    fn symbol(&self, name: &str) -> Option<i64> {
        let other = || self.signature.dim_vars().iter().position(|var| *var == name);
        let index = SYMBOLS.iter().position(|symbol| *symbol == name).or_else(other)?;
        Some(self.plan.values[index % SYMBOLS.len()])
    }

    fn size(&self, dim: &Dim) -> i64 {
        let value = |name: &str| self.symbol(name);
        if self.is_plain { wrapped(dim, &value) } else { dim.eval(&value).unwrap_or(0) }
    }

    fn sizes(&self, dims: &[Dim]) -> Vec<i64> {
        dims.iter().map(|dim| self.size(dim)).collect()
    }

    fn argument(&mut self, name: &str, ty: &ParamType) -> Value {
        if let Some(size) = self.symbol(name)
            && ty.as_scalar().is_some_and(|ty| !ty.is_float() && ty != ScalarType::Handle)
        {
            return Value::int(size);
        }
        let value = self.value(ty, Spot::Argument);
        let object = match &value {
            Value::Tensor(_) | Value::Function | Value::Array(_) | Value::List(_) | Value::Map(_) => true,
            Value::Object(_) | Value::Shape(_) | Value::Fields(_) => true,
            Value::Str(text) => text.len() > 7,
            _ => false,
        };
        if object && !self.is_plain && self.dice.one_in(12) { Value::Reference(Some(Box::new(value))) } else { value }
    }

    /// A value that the type accepts at that position.
    fn value(&mut self, ty: &ParamType, spot: Spot) -> Value {
        let element = spot == Spot::Element;
        let converted = !element && !self.is_plain && self.dice.one_in(5);
        match ty {
            ParamType::Scalar(ty) => self.scalar(*ty, converted),
            ParamType::Tensor(ty) => self.tensor(ty).into(),
            ParamType::Str if converted => Value::RawStr("c".to_owned()),
            ParamType::Str => Value::Str(self.text()),
            ParamType::Bytes if converted => Value::ByteArray("b".to_owned()),
            ParamType::Bytes => Value::Bytes(self.text()),
            ParamType::DType if converted => Value::Str(self.dice.pick(&["float32", "int8x4", "bfloat16"]).to_owned()),
            ParamType::DType => Value::DType(self.dice.pick(&[DLDataType::INT8, DLDataType::FLOAT16])),
            ParamType::Device => Value::Device(self.dice.pick(&[DLDevice::CPU, DLDevice::cuda(1)])),
            ParamType::Shape(dims) => {
                let entries = match dims {
                    Some(dims) => self.sizes(dims),
                    None => (0..self.dice.below(4)).map(|_| self.dice.integer()).collect(),
                };
                match self.dice.below(4) {
                    _ if self.is_plain => Value::Shape(entries),
                    0 if !element => Value::Array(entries.into_iter().map(Value::int).collect()),
                    1 if !element => Value::List(entries.into_iter().map(Value::int).collect()),
                    _ => Value::Shape(entries),
                }
            }
            ParamType::Any => anything(&mut self.dice, spot != Spot::Argument),
            ParamType::Stream => {
                let handle = self.dice.below(4) as u64;
                self.dice.pick(&[Value::NONE, Value::int(handle as i64), Value::Raw(4, handle)])
            }
            ParamType::Int(value) => Value::int(*value),
            ParamType::Bool(value) if converted => Value::int((*value).into()),
            ParamType::Bool(value) => Value::bool(*value),
            ParamType::Function => Value::Function,
            ParamType::Module => Value::Module,
            ParamType::Object(key) => match &key[..] {
                "test.Thing" => Value::Object(self.dice.pick(&[Thing::Base, Thing::Sub])),
                "ffi.Function" => Value::Function,
                _ => Value::Object(Thing::Sub),
            },
            ParamType::Optional(_) if self.dice.one_in(4) => Value::NONE,
            ParamType::Optional(inner) => self.value(inner, spot),
            ParamType::Tuple(items) => {
                let spot = if element { Spot::Element } else { Spot::Item };
                let items = items.iter().map(|item| self.value(item, spot)).collect();
                if !self.is_plain && self.dice.one_in(4) { Value::List(items) } else { Value::Array(items) }
            }
            ParamType::Record { fields, .. } => {
                let values: Vec<_> =
                    fields.iter().map(|(name, ty)| (name.clone(), self.value(ty, Spot::Item))).collect();
                let entries = || values.iter().rev().map(|(name, value)| (Value::Str(name.clone()), value.clone()));
                let items = || values.iter().map(|(_, value)| value.clone());
                match self.dice.below(6) {
                    0 => Value::Map(entries().collect()),
                    1 => Value::Dict(entries().collect()),
                    2 => Value::List(items().collect()),
                    3 => Value::Array(items().collect()),
                    _ => Value::Fields(values),
                }
            }
            ParamType::Array(item) if self.dice.one_in(2) => Value::Array(self.elements(item)),
            ParamType::Array(item) | ParamType::List(item) => Value::List(self.elements(item)),
            ParamType::Map(key, value) => Value::Map(self.entries(key, value)),
            ParamType::Dict(key, value) => Value::Dict(self.entries(key, value)),
            _ => Value::NONE,
        }
    }

    fn elements(&mut self, item: &ParamType) -> Vec<Value> {
        (0..self.dice.below(4)).map(|_| self.value(item, Spot::Element)).collect()
    }

    fn entries(&mut self, key: &ParamType, value: &ParamType) -> Vec<(Value, Value)> {
        (0..self.dice.below(4)).map(|_| (self.value(key, Spot::Element), self.value(value, Spot::Element))).collect()
    }

    fn text(&mut self) -> String {
        self.dice.pick(&["", "a", "bcd", "seven b", "long enough for the heap"]).to_owned()
    }

    fn scalar(&mut self, ty: ScalarType, converted: bool) -> Value {
        let number = self.dice.below(128) as i64;
        match ty {
            ScalarType::Handle if converted => Value::NONE,
            ScalarType::Handle => Value::Raw(4, number as u64),
            ty if ty.is_float() && !converted => Value::Float(number as f64 / 4.0),
            ScalarType::Bool if !converted => Value::bool(number % 2 == 0),
            ScalarType::Bool => Value::int(number),
            _ if converted && number % 2 == 0 => Value::bool(number % 4 == 0),
            _ => Value::int(number),
        }
    }

    fn tensor(&mut self, ty: &TensorType) -> TensorSpec {
        let shape = match &ty.shape {
            TensorShape::Ranked(dims) => self.sizes(dims),
            TensorShape::Any => (0..self.dice.below(4)).map(|_| self.dice.below(4) as i64).collect(),
            other => unreachable!("the test knows no {other:?}"),
        };
        let dtype = match ty.dtype {
            DType::Exact(dtype) => self.stand_in(dtype),
            _ => self.dice.pick(&[DLDataType::FLOAT32, DLDataType::INT8, DLDataType::BFLOAT16]),
        };
        let mut spec = TensorSpec::new(dtype, shape);
        if self.is_plain {
            // sizes may be extreme
            spec.data = Data::Zeros;
        }
        spec.device = match ty.device {
            Device::Kind(kind, DeviceId::Fixed(id)) => DLDevice::new(kind, id),
            Device::Kind(kind, DeviceId::Any) => DLDevice::new(kind, self.dice.below(3) as i32),
            Device::Kind(kind, DeviceId::Shared) => DLDevice::new(kind, self.shared_id(kind)),
            _ => DLDevice::new([DLDeviceType::CPU, DLDeviceType::CUDA, DLDeviceType::VULKAN][self.plan.id as usize], 1),
        };
        match &ty.layout {
            Layout::Contiguous => {}
            Layout::Strides(strides) => spec.strides = Strides::Given(self.sizes(strides)),
            Layout::Any if self.dice.one_in(2) => {
                spec.strides = Strides::Given(spec.shape.iter().map(|_| self.dice.below(9) as i64 - 2).collect());
            }
            Layout::Any => {}
            other => unreachable!("the test knows no {other:?}"),
        }
        spec
    }

    /// The device number that tensors on a kind of device share: the stated number, if any.
    fn shared_id(&self, kind: DLDeviceType) -> i32 {
        let mut shared = self.plan.id;
        for param in self.signature.params() {
            param.ty.for_each_tensor(&mut |tensor| match tensor.device {
                Device::Kind(of, DeviceId::Fixed(id)) if of == kind => shared = id,
                _ => {}
            });
        }
        shared
    }

    /// The stated dtype, or randomly another one that the signature's policy accepts instead.
    fn stand_in(&mut self, stated: DLDataType) -> DLDataType {
        let policy = self.signature.dtype_policy();
        if policy == DTypePolicy::EXACT || self.dice.one_in(2) {
            return stated;
        }
        match policy.codes(stated) {
            Some(codes) if codes.is_empty() => stated,
            Some(codes) => DLDataType { code: self.dice.pick(&codes), ..stated },
            None => DLDataType { code: self.dice.below(7) as u8, ..stated },
        }
    }
}

/// A value of any type, most likely a wrong one. If `held`, it is one that a container can own.
fn anything(dice: &mut Dice, held: bool) -> Value {
    let number = dice.integer();
    match dice.below(24) {
        0 | 1 => Value::NONE,
        2 => Value::Raw(0, number as u64),
        3 | 4 => Value::int(number),
        5 => Value::Float(number as f64 / 3.0),
        6 => Value::Raw(2, number as u64),
        7 => Value::Raw(4, number as u64),
        8 => Value::DType(DLDataType::FLOAT16),
        9 => Value::Device(DLDevice::cuda(1)),
        10 => Value::Str("short".to_owned()),
        11 => Value::Str("long enough for the heap".to_owned()),
        12 => Value::RawStr("int8".to_owned()),
        13 => Value::ByteArray("b".to_owned()),
        14 => Value::Function,
        15 => Value::Shape(vec![1, 2]),
        16 => Value::Object(dice.pick(&[Thing::Base, Thing::Sub])),
        // NULL of a type that may be unregistered; a container can't own some of these
        17 => match number.rem_euclid(140) as i32 {
            8..=10 if held => Value::Raw(70, 0),
            index => Value::Raw(index, 0),
        },
        18 => Value::Array(several(dice)),
        19 => Value::List(several(dice)),
        20 => Value::Map(several(dice).into_iter().map(|value| (Value::Str("k".to_owned()), value)).collect()),
        21 => Value::Dict(several(dice).into_iter().map(|value| (Value::int(number), value)).collect()),
        22 if !held => Value::Reference(dice.pick(&[None, Some(Box::new(Value::Function))])),
        _ => Value::Tensor(TensorSpec::new(DLDataType::FLOAT32, vec![number.rem_euclid(4)])),
    }
}

/// A value of any type. If `is_held`, it is one that a container can own.
pub fn any_value(seed: u64, is_held: bool) -> Value {
    let mut value = anything(&mut Dice::new(seed), is_held);
    keep_keys_apart(&mut value);
    value
}

fn several(dice: &mut Dice) -> Vec<Value> {
    (0..dice.below(3)).map(|_| anything(dice, true)).collect()
}

/// Changes one part of a call.
pub fn change(call: &mut Call, dice: &mut Dice) {
    let nodes: usize = call.args.iter().map(|(_, value)| count(value)).sum();
    match dice.below(40) {
        0 => drop(call.args.pop()),
        1 => call.args.push((None, anything(dice, false))),
        2 => call.num_args = Some(dice.number() as i32 & !0xff | -1),
        3 => call.null_array = true,
        _ if nodes == 0 => {}
        _ => {
            let mut left = dice.below(nodes);
            let found = call.args.iter_mut().find_map(|(_, value)| nth(value, &mut left, false));
            if let Some((value, held)) = found {
                change_value(value, held, dice);
            }
        }
    }
}

/// A value of a call, at any depth.
pub struct Part {
    /// The argument's number, and the value's number inside of it.
    place: (usize, usize),
    pub value: Value,
    /// True if a container holds it.
    pub is_held: bool,
}

/// The values of a call that may be replaced.
pub fn parts(call: &Call) -> Vec<Part> {
    let mut found = Vec::new();
    for (number, (_, value)) in call.args.iter().enumerate() {
        for at in 0..count(value) {
            let (value, is_held) =
                nth(&mut value.clone(), &mut { at }, false).map(|(v, held)| (v.clone(), held)).unwrap();
            found.push(Part { place: (number, at), value, is_held });
        }
    }
    found
}

/// The call with another value in place of a part. Earlier replacements may have removed the part with its key.
pub fn replaced(call: &Call, part: &Part, value: Value) -> Call {
    let mut call = call.clone();
    let argument = &mut call.args[part.place.0].1;
    if let Some((place, _)) = nth(argument, &mut { part.place.1 }, false) {
        *place = value;
    }
    keep_keys_apart(argument);
    call
}

/// The number of values that a change may apply to.
fn count(value: &Value) -> usize {
    match value {
        // the referent of a reference must stay an object
        Value::Reference(_) => 1,
        _ => 1 + value.inner().into_iter().map(count).sum::<usize>(),
    }
}

/// The value with this index in traversal order, and whether a container holds it.
fn nth<'v>(value: &'v mut Value, left: &mut usize, held: bool) -> Option<(&'v mut Value, bool)> {
    if *left == 0 {
        return Some((value, held));
    }
    *left -= 1;
    match value {
        Value::Array(items) | Value::List(items) => items.iter_mut().find_map(|item| nth(item, left, true)),
        Value::Map(entries) | Value::Dict(entries) => {
            entries.iter_mut().flat_map(|(k, v)| [k, v]).find_map(|inner| nth(inner, left, true))
        }
        Value::Fields(fields) => fields.iter_mut().find_map(|(_, inner)| nth(inner, left, true)),
        _ => None,
    }
}

fn change_value(value: &mut Value, held: bool, dice: &mut Dice) {
    if dice.one_in(4) {
        *value = anything(dice, held);
        return;
    }
    match value {
        Value::Tensor(tensor) => change_tensor(tensor, dice),
        Value::Array(items) | Value::List(items) if dice.one_in(2) => match dice.one_in(2) {
            true => drop(items.pop()),
            false => items.push(anything(dice, true)),
        },
        Value::Array(items) => *value = Value::List(std::mem::take(items)),
        Value::List(items) => *value = Value::Array(std::mem::take(items)),
        Value::Map(entries) => *value = Value::Dict(std::mem::take(entries)),
        Value::Dict(entries) => *value = Value::Map(std::mem::take(entries)),
        Value::Fields(fields) => match dice.below(3) {
            0 => drop(fields.pop()),
            1 => fields.push(("more".to_owned(), anything(dice, true))),
            _ => fields.push((dice.pick(&["a", "n"]).to_owned(), Value::int(dice.integer()))),
        },
        Value::Shape(entries) if !entries.is_empty() => {
            let place = dice.below(entries.len());
            entries[place] = dice.integer();
        }
        Value::Str(text) => text.push('!'),
        Value::Object(thing) => *thing = Thing::Base,
        Value::Raw(2, truth) => *truth ^= 1,
        _ => *value = Value::int(dice.integer()),
    }
}

fn change_tensor(tensor: &mut TensorSpec, dice: &mut Dice) {
    // Stated values fit the tensor as it was.
    if let Data::Values(_) = tensor.data {
        tensor.data = Data::Zeros;
    }
    let rank = tensor.shape.len();
    let place = if rank > 0 { dice.below(rank) } else { 0 };
    let number = dice.number() as i64;
    let near = dice.below(7) as i64 - 2;
    let huge = dice.pick(&[i64::MIN, -1, 0, 1, 1 << 31, 1 << 32, 1 << 62, i64::MAX]);
    match dice.below(19) {
        0 => tensor.ndim = Some(dice.pick(&[-1, 0, 1, 2, 3, 1_000_000, i32::MIN]).min(rank as i32 - 1)),
        1 => tensor.ndim = Some(rank as i32 + 1 + dice.below(5) as i32),
        2 => tensor.dtype = DLDataType { bits: number as u8, ..tensor.dtype },
        3 => tensor.dtype = DLDataType { code: number as u8, lanes: (number >> 8) as u16, ..tensor.dtype },
        4 => tensor.device = DLDevice::new(DLDeviceType(near as i32), dice.below(4) as i32),
        5 => tensor.device.device_id = near as i32,
        6 | 7 if rank > 0 => tensor.shape[place] = near,
        8 if rank > 0 => tensor.shape[place] = huge,
        9 => tensor.strides = Strides::Null,
        10 | 11 => {
            let last = |d: usize| tensor.shape[d + 1..].iter().fold(1i64, |p, s| p.wrapping_mul(*s));
            let mut strides: Vec<i64> = match &tensor.strides {
                Strides::Given(strides) => strides.clone(),
                Strides::Default | Strides::Null => (0..rank).map(last).collect(),
            };
            if rank > 0 {
                strides[place] = if number % 2 == 0 { near } else { huge };
            }
            tensor.strides = Strides::Given(strides);
        }
        12 => tensor.data = Data::Address(0),
        13 => tensor.data = Data::Address(number as u64),
        14 => tensor.byte_offset = (near + 2) as u64,
        15 => tensor.byte_offset = number as u64,
        16 => tensor.shift = (near + 2).unsigned_abs() as usize,
        17 => tensor.null = true,
        18 if number % 2 == 0 => tensor.null_shape = true,
        _ => {}
    }
}

/// Removes entries with duplicate keys, and entries whose keys a map can't look up.
fn keep_keys_apart(value: &mut Value) {
    match value {
        Value::Map(entries) | Value::Dict(entries) => {
            let mut seen = HashSet::new();
            entries.retain(|(key, _)| {
                let plain = matches!(key, Value::Raw(0 | 1, _) | Value::Str(_) | Value::Object(_) | Value::Function);
                plain && seen.insert(format!("{key:?}"))
            });
            entries.iter_mut().flat_map(|(k, v)| [k, v]).for_each(keep_keys_apart);
        }
        Value::Array(items) | Value::List(items) => items.iter_mut().for_each(keep_keys_apart),
        Value::Fields(fields) => fields.iter_mut().for_each(|(_, value)| keep_keys_apart(value)),
        Value::Reference(Some(object)) => keep_keys_apart(object),
        _ => {}
    }
}

/// Whether all tensors with elements have valid addresses.
pub fn elements_are_there(call: &Call) -> bool {
    fn there(value: &Value) -> bool {
        match value {
            Value::Tensor(TensorSpec { data: Data::Address(_), shape, .. }) => shape.contains(&0),
            _ => value.inner().into_iter().all(there),
        }
    }
    call.args.iter().all(|(_, value)| there(value))
}
