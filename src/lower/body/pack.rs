//! The code of calls: arguments are packed, the function is found and called, and what it returns is owned and taken apart.

use super::args::{Args, Origin};
use super::calls::{ArgKind, Call, CallArg, CallResult, Callee, KnownOwned, Owned, Target, placeholder};
use super::control::unreachable;
use super::exits::Held;
use super::expr::{Operand, Ops, Scope};
use super::function::{BodyLowerer, Extra, Failure, FlatValues};
use super::param::ParamRef;
use super::views;
use crate::ir::{BinaryOp, DataRef, FuncRef, Hint, IntCC, Linkage, MemFlags, Type, Value};
use crate::lower::abi::fields::{before_zeros, dtype_word, pair};
use crate::lower::abi::{
    ANY_SIZE, CELL_DATA, OBJECT_TYPE_INDEX, PAYLOAD, TYPE_INDEX, store_any, store_none, store_result,
};
use crate::lower::once::{self, Looked, NO_CONTEXT, NOT_FOUND};
use crate::lower::protocol::{Directive, Field, Piece};
use crate::lower::symbol_call::{KnownArg, SymbolCall};
use crate::lower::value::{self, Expected, Known};
use crate::lower::{capi, ffi_call};
use crate::spec::{ParamType, ScalarType};
use std::mem::offset_of;
use target_lexicon::Endianness;
use tvm_ffi_runtime::abi::{TVMFFIByteArray, TypeIndex, symbol};

/// The most bytes of a string that stands in the `TVMFFIAny` itself.
const SMALL: usize = 7;

/// An argument that is ready to be stored.
pub(super) enum Packed {
    Scalar(ScalarType, Value),
    /// A type index with its payload.
    Of(TypeIndex, Value),
    /// The first 8 bytes, which have the type index, and the payload.
    Words(Value, Value),
    /// The value at this address.
    Copy(Value),
    /// The owned value at this address, which the callee may take.
    Moved(Value),
}

/// A new owned value, None at first, which is held from now on.
pub(super) fn new_owned<'b>(body: &'b dyn Ops, known: KnownOwned<'b>) -> Owned<'b> {
    let any = body.value(|l| {
        let any = l.any_slot();
        l.hold(Held::Value(any));
        any
    });
    Owned { body, any, scope: body.scope(), known, loops: Owned::VARIABLE }
}

impl Owned<'_> {
    /// In place of a number of loops: the value is a variable's, and may be moved out of it any number of times.
    pub(super) const VARIABLE: usize = usize::MAX;
}

