//! Objects by their type, and `ffi.Shape`.

use super::check::Arg;
use super::helper::{Binder, EXPECTED_TEXT, GOT, GOT_TYPE, VALUE_ERROR};
use super::state::BinderState;
use super::structured::{StructuredCode, Var};
use crate::ir::{ConvertOp, IntCC, MemFlags, Type, Value};
use crate::lower::abi::{ANY_SIZE, CELL_DATA, CELL_SIZE, HEADER, PAYLOAD, TYPE_INDEX};
use crate::lower::capi;
use crate::lower::protocol::{
    Capability, DimDescriptor, Field, ObjectDescriptor, Path, Piece, ShapeDescriptor, SizedText, field, offset,
};
use crate::spec::MAX_RANK;
use std::mem::offset_of;
use tvm_ffi_runtime::abi::{TVMFFIObject, TVMFFIShapeCell, TVMFFITypeInfo, TypeIndex};

impl Binder<'_, '_> {
    pub(super) fn object(&mut self, arg: Arg) {
        let wanted = self.read(arg.ty, field!(ObjectDescriptor, type_index));
        let known = self.b.icmp_imm(IntCC::SGe, wanted, 0);
        self.either(
            Capability::ObjectIndex,
            Capability::ObjectKey,
            known,
            |r| {
                let ok = r.b.icmp(IntCC::Eq, arg.index, wanted);
                r.require_accepted(ok);
            },
            |r| r.object_by_key(arg),
        );
        self.require_non_null(arg.payload);
        self.accept_raw(arg.to, arg.index, arg.payload);
    }

    /// An object of the type of a key, or of one that is derived from it.
    fn object_by_key(&mut self, arg: Arg) {
        let (key, len) = (
            self.pool_text(arg.ty, field!(SizedText, text).behind::<ObjectDescriptor>()),
            self.read(arg.ty, field!(SizedText, len).behind::<ObjectDescriptor>()),
        );
        let (registered, wanted) = self.type_index_of(key, len);
        self.require_type(registered, &[EXPECTED_TEXT, Piece::Text(" (not a registered type), got "), GOT_TYPE]);
        let ok = self.is_of_type(arg.index, arg.payload, wanted);
        self.require_accepted(ok);
    }

    /// Whether a type key is registered, and the type's index, an `I32`.
    pub(super) fn type_index_of(&mut self, key: Value, len: Value) -> (Value, Value) {
        let array = self.byte_array(key, len);
        let found = self.b.slot(4, 4);
        let found = self.b.stack_addr(found);
        let none = self.b.iconst(Type::I32, -1);
        self.b.store(none, found, 0, MemFlags::ALIGNED);
        let look_up = self.import(capi::TYPE_KEY_TO_INDEX);
        let registered = match self.b.call(look_up, &[array, found]) {
            Some(code) => self.b.icmp_imm(IntCC::Eq, code, 0),
            None => self.b.bconst(false),
        };
        self.when_else(registered, |_| {}, |r| r.drop_raised());
        (registered, self.b.load(Type::I32, found, 0, MemFlags::ALIGNED))
    }

    /// Whether a value is of the type `wanted`, or of one that is derived from it.
    pub(super) fn is_of_type(&mut self, index: Value, payload: Value, wanted: Value) -> Value {
        let wanted_wide = self.b.convert(ConvertOp::SExt, Type::I64, wanted);
        let same = self.b.icmp(IntCC::Eq, index, wanted_wide);
        let ok = Var::new(&mut self.b, Type::I64);
        let same_wide = self.b.convert(ConvertOp::ZExt, Type::I64, same);
        self.set(ok, same_wide);
        // only an object whose header bears the index is of a registered type: upstream's TVMFFIGetTypeInfo ends the process on
        // an index that it doesn't know
        let object = self.b.icmp_imm(IntCC::SGe, index, i64::from(TypeIndex::STATIC_OBJECT_BEGIN.0));
        let there = self.is_not(payload, 0);
        let object = self.and(object, there);
        let known = self.b.icmp_imm(IntCC::SGe, wanted_wide, 0);
        let object = self.and(object, known);
        self.when(object, |r| {
            let address = r.b.convert(ConvertOp::IntToPtr, Type::Ptr, payload);
            let own = r.b.load(Type::I32, address, offset_of!(TVMFFIObject, type_index) as i32, MemFlags::ALIGNED);
            let own_wide = r.b.convert(ConvertOp::SExt, Type::I64, own);
            let honest = r.b.icmp(IntCC::Eq, own_wide, index);
            r.when(honest, |r| {
                let derived = r.is_derived(own, wanted);
                let before = r.get(ok);
                let derived = r.or(before, derived);
                r.set(ok, derived);
            });
        });
        let ok = self.get(ok);
        self.is_not(ok, 0)
    }

