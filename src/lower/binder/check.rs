//! `check`: checks one argument, or one value inside it.

use super::helper::{Binder, EXPECTED_NUMBER, EXPECTED_TEXT, GOT, GOT_NUMBER, VALUE_ERROR};
use super::state::BinderState;
use super::structured::{Behind, Condition, halves};
use crate::ir::{BinaryOp, ConvertOp, Hint, Type, Val};
use crate::lower::abi::fields::before_zeros;
use crate::lower::abi::{PAYLOAD, TYPE_INDEX, store_any};
use crate::lower::protocol::{
    Binding, Capability, ConstantDescriptor, Encode, Field, IntRange, OptionalDescriptor, ParamDescriptor, Path, Piece,
    ScalarDescriptor, TypeDescriptor, TypeKind, VarDim, field, offset,
};
use std::mem::offset_of;
use tvm_ffi_runtime::abi::{TVMFFIObject, TypeIndex};

/// An argument that is being checked.
#[derive(Clone, Copy)]
pub(super) struct Arg<'c> {
    /// The address of the type's descriptor.
    pub ty: Val<'c>,
    /// The address of the argument.
    pub from: Val<'c>,
    /// Where to write the argument in the form that the fast path accepts.
    pub to: Val<'c>,
    /// The type index of the argument, or of the object that an rvalue reference refers to (C9.9).
    pub index: Val<'c>,
    pub payload: Val<'c>,
}

pub(super) fn check(r: &Binder<'_, '_>) {
    let (param, from, to) = (r.c.param(1), r.c.param(2), r.c.param(3));
    r.look_at_argument(param, from, to);
    r.succeed();
}

impl<'c> Binder<'c, '_> {
    /// Checks an argument, or a value inside it.
    pub(super) fn check(&self, param: Val<'c>, from: Val<'c>, to: Val<'c>) {
        match self.helpers.check {
            Some(check) => self.call_or_fail(check, &[self.state(), param, from, to]),
            None => self.look_at_argument(param, from, to),
        }
    }

    fn look_at_argument(&self, param: Val<'c>, from: Val<'c>, to: Val<'c>) {
        let (index, payload) = seen_through(self, from);
        let (pool, ty) = (self.field_ptr(Field::Pool), param.read(field!(ParamDescriptor, ty)));
        let ty = pool.base(ty);
        let arg = Arg { ty, from, to, index, payload };
        self.set_field(Field::Got, index);
        self.set_field(Field::Payload, payload);
        let name = self.pool_text(param, field!(ParamDescriptor, name));
        self.set_path(offset!(Path, name), name);
        if self.has(Capability::IntVar) {
            let nothing = self.c.null();
            self.set_path(offset!(Path, member), nothing);
        }
        self.set_field(Field::Text, self.pool_text(ty, field!(TypeDescriptor, expected)));
        let kind = ty.read(field!(TypeDescriptor, kind));
        let done = self.c.block();
        let kinds: Vec<_> = CHECKS.iter().filter(|(kind, _)| self.has(*kind)).collect();
        for (i, (which, then)) in kinds.iter().enumerate() {
            // the last kind needs no comparison
            if i + 1 < kinds.len() {
                let is = kind.is(*which as i64);
                let (yes, no) = (self.c.block(), self.c.block());
                self.c.branch(is, yes, no, Hint::None);
                self.c.switch_to(yes);
                then(self, arg);
                self.c.jump(done, &[]);
                self.c.switch_to(no);
            } else {
                then(self, arg);
            }
        }
        self.c.jump(done, &[]);
        self.c.switch_to(done);
    }
}

type CheckFn = for<'c> fn(&Binder<'c, '_>, Arg<'c>);

