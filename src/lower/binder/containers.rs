//! Tuples, Arrays and Lists, Maps and Dicts.

use super::check::Arg;
use super::helper::{Binder, EXPECTED_NUMBER, GOT, GOT_NUMBER, TYPE_ERROR};
use super::state::BinderState;
use super::strings::STR;
use super::structured::Behind;
use crate::ir::{Hint, Type, Val, Var};
use crate::lower::abi::{ANY_SIZE, CELL_DATA, CELL_SIZE, HEADER, PAYLOAD, TYPE_INDEX, byte_array};
use crate::lower::capi;
use crate::lower::protocol::state::{STEP_SIZE, STEPS};
use crate::lower::protocol::{
    DescriptorField, Directive, Encode, Field, MapDescriptor, ParamDescriptor, Path, Piece, SequenceDescriptor, Step,
    StepKind, TupleDescriptor, field, offset,
};
use tvm_ffi_runtime::abi::{TVMFFISeqCell, TypeIndex};

/// The commands of a Map's iterator (`ffi.MapForwardIterFunctor`).
const KEY: i64 = 0;
const VALUE: i64 = 1;
const NEXT: i64 = 2;

impl<'c> Binder<'c, '_> {
    /// Checks a tuple. It becomes an Array of accepted items; its header stays unset because it is never read.
    pub(super) fn tuple(&self, arg: Arg<'c>) {
        self.require_index(arg, &[TypeIndex::ARRAY, TypeIndex::LIST]);
        self.require_non_null(arg.payload);
        let base = arg.payload.pointer();
        let size = base.load(Type::I64, CELL_SIZE);
        let count = arg.ty.read(field!(TupleDescriptor, count));
        let from = self.elements_of_length(base, size, count);
        let (object, to) = self.take_tuple(count, count);
        self.check_members(arg.ty.behind::<TupleDescriptor>(), count, from, to);
        self.accept(arg.to, TypeIndex::ARRAY, object.address());
    }

    /// Requires an Array or List to have a length; returns the address of its elements.
    pub(super) fn elements_of_length(&self, base: Val<'c>, size: Val<'c>, count: Val<'c>) -> Val<'c> {
        self.set_field(Field::Got, size);
        self.set_field(Field::Expected, count);
        self.require_of(
            size.is(count),
            TYPE_ERROR,
            &[Piece::Text("length of "), super::helper::PATH],
            &[EXPECTED_NUMBER, GOT, GOT_NUMBER],
        );
        base.load(Type::Ptr, CELL_DATA)
    }

    /// Reserves an Array of `count` elements, and the address of its memory, which has room for `room` values.
    pub(super) fn take_tuple(&self, room: Val<'c>, count: Val<'c>) -> (Val<'c>, Val<'c>) {
        let object = self.take_memory(i64::from(HEADER) + size_of::<TVMFFISeqCell>() as i64);
        let to = self.field_ptr(Field::Memory);
        self.set_field(Field::Memory, to.nth(room, ANY_SIZE));
        object.store(CELL_DATA, to);
        object.store(CELL_SIZE, count);
        (object, to)
    }

    /// Checks the items of a tuple or the fields of a record; `first` is the first of their descriptors.
    pub(super) fn check_members(&self, first: Val<'c>, count: Val<'c>, from: Val<'c>, to: Val<'c>) {
        self.c.for_up(count, |index| {
            let (from, to) = (from.nth(index, ANY_SIZE), to.nth(index, ANY_SIZE));
            self.check(first.nth_descriptor::<ParamDescriptor>(index), from, to);
        });
    }

    /// Runs `inside` one container deeper and passes it the path step into the container.
    fn enter(&self, inside: impl FnOnce(Val<'c>)) {
        let here = self.path();
        let depth = here.load(Type::I64, offset!(Path, depth));
        let step = (here + STEPS).nth(depth, STEP_SIZE);
        let name = here.load(Type::Ptr, offset!(Path, name));
        step.store(offset!(Step, name), name);
        let one = self.c.i64(1);
        let deeper = depth + one;
        self.set_path(offset!(Path, depth), deeper);
        let strict = self.field(Field::Strict);
        self.set_field(Field::Strict, one);
        inside(step);
        self.set_field(Field::Strict, strict);
        self.set_path(offset!(Path, depth), depth);
    }

    /// Checks an element. Discards the converted value, because elements are not converted.
    fn element(&self, ty: Val<'c>, from: Val<'c>) -> Val<'c> {
        let memory = self.field(Field::Memory);
        let to = self.c.slot(ANY_SIZE as usize);
        let code = self.helpers.check.and_then(|check| self.c.call(check, &[self.state(), ty, from, to]));
        self.set_field(Field::Memory, memory);
        code.unwrap_or_else(|| self.c.i32(0))
    }

    fn set_step(&self, step: Val<'c>, kind: StepKind, value: Val<'c>) {
        let kind = self.c.i64(kind as i64);
        step.store(offset!(Step, kind), kind);
        step.store(offset!(Step, value), value);
    }

    pub(super) fn sequence(&self, arg: Arg<'c>) {
        let wanted = arg.ty.read(field!(SequenceDescriptor, type_index));
        let same = arg.index.is(wanted);
        let or_list = arg.ty.read(field!(SequenceDescriptor, or_list)).is_not(0);
        let list = or_list & arg.index.is(TypeIndex::LIST.0);
        self.require_accepted(same | list);
        self.require_non_null(arg.payload);
        let base = arg.payload.pointer();
        let size = base.load(Type::I64, CELL_SIZE);
        let elements = base.load(Type::Ptr, CELL_DATA);
        let ty = arg.ty + offset!(SequenceDescriptor, elements);
        self.enter(|step| {
            self.c.for_up(size, |index| {
                self.set_step(step, StepKind::Index, index);
                let from = elements.nth(index, ANY_SIZE);
                self.pass_up(self.element(ty, from));
            });
        });
        let payload = self.c.var(Type::I64);
        payload.set(arg.payload);
        self.c.when((!elements.is_not(0)) & or_list, || {
            // the data pointer of an empty container may be NULL; a kernel that takes an Array gets a non-NULL one
            let object = self.take_memory(i64::from(HEADER) + size_of::<TVMFFISeqCell>() as i64);
            object.store(CELL_DATA, object);
            object.store(CELL_SIZE, size);
            payload.set(object.address());
        });
        // Array and List have the same layout
        self.accept_raw(arg.to, wanted, payload.get());
    }

    /// Checks a Map or Dict. The runtime's functions read keys and values; they return references that we have to
    /// release.
    pub(super) fn map(&self, arg: Arg<'c>) {
        self.require_accepted(arg.index.is(arg.ty.read(field!(MapDescriptor, type_index))));
        self.require_non_null(arg.payload);
        let keys = arg.ty + offset!(MapDescriptor, keys);
        let values = keys + (ParamDescriptor::SIZE as i64);
        let container = self.any_slot();
        self.accept_raw(container, arg.index, arg.payload);
        let (size, iterator) = (self.any_slot(), self.any_slot());
        self.call_global(
            arg.ty,
            [field!(MapDescriptor, size_function.text), field!(MapDescriptor, size_function.len)],
            container,
            size,
        );
        let size = size.load(Type::I64, PAYLOAD);
        self.c.when(size.gt(0), || {
            self.call_global(
                arg.ty,
                [field!(MapDescriptor, iter_function.text), field!(MapDescriptor, iter_function.len)],
                container,
                iterator,
            );
            let iterator = iterator.load(Type::Ptr, PAYLOAD);
            let code = self.c.var(Type::I32);
            code.set(self.c.i32(0));
            self.enter(|step| {
                self.c.for_up(size, |index| {
                    self.unless_failed(code, || self.pair(iterator, keys, values, step, index, code));
                    // there is no next element after the last
                    self.c.when((index + 1).lt(size), || {
                        self.unless_failed(code, || _ = self.iterate(iterator, NEXT, code))
                    });
                });
            });
            self.release(iterator);
            self.pass_up(code.get());
        });
        self.accept_raw(arg.to, arg.index, arg.payload);
    }

    fn pair(&self, iterator: Val<'c>, keys: Val<'c>, values: Val<'c>, step: Val<'c>, index: Val<'c>, code: Var<'c>) {
        let key = self.iterate(iterator, KEY, code);
        self.unless_failed(code, || {
            self.set_step(step, StepKind::Key, index);
            code.set(self.element(keys, key));
            self.unless_failed(code, || {
                let value = self.iterate(iterator, VALUE, code);
                self.unless_failed(code, || {
                    self.set_key_step(step, key);
                    code.set(self.element(values, value));
                    self.release_any(value);
                });
            });
            self.release_any(key);
        });
    }

    /// Sets the path step of a value from its key (C7.6).
    fn set_key_step(&self, step: Val<'c>, key: Val<'c>) {
        let index = key.signed_word(TYPE_INDEX / 4);
        let payload = key.load(Type::I64, PAYLOAD);
        self.set_step(step, StepKind::Other, payload);
        self.c.when(index.is(TypeIndex::INT.0), || self.set_step(step, StepKind::Index, payload));
        self.c.when(self.is_one_of(index, &[STR.small, STR.object]), || self.set_step(step, StepKind::Text, key));
    }

    fn unless_failed(&self, code: Var<'c>, then: impl FnOnce()) {
        self.c.when(code.get().is(0), then);
    }

    /// Sends a command to a Map's iterator. The caller has to release the result.
    fn iterate(&self, iterator: Val<'c>, command: i64, code: Var<'c>) -> Val<'c> {
        let (question, answer) = (self.any_slot(), self.any_slot());
        self.accept(question, TypeIndex::INT, self.c.i64(command));
        code.set(self.call_function(iterator, question, answer));
        answer
    }

    /// Calls the runtime's global function with the name and length in a Map's descriptor; propagates its error.
    fn call_global(&self, map: Val<'c>, [name, len]: [DescriptorField; 2], arg: Val<'c>, result: Val<'c>) {
        let (name, len) = (self.pool_text(map, name), map.read(len));
        let function = self.global(name, len);
        let code = self.call_function(function, arg, result);
        self.release(function);
        self.pass_up(code);
    }

    /// The global function of the runtime with a name, which the caller has to release.
    pub(super) fn global(&self, name: Val<'c>, len: Val<'c>) -> Val<'c> {
        let array = byte_array(self.c, name, len);
        let function = self.c.var(Type::Ptr);
        function.set(self.c.null());
        self.pass_up(self.call_c(capi::FUNCTION_GET_GLOBAL, &[array, function.address()]));
        let function = function.get();
        let there = function.is_not(0);
        self.set_field(Field::Text, name);
        let text = Piece::Value(Directive::String, Field::Text as u32);
        self.require(there, "RuntimeError", &[Piece::Text("The runtime has no function "), text]);
        function
    }

    /// Releases the object that a value refers to, if any.
    pub(super) fn release_any(&self, value: Val<'c>) {
        let object = value.signed_word(TYPE_INDEX / 4).ge(TypeIndex::STATIC_OBJECT_BEGIN.0);
        let (yes, no) = (self.c.block(), self.c.block());
        self.c.branch(object, yes, no, Hint::None);
        self.c.switch_to(yes);
        self.release(value.load(Type::Ptr, PAYLOAD));
        self.c.jump(no, &[]);
        self.c.switch_to(no);
    }
}