    /// 1 where `wanted` is among the ancestors of the type `index`, at the index that its own depth says; else 0.
    fn is_derived(&mut self, index: Value, wanted: Value) -> Value {
        let result = Var::new(&mut self.b, Type::I64);
        let zero = self.b.i64(0);
        self.set(result, zero);
        let type_info = self.import(capi::GET_TYPE_INFO);
        let null = self.b.ptr_const(0);
        let (info, base) = (self.b.call(type_info, &[index]), self.b.call(type_info, &[wanted]));
        let (info, base) = (info.unwrap_or(null), base.unwrap_or(null));
        let (first, second) = (self.is_not(info, 0), self.is_not(base, 0));
        let both = self.and(first, second);
        self.when(both, |r| {
            let depth = offset_of!(TVMFFITypeInfo, type_depth) as i32;
            let own = r.b.load(Type::I32, info, depth, MemFlags::ALIGNED);
            let of_base = r.b.load(Type::I32, base, depth, MemFlags::ALIGNED);
            let deeper = r.b.icmp(IntCC::SLt, of_base, own);
            r.when(deeper, |r| {
                let ancestors = offset_of!(TVMFFITypeInfo, type_ancestors) as i32;
                let ancestors = r.b.load(Type::Ptr, info, ancestors, MemFlags::ALIGNED);
                let at = r.b.convert(ConvertOp::SExt, Type::I64, of_base);
                let at = r.b.element(ancestors, at, Type::Ptr);
                let ancestor = r.b.load(Type::Ptr, at, 0, MemFlags::ALIGNED);
                let type_index = offset_of!(TVMFFITypeInfo, type_index) as i32;
                let ancestor = r.b.load(Type::I32, ancestor, type_index, MemFlags::ALIGNED);
                let same = r.b.icmp(IntCC::Eq, ancestor, wanted);
                let same = r.b.convert(ConvertOp::ZExt, Type::I64, same);
                r.set(result, same);
            });
        });
        self.get(result)
    }

    /// A shape, or integers in an Array or List, of which one is made.
    pub(super) fn shape(&mut self, arg: Arg) {
        self.require_index(arg, &[TypeIndex::SHAPE, TypeIndex::ARRAY, TypeIndex::LIST]);
        let is_shape = self.is(arg.index, i64::from(TypeIndex::SHAPE.0));
        self.require_as_it_is(is_shape);
        self.require_non_null(arg.payload);
        let base = self.b.convert(ConvertOp::IntToPtr, Type::Ptr, arg.payload);
        let size = self.b.load(Type::I64, base, CELL_SIZE, MemFlags::ALIGNED);
        let rank = self.read(arg.ty, field!(ShapeDescriptor, rank));
        let any = self.b.icmp_imm(IntCC::SLt, rank, 0);
        self.set_field(Field::Got, size);
        self.set_field(Field::Expected, rank);
        let same = self.b.icmp(IntCC::Eq, size, rank);
        let length_ok = self.or(any, same);
        let length = [Piece::Text("length of "), super::helper::PATH];
        self.require_of(
            length_ok,
            VALUE_ERROR,
            &length,
            &[super::helper::EXPECTED_NUMBER, GOT, super::helper::GOT_NUMBER],
        );
        let few = self.b.icmp_imm(IntCC::SLe, size, MAX_RANK as i64);
        let few = self.or(few, is_shape);
        let most = format!("at most {MAX_RANK}");
        self.require_of(few, VALUE_ERROR, &length, &[Piece::Text(&most), GOT, super::helper::GOT_NUMBER]);
        let object = Var::new(&mut self.b, Type::Ptr);
        self.set(object, base);
        self.when_else(
            is_shape,
            |r| {
                let data = r.b.load(Type::Ptr, base, CELL_DATA, MemFlags::ALIGNED);
                let there = r.is_not(data, 0);
                // an empty shape may have no address; the kernel gets one
                r.when_else(
                    there,
                    |_| {},
                    |r| {
                        let empty = r.take_memory(i64::from(HEADER) + size_of::<TVMFFIShapeCell>() as i64);
                        r.b.store(empty, empty, CELL_DATA, MemFlags::ALIGNED);
                        r.b.store(size, empty, CELL_SIZE, MemFlags::ALIGNED);
                        r.set(object, empty);
                    },
                );
            },
            |r| {
                let made = r.shape_of(base, size);
                r.set(object, made);
            },
        );
        let object = self.get(object);
        if self.has(Capability::ShapeRank) {
            self.shape_entries(arg, any, rank, object);
        }
        let payload = self.b.convert(ConvertOp::PtrToInt, Type::I64, object);
        self.accept(arg.to, TypeIndex::SHAPE, payload);
    }

