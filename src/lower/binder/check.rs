//! `check`: one argument, or what is inside of one.

use super::helper::{Binder, EXPECTED_NUMBER, EXPECTED_TEXT, GOT, GOT_NUMBER, VALUE_ERROR};
use super::state::BinderState;
use super::structured::{Condition, StructuredCode, Var};
use crate::ir::{BinaryOp, ConvertOp, Hint, IntCC, MemFlags, Type, Value};
use crate::lower::abi::fields::before_zeros;
use crate::lower::abi::{PAYLOAD, TYPE_INDEX, store_any, store_none};
use crate::lower::protocol::{
    Binding, Capability, ConstantDescriptor, Encode, Field, IntRange, OptionalDescriptor, ParamDescriptor, Path, Piece,
    ScalarDescriptor, SymbolDim, TypeDescriptor, TypeKind, field, offset,
};
use std::mem::offset_of;
use tvm_ffi_runtime::abi::{TVMFFIObject, TypeIndex};

/// An argument that is looked at.
#[derive(Clone, Copy)]
pub(super) struct Arg {
    /// The address of the type's descriptor.
    pub ty: Value,
    /// Where it is.
    pub from: Value,
    /// Where the argument goes that the fast path accepts.
    pub to: Value,
    /// The type index of the argument, or of the object that an rvalue reference refers to (C9.9).
    pub index: Value,
    pub payload: Value,
}

pub(super) fn check(r: &mut Binder<'_, '_>) {
    let (param, from, to) = (r.b.param(1), r.b.param(2), r.b.param(3));
    r.look_at_argument(param, from, to);
    r.succeed();
}

impl Binder<'_, '_> {
    /// Checks an argument, or what is inside of one.
    pub(super) fn check(&mut self, param: Value, from: Value, to: Value) {
        match self.helpers.check {
            Some(check) => self.call_or_fail(check, &[self.state, param, from, to]),
            None => self.look_at_argument(param, from, to),
        }
    }

    fn look_at_argument(&mut self, param: Value, from: Value, to: Value) {
        let (index, payload) = seen_through(self, from);
        let (pool, ty) = (self.field_ptr(Field::Pool), self.read(param, field!(ParamDescriptor, ty)));
        let ty = self.base(pool, ty);
        let arg = Arg { ty, from, to, index, payload };
        self.set_field(Field::Got, index);
        self.set_field(Field::Payload, payload);
        let name = self.pool_text(param, field!(ParamDescriptor, name));
        self.set_path(offset!(Path, name), name);
        if self.has(Capability::IntSymbol) {
            let nothing = self.b.ptr_const(0);
            self.set_path(offset!(Path, member), nothing);
        }
        let text = self.pool_text(ty, field!(TypeDescriptor, expected));
        self.set_field(Field::Text, text);
        let kind = self.read(ty, field!(TypeDescriptor, kind));
        let done = self.b.block();
        let kinds: Vec<_> = CHECKS.iter().filter(|(kind, _)| self.has(*kind)).collect();
        for (i, (which, then)) in kinds.iter().enumerate() {
            // the last is what it is if it is no other
            if i + 1 < kinds.len() {
                let is = self.is(kind, *which as i64);
                let (yes, no) = (self.b.block(), self.b.block());
                self.b.branch(is, yes, no, Hint::None);
                self.b.switch_to(yes);
                then(self, arg);
                self.b.jump(done, &[]);
                self.b.switch_to(no);
            } else {
                then(self, arg);
            }
        }
        self.b.jump(done, &[]);
        self.b.switch_to(done);
    }
}

type CheckFn = fn(&mut Binder<'_, '_>, Arg);

