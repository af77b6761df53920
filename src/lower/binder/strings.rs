//! Strings in their three forms, and dtypes, which a string may name.

use super::check::Arg;
use super::helper::{Binder, GOT, VALUE_ERROR, piece};
use super::state::BinderState;
use super::structured::{StructuredCode, Var};
use crate::ir::{ConvertOp, Hint, IntCC, MemFlags, Type, Value};
use crate::lower::abi::{CELL_DATA, CELL_SIZE, HEADER, PAYLOAD};
use crate::lower::protocol::{Directive, Field, Piece};
use crate::lower::{capi, ffi_call};
use tvm_ffi_runtime::abi::{TVMFFIByteArray, TypeIndex};

/// The type indices of a string's forms: small, an object, borrowed.
#[derive(Clone, Copy)]
pub(super) struct Forms {
    pub small: TypeIndex,
    pub object: TypeIndex,
    pub borrowed: TypeIndex,
}

pub(super) const STR: Forms =
    Forms { small: TypeIndex::SMALL_STR, object: TypeIndex::STR, borrowed: TypeIndex::RAW_STR };
const BYTES: Forms =
    Forms { small: TypeIndex::SMALL_BYTES, object: TypeIndex::BYTES, borrowed: TypeIndex::BYTE_ARRAY_PTR };

/// Where characters are, and how many.
#[derive(Clone, Copy)]
struct Characters {
    data: Var,
    size: Var,
}

impl Binder<'_, '_> {
    pub(super) fn str(&mut self, arg: Arg) {
        self.string(arg, STR);
    }

    pub(super) fn bytes(&mut self, arg: Arg) {
        self.string(arg, BYTES);
    }

    /// A borrowed string becomes an object whose header nobody reads.
    fn string(&mut self, arg: Arg, forms: Forms) {
        self.require_index(arg, &[forms.small, forms.object, forms.borrowed]);
        let small = self.is(arg.index, i64::from(forms.small.0));
        self.when_else(
            small,
            |r| r.accept_same(arg),
            |r| {
                r.require_non_null(arg.payload);
                let borrowed = r.is(arg.index, i64::from(forms.borrowed.0));
                r.when_else(
                    borrowed,
                    |r| {
                        let text = r.characters(arg, forms);
                        let object = r.take_memory(i64::from(HEADER) + size_of::<TVMFFIByteArray>() as i64);
                        let (data, size) = (r.get(text.data), r.get(text.size));
                        // an empty byte array may have no address; the kernel gets one
                        let there = r.is_not(data, 0);
                        let data = r.b.select(there, data, object);
                        r.b.store(data, object, CELL_DATA, MemFlags::ALIGNED);
                        r.b.store(size, object, CELL_SIZE, MemFlags::ALIGNED);
                        let payload = r.b.convert(ConvertOp::PtrToInt, Type::I64, object);
                        r.accept(arg.to, forms.object, payload);
                    },
                    |r| r.accept(arg.to, forms.object, arg.payload),
                );
            },
        );
    }

    /// The characters of a string that is there.
    fn characters(&mut self, arg: Arg, forms: Forms) -> Characters {
        let text = Characters { data: Var::new(&mut self.b, Type::Ptr), size: Var::new(&mut self.b, Type::I64) };
        let small = self.is(arg.index, i64::from(forms.small.0));
        self.when_else(
            small,
            |r| {
                let inside = r.b.ptr_add_imm(arg.from, i64::from(PAYLOAD));
                r.set(text.data, inside);
                let size = r.word(arg.from, 1);
                r.set(text.size, size);
            },
            |r| {
                let base = r.b.convert(ConvertOp::IntToPtr, Type::Ptr, arg.payload);
                let raw = r.is(arg.index, i64::from(TypeIndex::RAW_STR.0));
                r.when_else(
                    raw,
                    |r| {
                        r.set(text.data, base);
                        let size = r.length(base);
                        r.set(text.size, size);
                    },
                    |r| {
                        let object = r.is(arg.index, i64::from(forms.object.0));
                        let inside = r.b.ptr_add_imm(base, i64::from(HEADER));
                        let cell = r.b.select(object, inside, base);
                        let data = r.b.load(Type::Ptr, cell, 0, MemFlags::ALIGNED);
                        let size = r.b.load(Type::I64, cell, 8, MemFlags::ALIGNED);
                        r.set(text.data, data);
                        r.set(text.size, size);
                    },
                );
            },
        );
        text
    }

