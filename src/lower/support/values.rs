//! What [`report`](super::report) prints of dtypes, devices and types.

use super::super::fields::{self, DTypeField};
use super::super::messages::Tag;
use super::emit::Emit;
use super::names::{self, BOOL_CODE, FIRST_FIXED_WIDTH_CODE, HANDLE_CODE};
use super::report::Printer;
use crate::ir::{BinaryOp, ConvertOp, FuncSig, Hint, IntCC, MemFlags, Type, UnaryOp, Value};
use std::mem::offset_of;
use tvm_ffi_runtime::abi::{DLDeviceType, TVMFFIObject, TVMFFITypeInfo, TypeIndex};

/// Room for a type key or a text that came; longer ones are cut.
const COPY_ROOM: i64 = 160;
/// No object lies below: a payload under it is a number, not a pointer.
const LEAST_ADDRESS: i64 = 4096;

impl Printer<'_, '_> {
    /// As upstream prints a `DLDataType`: `float32`, `bool`, `float8_e4m3fn`, `int8x4`.
    pub(super) fn dtype(&mut self, value: Value) {
        let [code, bits, lanes] =
            [DTypeField::Code, DTypeField::Bits, DTypeField::Lanes].map(|field| field.of(&mut self.b, value));
        let names = names::dtypes(self.texts);
        self.push_name_or(names, code, |p| {
            p.push_text("code ");
            p.push_number(code);
            p.push_text(", ");
            p.push_number(bits);
            p.push_text(" bits");
        });
        let is_bool = self.is(code, BOOL_CODE);
        let is_byte = self.is(bits, 8);
        let plain_bool = self.and(is_bool, is_byte);
        let is_handle = self.is(code, HANDLE_CODE);
        let fixed = self.b.icmp_imm(IntCC::SGe, code, FIRST_FIXED_WIDTH_CODE);
        let silent = self.or(plain_bool, is_handle);
        let silent = self.or(silent, fixed);
        let speaking = self.b.unary(UnaryOp::Not, silent);
        self.when(speaking, |p| p.push_number(bits));
        let vector = self.is_not(lanes, 1);
        let unknown = self.b.icmp_imm(IntCC::UGe, code, names.len);
        let apart = self.and(vector, unknown);
        self.when(apart, |p| p.push_text(", "));
        // a scalable vector's lanes are negative, as 16 bits
        let scalable = self.b.icmp_imm(IntCC::SGe, lanes, 1 << 15);
        self.when_else(
            scalable,
            |p| {
                p.push_text("xvscalex");
                let wrapped = p.b.i64(1 << 16);
                let count = p.b.binary(BinaryOp::Sub, wrapped, lanes);
                p.push_number(count);
            },
            |p| {
                p.when(vector, |p| {
                    p.push_text("x");
                    p.push_number(lanes);
                });
            },
        );
    }

    /// `cpu`, or `cuda:0`.
    pub(super) fn device(&mut self, value: Value, tag: Value) {
        let (device_type, id) = (fields::first(&mut self.b, value), fields::second(&mut self.b, value));
        let [device_type, id] = [device_type, id].map(|half| self.b.convert(ConvertOp::SExt, Type::I64, half));
        let names = names::devices(self.texts);
        self.push_name_or(names, device_type, |p| {
            p.push_text("device type ");
            p.push_number(device_type);
        });
        // there is one CPU
        let not_cpu = self.is_not(device_type, i64::from(DLDeviceType::CPU.0));
        let has_id = self.is_not(id, 0);
        let always = self.is(tag, Tag::NumberedDevice as i64);
        let numbered = self.or(not_cpu, has_id);
        let numbered = self.or(numbered, always);
        self.when(numbered, |p| {
            p.push_text(":");
            p.push_number(id);
        });
    }

