//! Records: objects with fields, Maps and Dicts with keys, Arrays and Lists by position.

use super::check::Arg;
use super::helper::{Binder, EXPECTED_TEXT, GOT, GOT_NUMBER, GOT_TYPE, TYPE_ERROR, piece};
use super::state::BinderState;
use super::structured::{Behind, Condition};
use crate::ir::{AbiParam, FuncSig, Type, Val};
use crate::lower::abi::{ANY_SIZE, CELL_SIZE, OBJECT_TYPE_INDEX, PAYLOAD, TYPE_INDEX};
use crate::lower::protocol::state::{OWNED, OwnedValues};
use crate::lower::protocol::{Directive, Field, ParamDescriptor, Piece, RecordDescriptor, SizedText, field, offset};
use crate::lower::{capi, ffi_call};
use std::mem::offset_of;
use tvm_ffi_runtime::abi::{TVMFFIFieldInfo, TVMFFITypeInfo, TypeIndex};

/// The global functions for a kind of container: its size, and the value of a key.
const MAP: [&str; 2] = ["ffi.MapSize", "ffi.MapGetItem"];
const DICT: [&str; 2] = ["ffi.DictSize", "ffi.DictGetItem"];

/// A record's fields: where the values of the argument go, and the names.
#[derive(Clone, Copy)]
struct Fields<'c> {
    values: Val<'c>,
    /// The [`SizedText`]s of the names.
    names: Val<'c>,
    count: Val<'c>,
}

impl<'c> Fields<'c> {
    /// The name of a field, as a string with its length, and the address of its value.
    fn nth(self, r: &Binder<'c, '_>, index: Val<'c>) -> (Val<'c>, Val<'c>, Val<'c>) {
        let name = self.names.nth_descriptor::<SizedText>(index);
        let text = r.pool_text(name, field!(SizedText, text));
        (text, name.read(field!(SizedText, len)), self.values.nth(index, ANY_SIZE))
    }
}

