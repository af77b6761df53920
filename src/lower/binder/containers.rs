//! Tuples, Arrays and Lists, Maps and Dicts.

use super::check::Arg;
use super::helper::{Binder, EXPECTED_NUMBER, GOT, GOT_NUMBER, TYPE_ERROR};
use super::state::BinderState;
use super::strings::STR;
use super::structured::{StructuredCode, Var};
use crate::ir::{BinaryOp, ConvertOp, Hint, IntCC, MemFlags, Type, UnaryOp, Value};
use crate::lower::abi::{ANY_SIZE, CELL_DATA, CELL_SIZE, HEADER, PAYLOAD, TYPE_INDEX};
use crate::lower::protocol::state::{STEP_SIZE, STEPS};
use crate::lower::protocol::{
    DescriptorField, Directive, Encode, Field, MapDescriptor, ParamDescriptor, Path, Piece, SequenceDescriptor, Step,
    StepKind, TupleDescriptor, field, offset,
};
use crate::lower::{capi, ffi_call};
use tvm_ffi_runtime::abi::{TVMFFISeqCell, TypeIndex};

/// What the iterator of a Map does for a number (`ffi.MapForwardIterFunctor`).
const KEY: i64 = 0;
const VALUE: i64 = 1;
const NEXT: i64 = 2;

impl Binder<'_, '_> {
    /// Becomes an Array of accepted items; nobody reads its header.
    pub(super) fn tuple(&mut self, arg: Arg) {
        self.require_index(arg, &[TypeIndex::ARRAY, TypeIndex::LIST]);
        self.require_non_null(arg.payload);
        let base = self.b.convert(ConvertOp::IntToPtr, Type::Ptr, arg.payload);
        let size = self.b.load(Type::I64, base, CELL_SIZE, MemFlags::ALIGNED);
        let count = self.read(arg.ty, field!(TupleDescriptor, count));
        self.set_field(Field::Got, size);
        self.set_field(Field::Expected, count);
        let same = self.b.icmp(IntCC::Eq, size, count);
        let length = [Piece::Text("length of "), super::helper::PATH];
        self.require_of(same, TYPE_ERROR, &length, &[EXPECTED_NUMBER, GOT, GOT_NUMBER]);
        let from = self.b.load(Type::Ptr, base, CELL_DATA, MemFlags::ALIGNED);
        let object = self.take_memory(i64::from(HEADER) + size_of::<TVMFFISeqCell>() as i64);
        let to = self.field_ptr(Field::Memory);
        let end = self.nth(to, count, ANY_SIZE);
        self.set_field(Field::Memory, end);
        self.b.store(to, object, CELL_DATA, MemFlags::ALIGNED);
        self.b.store(count, object, CELL_SIZE, MemFlags::ALIGNED);
        let first = self.behind::<TupleDescriptor>(arg.ty);
        self.for_up(count, |r, index| {
            let (from, to) = (r.nth(from, index, ANY_SIZE), r.nth(to, index, ANY_SIZE));
            let item = r.nth_descriptor::<ParamDescriptor>(first, index);
            r.check(item, from, to);
        });
        let payload = self.b.convert(ConvertOp::PtrToInt, Type::I64, object);
        self.accept(arg.to, TypeIndex::ARRAY, payload);
    }

    /// Runs `inside` one container deeper; gives the step into it.
    fn enter(&mut self, inside: impl FnOnce(&mut Self, Value)) {
        let here = self.path();
        let depth = self.b.load(Type::I64, here, offset!(Path, depth), MemFlags::ALIGNED);
        let steps = self.b.ptr_add_imm(here, i64::from(STEPS));
        let step = self.nth(steps, depth, STEP_SIZE);
        let name = self.b.load(Type::Ptr, here, offset!(Path, name), MemFlags::ALIGNED);
        self.b.store(name, step, offset!(Step, name), MemFlags::ALIGNED);
        let one = self.b.i64(1);
        let deeper = self.b.binary(BinaryOp::Add, depth, one);
        self.set_path(offset!(Path, depth), deeper);
        let strict = self.field(Field::Strict);
        self.set_field(Field::Strict, one);
        inside(self, step);
        self.set_field(Field::Strict, strict);
        self.set_path(offset!(Path, depth), depth);
    }