impl BodyLowerer<'_> {
    /// A `TVMFFIAny` in the frame, None at first.
    pub(super) fn any_slot(&mut self) -> Value {
        ffi_call::any_slot(&mut self.b)
    }

    /// The place for what a callee returns, None at first. Calls keep the function's own result pointer out of registers from now on.
    fn result_slot(&mut self, whole: bool) -> Value {
        self.spill_result();
        if whole { self.any_slot() } else { ffi_call::index_slot(&mut self.b) }
    }

    /// A parameter that the body's function has from now on.
    pub(super) fn extra(&mut self, extra: Extra) -> Value {
        if let Some((_, known)) = self.extras.iter().find(|(known, _)| *known == extra) {
            return *known;
        }
        let value = self.b.add_param(Type::Ptr);
        self.extras.push((extra, value));
        value
    }

    /// The address of the caller's own argument at a path: a parameter, or an item of a tuple.
    pub(super) fn original(&mut self, path: &str) -> Result<Value, String> {
        let (name, items) = path.split_once('[').map_or((path, ""), |(name, _)| (name, &path[name.len()..]));
        let mut passed = self.signature.passed();
        let Some(index) = passed.position(|param| param.name == name) else {
            return Err(format!("`{path}` is no argument"));
        };
        let ty = self.signature.passed().nth(index).map(|param| param.ty.clone()).unwrap_or(ParamType::Any);
        let base = self.extra(Extra::Originals);
        let base = self.b.ptr_add_imm(base, index as i64 * i64::from(ANY_SIZE));
        self.item(base, items, &ty)
    }

    /// The address of an item of a tuple inside a value: `items` is `[2][0]`.
    fn item(&mut self, mut base: Value, items: &str, ty: &ParamType) -> Result<Value, String> {
        let mut ty = ty;
        for index in items.split(['[', ']']).filter(|index| !index.is_empty()) {
            let (ParamType::Tuple(types), Ok(index)) = (ty, index.parse::<usize>()) else {
                return Err("an item of an optional tuple can't be passed on; pass the tuple".to_owned());
            };
            let Some(item) = types.get(index) else { return Err(format!("the tuple has no item {index}")) };
            ty = item;
            let array = self.object_at(base);
            let data = self.b.load(Type::Ptr, array, CELL_DATA, MemFlags::ALIGNED);
            base = self.b.ptr_add_imm(data, index as i64 * i64::from(ANY_SIZE));
        }
        Ok(base)
    }

    /// The object at an address, which may be there by an rvalue reference.
    fn object_at(&mut self, any: Value) -> Value {
        let (_, payload) = self.borrowed(any);
        payload
    }

    /// The two words of the value at an address, without taking it: of an rvalue reference, those of the object that it refers to.
    fn borrowed(&mut self, any: Value) -> (Value, Value) {
        let word = self.b.load(Type::I64, any, TYPE_INDEX, MemFlags::ALIGNED);
        let payload = self.b.load(Type::Ptr, any, PAYLOAD, MemFlags::ALIGNED);
        let index = self.b.load(Type::I32, any, TYPE_INDEX, MemFlags::ALIGNED);
        let (join, refers) = (self.b.block(), self.b.cold_block());
        let (words, payloads) = (self.b.block_param(join, Type::I64), self.b.block_param(join, Type::Ptr));
        let is = self.b.icmp_imm(IntCC::Eq, index, i64::from(TypeIndex::OBJECT_RVALUE_REF.0));
        self.b.branch_with(is, (refers, &[]), (join, &[word, payload]), Hint::Unlikely);
        self.b.switch_to(refers);
        let object = self.b.load(Type::Ptr, payload, 0, MemFlags::ALIGNED);
        let index = self.b.load(Type::I32, object, OBJECT_TYPE_INDEX, MemFlags::ALIGNED);
        let word = before_zeros(&mut self.b, index);
        self.b.jump(join, &[word, object]);
        self.b.switch_to(join);
        (words, payloads)
    }

    /// The `DLTensor` of the tensor at an address: a `DLTensor*`, or that of an `ffi.Tensor`.
    pub(super) fn descriptor_of(&mut self, any: Value) -> Value {
        let (word, payload) = self.borrowed(any);
        let index = crate::lower::abi::fields::first(&mut self.b, word);
        let bare = self.b.icmp_imm(IntCC::Eq, index, i64::from(TypeIndex::DL_TENSOR_PTR.0));
        let inside = self.b.ptr_add_imm(payload, i64::from(crate::lower::abi::HEADER));
        self.b.select(bare, payload, inside)
    }

    /// The address of constant bytes.
    fn constant(&mut self, bytes: Vec<u8>) -> Value {
        let name = format!("__tvm_ffi_codegen_bytes_{}", self.b.module().data.len());
        let data: DataRef = self.b.module().add_data(name, bytes, 1);
        self.b.data_addr(data, 0)
    }

    /// A `TVMFFIByteArray` in the frame.
    fn byte_array(&mut self, data: Value, size: i64) -> Value {
        let slot = self.b.slot(size_of::<TVMFFIByteArray>() as u32, 8);
        let array = self.b.stack_addr(slot);
        let size = self.b.i64(size);
        self.b.store(data, array, offset_of!(TVMFFIByteArray, data) as i32, MemFlags::ALIGNED);
        self.b.store(size, array, offset_of!(TVMFFIByteArray, size) as i32, MemFlags::ALIGNED);
        array
    }

    /// A short string in the `TVMFFIAny` itself.
    fn small(&mut self, index: TypeIndex, bytes: &[u8]) -> Packed {
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

    fn text(&mut self, text: &str) -> Packed {
        if text.len() <= SMALL {
            return self.small(TypeIndex::SMALL_STR, text.as_bytes());
        }
        if !text.contains('\0') {
            let offset = self.pool.constants.text(text);
            return Packed::Of(TypeIndex::RAW_STR, self.b.data_addr(self.pool.data, offset));
        }
        // a C string would end at the NUL
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

    fn bytes(&mut self, bytes: &[u8]) -> Packed {
        if bytes.len() <= SMALL {
            return self.small(TypeIndex::SMALL_BYTES, bytes);
        }
        let data = self.constant(bytes.to_vec());
        Packed::Of(TypeIndex::BYTE_ARRAY_PTR, self.byte_array(data, bytes.len() as i64))
    }

    /// The value that a function of the runtime makes of arguments, held from now on.
    pub(super) fn made_by(&mut self, global: &str, args: &[Packed]) -> Value {
        let function = self.global(global);
        let any = self.any_slot();
        let code = self.call_function(function, args, any);
        self.exit_unless_zero(code);
        self.hold(Held::Value(any));
        any
    }

    /// Stores arguments one behind the other, and calls a function object. The argument array is one for all calls.
    fn call_function(&mut self, function: Value, args: &[Packed], result: Value) -> Value {
        let array = self.store(args);
        let call = ffi_call::call(&mut self.b, function, array, args.len() as i32, result);
        // the function has a result
        call.unwrap_or(function)
    }

    fn store(&mut self, args: &[Packed]) -> Value {
        let size = ANY_SIZE as u32 * args.len().max(1) as u32;
        let slot = *self.packed.get_or_insert_with(|| self.b.slot(size, 8));
        self.b.grow_slot(slot, size);
        let array = self.b.stack_addr(slot);
        for (i, arg) in (0i64..).zip(args) {
            let to = self.b.ptr_add_imm(array, i * i64::from(ANY_SIZE));
            self.store_packed(arg, to);
        }
        array
    }

    fn store_packed(&mut self, arg: &Packed, to: Value) {
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
                // an object by a reference to its place, all else as it is
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

    fn store_words(&mut self, first: Value, second: Value, to: Value) {
        self.b.store(first, to, TYPE_INDEX, MemFlags::ALIGNED);
        self.b.store(second, to, PAYLOAD, MemFlags::ALIGNED);
    }

    /// A global function, looked up once.
    pub(super) fn global(&mut self, name: &str) -> Value {
        self.looked_up(Looked::Global(name.to_owned()))
    }

    fn looked_up(&mut self, looked: Looked) -> Value {
        let handle = self.handles.get(self.b.module(), self.prefix, &looked);
        // the code stays in its block until the block is known in which it fails
        let mut refused = None;
        let function = once::load(&mut self.b, handle, |b, code| refused = Some((b.current(), code)));
        if let Some((block, code)) = refused {
            let here = self.b.current();
            self.b.switch_to(block);
            self.refuse_look_up(&looked, code);
            self.b.switch_to(here);
        }
        function
    }

    /// Ends the current block with the error of a look-up that has given a code.
    fn refuse_look_up(&mut self, looked: &Looked, code: Value) {
        let caller = self.signature;
        let texts = match looked {
            Looked::Global(name) => {
                vec![(NOT_FOUND, format!("global function `{name}` is not registered, which `{caller}` calls"))]
            }
            Looked::Import(name) => vec![
                (
                    NOT_FOUND,
                    format!("no module that the library imports has the function `{name}`, which `{caller}` calls"),
                ),
                (
                    NO_CONTEXT,
                    format!(
                        "the library has no context, in which to look for the function `{name}` of its imports, which `{caller}` calls"
                    ),
                ),
            ],
        };
        for (reason, text) in texts {
            let (told, next) = (self.b.cold_block(), self.b.cold_block());
            let is = self.b.icmp_imm(IntCC::Eq, code, reason);
            self.b.branch(is, told, next, Hint::None);
            self.b.switch_to(told);
            let template = self.pool.constants.template("RuntimeError", &[Piece::Text(&text)]);
            self.raise(Failure { template, values: Vec::new() });
            self.b.switch_to(next);
        }
        self.exit(code);
    }

    /// A global function that is looked up now; it is held from now on.
    fn global_now(&mut self, name: &str) -> Value {
        let data = self.constant(name.as_bytes().to_vec());
        let array = self.byte_array(data, name.len() as i64);
        let any = self.any_slot();
        let payload = self.b.ptr_add_imm(any, i64::from(PAYLOAD));
        let get = capi::import(self.b.module(), capi::FUNCTION_GET_GLOBAL);
        if let Some(code) = self.b.call(get, &[array, payload]) {
            self.exit_unless_zero(code);
        }
        let function = self.b.load(Type::Ptr, any, PAYLOAD, MemFlags::ALIGNED);
        let there = self.b.icmp_imm(IntCC::Ne, function, 0);
        let text = format!("global function `{name}` is not registered, which `{}` calls", self.signature);
        self.check(there, |l| Failure {
            template: l.pool.constants.template("RuntimeError", &[Piece::Text(&text)]),
            values: Vec::new(),
        });
        store_any(&mut self.b, any, TypeIndex::FUNCTION, function);
        self.hold(Held::Value(any));
        function
    }

    /// The function object at an address, or the error that the value there is none.
    fn function_at(&mut self, any: Value, name: &str) -> Value {
        let (word, payload) = self.borrowed(any);
        let index = crate::lower::abi::fields::first(&mut self.b, word);
        let is = self.b.icmp_imm(IntCC::Eq, index, i64::from(TypeIndex::FUNCTION.0));
        let text = format!("Mismatched type of {name}, which `{}` calls, expected Function, got ", self.signature);
        self.check(is, |l| {
            let got = l.b.convert(crate::ir::ConvertOp::SExt, Type::I64, index);
            let payload = l.b.convert(crate::ir::ConvertOp::PtrToInt, Type::I64, payload);
            let pieces = [Piece::Text(&text), Piece::Value(Directive::Type, Field::Got as u32)];
            Failure { template: l.pool.constants.template("TypeError", &pieces), values: vec![got, payload] }
        });
        payload
    }

    /// The wrapper of a function by its symbol.
    fn wrapper(&mut self, name: &str) -> FuncRef {
        let symbol = format!("{}{}{name}", symbol::FUNCTION, self.prefix);
        let module = self.b.module();
        match module.function_named(&symbol) {
            Some((known, _)) => known,
            None => module.declare(symbol, ffi_call::safe_call_signature(), Linkage::Import),
        }
    }
}

/// Evaluates an argument; what it takes to make it is held from then on.
fn evaluate(body: &dyn Ops, operation: &str, arg: &CallArg<'_>) -> Option<Packed> {
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
        ArgKind::DType(dtype) => emit(&mut |l| {
            let word = dtype_word(l.b.module().endianness, *dtype);
            let word = l.b.iconst(Type::I32, i64::from(word as i32));
            Packed::Of(TypeIndex::DATA_TYPE, before_zeros(&mut l.b, word))
        }),
        ArgKind::Device(device) => emit(&mut |l| {
            let order = l.b.module().endianness;
            Packed::Of(TypeIndex::DEVICE, l.b.i64(pair(order, device.device_type.0 as u32, device.device_id as u32)))
        }),
        ArgKind::DTypeBits(bits) => {
            let bits = bits.used(operation).value;
            emit(&mut |l| Packed::Of(TypeIndex::DATA_TYPE, before_zeros(&mut l.b, bits)))
        }
        ArgKind::DeviceBits(bits) => Some(Packed::Of(TypeIndex::DEVICE, bits.used(operation).value)),
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
        ArgKind::Tensor(tensor) => views::evaluate(*tensor, operation)
            .map(|(index, value)| match index {
                Some(index) => Packed::Of(index, value),
                None => Packed::Copy(value),
            })
            .map(|packed| match (packed, tensor.known.map(|t| t.vars.origin)) {
                // the caller may have passed it by an rvalue reference, which the callee must not take
                (Packed::Copy(any), Some(Origin::Argument)) => body
                    .emit(|l| {
                        let (first, second) = l.borrowed(any);
                        Some(Packed::Words(first, second))
                    })
                    .unwrap_or(Packed::Copy(any)),
                (packed, _) => packed,
            }),
        ArgKind::Owned(owned) => Some(Packed::Copy(owned.used(operation).any)),
        ArgKind::Moved(owned) => {
            owned.take(operation);
            Some(Packed::Moved(owned.any))
        }
    }
}

pub(super) fn evaluate_all(body: &dyn Ops, operation: &str, args: &[CallArg<'_>]) -> Option<Vec<Packed>> {
    args.iter().map(|arg| evaluate(body, operation, arg)).collect()
}

/// A parameter that is passed on, or a part of the result of a call.
fn evaluate_param(body: &dyn Ops, operation: &str, param: ParamRef<'_>) -> Option<Packed> {
    let node = param.node?;
    match &node.ty {
        ParamType::Scalar(ty) => return Some(Packed::Scalar(*ty, param.value().value)),
        ParamType::DType => return evaluate(body, operation, &CallArg(ArgKind::DTypeBits(param.value()))),
        ParamType::Device => return evaluate(body, operation, &CallArg(ArgKind::DeviceBits(param.value()))),
        ParamType::EnvStream | ParamType::EnvState(_) => {
            return Some(Packed::Of(TypeIndex::OPAQUE_PTR, param.value().value));
        }
        _ => {}
    }
    let found = body.emit(|l| Some(address_of(l, param.args, &node.path)))?;
    match found {
        Ok(any) => body.emit(|l| {
            let (first, second) = l.borrowed(any);
            Some(Packed::Words(first, second))
        }),
        Err(problem) => {
            body.note(operation, problem);
            None
        }
    }
}

/// The address of the value at a path: the caller's own argument, or a part of the result of a call.
fn address_of(l: &mut BodyLowerer<'_>, args: &Args, path: &str) -> Result<Value, String> {
    let Some((any, root)) = args.any.zip(args.params.first()) else { return l.original(path) };
    let items = path.strip_prefix(root.path.as_str()).unwrap_or_default();
    l.item(any, items, &root.ty)
}

/// Makes a call.
pub(super) fn call<'b>(call: Call<'b>, ty: Option<ParamType>) -> CallResult<'b> {
    let Call { body, target, args, kwargs } = call;
    let operation = format!("call of `{}`", target.name());
    let depth = body.emit(|l| Some(l.exits.depth())).unwrap_or_default();
    // what isn't of a plain type is taken as a whole, with its payload
    let whole = !ty.as_ref().is_some_and(owns_nothing);
    let called = make_call(body, &operation, &target, &args, &kwargs, whole);
    let (made, any) = match called {
        Some(Called { code, any }) => (Some(code), any),
        None => (None, body.value(|l| l.any_slot())),
    };
    let moved: Vec<Value> = args.iter().chain(kwargs.iter().map(|(_, arg)| arg)).filter_map(moved_slot).collect();
    body.run(&mut |l| {
        if let Some(code) = made {
            moved.iter().for_each(|any| forget_taken(l, *any));
            l.exit_unless_zero(code);
        }
        l.let_go(depth);
        l.hold(Held::Value(any));
    });
    let path = match &target {
        Target::Value(_) => "the result of a call".to_owned(),
        target => format!("result of `{}`", target.name()),
    };
    let known = match &ty {
        Some(ty) => KnownOwned::Type(body.arena().ty(ty.clone())),
        None => KnownOwned::Nothing,
    };
    let loops = body.emit(|l| Some(l.exits.loops())).unwrap_or_default();
    let owned = Owned { body, any, scope: body.scope(), known, loops };
    let Some(ty) = ty else {
        body.run(&mut |l| l.let_go(depth));
        return placeholder(body, &path, &ParamType::None, owned);
    };
    let plain = owns_nothing(&ty);
    let result = take_apart(owned, &path, ty);
    if plain {
        body.run(&mut |l| l.exits.forget());
    }
    result
}

