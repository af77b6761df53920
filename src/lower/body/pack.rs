//! Arguments of calls: each is evaluated, and all are stored consecutively.

use super::args::{Arg, Args};
use super::calls::{ArgKind, CallArg};
use super::expr::{Operand, Ops};
use super::function::BodyLowerer;
use super::held::Held;
use super::life::Ended;
use super::param::ParamRef;
use super::views;
use crate::ir::{DataRef, IntCC, MemFlags, Type, Value};
use crate::lower::abi::fields::{before_zeros, pair};
use crate::lower::abi::{
    ANY_SIZE, OBJECT_TYPE_INDEX, PAYLOAD, TYPE_INDEX, byte_array, scalar_parts, store_any, store_index, store_result,
};
use crate::lower::{capi, ffi_call};
use crate::spec::{ParamType, ScalarType};
use target_lexicon::Endianness;
use tvm_ffi_runtime::abi::TypeIndex;

/// The maximum number of bytes of a string stored inline in the `TVMFFIAny`.
const SMALL: usize = 7;

/// An evaluated argument, ready to be stored.
pub(super) enum Packed {
    Scalar(ScalarType, Value),
    /// A type index with its payload.
    Of(TypeIndex, Value),
    /// The first 8 bytes (they contain the type index), and the payload.
    Words(Value, Value),
    /// The value at this address.
    Copy(Value),
    /// The owned value at this address, which the callee may take.
    Moved(Value),
}