    /// Checks an element. What it becomes is thrown away: elements are not converted.
    fn element(&mut self, ty: Value, from: Value) -> Value {
        let memory = self.field(Field::Memory);
        let to = self.b.slot(ANY_SIZE as u32, 8);
        let to = self.b.stack_addr(to);
        let code = self.helpers.check.and_then(|check| self.b.call(check, &[self.state, ty, from, to]));
        self.set_field(Field::Memory, memory);
        code.unwrap_or_else(|| self.b.iconst(Type::I32, 0))
    }

    fn set_step(&mut self, step: Value, kind: StepKind, value: Value) {
        let kind = self.b.i64(kind as i64);
        self.b.store(kind, step, offset!(Step, kind), MemFlags::ALIGNED);
        self.b.store(value, step, offset!(Step, value), MemFlags::ALIGNED);
    }

    pub(super) fn sequence(&mut self, arg: Arg) {
        let wanted = self.read(arg.ty, field!(SequenceDescriptor, type_index));
        let same = self.b.icmp(IntCC::Eq, arg.index, wanted);
        let or_list = self.read(arg.ty, field!(SequenceDescriptor, or_list));
        let or_list = self.is_not(or_list, 0);
        let list = self.is(arg.index, i64::from(TypeIndex::LIST.0));
        let list = self.and(or_list, list);
        let ok = self.or(same, list);
        self.require_accepted(ok);
        self.require_non_null(arg.payload);
        let base = self.b.convert(ConvertOp::IntToPtr, Type::Ptr, arg.payload);
        let size = self.b.load(Type::I64, base, CELL_SIZE, MemFlags::ALIGNED);
        let elements = self.b.load(Type::Ptr, base, CELL_DATA, MemFlags::ALIGNED);
        let ty = self.b.ptr_add_imm(arg.ty, i64::from(offset!(SequenceDescriptor, elements)));
        self.enter(|r, step| {
            r.for_up(size, |r, index| {
                r.set_step(step, StepKind::Index, index);
                let from = r.nth(elements, index, ANY_SIZE);
                let code = r.element(ty, from);
                let ok = r.b.icmp_imm(IntCC::Eq, code, 0);
                r.pass_up_unless(ok, code);
            });
        });
        let payload = Var::new(&mut self.b, Type::I64);
        self.set(payload, arg.payload);
        let there = self.is_not(elements, 0);
        let missing = self.b.unary(UnaryOp::Not, there);
        let missing = self.and(missing, or_list);
        self.when(missing, |r| {
            // an empty container may have no address; a kernel that takes an Array gets one
            let object = r.take_memory(i64::from(HEADER) + size_of::<TVMFFISeqCell>() as i64);
            r.b.store(object, object, CELL_DATA, MemFlags::ALIGNED);
            r.b.store(size, object, CELL_SIZE, MemFlags::ALIGNED);
            let made = r.b.convert(ConvertOp::PtrToInt, Type::I64, object);
            r.set(payload, made);
        });
        // Array and List have one layout
        let payload = self.get(payload);
        self.accept_raw(arg.to, wanted, payload);
    }

    /// Keys and values are read by the runtime's functions, which give references of our own.
    pub(super) fn map(&mut self, arg: Arg) {
        let wanted = self.read(arg.ty, field!(MapDescriptor, type_index));
        let ok = self.b.icmp(IntCC::Eq, arg.index, wanted);
        self.require_accepted(ok);
        self.require_non_null(arg.payload);
        let keys = self.b.ptr_add_imm(arg.ty, i64::from(offset!(MapDescriptor, keys)));
        let values = self.b.ptr_add_imm(keys, ParamDescriptor::SIZE as i64);
        let container = ffi_call::any_slot(&mut self.b);
        self.accept_raw(container, arg.index, arg.payload);
        let (size, iterator) = (ffi_call::any_slot(&mut self.b), ffi_call::any_slot(&mut self.b));
        self.call_global(
            arg.ty,
            [field!(MapDescriptor, size_function.text), field!(MapDescriptor, size_function.len)],
            container,
            size,
        );
        let size = self.b.load(Type::I64, size, PAYLOAD, MemFlags::ALIGNED);
        let some = self.b.icmp_imm(IntCC::SGt, size, 0);
        self.when(some, |r| {
            r.call_global(
                arg.ty,
                [field!(MapDescriptor, iter_function.text), field!(MapDescriptor, iter_function.len)],
                container,
                iterator,
            );
            let iterator = r.b.load(Type::Ptr, iterator, PAYLOAD, MemFlags::ALIGNED);
            let code = Var::new(&mut r.b, Type::I32);
            let zero = r.b.iconst(Type::I32, 0);
            r.set(code, zero);
            r.enter(|r, step| {
                r.for_up(size, |r, index| {
                    r.unless_failed(code, |r| r.pair(iterator, keys, values, step, index, code));
                    // the last has none behind it
                    let one = r.b.i64(1);
                    let behind = r.b.binary(BinaryOp::Add, index, one);
                    let more = r.b.icmp(IntCC::SLt, behind, size);
                    r.when(more, |r| r.unless_failed(code, |r| _ = r.iterate(iterator, NEXT, code)));
                });
            });
            r.release(iterator);
            let code = r.get(code);
            let ok = r.b.icmp_imm(IntCC::Eq, code, 0);
            r.pass_up_unless(ok, code);
        });
        self.accept_raw(arg.to, arg.index, arg.payload);
    }