/// Whether a value of the type is no object, once it is checked.
fn owns_nothing(ty: &ParamType) -> bool {
    matches!(ty, ParamType::Scalar(_) | ParamType::None | ParamType::Int(_) | ParamType::Bool(_) | ParamType::Device)
}

fn moved_slot(arg: &CallArg<'_>) -> Option<Value> {
    match &arg.0 {
        ArgKind::Moved(owned) => Some(owned.any),
        _ => None,
    }
}

/// Makes None of an owned value that a callee has taken.
fn forget_taken(l: &mut BodyLowerer<'_>, any: Value) {
    let index = l.b.load(Type::I64, any, TYPE_INDEX, MemFlags::ALIGNED);
    let payload = l.b.load(Type::I64, any, PAYLOAD, MemFlags::ALIGNED);
    let taken = l.b.icmp_imm(IntCC::Eq, payload, 0);
    let type_index = l.b.load(Type::I32, any, TYPE_INDEX, MemFlags::ALIGNED);
    let is_object = l.b.icmp_imm(IntCC::SGe, type_index, i64::from(TypeIndex::STATIC_OBJECT_BEGIN.0));
    let gone = l.b.binary(BinaryOp::And, taken, is_object);
    let none = l.b.i64(0);
    let index = l.b.select(gone, none, index);
    l.b.store(index, any, TYPE_INDEX, MemFlags::ALIGNED);
}