    /// The name of a static type, the key of a registered one, or the bare index.
    pub(super) fn type_name(&mut self, index: Value, payload: Value) {
        let names = names::types(self.texts);
        // objects' names come first, those of the first indices behind them
        let (objects, begin) = (self.b.i64(names::OBJECTS), self.b.i64(i64::from(TypeIndex::STATIC_OBJECT_BEGIN.0)));
        let few = self.b.icmp_imm(IntCC::ULt, index, names::FEW);
        let behind_objects = self.b.binary(BinaryOp::Add, index, objects);
        let object = self.b.binary(BinaryOp::Sub, index, begin);
        let known = self.b.icmp_imm(IntCC::ULt, object, names::OBJECTS);
        let none = self.b.i64(names.len);
        let place = self.b.select(known, object, none);
        let place = self.b.select(few, behind_objects, place);
        self.push_name_or(names, place, |p| p.dynamic_type_name(index, payload));
    }

    fn dynamic_type_name(&mut self, index: Value, payload: Value) {
        // Upstream's TVMFFIGetTypeInfo ends the process on an index that it doesn't know, so ask only where the
        // payload is an object that bears this index: only a registered type has objects.
        let (unknown, join) = (self.b.block(), self.b.block());
        let go_on_if = |p: &mut Self, cond: Value| {
            let yes = p.b.block();
            p.b.branch(cond, yes, unknown, Hint::None);
            p.b.switch_to(yes);
        };
        let dynamic = self.b.icmp_imm(IntCC::SGe, index, i64::from(TypeIndex::DYN_OBJECT_BEGIN.0));
        go_on_if(self, dynamic);
        let high = self.b.icmp_imm(IntCC::UGe, payload, LEAST_ADDRESS);
        let mask = self.b.i64(7);
        let low_bits = self.and(payload, mask);
        let aligned = self.is(low_bits, 0);
        let plausible = self.and(high, aligned);
        go_on_if(self, plausible);
        let object = self.b.convert(ConvertOp::IntToPtr, Type::Ptr, payload);
        let own = self.b.load(Type::I32, object, offset_of!(TVMFFIObject, type_index) as i32, MemFlags::ALIGNED);
        let own_wide = self.b.convert(ConvertOp::SExt, Type::I64, own);
        let same = self.b.icmp(IntCC::Eq, own_wide, index);
        go_on_if(self, same);
        let type_info = self.b.module().import("TVMFFIGetTypeInfo", FuncSig::c([Type::I32], Some(Type::Ptr)));
        if let Some(info) = self.b.call(type_info, &[own]) {
            let found = self.is_not(info, 0);
            go_on_if(self, found);
            let key = self.copy_key(info);
            self.push(key);
        }
        self.b.jump(join, &[]);
        self.b.switch_to(unknown);
        self.push_text("type index ");
        self.push_number(index);
        self.b.jump(join, &[]);
        self.b.switch_to(join);
    }

    /// The type key of a `TVMFFITypeInfo` as a C string.
    fn copy_key(&mut self, info: Value) -> Value {
        let key = offset_of!(TVMFFITypeInfo, type_key) as i32;
        let data = self.b.load(Type::Ptr, info, key, MemFlags::ALIGNED);
        let size = self.b.load(Type::I64, info, key + 8, MemFlags::ALIGNED);
        self.copy(data, size)
    }

    /// Characters as a C string in the frame, as they need not end with a NUL. There is room for one such string.
    pub(super) fn copy(&mut self, data: Value, size: Value) -> Value {
        let room = self.b.i64(COPY_ROOM - 1);
        let size = self.b.binary(BinaryOp::UMin, size, room);
        let slot = self.b.slot(COPY_ROOM as u32, 8);
        let copy = self.b.stack_addr(slot);
        self.for_up(size, |e, index| {
            let from = e.b.ptr_add(data, index);
            let byte = e.b.load(Type::I8, from, 0, MemFlags::ALIGNED);
            let to = e.b.ptr_add(copy, index);
            e.b.store(byte, to, 0, MemFlags::ALIGNED);
        });
        let end = self.b.ptr_add(copy, size);
        let nul = self.b.iconst(Type::I8, 0);
        self.b.store(nul, end, 0, MemFlags::ALIGNED);
        copy
    }
}