/// The check of each kind of type.
const CHECKS: [(TypeKind, CheckFn); 23] = [
    (TypeKind::Tensor, |r, arg| r.tensor(arg)),
    (TypeKind::Optional, |r, arg| {
        r.c.when_else(
            arg.index.is(TypeIndex::NONE.0),
            || r.accept_none(arg.to),
            || {
                r.check(arg.ty + offset!(OptionalDescriptor, inner), arg.from, arg.to);
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
        r.require_accepted(arg.index.is_not(TypeIndex::OBJECT_RVALUE_REF.0));
        r.accept_same(arg);
    }),
    (TypeKind::None, |r, arg| {
        r.require_index(arg, &[TypeIndex::NONE]);
        r.accept_none(arg.to);
    }),
    (TypeKind::Int, |r, arg| r.constant_int(arg)),
    (TypeKind::True, |r, arg| r.constant_bool(arg, true)),
    (TypeKind::False, |r, arg| r.constant_bool(arg, false)),
    (TypeKind::Shape, |r, arg| r.shape(arg)),
    (TypeKind::Object, |r, arg| r.object(arg)),
    (TypeKind::Tuple, |r, arg| r.tuple(arg)),
    (TypeKind::Sequence, |r, arg| r.sequence(arg)),
    (TypeKind::Map, |r, arg| r.map(arg)),
    (TypeKind::Stream, |r, arg| {
        r.require_index(arg, &[TypeIndex::NONE, TypeIndex::INT, TypeIndex::OPAQUE_PTR]);
        r.accept_same(arg);
    }),
    (TypeKind::Record, |r, arg| r.record(arg)),
];

/// The type index and the payload. An rvalue reference is resolved to its object, unless it is empty.
fn seen_through<'c>(r: &Binder<'c, '_>, from: Val<'c>) -> (Val<'c>, Val<'c>) {
    let (index, payload) = (r.c.var(Type::I64), r.c.var(Type::I64));
    let own_index = from.signed_word(TYPE_INDEX / 4);
    let own_payload = from.load(Type::I64, PAYLOAD);
    index.set(own_index);
    payload.set(own_payload);
    let is_reference = own_index.is(TypeIndex::OBJECT_RVALUE_REF.0);
    let there = own_payload.is_not(0);
    let (yes, no) = (r.c.block(), r.c.block());
    Condition::All(vec![is_reference, there]).branch(r.c, yes, no);
    r.c.switch_to(yes);
    let object = own_payload.pointer().load(Type::I64, 0);
    r.c.when(object.is_not(0), || {
        index.set(object.pointer().load(Type::I32, offset_of!(TVMFFIObject, type_index) as i32).sext());
        payload.set(object);
    });
    r.c.jump(no, &[]);
    r.c.switch_to(no);
    (index.get(), payload.get())
}

impl<'c> Binder<'c, '_> {
    /// Writes an argument: type index, zero padding, payload.
    pub(super) fn accept_raw(&self, to: Val<'c>, type_index: Val<'c>, payload: Val<'c>) {
        to.store(TYPE_INDEX, self.c.value(|b| before_zeros(b, type_index.value())));
        to.store(PAYLOAD, payload);
    }

    /// Writes an argument of a known type.
    pub(super) fn accept(&self, to: Val<'c>, type_index: TypeIndex, payload: Val<'c>) {
        self.c.with(|b| store_any(b, to.value(), type_index, payload.value()));
    }

    /// Writes the argument unchanged, except that an rvalue reference becomes its object. Copies the padding as well,
    /// because it has the length of a small string.
    pub(super) fn accept_same(&self, arg: Arg<'c>) {
        let first = arg.from.load(Type::I64, TYPE_INDEX);
        arg.to.store(
            TYPE_INDEX,
            arg.from
                .signed_word(TYPE_INDEX / 4)
                .is(arg.index)
                .select(first, self.c.value(|b| before_zeros(b, arg.index.value()))),
        );
        arg.to.store(PAYLOAD, arg.payload);
    }

    /// Reserves bytes of the scratch memory; `bytes` is a multiple of 8.
    pub(super) fn take_memory(&self, bytes: i64) -> Val<'c> {
        let memory = self.field_ptr(Field::Memory);
        self.set_field(Field::Memory, memory + bytes);
        memory
    }

    pub(super) fn is_one_of(&self, value: Val<'c>, indices: &[TypeIndex]) -> Val<'c> {
        let each: Vec<Val<'c>> = indices.iter().map(|index| value.is(index.0)).collect();
        each.into_iter().reduce(|any, is| any | is).unwrap_or_else(|| self.c.bool(false))
    }

    /// Requires the argument to have one of these types.
    pub(super) fn require_index(&self, arg: Arg<'c>, indices: &[TypeIndex]) {
        self.require_accepted(Condition::Any(indices.iter().map(|index| arg.index.is(index.0)).collect()));
    }

    /// Requires one of these types; inside a container, only the first.
    fn require_carrier(&self, arg: Arg<'c>, indices: &[TypeIndex]) {
        self.require_index(arg, indices);
        self.require_as_it_is(self.is_one_of(arg.index, &indices[..1]));
    }

    // C8: same rules as upstream's converters (`tvm/ffi/type_traits.h`).

    fn float(&self, arg: Arg<'c>) {
        self.require_carrier(arg, &[TypeIndex::FLOAT, TypeIndex::INT, TypeIndex::BOOL]);
        let mut converted = arg.payload.convert(ConvertOp::SIntToFloat, Type::F64);
        if self.has(Capability::Float32) {
            // round only once: converting to `float32` through `float64` would round twice
            let single = arg.payload.convert(ConvertOp::SIntToFloat, Type::F32).convert(ConvertOp::FPromote, Type::F64);
            converted = arg.ty.read(field!(ScalarDescriptor, unused_bits)).is(32).select(single, converted);
        }
        let converted = converted.convert(ConvertOp::Bitcast, Type::I64);
        self.accept(arg.to, TypeIndex::FLOAT, arg.index.is(TypeIndex::FLOAT.0).select(arg.payload, converted));
    }

    fn bool(&self, arg: Arg<'c>) {
        self.require_carrier(arg, &[TypeIndex::BOOL, TypeIndex::INT]);
        self.accept(arg.to, TypeIndex::BOOL, arg.payload.is_not(0).zext());
    }

    fn handle(&self, arg: Arg<'c>) {
        self.require_carrier(arg, &[TypeIndex::OPAQUE_PTR, TypeIndex::NONE]);
        // None becomes NULL, whatever its payload is
        self.accept(
            arg.to,
            TypeIndex::OPAQUE_PTR,
            arg.index.is(TypeIndex::OPAQUE_PTR.0).select(arg.payload, self.c.i64(0)),
        );
    }

    fn int(&self, arg: Arg<'c>, signed: bool) {
        self.require_carrier(arg, &[TypeIndex::INT, TypeIndex::BOOL]);
        if self.has(Capability::Narrow) {
            // a narrow integer is in range if shifting its unused bits out and back leaves it unchanged
            let unused = arg.ty.read(field!(ScalarDescriptor, unused_bits));
            let back = (arg.payload << unused).binary(if signed { BinaryOp::AShr } else { BinaryOp::LShr }, unused);
            let fits = back.is(arg.payload);
            self.set_field(Field::Text, self.pool_text(arg.ty, field!(IntRange, range).behind::<ScalarDescriptor>()));
            self.set_field(Field::Got, arg.payload);
            self.require_value(fits, &[EXPECTED_TEXT, GOT, GOT_NUMBER]);
        }
        if self.has(Capability::IntVar) {
            self.set_field(Field::Got, arg.payload);
            self.c.when(arg.ty.read(field!(ScalarDescriptor, has_var)).is_not(0), || self.int_var(arg));
        }
        self.accept(arg.to, TypeIndex::INT, arg.payload);
    }

    /// Checks an integer that is a variable of dimensions: binds the variable, or compares with its value.
    fn int_var(&self, arg: Arg<'c>) {
        let dim = arg.ty + ((ScalarDescriptor::SIZE + IntRange::SIZE) as i64);
        let binding = self.binding(dim.read(field!(VarDim, var)));
        self.c.when_else(
            self.is_bound(binding),
            || {
                let value = binding.load(Type::I64, offset!(Binding, value));
                let same = arg.payload.is(value);
                let pieces = [&super::dims::expected_var()[..], &[GOT, GOT_NUMBER]].concat();
                self.require_of_telling(
                    same,
                    VALUE_ERROR,
                    &[Piece::Text("value of "), super::helper::PATH],
                    &pieces,
                    || self.tell_var(dim, binding, value),
                );
            },
            || self.bind(binding, arg.payload),
        );
    }

    fn constant_int(&self, arg: Arg<'c>) {
        self.require_carrier(arg, &[TypeIndex::INT, TypeIndex::BOOL]);
        let (low, high) =
            (arg.ty.read(field!(ConstantDescriptor, value.low)), arg.ty.read(field!(ConstantDescriptor, value.high)));
        let value = halves(low, high);
        self.set_field(Field::Expected, value);
        self.set_field(Field::Got, arg.payload);
        self.require_value(value.is(arg.payload), &[EXPECTED_NUMBER, GOT, GOT_NUMBER]);
        self.accept(arg.to, TypeIndex::INT, arg.payload);
    }

    fn constant_bool(&self, arg: Arg<'c>, value: bool) {
        self.require_carrier(arg, &[TypeIndex::BOOL, TypeIndex::INT]);
        let same = if value { arg.payload.is_not(0) } else { arg.payload.is(0) };
        let text = if value { "True, got False" } else { "False, got True" };
        self.require_value(same, &[Piece::Text(text)]);
        self.accept(arg.to, TypeIndex::BOOL, self.c.i64(i64::from(value)));
    }

    pub(super) fn is_bound(&self, binding: Val<'c>) -> Val<'c> {
        binding.load(Type::Ptr, offset!(Binding, path.name)).is_not(0)
    }
}
