//! `take_result`: the result that a kernel has written has to be of the stated type, and owned (C11.29 to C11.31).

use super::check::Arg;
use super::helper::{Binder, EXPECTED_TEXT, GOT_TYPE, TYPE_ERROR, piece};
use super::state::BinderState;
use super::structured::{StructuredCode, Var};
use crate::ir::{ConvertOp, Hint, IntCC, MemFlags, Type, UnaryOp, Value};
use crate::lower::abi::{PAYLOAD, TYPE_INDEX, store_none};
use crate::lower::capi;
use crate::lower::protocol::{Capability, Directive, Field, Piece, ResultDescriptor, ResultKind, field, state};
use tvm_ffi_runtime::abi::TypeIndex;

/// Types of values that belong to somebody else; strings among them are copied.
const BORROWED: [TypeIndex; 2] = [TypeIndex::DL_TENSOR_PTR, TypeIndex::OBJECT_RVALUE_REF];

pub(super) fn take_result(r: &mut Binder<'_, '_>) {
    let (pool, from, to) = (r.b.param(0), r.b.param(2), r.b.param(3));
    let slot = r.b.slot(state::SIZE as u32, 8);
    r.state = r.b.stack_addr(slot);
    r.set_field(Field::Pool, pool);
    let offset = r.b.param(1);
    let offset = r.b.convert(ConvertOp::ZExt, Type::I64, offset);
    let descriptor = r.b.ptr_add(pool, offset);
    let (calling, text) = (
        r.pool_text(descriptor, field!(ResultDescriptor, calling)),
        r.pool_text(descriptor, field!(ResultDescriptor, expected)),
    );
    r.set_field(Field::Calling, calling);
    r.set_field(Field::Text, text);
    own(r, from);
    let index = r.signed_word(from, TYPE_INDEX / 4);
    let payload = r.b.load(Type::I64, from, PAYLOAD, MemFlags::ALIGNED);
    r.set_field(Field::Got, index);
    r.set_field(Field::Payload, payload);
    let borrowed = r.is_one_of(index, &BORROWED);
    let right = r.right_type(descriptor, index, payload);
    let object = r.b.icmp_imm(IntCC::SGe, index, i64::from(TypeIndex::STATIC_OBJECT_BEGIN.0));
    let null = r.is(payload, 0);
    let missing = r.and(object, null);
    let got = [Piece::Text("Mismatched type of result"), piece(Directive::String, Field::Calling), EXPECTED_TEXT];
    let refuse = |r: &mut Binder<'_, '_>, bad: Value, what: &[Piece<'static>]| {
        let fine = r.b.unary(UnaryOp::Not, bad);
        r.require(fine, TYPE_ERROR, &[&got[..], what].concat());
    };
    // a borrowed string that is there has become an owned one
    let no_text = r.is_one_of(index, &[TypeIndex::RAW_STR, TypeIndex::BYTE_ARRAY_PTR]);
    refuse(r, no_text, &[Piece::Text(", got a NULL pointer to one")]);
    refuse(r, borrowed, &[Piece::Text(", got a borrowed "), GOT_TYPE]);
    let wrong = r.is(right, 0);
    let (yes, no) = (r.b.cold_block(), r.b.block());
    r.b.branch(wrong, yes, no, Hint::None);
    r.b.switch_to(yes);
    // the message is made before its subject is released
    let template = r.pool.template(TYPE_ERROR, &[&got[..], &[Piece::Text(", got "), GOT_TYPE]].concat());
    let pool = r.own(0);
    let template = r.b.iconst(Type::I32, i64::from(template));
    let code = r.b.call(r.helpers.report, &[pool, template, r.state]);
    let there = r.is_not(payload, 0);
    r.when(there, |r| r.release_any(from));
    r.b.ret(code);
    r.b.switch_to(no);
    refuse(r, missing, &[Piece::Text(", got a NULL pointer to one")]);
    // the length of a small string is in the padding; else it is zero, and a truth value is 0 or 1 (C12.2, C12.6)
    let small = r.is_one_of(index, &[TypeIndex::SMALL_STR, TypeIndex::SMALL_BYTES]);
    let is_bool = r.is(index, i64::from(TypeIndex::BOOL.0));
    let truth = r.is_not(payload, 0);
    let truth = r.b.convert(ConvertOp::ZExt, Type::I64, truth);
    let payload = r.b.select(is_bool, truth, payload);
    r.accept_raw(to, index, payload);
    r.when(small, |r| {
        let first = r.b.load(Type::I64, from, TYPE_INDEX, MemFlags::ALIGNED);
        r.b.store(first, to, TYPE_INDEX, MemFlags::ALIGNED);
    });
    r.succeed();
}