    /// Makes an object of integers; nobody reads its header.
    fn shape_of(&mut self, sequence: Value, size: Value) -> Value {
        let object = self.take_memory(i64::from(HEADER) + size_of::<TVMFFIShapeCell>() as i64);
        let data = self.field_ptr(Field::Memory);
        let end = self.nth(data, size, 8);
        self.set_field(Field::Memory, end);
        self.b.store(data, object, CELL_DATA, MemFlags::ALIGNED);
        self.b.store(size, object, CELL_SIZE, MemFlags::ALIGNED);
        let elements = self.b.load(Type::Ptr, sequence, CELL_DATA, MemFlags::ALIGNED);
        let bracket = self.own_text("[");
        self.set_path(offset!(Path, member), bracket);
        self.for_up(size, |r, index| {
            let element = r.nth(elements, index, ANY_SIZE);
            let type_index = r.signed_word(element, TYPE_INDEX / 4);
            let value = r.b.load(Type::I64, element, PAYLOAD, MemFlags::ALIGNED);
            r.set_path(offset!(Path, dim), index);
            r.set_field(Field::Got, type_index);
            r.set_field(Field::Payload, value);
            let ok = r.is_one_of(type_index, &[TypeIndex::INT, TypeIndex::BOOL]);
            let what =
                [Piece::Text("type of "), Piece::Value(crate::lower::protocol::Directive::DimPath, Field::Path as u32)];
            r.require_of(ok, super::helper::TYPE_ERROR, &what, &[Piece::Text("int"), GOT, GOT_TYPE]);
            let to = r.b.element(data, index, Type::I64);
            r.b.store(value, to, 0, MemFlags::ALIGNED);
        });
        object
    }

    /// The entries of a stated shape, as the sizes of a tensor.
    fn shape_entries(&mut self, arg: Arg, any: Value, rank: Value, object: Value) {
        let zero = self.b.i64(0);
        let count = self.b.select(any, zero, rank);
        let data = self.b.load(Type::Ptr, object, CELL_DATA, MemFlags::ALIGNED);
        let bracket = self.own_text("[");
        self.set_path(offset!(Path, member), bracket);
        let first = self.behind::<ShapeDescriptor>(arg.ty);
        self.for_up(count, |r, d| {
            r.set_path(offset!(Path, dim), d);
            let at = r.b.element(data, d, Type::I64);
            let got = r.b.load(Type::I64, at, 0, MemFlags::ALIGNED);
            let dim = r.nth_descriptor::<DimDescriptor>(first, d);
            r.size(dim, got);
        });
    }

    /// The address of a text in the constant pool that has the helpers' own texts.
    pub(super) fn own_text(&mut self, text: &str) -> Value {
        let offset = self.pool.text(text);
        self.own(offset)
    }
}
