//! `take_result`: requires a kernel's result to be of the stated type and owned (C11.29 to C11.31).

use super::check::Arg;
use super::helper::{Binder, EXPECTED_TEXT, GOT_TYPE, TYPE_ERROR, piece};
use super::state::BinderState;
use super::structured::Behind;
use crate::ir::{Hint, Type, Val};
use crate::lower::abi::{PAYLOAD, TYPE_INDEX, byte_array};
use crate::lower::capi;
use crate::lower::protocol::{Capability, Directive, Field, Piece, ResultDescriptor, ResultKind, field, state};
use tvm_ffi_runtime::abi::TypeIndex;

/// Types of values that belong to another owner. Borrowed strings aren't listed, because they are copied.
const BORROWED: [TypeIndex; 2] = [TypeIndex::DL_TENSOR_PTR, TypeIndex::OBJECT_RVALUE_REF];

pub(super) fn take_result<'c>(r: &Binder<'c, '_>) {
    let (pool, from, to) = (r.c.param(0), r.c.param(2), r.c.param(3));
    r.state.set(r.c.slot(state::SIZE as usize));
    r.set_field(Field::Pool, pool);
    let descriptor = pool + r.c.param(1).zext();
    let (calling, text) = (
        r.pool_text(descriptor, field!(ResultDescriptor, calling)),
        r.pool_text(descriptor, field!(ResultDescriptor, expected)),
    );
    r.set_field(Field::Calling, calling);
    r.set_field(Field::Text, text);
    own(r, from);
    let index = from.signed_word(TYPE_INDEX / 4);
    let payload = from.load(Type::I64, PAYLOAD);
    r.set_field(Field::Got, index);
    r.set_field(Field::Payload, payload);
    let borrowed = r.is_one_of(index, &BORROWED);
    let right = r.right_type(descriptor, index, payload);
    let missing = index.ge(TypeIndex::STATIC_OBJECT_BEGIN.0) & payload.is(0);
    let got = [Piece::Text("Mismatched type of result"), piece(Directive::String, Field::Calling), EXPECTED_TEXT];
    let refuse = |bad: Val<'c>, what: &[Piece<'static>]| {
        r.require(!bad, TYPE_ERROR, &[&got[..], what].concat());
    };
    // a non-NULL borrowed string has already become an owned one
    refuse(r.is_one_of(index, &[TypeIndex::RAW_STR, TypeIndex::BYTE_ARRAY_PTR]), &[Piece::Text(", got NULL")]);
    refuse(borrowed, &[Piece::Text(", got a borrowed "), GOT_TYPE]);
    let wrong = right.is(0);
    let (yes, no) = (r.c.cold_block(), r.c.block());
    r.c.branch(wrong, yes, no, Hint::None);
    r.c.switch_to(yes);
    // create the message before its subject is released
    let template = r.pool.borrow_mut().template(TYPE_ERROR, &[&got[..], &[Piece::Text(", got "), GOT_TYPE]].concat());
    let code = r.c.call(r.helpers.report, &[r.own(0), r.c.i32(template.into()), r.state()]);
    r.c.when(payload.is_not(0), || r.release_any(from));
    r.c.ret(code);
    r.c.switch_to(no);
    refuse(missing, &[Piece::Text(", got NULL")]);
    // keep the padding of a small string, which has its length; otherwise zero it, and make a bool 0 or 1 (C12.2,
    // C12.6)
    let small = r.is_one_of(index, &[TypeIndex::SMALL_STR, TypeIndex::SMALL_BYTES]);
    r.accept_raw(to, index, index.is(TypeIndex::BOOL.0).select(payload.is_not(0).zext(), payload));
    r.c.when(small, || {
        to.store(TYPE_INDEX, from.load(Type::I64, TYPE_INDEX));
    });
    r.succeed();
}

/// Turns a borrowed string into one that the runtime owns.
fn own<'c>(r: &Binder<'c, '_>, value: Val<'c>) {
    let index = value.signed_word(TYPE_INDEX / 4);
    let payload = value.load(Type::I64, PAYLOAD);
    let there = payload.is_not(0);
    for (form, function) in
        [(TypeIndex::RAW_STR, capi::STRING_FROM_BYTE_ARRAY), (TypeIndex::BYTE_ARRAY_PTR, capi::BYTES_FROM_BYTE_ARRAY)]
    {
        r.c.when(index.is(form.0) & there, || {
            let arg = Arg { ty: value, from: value, to: value, index, payload };
            let (data, size) = match form {
                TypeIndex::RAW_STR => r.text(arg),
                _ => {
                    let borrowed = payload.pointer();
                    let data = borrowed.load(Type::Ptr, 0);
                    (data, borrowed.load(Type::I64, 8))
                }
            };
            let array = byte_array(r.c, data, size);
            r.accept_none(value);
            r.pass_up(r.call_c(function, &[array, value]));
        });
    }
}

impl<'c> Binder<'c, '_> {
    /// 1 if the result is of the stated type, else 0.
    fn right_type(&self, descriptor: Val<'c>, index: Val<'c>, payload: Val<'c>) -> Val<'c> {
        let kind = descriptor.read(field!(ResultDescriptor, kind));
        let right = self.c.var(Type::I64);
        right.set(self.c.i64(0));
        let decide = |which: ResultKind, then: &dyn Fn() -> Val<'c>| {
            self.c.when(kind.is(which as i64), || {
                right.set(then().zext());
            });
        };
        decide(ResultKind::Any, &|| self.c.bool(true));
        decide(ResultKind::OneOf, &|| {
            let (one, other) = (
                descriptor.read(field!(ResultDescriptor, index)),
                descriptor.read(field!(ResultDescriptor, other_index)),
            );
            let (one, other) = (index.is(one), index.is(other));
            one | other
        });
        if !self.has(Capability::ResultKey) {
            return right.get();
        }
        decide(ResultKind::Key, &|| {
            let (key, len) = (
                self.pool_text(descriptor, field!(ResultDescriptor, key.text)),
                descriptor.read(field!(ResultDescriptor, key.len)),
            );
            let (registered, wanted) = self.type_index_of(key, len);
            registered & self.is_of_type(index, payload, wanted)
        });
        right.get()
    }
}
