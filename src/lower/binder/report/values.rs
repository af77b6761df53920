//! What [`report`](super) prints of dtypes, devices, types and pool that came.

use super::names::{self, BOOL_CODE, FIRST_FIXED_WIDTH_CODE, HANDLE_CODE};
use super::printer::Printer;
use crate::ir::{BinaryOp, Block, ConvertOp, FunctionBuilder, Hint, IntCC, MemFlags, Type, Value};
use crate::lower::abi::fields::{self, DTypeField};
use crate::lower::binder::structured::{StructuredCode, Var};
use crate::lower::capi;
use crate::lower::protocol::{Directive, Field, Piece};
use std::mem::offset_of;
use tvm_ffi_runtime::abi::{DLDeviceType, TVMFFIObject, TVMFFITypeInfo, TypeIndex};

/// Room for a type key or a text that came, with a NUL; longer ones are cut.
const COPY_ROOM: i64 = 160;
/// The same for a [text](Printer::copy_text), whose last character is copied before it is known to fit.
pub(super) const TEXT_ROOM: i64 = COPY_ROOM + 8;
/// What is shown for a byte that isn't part of a character.
const NO_CHARACTER: i64 = b'?' as i64;
/// No object lies below: a payload under it is a number, not a pointer.
const LEAST_ADDRESS: i64 = 4096;

/// The operands of a dtype's or a device's inner template.
mod operand {
    /// What is between a dtype's element and its lanes.
    pub const BY: u32 = 0;
    /// [`Unless`](super::Directive::Unless) looks at it: whether there are lanes, or the device's number is printed.
    pub const CONDITION: u32 = 1;
    /// The dtype's code, or the device's type.
    pub const KIND: u32 = 2;
    pub const BITS: u32 = 3;
    /// How many lanes, or the device's number.
    pub const COUNT: u32 = 4;
}

const fn number(field: u32) -> Piece<'static> {
    Piece::Value(Directive::Number, field)
}