/// The check of each kind of type.
const CHECKS: [(TypeKind, CheckFn); 21] = [
    (TypeKind::Tensor, |r, arg| r.tensor(arg)),
    (TypeKind::Optional, |r, arg| {
        let none = r.is(arg.index, i64::from(TypeIndex::NONE.0));
        r.when_else(
            none,
            |r| store_none(&mut r.b, arg.to),
            |r| {
                let inner = r.b.ptr_add_imm(arg.ty, i64::from(offset!(OptionalDescriptor, inner)));
                r.check(inner, arg.from, arg.to);
            },
        );
    }),
    (TypeKind::Signed, |r, arg| r.int(arg, true)),
    (TypeKind::Unsigned, |r, arg| r.int(arg, false)),
    (TypeKind::Float, |r, arg| r.float(arg)),
    (TypeKind::Bool, |r, arg| r.bool(arg)),
    (TypeKind::Handle, |r, arg| r.handle(arg)),
    (TypeKind::Str, |r, arg| r.str(arg)),
    (TypeKind::Bytes, |r, arg| r.bytes(arg)),
    (TypeKind::DType, |r, arg| r.dtype(arg)),
    (TypeKind::Device, |r, arg| {
        r.require_index(arg, &[TypeIndex::DEVICE]);
        r.accept_same(arg);
    }),
    (TypeKind::Any, |r, arg| {
        let ok = r.is_not(arg.index, i64::from(TypeIndex::OBJECT_RVALUE_REF.0));
        r.require_accepted(ok);
        r.accept_same(arg);
    }),
    (TypeKind::None, |r, arg| {
        r.require_index(arg, &[TypeIndex::NONE]);
        store_none(&mut r.b, arg.to);
    }),
    (TypeKind::Int, |r, arg| r.constant_int(arg)),
    (TypeKind::True, |r, arg| r.constant_bool(arg, true)),
    (TypeKind::False, |r, arg| r.constant_bool(arg, false)),
    (TypeKind::Shape, |r, arg| r.shape(arg)),
    (TypeKind::Object, |r, arg| r.object(arg)),
    (TypeKind::Tuple, |r, arg| r.tuple(arg)),
    (TypeKind::Sequence, |r, arg| r.sequence(arg)),
    (TypeKind::Map, |r, arg| r.map(arg)),
];

/// The type index and the payload; of an rvalue reference, those of the object behind it, if there is one.
fn seen_through(r: &mut Binder<'_, '_>, from: Value) -> (Value, Value) {
    let (index, payload) = (Var::new(&mut r.b, Type::I64), Var::new(&mut r.b, Type::I64));
    let own_index = r.signed_word(from, TYPE_INDEX / 4);
    let own_payload = r.b.load(Type::I64, from, PAYLOAD, MemFlags::ALIGNED);
    r.set(index, own_index);
    r.set(payload, own_payload);
    let is_reference = r.is(own_index, i64::from(TypeIndex::OBJECT_RVALUE_REF.0));
    let there = r.is_not(own_payload, 0);
    let (yes, no) = (r.b.block(), r.b.block());
    r.branch_likely(Condition::All(vec![is_reference, there]), yes, no);
    r.b.switch_to(yes);
    let reference = r.b.convert(ConvertOp::IntToPtr, Type::Ptr, own_payload);
    let object = r.b.load(Type::I64, reference, 0, MemFlags::ALIGNED);
    let there = r.is_not(object, 0);
    r.when(there, |r| {
        let header = r.b.convert(ConvertOp::IntToPtr, Type::Ptr, object);
        let of_object = r.b.load(Type::I32, header, offset_of!(TVMFFIObject, type_index) as i32, MemFlags::ALIGNED);
        let of_object = r.b.convert(ConvertOp::SExt, Type::I64, of_object);
        r.set(index, of_object);
        r.set(payload, object);
    });
    r.b.jump(no, &[]);
    r.b.switch_to(no);
    (r.get(index), r.get(payload))
}

impl Binder<'_, '_> {
    /// Writes an argument: type index, zero padding, payload.
    pub(super) fn accept_raw(&mut self, to: Value, type_index: Value, payload: Value) {
        let first = before_zeros(&mut self.b, type_index);
        self.b.store(first, to, TYPE_INDEX, MemFlags::ALIGNED);
        self.b.store(payload, to, PAYLOAD, MemFlags::ALIGNED);
    }

    /// Writes an argument of a known type.
    pub(super) fn accept(&mut self, to: Value, type_index: TypeIndex, payload: Value) {
        store_any(&mut self.b, to, type_index, payload);
    }