    fn pair(&mut self, iterator: Value, keys: Value, values: Value, step: Value, index: Value, code: Var) {
        let key = self.iterate(iterator, KEY, code);
        self.unless_failed(code, |r| {
            r.set_step(step, StepKind::Key, index);
            let checked = r.element(keys, key);
            r.set(code, checked);
            r.unless_failed(code, |r| {
                let value = r.iterate(iterator, VALUE, code);
                r.unless_failed(code, |r| {
                    r.set_key_step(step, key);
                    let checked = r.element(values, value);
                    r.set(code, checked);
                    r.release_any(value);
                });
            });
            r.release_any(key);
        });
    }

    /// Makes a value's step of its key (C7.6).
    fn set_key_step(&mut self, step: Value, key: Value) {
        let index = self.signed_word(key, TYPE_INDEX / 4);
        let payload = self.b.load(Type::I64, key, PAYLOAD, MemFlags::ALIGNED);
        self.set_step(step, StepKind::Other, payload);
        let int = self.is(index, i64::from(TypeIndex::INT.0));
        self.when(int, |r| r.set_step(step, StepKind::Index, payload));
        let text = self.is_one_of(index, &[STR.small, STR.object]);
        self.when(text, |r| r.set_step(step, StepKind::Text, key));
    }

    fn unless_failed(&mut self, code: Var, then: impl FnOnce(&mut Self)) {
        let now = self.get(code);
        let ok = self.b.icmp_imm(IntCC::Eq, now, 0);
        self.when(ok, then);
    }

    /// Asks a Map's iterator; the answer is ours to release.
    fn iterate(&mut self, iterator: Value, command: i64, code: Var) -> Value {
        let (question, answer) = (ffi_call::any_slot(&mut self.b), ffi_call::any_slot(&mut self.b));
        let command = self.b.i64(command);
        self.accept(question, TypeIndex::INT, command);
        if let Some(called) = ffi_call::call(&mut self.b, iterator, question, 1, answer) {
            self.set(code, called);
        }
        answer
    }

    /// Calls the runtime's global function whose name and length a Map's descriptor tells; passes its error up.
    fn call_global(&mut self, map: Value, [name, len]: [DescriptorField; 2], arg: Value, result: Value) {
        let (name, len) = (self.pool_text(map, name), self.read(map, len));
        let array = self.byte_array(name, len);
        let function = Var::new(&mut self.b, Type::Ptr);
        let none = self.b.ptr_const(0);
        self.set(function, none);
        let get = self.import(capi::FUNCTION_GET_GLOBAL);
        self.call_or_fail(get, &[array, function.address()]);
        let function = self.get(function);
        let there = self.is_not(function, 0);
        self.set_field(Field::Text, name);
        let text = Piece::Value(Directive::String, Field::Text as u32);
        self.require(there, "RuntimeError", &[Piece::Text("The runtime has no function "), text]);
        let code = ffi_call::call(&mut self.b, function, arg, 1, result);
        self.release(function);
        if let Some(code) = code {
            let ok = self.b.icmp_imm(IntCC::Eq, code, 0);
            self.pass_up_unless(ok, code);
        }
    }

    /// Releases what a value refers to.
    pub(super) fn release_any(&mut self, value: Value) {
        let index = self.signed_word(value, TYPE_INDEX / 4);
        let object = self.b.icmp_imm(IntCC::SGe, index, i64::from(TypeIndex::STATIC_OBJECT_BEGIN.0));
        let (yes, no) = (self.b.block(), self.b.block());
        self.b.branch(object, yes, no, Hint::None);
        self.b.switch_to(yes);
        let object = self.b.load(Type::Ptr, value, PAYLOAD, MemFlags::ALIGNED);
        self.release(object);
        self.b.jump(no, &[]);
        self.b.switch_to(no);
    }
}