impl<'c> Binder<'c, '_> {
    /// Checks a record. It becomes an Array of the accepted fields, as a tuple does. The fields as they came follow
    /// them in memory.
    pub(super) fn record(&self, arg: Arg<'c>) {
        let sequences = [TypeIndex::ARRAY, TypeIndex::LIST].map(|index| arg.index.is(index.0));
        let maps = [TypeIndex::MAP, TypeIndex::DICT].map(|index| arg.index.is(index.0));
        let is_object = arg.index.ge(TypeIndex::DYN_OBJECT_BEGIN.0);
        self.require_accepted(Condition::Any([&sequences[..], &maps, &[is_object]].concat()));
        self.require_non_null(arg.payload);
        let count = arg.ty.read(field!(RecordDescriptor, count));
        let first = arg.ty.behind::<RecordDescriptor>();
        let (object, to) = self.take_tuple(count + count, count);
        let (values, names) = (to.nth(count, ANY_SIZE), first.nth_descriptor::<ParamDescriptor>(count));
        let fields = Fields { values, names, count };
        self.c.when_else(
            is_object,
            || self.fields_of_object(arg, fields),
            || {
                self.c.when_else(
                    sequences[0] | sequences[1],
                    || {
                        let base = arg.payload.pointer();
                        let from = self.elements_of_length(base, base.load(Type::I64, CELL_SIZE), count);
                        self.c.for_up(count, |index| {
                            let (from, to) = (from.nth(index, ANY_SIZE), values.nth(index, ANY_SIZE));
                            for offset in [TYPE_INDEX, PAYLOAD] {
                                to.store(offset, from.load(Type::I64, offset));
                            }
                        });
                    },
                    || self.c.when_else(maps[0], || self.entries(arg, fields, MAP), || self.entries(arg, fields, DICT)),
                );
            },
        );
        self.check_members(first, count, values, to);
        self.accept(arg.to, TypeIndex::ARRAY, object.address());
    }

    /// Reads the fields of an object by the getters of its type.
    fn fields_of_object(&self, arg: Arg<'c>, fields: Fields<'c>) {
        // Only an object whose header has the same index is known to be of a registered type. Upstream's
        // TVMFFIGetTypeInfo ends the process on an unknown index.
        let object = arg.payload.pointer();
        let own = object.load(Type::I32, OBJECT_TYPE_INDEX);
        self.require_accepted(own.sext().is(arg.index));
        let info = self.call_c(capi::GET_TYPE_INFO, &[own]);
        self.require_accepted(info.is_not(0));
        self.c.for_up(fields.count, |index| {
            let (name, len, to) = fields.nth(self, index);
            let found = self.field_named(info, name, len);
            let missing = [EXPECTED_TEXT, GOT, GOT_TYPE, Piece::Text(", which has no field "), NAME];
            let path = [Piece::Text("type of "), super::helper::PATH];
            self.require_of_telling(found.is_not(0), TYPE_ERROR, &path, &missing, || {
                self.set_field(Field::Expected, name);
            });
            let address = object + found.load(Type::I64, offset_of!(TVMFFIFieldInfo, offset) as i32);
            self.accept_none(to);
            let getter = found.load(Type::Ptr, offset_of!(TVMFFIFieldInfo, getter) as i32);
            let sig = FuncSig { ret: Some(AbiParam::signed(Type::I32)), ..FuncSig::new([Type::Ptr, Type::Ptr], None) };
            self.pass_up(self.c.indirect_result(sig, getter, &[address, to]));
            self.keep(to);
        });
    }

    /// The field of a type with this name and a getter, its own or one that it inherits from the nearest ancestor; NULL
    /// if there is none.
    fn field_named(&self, info: Val<'c>, name: Val<'c>, len: Val<'c>) -> Val<'c> {
        let found = self.c.var(Type::Ptr);
        found.set(self.c.null());
        let depth = info.load(Type::I32, offset_of!(TVMFFITypeInfo, type_depth) as i32).sext();
        // the type itself comes after its ancestors
        self.c.for_down(depth + 1, |level| {
            let ty = self.c.var(Type::Ptr);
            ty.set(info);
            self.c.when(level.lt(depth), || {
                let ancestors = info.load(Type::Ptr, offset_of!(TVMFFITypeInfo, type_ancestors) as i32);
                ty.set(ancestors.element(level, Type::Ptr).load(Type::Ptr, 0));
            });
            let ty = ty.get();
            let fields = ty.load(Type::Ptr, offset_of!(TVMFFITypeInfo, fields) as i32);
            let count = ty.load(Type::I32, offset_of!(TVMFFITypeInfo, num_fields) as i32).sext();
            self.c.for_up(count, |number| {
                let field = fields.nth(number, size_of::<TVMFFIFieldInfo>() as i64);
                let (own, size) = (field.load(Type::Ptr, FIELD_NAME), field.load(Type::I64, FIELD_NAME + 8));
                let getter = field.load(Type::I64, offset_of!(TVMFFIFieldInfo, getter) as i32);
                let may_be = (found.get().is(0) & size.is(len)) & getter.is_not(0);
                self.c.when(may_be, || self.c.when(self.same_bytes(own, name, len), || found.set(field)));
            });
        });
        found.get()
    }

    fn same_bytes(&self, one: Val<'c>, other: Val<'c>, len: Val<'c>) -> Val<'c> {
        let same = self.c.var(Type::I64);
        same.set(self.c.i64(1));
        self.c.for_up(len, |at| {
            let [one, other] = [one, other].map(|text| (text + at).load(Type::I8, 0).zext());
            self.c.when(one.is_not(other), || same.set(self.c.i64(0)));
        });
        same.get().is_not(0)
    }

    /// Reads the values of a Map's or Dict's keys, which are exactly the names of the fields.
    fn entries(&self, arg: Arg<'c>, fields: Fields<'c>, [size_of_map, item_of_map]: [&str; 2]) {
        let args = self.c.slot(2 * ANY_SIZE as usize);
        self.accept_raw(args, arg.index, arg.payload);
        let keys = [Piece::Text("keys of "), super::helper::PATH];
        let listed = piece(Directive::String, Field::Expected);
        let tell_names = || self.set_field(Field::Expected, self.pool_text(arg.ty, field!(RecordDescriptor, names)));
        let size = self.any_slot();
        self.pass_up(self.call_own(size_of_map, (args, 1), size));
        let size = size.load(Type::I64, PAYLOAD);
        let wrong_number = [listed, GOT, GOT_NUMBER, Piece::Text(" keys")];
        self.require_of_telling(size.is(fields.count), TYPE_ERROR, &keys, &wrong_number, || {
            tell_names();
            self.set_field(Field::Got, size);
        });
        self.c.for_up(fields.count, |index| {
            let (name, _, to) = fields.nth(self, index);
            self.accept(args + i64::from(ANY_SIZE), TypeIndex::RAW_STR, name.address());
            self.accept_none(to);
            let found = self.call_own(item_of_map, (args, 2), to).is(0);
            // a better error follows
            self.c.when_else(found, || {}, || ffi_call::drop_raised(self.c));
            let missing = [listed, Piece::Text(", got no "), piece(Directive::String, Field::Text)];
            self.require_of_telling(found, TYPE_ERROR, &keys, &missing, || {
                tell_names();
                self.set_field(Field::Text, name);
            });
            self.keep(to);
        });
    }

    /// Calls a global function of the runtime, which has to exist; returns its code.
    fn call_own(&self, name: &str, (args, count): (Val<'c>, i32), result: Val<'c>) -> Val<'c> {
        let function = self.global(self.own_text(name), self.c.i64(name.len() as i64));
        let code = ffi_call::call(self.c, function, args, count, result);
        self.release(function);
        code
    }

    /// Keeps the object of an owned value until the call ends.
    fn keep(&self, value: Val<'c>) {
        let is_object = value.signed_word(TYPE_INDEX / 4).ge(TypeIndex::STATIC_OBJECT_BEGIN.0);
        self.c.when(is_object, || {
            let owned = self.state().load(Type::Ptr, OWNED);
            let count = owned.load(Type::I64, offset!(OwnedValues, count));
            owned.element(count + 1, Type::Ptr).store(0, value.load(Type::Ptr, PAYLOAD));
            owned.store(offset!(OwnedValues, count), count + 1);
        });
    }
}

const _: () = assert!(size_of::<OwnedValues>() == 8, "the objects follow");

/// The name of the field that a message is about.
const NAME: Piece<'static> = Piece::Value(Directive::String, Field::Expected as u32);

const FIELD_NAME: i32 = offset_of!(TVMFFIFieldInfo, name) as i32;