    /// Writes the argument as it came, but for an rvalue reference. The length of a small string is in the padding.
    pub(super) fn accept_same(&mut self, arg: Arg) {
        let first = self.b.load(Type::I64, arg.from, TYPE_INDEX, MemFlags::ALIGNED);
        let own = self.signed_word(arg.from, TYPE_INDEX / 4);
        let same = self.b.icmp(IntCC::Eq, own, arg.index);
        let behind = before_zeros(&mut self.b, arg.index);
        let first = self.b.select(same, first, behind);
        self.b.store(first, arg.to, TYPE_INDEX, MemFlags::ALIGNED);
        self.b.store(arg.payload, arg.to, PAYLOAD, MemFlags::ALIGNED);
    }

    /// Takes bytes of the scratch memory, a multiple of 8.
    pub(super) fn take_memory(&mut self, bytes: i64) -> Value {
        let memory = self.field_ptr(Field::Memory);
        let end = self.b.ptr_add_imm(memory, bytes);
        self.set_field(Field::Memory, end);
        memory
    }

    pub(super) fn halves(&mut self, low: Value, high: Value) -> Value {
        let mask = self.b.i64(0xffff_ffff);
        let low = self.and(low, mask);
        let thirty_two = self.b.i64(32);
        let high = self.b.binary(BinaryOp::Shl, high, thirty_two);
        self.or(low, high)
    }

    pub(super) fn is_one_of(&mut self, value: Value, indices: &[TypeIndex]) -> Value {
        let each: Vec<Value> = indices.iter().map(|index| self.is(value, i64::from(index.0))).collect();
        let any = each.into_iter().reduce(|any, is| self.or(any, is));
        any.unwrap_or_else(|| self.b.bconst(false))
    }

    /// Requires one of these types.
    pub(super) fn require_index(&mut self, arg: Arg, indices: &[TypeIndex]) {
        let ok = indices.iter().map(|index| self.is(arg.index, i64::from(index.0))).collect();
        self.require_accepted(Condition::Any(ok));
    }

    /// Requires one of these types, and inside a container the first.
    fn require_carrier(&mut self, arg: Arg, indices: &[TypeIndex]) {
        self.require_index(arg, indices);
        let carrier = self.is_one_of(arg.index, &indices[..1]);
        self.require_as_it_is(carrier);
    }

    // C8, by upstream's converters (`tvm/ffi/type_traits.h`).

    fn float(&mut self, arg: Arg) {
        self.require_carrier(arg, &[TypeIndex::FLOAT, TypeIndex::INT, TypeIndex::BOOL]);
        let mut converted = self.b.convert(ConvertOp::SIntToFloat, Type::F64, arg.payload);
        if self.has(Capability::Float32) {
            // rounded once: a `float32` doesn't come by way of `float64`
            let single = self.b.convert(ConvertOp::SIntToFloat, Type::F32, arg.payload);
            let single = self.b.convert(ConvertOp::FPromote, Type::F64, single);
            let unused = self.read(arg.ty, field!(ScalarDescriptor, unused_bits));
            let is_single = self.is(unused, 32);
            converted = self.b.select(is_single, single, converted);
        }
        let converted = self.b.convert(ConvertOp::Bitcast, Type::I64, converted);
        let is_float = self.is(arg.index, i64::from(TypeIndex::FLOAT.0));
        let value = self.b.select(is_float, arg.payload, converted);
        self.accept(arg.to, TypeIndex::FLOAT, value);
    }

    fn bool(&mut self, arg: Arg) {
        self.require_carrier(arg, &[TypeIndex::BOOL, TypeIndex::INT]);
        let value = self.is_not(arg.payload, 0);
        let value = self.b.convert(ConvertOp::ZExt, Type::I64, value);
        self.accept(arg.to, TypeIndex::BOOL, value);
    }

    fn handle(&mut self, arg: Arg) {
        self.require_carrier(arg, &[TypeIndex::OPAQUE_PTR, TypeIndex::NONE]);
        // None is NULL, whatever its payload
        let given = self.is(arg.index, i64::from(TypeIndex::OPAQUE_PTR.0));
        let null = self.b.i64(0);
        let value = self.b.select(given, arg.payload, null);
        self.accept(arg.to, TypeIndex::OPAQUE_PTR, value);
    }

