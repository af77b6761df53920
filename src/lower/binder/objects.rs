//! Checks objects by their type, and `ffi.Shape`.

use super::check::Arg;
use super::helper::{Binder, EXPECTED_TEXT, GOT, GOT_TYPE, VALUE_ERROR};
use super::state::BinderState;
use super::structured::Behind;
use crate::ir::{Type, Val};
use crate::lower::abi::{ANY_SIZE, CELL_DATA, CELL_SIZE, HEADER, PAYLOAD, TYPE_INDEX, byte_array};
use crate::lower::protocol::{
    Capability, DimDescriptor, Field, ObjectDescriptor, Path, Piece, ShapeDescriptor, SizedText, field, offset,
};
use crate::lower::{capi, ffi_call};
use crate::spec::MAX_RANK;
use std::mem::offset_of;
use tvm_ffi_runtime::abi::{TVMFFIObject, TVMFFIShapeCell, TVMFFITypeInfo, TypeIndex};

impl<'c> Binder<'c, '_> {
    pub(super) fn object(&self, arg: Arg<'c>) {
        let wanted = arg.ty.read(field!(ObjectDescriptor, type_index));
        self.either(
            Capability::ObjectIndex,
            Capability::ObjectKey,
            wanted.ge(0),
            || {
                self.require_accepted(arg.index.is(wanted));
            },
            || self.object_by_key(arg),
        );
        self.require_non_null(arg.payload);
        self.accept_raw(arg.to, arg.index, arg.payload);
    }

    /// Checks an object of the type with a type key, or of a derived type.
    fn object_by_key(&self, arg: Arg<'c>) {
        let (key, len) = (
            self.pool_text(arg.ty, field!(SizedText, text).behind::<ObjectDescriptor>()),
            arg.ty.read(field!(SizedText, len).behind::<ObjectDescriptor>()),
        );
        let (registered, wanted) = self.type_index_of(key, len);
        self.require_type(registered, &[EXPECTED_TEXT, Piece::Text(" (not a registered type), got "), GOT_TYPE]);
        self.require_accepted(self.is_of_type(arg.index, arg.payload, wanted));
    }

    /// Whether a type key is registered, and the type's index as an `I32`.
    pub(super) fn type_index_of(&self, key: Val<'c>, len: Val<'c>) -> (Val<'c>, Val<'c>) {
        let array = byte_array(self.c, key, len);
        let found = self.c.value(|b| {
            let slot = b.slot(4, 4);
            b.stack_addr(slot)
        });
        found.store(0, self.c.i32(-1));
        let registered = self.call_c(capi::TYPE_KEY_TO_INDEX, &[array, found]).is(0);
        self.c.when_else(registered, || {}, || ffi_call::drop_raised(self.c));
        (registered, found.load(Type::I32, 0))
    }

    /// Whether a value is of the type `wanted` or a derived type.
    pub(super) fn is_of_type(&self, index: Val<'c>, payload: Val<'c>, wanted: Val<'c>) -> Val<'c> {
        let wanted_wide = wanted.sext();
        let same = index.is(wanted_wide);
        let ok = self.c.var(Type::I64);
        ok.set(same.zext());
        // Only an object whose header has the same index is known to be of a registered type. Upstream's
        // TVMFFIGetTypeInfo ends the process on an unknown index.
        self.c.when((index.ge(TypeIndex::STATIC_OBJECT_BEGIN.0) & payload.is_not(0)) & wanted_wide.ge(0), || {
            let own = payload.pointer().load(Type::I32, offset_of!(TVMFFIObject, type_index) as i32);
            self.c.when(own.sext().is(index), || {
                let derived = self.is_derived(own, wanted);
                ok.set(ok.get() | derived);
            });
        });
        ok.get().is_not(0)
    }

    /// 1 if `wanted` is among the ancestors of the type `index`, else 0. The depth of `wanted` is its position among
    /// them.
    fn is_derived(&self, index: Val<'c>, wanted: Val<'c>) -> Val<'c> {
        let result = self.c.var(Type::I64);
        result.set(self.c.i64(0));
        let [info, base] = [index, wanted].map(|index| self.call_c(capi::GET_TYPE_INFO, &[index]));
        let (first, second) = (info.is_not(0), base.is_not(0));
        self.c.when(first & second, || {
            let depth = offset_of!(TVMFFITypeInfo, type_depth) as i32;
            let own = info.load(Type::I32, depth);
            let of_base = base.load(Type::I32, depth);
            self.c.when(of_base.lt(own), || {
                result.set(
                    info.load(Type::Ptr, offset_of!(TVMFFITypeInfo, type_ancestors) as i32)
                        .element(of_base.sext(), Type::Ptr)
                        .load(Type::Ptr, 0)
                        .load(Type::I32, offset_of!(TVMFFITypeInfo, type_index) as i32)
                        .is(wanted)
                        .zext(),
                );
            });
        });
        result.get()
    }

    /// Checks a shape, or integers in an Array or List, which become a shape.
    pub(super) fn shape(&self, arg: Arg<'c>) {
        self.require_index(arg, &[TypeIndex::SHAPE, TypeIndex::ARRAY, TypeIndex::LIST]);
        let is_shape = arg.index.is(TypeIndex::SHAPE.0);
        self.require_as_it_is(is_shape);
        self.require_non_null(arg.payload);
        let base = arg.payload.pointer();
        let size = base.load(Type::I64, CELL_SIZE);
        let rank = arg.ty.read(field!(ShapeDescriptor, rank));
        let any = rank.lt(0);
        self.set_field(Field::Got, size);
        self.set_field(Field::Expected, rank);
        let same = size.is(rank);
        let length_ok = any | same;
        let length = [Piece::Text("length of "), super::helper::PATH];
        self.require_of(
            length_ok,
            VALUE_ERROR,
            &length,
            &[super::helper::EXPECTED_NUMBER, GOT, super::helper::GOT_NUMBER],
        );
        let few = size.le(MAX_RANK as i64) | is_shape;
        let max = format!("at most {MAX_RANK}");
        self.require_of(few, VALUE_ERROR, &length, &[Piece::Text(&max), GOT, super::helper::GOT_NUMBER]);
        let object = self.c.var(Type::Ptr);
        object.set(base);
        self.c.when_else(
            is_shape,
            || {
                let there = base.load(Type::Ptr, CELL_DATA).is_not(0);
                // the data pointer of an empty shape may be NULL; the kernel gets a non-NULL one
                self.c.when_else(
                    there,
                    || {},
                    || {
                        let empty = self.take_memory(i64::from(HEADER) + size_of::<TVMFFIShapeCell>() as i64);
                        empty.store(CELL_DATA, empty);
                        empty.store(CELL_SIZE, size);
                        object.set(empty);
                    },
                );
            },
            || {
                object.set(self.shape_of(base, size));
            },
        );
        let object = object.get();
        if self.has(Capability::ShapeRank) {
            self.shape_entries(arg, any, rank, object);
        }
        self.accept(arg.to, TypeIndex::SHAPE, object.address());
    }

    /// Creates a shape object from integers; its header stays unset because it is never read.
    fn shape_of(&self, sequence: Val<'c>, size: Val<'c>) -> Val<'c> {
        let object = self.take_memory(i64::from(HEADER) + size_of::<TVMFFIShapeCell>() as i64);
        let data = self.field_ptr(Field::Memory);
        self.set_field(Field::Memory, data.nth(size, 8));
        object.store(CELL_DATA, data);
        object.store(CELL_SIZE, size);
        let elements = sequence.load(Type::Ptr, CELL_DATA);
        let bracket = self.own_text("[");
        self.set_path(offset!(Path, member), bracket);
        self.c.for_up(size, |index| {
            let element = elements.nth(index, ANY_SIZE);
            let type_index = element.signed_word(TYPE_INDEX / 4);
            let value = element.load(Type::I64, PAYLOAD);
            self.set_path(offset!(Path, dim), index);
            self.set_field(Field::Got, type_index);
            self.set_field(Field::Payload, value);
            let ok = self.is_one_of(type_index, &[TypeIndex::INT, TypeIndex::BOOL]);
            let what =
                [Piece::Text("type of "), Piece::Value(crate::lower::protocol::Directive::DimPath, Field::Path as u32)];
            self.require_of(ok, super::helper::TYPE_ERROR, &what, &[Piece::Text("int"), GOT, GOT_TYPE]);
            data.element(index, Type::I64).store(0, value);
        });
        object
    }

    /// Checks the entries of a stated shape in the same way as the sizes of a tensor.
    fn shape_entries(&self, arg: Arg<'c>, any: Val<'c>, rank: Val<'c>, object: Val<'c>) {
        let count = any.select(self.c.i64(0), rank);
        let data = object.load(Type::Ptr, CELL_DATA);
        let bracket = self.own_text("[");
        self.set_path(offset!(Path, member), bracket);
        let first = arg.ty.behind::<ShapeDescriptor>();
        self.c.for_up(count, |d| {
            self.set_path(offset!(Path, dim), d);
            let got = data.element(d, Type::I64).load(Type::I64, 0);
            self.size(first.nth_descriptor::<DimDescriptor>(d), got);
        });
    }
}