/// A call that has been made.
#[derive(Clone, Copy)]
struct Called {
    code: Value,
    /// The address of what the function has returned.
    any: Value,
}

/// Packs the arguments and calls. `whole` says that the payload of the result is looked at even where the callee leaves it out.
fn make_call(
    body: &dyn Ops,
    operation: &str,
    target: &Target<'_>,
    args: &[CallArg<'_>],
    kwargs: &[(String, CallArg<'_>)],
    whole: bool,
) -> Option<Called> {
    let mut packed = evaluate_all(body, operation, args)?;
    if !kwargs.is_empty() {
        packed.push(body.emit(|l| Some(Packed::Copy(l.made_by("ffi.GetKwargsObject", &[]))))?);
        for (name, value) in kwargs {
            packed.push(body.emit(|l| Some(l.text(name)))?);
            packed.push(evaluate(body, operation, value)?);
        }
    }
    if i32::try_from(packed.len()).is_err() {
        body.note(operation, "has more arguments than a call can have".to_owned());
        return None;
    }
    let name = target.name();
    if name.is_empty() || name.contains('\0') {
        body.note(operation, "the name is empty or holds a NUL byte".to_owned());
        return None;
    }
    let callee = match target {
        Target::Value(Callee::Owned(owned)) => Some(Ok(owned.used(operation).any)),
        Target::Value(Callee::Param(param)) => match (param.node, param.ty()) {
            (Some(_), Some(ParamType::Function)) if param.args.any.is_none() => Some(Err(param.value().value)),
            (Some(node), Some(_)) => match body.emit(|l| Some(address_of(l, param.args, &node.path)))? {
                Ok(any) => Some(Ok(any)),
                Err(problem) => {
                    body.note(operation, problem);
                    return None;
                }
            },
            _ => return None,
        },
        _ => None,
    };
    let known = kwargs.is_empty().then(|| args.iter().map(CallArg::known).collect::<Vec<KnownArg>>());
    body.emit(|l| {
        let function = match (target, callee) {
            (Target::Symbol { name }, _) => {
                let wrapper = l.wrapper(name);
                let call =
                    SymbolCall { caller: l.signature.name().to_owned(), callee: name.clone(), args: known.clone() };
                l.symbol_calls.push(call);
                let array = l.store(&packed);
                let any = l.result_slot(whole);
                let (handle, count) = (l.b.ptr_const(0), l.b.iconst(Type::I32, packed.len() as i64));
                let code = l.b.call(wrapper, &[handle, array, count, any])?;
                return Some(Called { code, any });
            }
            (Target::Global { name, each_time: false }, _) => l.global(name),
            (Target::Global { name, each_time: true }, _) => l.global_now(name),
            (Target::Import { name }, _) => l.looked_up(Looked::Import(name.clone())),
            (Target::Value(_), Some(Ok(any))) => l.function_at(any, &format!("`{}`", target.name())),
            (Target::Value(_), Some(Err(function))) => function,
            (Target::Value(_), None) => return None,
        };
        // behind the way to the function, so that no register keeps the address on that way
        let any = l.result_slot(whole);
        Some(Called { code: l.call_function(function, &packed, any), any })
    })
}

/// Checks an owned value by a stated type and gives its parts.
fn take_apart<'b>(owned: Owned<'b>, path: &str, ty: ParamType) -> CallResult<'b> {
    let body = owned.body;
    if !ty.is_passed() {
        body.note("returns", format!("an {ty} is no value"));
        return placeholder(body, path, &ParamType::None, owned);
    }
    let args = body.emit(|l| Some(l.checked_value(owned, path, &ty)));
    match args {
        Some(Ok(args)) => {
            let args: &'b Args = body.arena().args(args);
            CallResult { owned, param: ParamRef { body, args, node: args.params.first() } }
        }
        Some(Err(problem)) => {
            body.note("returns", problem);
            placeholder(body, path, &ty, owned)
        }
        None => placeholder(body, path, &ty, owned),
    }
}

/// The value of a variable by a stated type.
pub(super) fn cast<'b>(owned: Owned<'b>, path: &str, ty: ParamType) -> CallResult<'b> {
    take_apart(owned.used("cast"), path, ty)
}