/// Makes a borrowed string the runtime's own.
fn own(r: &mut Binder<'_, '_>, value: Value) {
    let index = r.signed_word(value, TYPE_INDEX / 4);
    let payload = r.b.load(Type::I64, value, PAYLOAD, MemFlags::ALIGNED);
    let there = r.is_not(payload, 0);
    for (form, function) in
        [(TypeIndex::RAW_STR, capi::STRING_FROM_BYTE_ARRAY), (TypeIndex::BYTE_ARRAY_PTR, capi::BYTES_FROM_BYTE_ARRAY)]
    {
        let is = r.is(index, i64::from(form.0));
        let is = r.and(is, there);
        r.when(is, |r| {
            let arg = Arg { ty: value, from: value, to: value, index, payload };
            let (data, size) = match form {
                TypeIndex::RAW_STR => r.text(arg),
                _ => {
                    let borrowed = r.b.convert(ConvertOp::IntToPtr, Type::Ptr, payload);
                    let data = r.b.load(Type::Ptr, borrowed, 0, MemFlags::ALIGNED);
                    (data, r.b.load(Type::I64, borrowed, 8, MemFlags::ALIGNED))
                }
            };
            let array = r.byte_array(data, size);
            store_none(&mut r.b, value);
            let make = r.import(function);
            r.call_or_fail(make, &[array, value]);
        });
    }
}

impl Binder<'_, '_> {
    /// 1 where the result is of the stated type, else 0.
    fn right_type(&mut self, descriptor: Value, index: Value, payload: Value) -> Value {
        let kind = self.read(descriptor, field!(ResultDescriptor, kind));
        let right = Var::new(&mut self.b, Type::I64);
        let zero = self.b.i64(0);
        self.set(right, zero);
        let decide = |r: &mut Self, which: ResultKind, then: &dyn Fn(&mut Self) -> Value| {
            let is = r.is(kind, which as i64);
            r.when(is, |r| {
                let ok = then(r);
                let ok = r.b.convert(ConvertOp::ZExt, Type::I64, ok);
                r.set(right, ok);
            });
        };
        decide(self, ResultKind::Any, &|r| r.b.bconst(true));
        decide(self, ResultKind::OneOf, &|r| {
            let (one, other) = (
                r.read(descriptor, field!(ResultDescriptor, index)),
                r.read(descriptor, field!(ResultDescriptor, other_index)),
            );
            let (one, other) = (r.b.icmp(IntCC::Eq, index, one), r.b.icmp(IntCC::Eq, index, other));
            r.or(one, other)
        });
        if !self.has(Capability::ResultKey) {
            return self.get(right);
        }
        decide(self, ResultKind::Key, &|r| {
            let (key, len) = (
                r.pool_text(descriptor, field!(ResultDescriptor, key.text)),
                r.read(descriptor, field!(ResultDescriptor, key.len)),
            );
            let (registered, wanted) = r.type_index_of(key, len);
            let derived = r.is_of_type(index, payload, wanted);
            r.and(registered, derived)
        });
        self.get(right)
    }
}
