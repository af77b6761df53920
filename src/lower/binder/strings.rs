//! Checks strings in their three forms, and dtypes, which a string may name.

use super::check::Arg;
use super::helper::{Binder, GOT, VALUE_ERROR, piece};
use super::state::BinderState;
use super::structured::Behind;
use crate::ir::{Hint, Type, Val, Var};
use crate::lower::abi::{CELL_DATA, CELL_SIZE, HEADER, PAYLOAD, byte_array};
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

/// The address and the number of characters, in bytes.
#[derive(Clone, Copy)]
struct Characters<'c> {
    data: Var<'c>,
    size: Var<'c>,
}

impl<'c> Binder<'c, '_> {
    pub(super) fn str(&self, arg: Arg<'c>) {
        self.string(arg, STR);
    }

    pub(super) fn bytes(&self, arg: Arg<'c>) {
        self.string(arg, BYTES);
    }

    /// Checks a string. A borrowed string becomes an object whose header stays unset because it is never read.
    fn string(&self, arg: Arg<'c>, forms: Forms) {
        self.require_index(arg, &[forms.small, forms.object, forms.borrowed]);
        self.c.when_else(
            arg.index.is(forms.small.0),
            || self.accept_same(arg),
            || {
                self.require_non_null(arg.payload);
                self.c.when_else(
                    arg.index.is(forms.borrowed.0),
                    || {
                        let text = self.characters(arg, forms);
                        let object = self.take_memory(i64::from(HEADER) + size_of::<TVMFFIByteArray>() as i64);
                        let (data, size) = (text.data.get(), text.size.get());
                        // the data pointer of an empty byte array may be NULL; the kernel gets a non-NULL one
                        object.store(CELL_DATA, data.is_not(0).select(data, object));
                        object.store(CELL_SIZE, size);
                        self.accept(arg.to, forms.object, object.address());
                    },
                    || self.accept(arg.to, forms.object, arg.payload),
                );
            },
        );
    }

    /// The characters of a non-NULL string.
    fn characters(&self, arg: Arg<'c>, forms: Forms) -> Characters<'c> {
        let text = Characters { data: self.c.var(Type::Ptr), size: self.c.var(Type::I64) };
        self.c.when_else(
            arg.index.is(forms.small.0),
            || {
                text.data.set(arg.from + PAYLOAD);
                let size = arg.from.word(1);
                text.size.set(size);
            },
            || {
                let base = arg.payload.pointer();
                self.c.when_else(
                    arg.index.is(TypeIndex::RAW_STR.0),
                    || {
                        text.data.set(base);
                        text.size.set(self.length(base));
                    },
                    || {
                        let cell = arg.index.is(forms.object.0).select(base + HEADER, base);
                        let data = cell.load(Type::Ptr, 0);
                        let size = cell.load(Type::I64, 8);
                        text.data.set(data);
                        text.size.set(size);
                    },
                );
            },
        );
        text
    }

    /// The address and length of a non-NULL str.
    pub(super) fn text(&self, arg: Arg<'c>) -> (Val<'c>, Val<'c>) {
        let text = self.characters(arg, STR);
        (text.data.get(), text.size.get())
    }

    /// The length of a C string.
    fn length(&self, string: Val<'c>) -> Val<'c> {
        let (head, inside, done) = (self.c.block(), self.c.block(), self.c.block());
        let index = self.c.block_param(head, Type::I64);
        self.c.jump(head, &[self.c.i64(0)]);
        self.c.switch_to(head);
        self.c.branch((string + index).load(Type::I8, 0).is(0), done, inside, Hint::None);
        self.c.switch_to(inside);
        self.c.jump(head, &[index + 1]);
        self.c.switch_to(done);
        index
    }

    pub(super) fn dtype(&self, arg: Arg<'c>) {
        self.require_index(arg, &[TypeIndex::DATA_TYPE, STR.small, STR.object, STR.borrowed]);
        let is_dtype = arg.index.is(TypeIndex::DATA_TYPE.0);
        self.require_as_it_is(is_dtype);
        self.c.when_else(is_dtype, || self.accept_same(arg), || self.named_dtype(arg));
    }

    fn named_dtype(&self, arg: Arg<'c>) {
        let small = arg.index.is(STR.small.0);
        // a small string is never NULL, whatever its characters are
        self.require_non_null(small.select(self.c.i64(1), arg.payload));
        let (data, size) = self.text(arg);
        self.set_field(Field::Got, data);
        self.set_field(Field::Payload, size);
        let array = byte_array(self.c, data, size);
        let dtype = self.c.var(Type::I64);
        dtype.set(self.c.i64(0));
        let known = self.call_c(capi::DATA_TYPE_FROM_STRING, &[array, dtype.address()]).is(0);
        // a better error follows
        self.c.when_else(known, || {}, || ffi_call::drop_raised(self.c));
        let got = piece(Directive::Quoted, Field::Got);
        let name = [Piece::Text("the name of a dtype"), GOT, got];
        self.require_of(known, VALUE_ERROR, &[Piece::Text("value of "), super::helper::PATH], &name);
        self.accept(arg.to, TypeIndex::DATA_TYPE, dtype.get());
    }

    /// Releases a reference to an object.
    pub(super) fn release(&self, object: Val<'c>) {
        ffi_call::release(self.c, object);
    }
}