/// Gives an owned place a value, and releases the one before if there may be one.
pub(super) fn assign<'b>(body: &'b dyn Ops, to: Value, value: CallArg<'b>, filled: bool) {
    let depth = body.emit(|l| Some(l.exits.depth())).unwrap_or_default();
    let Some(packed) = evaluate(body, "set", &value) else { return };
    body.run(&mut |l| {
        // the value may be made of the one before, which is released last
        let new = match packed {
            Packed::Moved(from) => from,
            _ => {
                let new = l.any_slot();
                l.own(&packed, new);
                new
            }
        };
        let words = [TYPE_INDEX, PAYLOAD].map(|at| l.b.load(Type::I64, new, at, MemFlags::ALIGNED));
        store_none(&mut l.b, new);
        if filled {
            super::exits::release_any(&mut l.b, to, false);
        }
        l.store_words(words[0], words[1], to);
        l.let_go(depth);
    });
}

impl BodyLowerer<'_> {
    /// Writes a value to a place that owns it from then on.
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

/// Returns a value that isn't a scalar.
pub(super) fn return_value<'b>(body: &'b dyn Ops, value: CallArg<'b>) {
    let depth = body.emit(|l| Some(l.exits.depth())).unwrap_or_default();
    let Some(packed) = evaluate(body, "ret_value", &value) else { return };
    body.run(&mut |l| {
        let Some(result) = l.result_pointer() else { return };
        match packed {
            Packed::Moved(from) => {
                let words = [TYPE_INDEX, PAYLOAD].map(|at| l.b.load(Type::I64, from, at, MemFlags::ALIGNED));
                store_none(&mut l.b, from);
                l.store_words(words[0], words[1], result);
            }
            _ => l.own(&packed, result),
        }
        l.succeed();
        unreachable(l);
        l.let_go(depth);
    });
}