impl BodyLowerer<'_> {
    /// The address of constant bytes.
    pub(super) fn constant(&mut self, bytes: Vec<u8>) -> Value {
        let name = format!("__tvm_ffi_codegen_bytes_{}", self.b.module().data.len());
        let data: DataRef = self.b.module().add_data(name, bytes, 1);
        self.b.data_addr(data, 0)
    }

    /// A `TVMFFIByteArray` in the frame.
    pub(super) fn byte_array(&mut self, data: Value, size: i64) -> Value {
        let size = self.b.i64(size);
        self.byte_array_of(data, size)
    }

    /// Like [`byte_array`](Self::byte_array), with a computed size.
    fn byte_array_of(&mut self, data: Value, size: Value) -> Value {
        self.b.structured(|c| byte_array(c, c.val(data), c.val(size)).value())
    }

    /// A short string, stored inline in the `TVMFFIAny`.
    pub(super) fn small(&mut self, index: TypeIndex, bytes: &[u8]) -> Packed {
        let order = self.b.module().endianness;
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        let payload = match order {
            Endianness::Little => i64::from_le_bytes(word),
            Endianness::Big => i64::from_be_bytes(word),
        };
        let first = self.b.i64(pair(order, index.0 as u32, bytes.len() as u32));
        Packed::Words(first, self.b.i64(payload))
    }

    pub(super) fn text(&mut self, text: &str) -> Packed {
        if text.len() <= SMALL {
            return self.small(TypeIndex::SMALL_STR, text.as_bytes());
        }
        if !text.contains('\0') {
            let offset = self.pool.constants.text(text);
            return Packed::Of(TypeIndex::RAW_STR, self.b.data_addr(self.pool.data, offset));
        }
        // a C string would end at a NUL inside the text
        let data = self.constant(text.as_bytes().to_vec());
        let array = self.byte_array(data, text.len() as i64);
        let any = self.any_slot();
        let make = capi::import(self.b.module(), capi::STRING_FROM_BYTE_ARRAY);
        if let Some(code) = self.b.call(make, &[array, any]) {
            self.exit_unless_zero(code);
        }
        self.hold(Held::Value(any));
        Packed::Copy(any)
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) -> Packed {
        if bytes.len() <= SMALL {
            return self.small(TypeIndex::SMALL_BYTES, bytes);
        }
        let data = self.constant(bytes.to_vec());
        Packed::Of(TypeIndex::BYTE_ARRAY_PTR, self.byte_array(data, bytes.len() as i64))
    }

    /// The value that a function of the runtime creates from arguments, held from now on.
    pub(super) fn made_by(&mut self, global: &str, args: &[Packed]) -> Value {
        let function = self.global(global);
        let any = self.any_slot();
        let code = self.call_function(function, args, any);
        self.exit_unless_zero(code);
        self.hold(Held::Value(any));
        any
    }

    /// Stores arguments consecutively, and calls a function object.
    pub(super) fn call_function(&mut self, function: Value, args: &[Packed], result: Value) -> Value {
        let array = self.store(args);
        self.call_stored(function, (array, args.len()), result)
    }

    /// Calls a function object with an array of arguments, given with their number.
    pub(super) fn call_stored(&mut self, function: Value, (array, count): (Value, usize), result: Value) -> Value {
        self.b.structured(|c| {
            let [function, array, result] = [function, array, result].map(|value| c.val(value));
            ffi_call::call(c, function, array, count as i32, result).value()
        })
    }

    /// Stores arguments consecutively and returns the address of the first. Calls outside loops share one array. In a
    /// loop each call has its own array, so that type indices are stored only once, before the loop. That is sound
    /// because no callee writes to the array (tvm/ffi/c_api.h, `TVMFFISafeCallType`).
    pub(super) fn store(&mut self, args: &[Packed]) -> Value {
        let size = ANY_SIZE as u32 * args.len().max(1) as u32;
        let own = self.exits.loops() > 0;
        let slot = if own { self.b.slot(size, 8) } else { *self.packed.get_or_insert_with(|| self.b.slot(size, 8)) };
        self.b.grow_slot(slot, size);
        let array = self.b.stack_addr(slot);
        for (i, arg) in (0i64..).zip(args) {
            let offset = i * i64::from(ANY_SIZE);
            let to = self.b.ptr_add_imm(array, offset);
            let (index, payload) = match *arg {
                Packed::Scalar(ty, value) if own => scalar_parts(&mut self.b, ty, value),
                Packed::Of(index, payload) if own => (index, payload),
                _ => {
                    self.store_packed(arg, to);
                    continue;
                }
            };
            self.b.at_entry(|b| {
                let array = b.stack_addr(slot);
                let to = b.ptr_add_imm(array, offset);
                store_index(b, to, index);
            });
            self.b.store(payload, to, PAYLOAD, MemFlags::ALIGNED);
        }
        array
    }

    pub(super) fn store_packed(&mut self, arg: &Packed, to: Value) {
        match *arg {
            Packed::Scalar(ty, value) => store_result(&mut self.b, to, ty, value),
            Packed::Of(index, payload) => store_any(&mut self.b, to, index, payload),
            Packed::Words(first, second) => self.store_words(first, second, to),
            Packed::Copy(from) => {
                let first = self.b.load(Type::I64, from, TYPE_INDEX, MemFlags::ALIGNED);
                let second = self.b.load(Type::I64, from, PAYLOAD, MemFlags::ALIGNED);
                self.store_words(first, second, to);
            }
            Packed::Moved(from) => {
                // pass an object as a reference to its address, and any other value as it is
                let index = self.b.load(Type::I32, from, TYPE_INDEX, MemFlags::ALIGNED);
                let is_object = self.b.icmp_imm(IntCC::SGe, index, i64::from(TypeIndex::STATIC_OBJECT_BEGIN.0));
                let first = self.b.load(Type::I64, from, TYPE_INDEX, MemFlags::ALIGNED);
                let second = self.b.load(Type::Ptr, from, PAYLOAD, MemFlags::ALIGNED);
                let order = self.b.module().endianness;
                let reference = self.b.i64(pair(order, TypeIndex::OBJECT_RVALUE_REF.0 as u32, 0));
                let place = self.b.ptr_add_imm(from, i64::from(PAYLOAD));
                let (first, second) =
                    (self.b.select(is_object, reference, first), self.b.select(is_object, place, second));
                self.store_words(first, second, to);
            }
        }
    }

    pub(super) fn store_words(&mut self, first: Value, second: Value, to: Value) {
        self.b.store(first, to, TYPE_INDEX, MemFlags::ALIGNED);
        self.b.store(second, to, PAYLOAD, MemFlags::ALIGNED);
    }
}