const UNLESS: Piece<'static> = Piece::Value(Directive::Unless, operand::CONDITION);
/// `x4`
const LANES: [Piece<'static>; 3] = [UNLESS, Piece::Value(Directive::String, operand::BY), number(operand::COUNT)];
/// `:0`
const ID: [Piece<'static>; 3] = [UNLESS, Piece::Text(":"), number(operand::COUNT)];

impl Printer<'_, '_> {
    /// The directives for dtypes, devices and types.
    pub(super) fn values(&mut self, byte: Value) {
        self.on_directive(byte, Directive::DType, |p| p.dtype());
        self.on_either(byte, [Directive::Device, Directive::NumberedDevice], |p, numbered| p.device(numbered));
        if self.has(Directive::Type) {
            self.on_directive(byte, Directive::Type, |p| p.type_name());
            self.on_known_directive(byte, Directive::TypeKey, |p| p.type_key());
        }
    }

    fn set_operand(&mut self, operand: u32, value: Value) {
        let operands = self.operands();
        self.b.store(value, operands, 8 * operand as i32, MemFlags::ALIGNED);
    }

    /// As upstream prints a `DLDataType`: `float32`, `bool`, `float8_e4m3fn`, `int8x4`.
    fn dtype(&mut self) {
        let dtype = self.context_field(Field::Got);
        let [code, bits, lanes] =
            [DTypeField::Code, DTypeField::Bits, DTypeField::Lanes].map(|field| field.of(&mut self.b, dtype));
        self.set_operand(operand::KIND, code);
        self.set_operand(operand::BITS, bits);
        // not 0 for other than 1
        let one = self.b.i64(1);
        let vector = self.b.binary(BinaryOp::Xor, lanes, one);
        self.set_operand(operand::CONDITION, vector);
        // a scalable vector's lanes are negative, as 16 bits
        let scalable = self.b.icmp_imm(IntCC::SGe, lanes, 1 << 15);
        let wrapped = self.b.i64(1 << 16);
        let negated = self.b.binary(BinaryOp::Sub, wrapped, lanes);
        let lanes = self.b.select(scalable, negated, lanes);
        self.set_operand(operand::COUNT, lanes);
        let by = self.text_from("xvscale", "x", scalable);
        self.set_operand(operand::BY, by);

        let is_bool = self.is(code, BOOL_CODE);
        let is_byte = self.is(bits, 8);
        let plain_bool = self.and(is_bool, is_byte);
        let is_handle = self.is(code, HANDLE_CODE);
        let fixed = self.b.icmp_imm(IntCC::SGe, code, FIRST_FIXED_WIDTH_CODE);
        let silent = self.or(plain_bool, is_handle);
        let silent = self.or(silent, fixed);
        let silent = self.b.convert(ConvertOp::ZExt, Type::I64, silent);
        // the bits are its first byte
        let template = self.own_template(&[&[number(operand::BITS)][..], &LANES].concat());
        let template = self.b.ptr_add(template, silent);
        let names = names::dtypes(self.pool);
        let unnamed = [
            Piece::Text("code "),
            number(operand::KIND),
            Piece::Text(", "),
            number(operand::BITS),
            Piece::Text(" bits"),
        ];
        let apart = [UNLESS, Piece::Text(", ")];
        // names of these leave this out
        let known = self.b.i64(FIRST_FIXED_WIDTH_CODE);
        let known = self.b.binary(BinaryOp::Sub, code, known);
        let begins = self.b.icmp_imm(IntCC::ULt, known, names::FIXED_WIDTH_CODES);
        self.when(begins, |p| {
            let text = p.own(names.float);
            p.push(text);
        });
        let (operands, list) = (self.operands(), self.own(names.list));
        self.push_name_or(list, code, &[&unnamed[..], &apart, &LANES].concat(), template, operands);
    }

    /// The text of both, or the second alone.
    fn text_from(&mut self, first: &str, second: &str, both: Value) -> Value {
        let text = self.pool.text(&format!("{first}{second}"));
        let text = self.own(text);
        let (whole, behind) = (self.b.i64(0), self.b.i64(first.len() as i64));
        let skipped = self.b.select(both, whole, behind);
        self.b.ptr_add(text, skipped)
    }

    /// `cpu`, or `cuda:0`, which it always is for `numbered` of 1.
    fn device(&mut self, numbered: Value) {
        let (got, expected) = (self.context_field(Field::Got), self.context_field(Field::Expected));
        let is_numbered = self.is_not(numbered, 0);
        let device = self.b.select(is_numbered, expected, got);
        let (device_type, id) = (fields::first(&mut self.b, device), fields::second(&mut self.b, device));
        let [device_type, id] = [device_type, id].map(|half| self.b.convert(ConvertOp::SExt, Type::I64, half));
        self.set_operand(operand::KIND, device_type);
        self.set_operand(operand::COUNT, id);
        // there is one CPU
        let cpu = self.b.i64(i64::from(DLDeviceType::CPU.0));
        let other = self.b.binary(BinaryOp::Xor, device_type, cpu);
        let other = self.or(other, id);
        let numbered = self.or(numbered, other);
        self.set_operand(operand::CONDITION, numbered);
        let names = names::devices(self.pool);
        let unknown = [&[Piece::Text("device type "), number(operand::KIND)][..], &ID].concat();
        let template = self.own_template(&ID);
        let (operands, names) = (self.operands(), self.own(names));
        self.push_name_or(names, device_type, &unknown, template, operands);
    }

    /// Pushes a name and goes through `template`, or through `unknown` where the list has none at that index.
    fn push_name_or(&mut self, first: Value, index: Value, unknown: &[Piece<'_>], template: Value, context: Value) {
        let unknown = self.own_template(unknown);
        let block = self.named_block();
        self.b.jump(block, &[first, index, unknown, template, context]);
    }

    /// Where names are looked for: takes the first, the index, and what [`push_name_or`](Self::push_name_or) goes through.
    fn named_block(&mut self) -> Block {
        if let Some(block) = self.named {
            return block;
        }
        let here = self.b.current();
        let block = self.b.block();
        self.named = Some(block);
        let [list, index] = [Type::Ptr, Type::I64].map(|ty| self.b.block_param(block, ty));
        let [unknown, template, context] = [Type::Ptr; 3].map(|ty| self.b.block_param(block, ty));
        let (head, one, scan, found) = (self.b.block(), self.b.block(), self.b.block(), self.b.block());
        let (at, rest) = (self.b.block_param(head, Type::Ptr), self.b.block_param(head, Type::I64));
        let character = self.b.block_param(scan, Type::Ptr);
        self.b.switch_to(block);
        self.b.jump(head, &[list, index]);
        self.b.switch_to(head);
        // behind the last is an empty one
        let first = self.b.load(Type::I8, at, 0, MemFlags::ALIGNED);
        let inside = self.b.icmp_imm(IntCC::Ne, first, 0);
        let counted = self.b.block();
        self.b.branch(inside, counted, found, Hint::None);
        self.b.switch_to(counted);
        let before = self.is_not(rest, 0);
        self.b.branch(before, one, found, Hint::None);
        self.b.switch_to(one);
        let one_less = self.b.i64(-1);
        let rest = self.b.binary(BinaryOp::Add, rest, one_less);
        self.b.jump(scan, &[at]);
        self.b.switch_to(scan);
        let byte = self.b.load(Type::I8, character, 0, MemFlags::ALIGNED);
        let behind = self.b.ptr_add_imm(character, 1);
        let is_end = self.b.icmp_imm(IntCC::Eq, byte, 0);
        self.b.branch_with(is_end, (head, &[behind, rest]), (scan, &[behind]), Hint::None);
        self.b.switch_to(found);
        let there = self.b.icmp_imm(IntCC::UGt, first, i64::from(names::NONE));
        let then = Var::new(&mut self.b, Type::Ptr);
        self.set(then, unknown);
        self.when(there, |p| {
            p.push(at);
            p.set(then, template);
        });
        let then = self.get(then);
        self.enter(then, context);
        self.b.switch_to(here);
        block
    }

    /// The name of a static type, the key of a registered one, or the bare index.
    fn type_name(&mut self) {
        let index = self.context_field(Field::Got);
        let [few, objects] = names::types(self.pool).map(|list| self.own(list));
        let begin = self.b.i64(i64::from(TypeIndex::STATIC_OBJECT_BEGIN.0));
        let object = self.b.binary(BinaryOp::Sub, index, begin);
        // an index between the two is far behind the last object
        let is_few = self.b.icmp_imm(IntCC::ULt, index, names::FEW);
        let names = self.b.select(is_few, few, objects);
        let index_in_list = self.b.select(is_few, index, object);
        let key = Piece::Value(Directive::TypeKey, 0);
        let (template, context) = (self.own_template(&[]), self.get(self.context));
        self.push_name_or(
            names,
            index_in_list,
            &[key, Piece::Text("type index "), number(Field::Got as u32)],
            template,
            context,
        );
    }

    /// Pushes the key of a registered type and ends the template; goes on with it for other types.
    fn type_key(&mut self) {
        let (index, payload) = (self.context_field(Field::Got), self.context_field(Field::Payload));
        // Upstream's TVMFFIGetTypeInfo ends the process on an index that it doesn't know, so ask only where the
        // payload is an object that bears this index: only a registered type has objects.
        let unknown = self.b.block();
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
        let type_info = capi::import(self.b.module(), capi::GET_TYPE_INFO);
        if let Some(info) = self.b.call(type_info, &[own]) {
            let found = self.is_not(info, 0);
            go_on_if(self, found);
            let key = offset_of!(TVMFFITypeInfo, type_key) as i32;
            let data = self.b.load(Type::Ptr, info, key, MemFlags::ALIGNED);
            let size = self.b.load(Type::I64, info, key + 8, MemFlags::ALIGNED);
            self.push_key(data, size);
        }
        let end = self.end;
        self.b.jump(end, &[]);
        self.b.switch_to(unknown);
    }

    /// Copies a text that came to the room for numbers, as a C string of valid UTF-8: cut at a character, with a `?` for a NUL and for
    /// each byte that isn't part of a character.
    pub(super) fn copy_text(&mut self, data: Value, size: Value) -> Value {
        let free = self.get(self.free);
        let copy = self.b.ptr_add_imm(free, -TEXT_ROOM);
        self.set(self.free, copy);
        let [written, length, good] = [Type::I64; 3].map(|ty| Var::new(&mut self.b, ty));
        let zero = self.b.i64(0);
        self.set(written, zero);
        let more = |b: &mut FunctionBuilder<'_>, index| b.icmp(IntCC::SLt, index, size);
        self.repeat(zero, more, |p, index| {
            let from = p.b.ptr_add(data, index);
            let rest = p.b.binary(BinaryOp::Sub, size, index);
            p.character(from, rest, length, good);
            let (start, length) = (p.get(written), p.get(length));
            let to = p.b.ptr_add(copy, start);
            let good = p.get(good);
            let good = p.is_not(good, 0);
            p.for_up(length, |p, at| {
                let byte = p.byte(from, at);
                let instead = p.b.i64(NO_CHARACTER);
                let byte = p.b.select(good, byte, instead);
                let byte = p.b.convert(ConvertOp::Truncate, Type::I8, byte);
                let to = p.b.ptr_add(to, at);
                p.b.store(byte, to, 0, MemFlags::ALIGNED);
            });
            // a character that doesn't fit is the end
            let end = p.b.binary(BinaryOp::Add, start, length);
            let fits = p.b.icmp_imm(IntCC::SLt, end, COPY_ROOM);
            let end = p.b.select(fits, end, start);
            p.set(written, end);
            let next = p.b.binary(BinaryOp::Add, index, length);
            p.b.select(fits, next, size)
        });
        let written = self.get(written);
        let end = self.b.ptr_add(copy, written);
        let nul = self.b.iconst(Type::I8, 0);
        self.b.store(nul, end, 0, MemFlags::ALIGNED);
        copy
    }

    fn byte(&mut self, base: Value, index: Value) -> Value {
        let at = self.b.ptr_add(base, index);
        let byte = self.b.load(Type::I8, at, 0, MemFlags::ALIGNED);
        self.b.convert(ConvertOp::ZExt, Type::I64, byte)
    }

    /// How many bytes of UTF-8 the character has that begins there, with `rest` bytes to the text's end, and whether it is a character;
    /// one byte where it isn't.
    fn character(&mut self, from: Value, rest: Value, length: Var, good: Var) {
        let (zero, one) = (self.b.i64(0), self.b.i64(1));
        let first = self.byte(from, zero);
        self.set(length, one);
        let ascii = self.b.binary(BinaryOp::Sub, first, one);
        let ascii = self.b.icmp_imm(IntCC::ULt, ascii, 0x7f);
        let is_good = self.b.convert(ConvertOp::ZExt, Type::I64, ascii);
        self.set(good, is_good);
        // the first two bytes tell all that isn't told by the top bits of each byte: RFC 3629
        let [of_three, of_four] = [0xe0, 0xf0].map(|least| {
            let more = self.b.icmp_imm(IntCC::UGe, first, least);
            self.b.convert(ConvertOp::ZExt, Type::I64, more)
        });
        let behind = self.b.binary(BinaryOp::Add, of_three, of_four);
        let behind = self.b.binary(BinaryOp::Add, behind, one);
        let wide = self.b.icmp_imm(IntCC::UGe, first, 0x80);
        let inside = self.b.icmp(IntCC::SLt, behind, rest);
        let wide = self.and(wide, inside);
        self.when(wide, |p| {
            let second = p.byte(from, one);
            let high = p.b.binary_imm(BinaryOp::Shl, first, 8);
            let both = p.or(high, second);
            // no character begins below c2 80 and above f4 8f; those of e0 80 and f0 80 are too long, those of ed a0 are half of one
            let mut ok = p.b.icmp_imm(IntCC::UGe, both, 0xc280);
            for (least, count) in [(0xf490, 0x10000), (0xe080, 0x20), (0xeda0, 0x20), (0xf080, 0x10)] {
                let least = p.b.i64(least);
                let number = p.b.binary(BinaryOp::Sub, both, least);
                let other = p.b.icmp_imm(IntCC::UGe, number, count);
                ok = p.and(ok, other);
            }
            let ok = p.b.convert(ConvertOp::ZExt, Type::I64, ok);
            p.set(good, ok);
            p.for_up(behind, |p, index| {
                let at = p.b.ptr_add(from, index);
                let byte = p.byte(at, one);
                let mask = p.b.i64(0xc0);
                let top = p.and(byte, mask);
                let follows = p.is(top, 0x80);
                let before = p.get(good);
                let none = p.b.i64(0);
                let still = p.b.select(follows, before, none);
                p.set(good, still);
            });
            let is_good = p.get(good);
            let is_good = p.is_not(is_good, 0);
            let whole = p.b.binary(BinaryOp::Add, behind, one);
            let whole = p.b.select(is_good, whole, one);
            p.set(length, whole);
        });
    }

    /// Pushes the key of a type as a C string in the frame, as it need not end with a NUL. Keys are ASCII; other bytes are shown as `?`.
    fn push_key(&mut self, data: Value, size: Value) {
        let room = self.b.i64(COPY_ROOM - 1);
        let size = self.b.binary(BinaryOp::UMin, size, room);
        let slot = self.b.slot(COPY_ROOM as u32, 8);
        let copy = self.b.stack_addr(slot);
        self.for_up(size, |e, index| {
            let from = e.b.ptr_add(data, index);
            let byte = e.b.load(Type::I8, from, 0, MemFlags::ALIGNED);
            let less = e.b.iconst(Type::I8, -1);
            let number = e.b.binary(BinaryOp::Add, byte, less);
            let ascii = e.b.icmp_imm(IntCC::ULt, number, 0x7f);
            let instead = e.b.iconst(Type::I8, NO_CHARACTER);
            let byte = e.b.select(ascii, byte, instead);
            let to = e.b.ptr_add(copy, index);
            e.b.store(byte, to, 0, MemFlags::ALIGNED);
        });
        let end = self.b.ptr_add(copy, size);
        let nul = self.b.iconst(Type::I8, 0);
        self.b.store(nul, end, 0, MemFlags::ALIGNED);
        self.push(copy);
    }
}