impl BodyLowerer<'_> {
    /// The parts of an owned value, by the type that it has to have.
    fn checked_value(&mut self, owned: Owned<'_>, path: &str, ty: &ParamType) -> Result<Args, String> {
        let expected = Expected {
            values: vec![(path.to_owned(), ty.clone())],
            place: format!("called by `{}`", self.signature),
            dtype_policy: self.signature.dtype_policy(),
            known: Vec::new(),
        };
        self.checked_values(expected, owned.any, path, ty, owned.scope)
    }

    /// The parts of the value at an address, by the type that it has to have, in a function that knows its own symbols.
    pub(super) fn checked_values(
        &mut self,
        expected: Expected<'static>,
        any: Value,
        path: &str,
        ty: &ParamType,
        scope: Scope,
    ) -> Result<Args, String> {
        let mut args = Args::of_value(path, ty, scope);
        args.any = Some(any);
        let known = self.known_symbols(ty);
        let known = known.iter().map(|(name, origin, value)| Known { name, origin, value: *value });
        let expected = expected.knowing(known);
        let mut refused = None;
        let checked = self.checks.check(&mut self.b, self.pool, &expected, any, |b, code| {
            refused = Some((b.current(), code));
        })?;
        if let Some((block, code)) = refused {
            let here = self.b.current();
            self.b.switch_to(block);
            self.exit(code);
            self.b.switch_to(here);
        }
        let bound = checked.symbols.into_iter().map(|bound| (bound.name, bound.value)).collect();
        self.bind_value(path, ty, checked.values.concat(), bound, &mut args);
        Ok(args)
    }

    /// Gives a part its meaning: as of a parameter, with the symbols that it has bound.
    fn bind_value(
        &mut self,
        path: &str,
        ty: &ParamType,
        values: Vec<Value>,
        bound: Vec<(String, Value)>,
        args: &mut Args,
    ) {
        let before: Vec<_> = bound.iter().map(|(name, _)| (name.clone(), self.symbol(name))).collect();
        for (name, value) in bound {
            self.set_symbol(&name, Some(value));
        }
        self.arg(path, ty, &mut FlatValues::new(values), args);
        self.shapes(args);
        // the symbols of a value are known by its sizes
        for (name, value) in before {
            self.set_symbol(&name, value);
        }
        if let Some(any) = args.any {
            args.whole_tensor_is(Origin::Object(any));
        }
    }

    /// The symbols that a type mentions and that the body knows: name, origin, value.
    fn known_symbols(&self, ty: &ParamType) -> Vec<(String, String, Value)> {
        let mut names: Vec<String> = Vec::new();
        ty.for_each_dim(&mut |dim| {
            dim.for_each_symbol(&mut |symbol| {
                if !names.iter().any(|name| *name == symbol) {
                    names.push(symbol.to_owned());
                }
            });
        });
        let known = |name: String| {
            let value = self.symbol(&name)?;
            let origin = value::origin(self.signature, &name);
            Some((name, origin, value))
        };
        names.into_iter().filter_map(known).collect()
    }
}