/// Evaluates an argument; values created for it are held from then on.
pub(super) fn evaluate(body: &dyn Ops, operation: &str, arg: &CallArg<'_>) -> Option<Packed> {
    let emit = |f: &mut dyn FnMut(&mut BodyLowerer<'_>) -> Packed| body.emit(|l| Some(f(l)));
    match &arg.0 {
        ArgKind::None => emit(&mut |l| Packed::Of(TypeIndex::NONE, l.b.i64(0))),
        ArgKind::Scalar(operand) => {
            let ty = match operand {
                Operand::Expr(expr) => expr.ty(),
                Operand::Int(_) => ScalarType::Int64,
                Operand::Float(_) => ScalarType::Float64,
                Operand::Bool(_) => ScalarType::Bool,
            };
            let value = body.coerce(operation, ty, *operand).value;
            Some(Packed::Scalar(ty, value))
        }
        ArgKind::Str(text) => emit(&mut |l| l.text(text)),
        ArgKind::Bytes(bytes) => emit(&mut |l| l.bytes(bytes)),
        ArgKind::DType(dtype) => {
            let bits = dtype.bits(body, operation)?;
            emit(&mut |l| Packed::Of(TypeIndex::DATA_TYPE, bits.payload(l)))
        }
        ArgKind::Device(device) => Some(Packed::Of(TypeIndex::DEVICE, device.bits(body, operation)?)),
        ArgKind::Shape(sizes) => {
            let sizes: Vec<Packed> = sizes
                .iter()
                .map(|size| Packed::Scalar(ScalarType::Int64, body.coerce(operation, ScalarType::Int64, *size).value))
                .collect();
            emit(&mut |l| Packed::Copy(l.made_by("ffi.Shape", &sizes)))
        }
        ArgKind::Array(values) => {
            let values = evaluate_all(body, operation, values)?;
            emit(&mut |l| Packed::Copy(l.made_by("ffi.Array", &values)))
        }
        ArgKind::Param(param) => evaluate_param(body, operation, *param),
        ArgKind::Tensor(tensor) => views::evaluate(*tensor, operation).map(|(index, value)| match index {
            Some(index) => Packed::Of(index, value),
            None => Packed::Copy(value),
        }),
        ArgKind::Owned(owned) => Some(Packed::Copy(owned.used(operation).any)),
        ArgKind::Moved(owned) => {
            owned.take(operation);
            Some(Packed::Moved(owned.any))
        }
    }
}

/// Evaluates all arguments of one call.
pub(super) fn evaluate_all(body: &dyn Ops, operation: &str, args: &[CallArg<'_>]) -> Option<Vec<Packed>> {
    let beside = Beside::new(args.iter());
    let packed = evaluate_each(body, operation, args);
    beside.check(body, operation);
    packed
}

/// Evaluates some of a call's arguments.
pub(super) fn evaluate_each(body: &dyn Ops, operation: &str, args: &[CallArg<'_>]) -> Option<Vec<Packed>> {
    args.iter().map(|arg| evaluate(body, operation, arg)).collect()
}

/// The arguments that a call only lends to the callee. None of them may be owned by an argument that the callee takes
/// over, because it would end with its owner.
pub(super) struct Beside<'c, 'b>(Vec<&'c CallArg<'b>>);

impl<'c, 'b> Beside<'c, 'b> {
    /// Collects the lent arguments that are usable before the call.
    pub(super) fn new(args: impl Iterator<Item = &'c CallArg<'b>>) -> Self {
        Beside(args.filter(|arg| lent(arg) == Some(None)).collect())
    }

    /// Records an error for each argument that is no longer usable.
    pub(super) fn check(self, body: &dyn Ops, operation: &str) {
        for _ in self.0.iter().filter(|arg| lent(arg) != Some(None)) {
            body.note(
                operation,
                "the value is passed beside an argument that moves it, or what it is part of".to_owned(),
            );
        }
    }
}

/// For a lent argument, why it can't be used (inner `None` if it can); `None` for any other argument.
fn lent(arg: &CallArg<'_>) -> Option<Option<Ended>> {
    match &arg.0 {
        ArgKind::Param(param) => Some(param.ended()),
        ArgKind::Tensor(tensor) => Some(tensor.ended()),
        ArgKind::Owned(owned) => Some(owned.ended()),
        ArgKind::Scalar(Operand::Expr(pointer)) if pointer.ty() == ScalarType::Handle => Some(pointer.ended()),
        _ => None,
    }
}

/// Passes on a parameter, or a part of the result of a call.
fn evaluate_param(body: &dyn Ops, operation: &str, param: ParamRef<'_>) -> Option<Packed> {
    let param = param.alive(operation);
    let node = param.node?;
    match &node.ty {
        ParamType::Scalar(ty) => return Some(Packed::Scalar(*ty, param.value().used(operation).value)),
        ParamType::DType => return evaluate(body, operation, &CallArg(ArgKind::DType(param.into()))),
        ParamType::Device => return evaluate(body, operation, &CallArg(ArgKind::Device(param.into()))),
        ParamType::EnvStream | ParamType::Stream | ParamType::EnvState(_) => {
            return Some(Packed::Of(TypeIndex::OPAQUE_PTR, param.value().used(operation).value));
        }
        _ => {}
    }
    let found = body.emit(|l| {
        Some(c_argument(l, param.args, &node.path, &node.ty).map_or_else(|| address_of(l, param.args, &node.path), Ok))
    })?;
    match found {
        Ok(any) => Some(Packed::Copy(any)),
        Err(problem) => {
            body.note(operation, problem);
            None
        }
    }
}

/// The address of a value created from the arguments of a C function, held from then on; `None` if the body isn't a C
/// function's, or for a value of another type.
fn c_argument(l: &mut BodyLowerer<'_>, args: &Args, path: &str, ty: &ParamType) -> Option<Value> {
    let value = |path: &str| match args.find(path) {
        Some((_, Arg::Scalar(_, value))) if args.any.is_none() => Some(*value),
        Some((_, Arg::Tensor(vars))) if args.any.is_none() => vars.descriptor,
        _ => None,
    };
    if !l.is_c {
        return None;
    }
    match ty {
        ParamType::Str | ParamType::Bytes => {
            let (data, size) = (value(path)?, value(&format!("{path}.size"))?);
            let array = l.byte_array_of(data, size);
            let any = l.any_slot();
            let make = match ty {
                ParamType::Str => capi::STRING_FROM_BYTE_ARRAY,
                _ => capi::BYTES_FROM_BYTE_ARRAY,
            };
            let make = capi::import(l.b.module(), make);
            if let Some(code) = l.b.call(make, &[array, any]) {
                l.exit_unless_zero(code);
            }
            l.hold(Held::Value(any));
            Some(any)
        }
        ParamType::Any => value(path),
        ParamType::Tensor(_) => {
            let descriptor = value(path)?;
            let any = l.any_slot();
            store_any(&mut l.b, any, TypeIndex::DL_TENSOR_PTR, descriptor);
            Some(any)
        }
        ParamType::Function
        | ParamType::Module
        | ParamType::Object(_)
        | ParamType::List(_)
        | ParamType::Map(..)
        | ParamType::Dict(..) => {
            let object = value(path)?;
            let any = l.any_slot();
            let index = l.b.load(Type::I32, object, OBJECT_TYPE_INDEX, MemFlags::ALIGNED);
            let word = before_zeros(&mut l.b, index);
            l.b.store(word, any, TYPE_INDEX, MemFlags::ALIGNED);
            l.b.store(object, any, PAYLOAD, MemFlags::ALIGNED);
            Some(any)
        }
        _ => None,
    }
}

/// The address of the value at a path: the caller's own argument, or a part of the result of a call.
pub(super) fn address_of(l: &mut BodyLowerer<'_>, args: &Args, path: &str) -> Result<Value, String> {
    let Some((any, root)) = args.any.zip(args.params.first()) else { return l.original(path) };
    let items = path.strip_prefix(root.path.as_str()).unwrap_or_default();
    l.item(any, items, &root.ty)
}

impl BodyLowerer<'_> {
    /// Writes a value to an address that owns it from then on.
    pub(super) fn own(&mut self, value: &Packed, to: Value) {
        let view = match value {
            Packed::Copy(any) => *any,
            _ => {
                let view = self.any_slot();
                self.store_packed(value, view);
                view
            }
        };
        let own = capi::import(self.b.module(), capi::ANY_VIEW_TO_OWNED_ANY);
        if let Some(code) = self.b.call(own, &[view, to]) {
            self.exit_unless_zero(code);
        }
    }
}