    /// The characters of a str that is there, and how many they are.
    pub(super) fn text(&mut self, arg: Arg) -> (Value, Value) {
        let text = self.characters(arg, STR);
        (self.get(text.data), self.get(text.size))
    }

    /// A `TVMFFIByteArray` of characters, in the frame.
    pub(super) fn byte_array(&mut self, data: Value, size: Value) -> Value {
        let array = self.b.slot(size_of::<TVMFFIByteArray>() as u32, 8);
        let array = self.b.stack_addr(array);
        self.b.store(data, array, 0, MemFlags::ALIGNED);
        self.b.store(size, array, 8, MemFlags::ALIGNED);
        array
    }

    /// The length of a C string.
    fn length(&mut self, string: Value) -> Value {
        let (head, inside, done) = (self.b.block(), self.b.block(), self.b.block());
        let index = self.b.block_param(head, Type::I64);
        let zero = self.b.i64(0);
        self.b.jump(head, &[zero]);
        self.b.switch_to(head);
        let at = self.b.ptr_add(string, index);
        let byte = self.b.load(Type::I8, at, 0, MemFlags::ALIGNED);
        let end = self.b.icmp_imm(IntCC::Eq, byte, 0);
        self.b.branch(end, done, inside, Hint::None);
        self.b.switch_to(inside);
        let one = self.b.i64(1);
        let next = self.b.binary(crate::ir::BinaryOp::Add, index, one);
        self.b.jump(head, &[next]);
        self.b.switch_to(done);
        index
    }

    pub(super) fn dtype(&mut self, arg: Arg) {
        self.require_index(arg, &[TypeIndex::DATA_TYPE, STR.small, STR.object, STR.borrowed]);
        let is_dtype = self.is(arg.index, i64::from(TypeIndex::DATA_TYPE.0));
        self.require_as_it_is(is_dtype);
        self.when_else(is_dtype, |r| r.accept_same(arg), |r| r.named_dtype(arg));
    }

    fn named_dtype(&mut self, arg: Arg) {
        let small = self.is(arg.index, i64::from(STR.small.0));
        // what is small is there, whatever its characters
        let one = self.b.i64(1);
        let there = self.b.select(small, one, arg.payload);
        self.require_non_null(there);
        let (data, size) = self.text(arg);
        self.set_field(Field::Got, data);
        self.set_field(Field::Payload, size);
        let array = self.byte_array(data, size);
        let dtype = Var::new(&mut self.b, Type::I64);
        let zero = self.b.i64(0);
        self.set(dtype, zero);
        let parse = self.import(capi::DATA_TYPE_FROM_STRING);
        let known = match self.b.call(parse, &[array, dtype.address()]) {
            Some(code) => self.b.icmp_imm(IntCC::Eq, code, 0),
            None => self.b.bconst(false),
        };
        self.when_else(known, |_| {}, |r| r.drop_raised());
        let got = piece(Directive::Quoted, Field::Got);
        let name = [Piece::Text("the name of a dtype"), GOT, got];
        self.require_of(known, VALUE_ERROR, &[Piece::Text("value of "), super::helper::PATH], &name);
        let value = self.get(dtype);
        self.accept(arg.to, TypeIndex::DATA_TYPE, value);
    }

    /// Forgets an error that a function of the runtime has raised, as a better one follows.
    pub(super) fn drop_raised(&mut self) {
        let error = Var::new(&mut self.b, Type::Ptr);
        let none = self.b.ptr_const(0);
        self.set(error, none);
        let take = self.import(capi::ERROR_MOVE_FROM_RAISED);
        self.b.call(take, &[error.address()]);
        let raised = self.get(error);
        let there = self.is_not(raised, 0);
        self.when(there, |r| r.release(raised));
    }

    /// Gives up a reference to an object.
    pub(super) fn release(&mut self, object: Value) {
        ffi_call::release(&mut self.b, object);
    }
}