    fn int(&mut self, arg: Arg, signed: bool) {
        self.require_carrier(arg, &[TypeIndex::INT, TypeIndex::BOOL]);
        if self.has(Capability::Narrow) {
            // a narrow integer fits where shifting its unused bits out and back changes nothing
            let unused = self.read(arg.ty, field!(ScalarDescriptor, unused_bits));
            let up = self.b.binary(BinaryOp::Shl, arg.payload, unused);
            let back = self.b.binary(if signed { BinaryOp::AShr } else { BinaryOp::LShr }, up, unused);
            let fits = self.b.icmp(IntCC::Eq, back, arg.payload);
            let range = self.pool_text(arg.ty, field!(IntRange, range).behind::<ScalarDescriptor>());
            self.set_field(Field::Text, range);
            self.set_field(Field::Got, arg.payload);
            self.require_value(fits, &[EXPECTED_TEXT, GOT, GOT_NUMBER]);
        }
        if self.has(Capability::IntSymbol) {
            self.set_field(Field::Got, arg.payload);
            let is_symbol = self.read(arg.ty, field!(ScalarDescriptor, has_symbol));
            let is_symbol = self.is_not(is_symbol, 0);
            self.when(is_symbol, |r| r.int_symbol(arg));
        }
        self.accept(arg.to, TypeIndex::INT, arg.payload);
    }

    /// An integer that is a symbol of dimensions: binds it, or has to be what it is.
    fn int_symbol(&mut self, arg: Arg) {
        let dim = self.b.ptr_add_imm(arg.ty, (ScalarDescriptor::SIZE + IntRange::SIZE) as i64);
        let symbol = self.read(dim, field!(SymbolDim, symbol));
        let binding = self.binding(symbol);
        let bound = self.is_bound(binding);
        self.when_else(
            bound,
            |r| {
                let value = r.b.load(Type::I64, binding, offset!(Binding, value), MemFlags::ALIGNED);
                let same = r.b.icmp(IntCC::Eq, arg.payload, value);
                let expected = super::dims::expected_symbol();
                let pieces = [&expected[..], &[GOT, GOT_NUMBER]].concat();
                let what = [Piece::Text("value of "), super::helper::PATH];
                r.require_of_telling(same, VALUE_ERROR, &what, &pieces, |r| r.tell_symbol(dim, binding, value));
            },
            |r| r.bind(binding, arg.payload),
        );
    }

    fn constant_int(&mut self, arg: Arg) {
        self.require_carrier(arg, &[TypeIndex::INT, TypeIndex::BOOL]);
        let (low, high) = (
            self.read(arg.ty, field!(ConstantDescriptor, value.low)),
            self.read(arg.ty, field!(ConstantDescriptor, value.high)),
        );
        let value = self.halves(low, high);
        self.set_field(Field::Expected, value);
        self.set_field(Field::Got, arg.payload);
        let same = self.b.icmp(IntCC::Eq, value, arg.payload);
        self.require_value(same, &[EXPECTED_NUMBER, GOT, GOT_NUMBER]);
        self.accept(arg.to, TypeIndex::INT, arg.payload);
    }

    fn constant_bool(&mut self, arg: Arg, value: bool) {
        self.require_carrier(arg, &[TypeIndex::BOOL, TypeIndex::INT]);
        let same = self.b.icmp_imm(if value { IntCC::Ne } else { IntCC::Eq }, arg.payload, 0);
        let text = if value { "True, got False" } else { "False, got True" };
        self.require_value(same, &[Piece::Text(text)]);
        let payload = self.b.i64(i64::from(value));
        self.accept(arg.to, TypeIndex::BOOL, payload);
    }

    pub(super) fn is_bound(&mut self, binding: Value) -> Value {
        let name = self.b.load(Type::Ptr, binding, offset!(Binding, path.name), MemFlags::ALIGNED);
        self.is_not(name, 0)
    }
}
