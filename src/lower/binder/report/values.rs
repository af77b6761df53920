//! Prints the dtypes, devices, types and strings that a caller passed, for [`report`](super).

use super::names::{self, BOOL_CODE, FIRST_FIXED_WIDTH_CODE, HANDLE_CODE};
use super::printer::Printer;
use crate::ir::{BinaryOp, Block, ConvertOp, Hint, Type, Val, Var};
use crate::lower::abi::fields::{self, DTypeField};
use crate::lower::capi;
use crate::lower::protocol::{Directive, Field, Piece};
use std::mem::offset_of;
use tvm_ffi_runtime::abi::{DLDeviceType, TVMFFIObject, TVMFFITypeInfo, TypeIndex};

/// Room for a type key or a caller's string, including a NUL; longer ones are truncated.
const COPY_ROOM: i64 = 160;
/// The room for a [string](Printer::copy_text). It is larger because the last character is copied before it is known to
/// fit.
pub(super) const TEXT_ROOM: i64 = COPY_ROOM + 8;
/// Printed for a byte that isn't part of a character.
const NO_CHARACTER: i64 = b'?' as i64;
/// The lowest address of an object: a smaller payload is a number, not a pointer.
const LEAST_ADDRESS: i64 = 4096;

/// The operands of a dtype's or a device's inner template.
mod operand {
    /// The separator between a dtype's element type and its lanes.
    pub const BY: u32 = 0;
    /// The condition that [`Unless`](super::Directive::Unless) tests: whether to print the lanes or the device's
    /// number.
    pub const CONDITION: u32 = 1;
    /// The dtype's code, or the device's type.
    pub const KIND: u32 = 2;
    pub const BITS: u32 = 3;
    /// The number of lanes, or the device's number.
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

impl<'c> Printer<'c, '_> {
    /// The directives for dtypes, devices and types.
    pub(super) fn values(&self, byte: Val<'c>) {
        self.on_directive(byte, Directive::DType, || self.dtype());
        self.on_either(byte, [Directive::Device, Directive::NumberedDevice], |numbered| self.device(numbered));
        if self.has(Directive::Type) {
            self.on_directive(byte, Directive::Type, || self.type_name());
            self.on_known_directive(byte, Directive::TypeKey, || self.type_key());
        }
    }

    fn set_operand(&self, operand: u32, value: Val<'c>) {
        self.operands().store(8 * operand as i32, value);
    }

    /// Prints a `DLDataType` as upstream does: `float32`, `bool`, `float8_e4m3fn`, `int8x4`.
    fn dtype(&self) {
        let dtype = self.context_field(Field::Got);
        let [code, bits, lanes] = [DTypeField::Code, DTypeField::Bits, DTypeField::Lanes]
            .map(|field| self.c.value(|b| field.of(b, dtype.value())));
        self.set_operand(operand::KIND, code);
        self.set_operand(operand::BITS, bits);
        // nonzero unless lanes are 1
        let vector = lanes ^ 1;
        self.set_operand(operand::CONDITION, vector);
        // the lanes of a scalable vector are negative as a 16-bit number
        let scalable = lanes.ge(1 << 15);
        self.set_operand(operand::COUNT, scalable.select(self.c.i64(1 << 16) - lanes, lanes));
        self.set_operand(operand::BY, self.text_from("xvscale", "x", scalable));

        let plain_bool = code.is(BOOL_CODE) & bits.is(8);
        let is_handle = code.is(HANDLE_CODE);
        let fixed = code.ge(FIRST_FIXED_WIDTH_CODE);
        let silent = ((plain_bool | is_handle) | fixed).zext();
        // the bits are the template's first byte
        let template = self.own_template(&[&[number(operand::BITS)][..], &LANES].concat()) + silent;
        let names = names::dtypes(&mut self.pool.borrow_mut());
        let unnamed = [
            Piece::Text("code "),
            number(operand::KIND),
            Piece::Text(", "),
            number(operand::BITS),
            Piece::Text(" bits"),
        ];
        let apart = [UNLESS, Piece::Text(", ")];
        // the listed names leave out this prefix
        self.c.when((code - FIRST_FIXED_WIDTH_CODE).ult(names::FIXED_WIDTH_CODES), || {
            self.push(self.own(names.float));
        });
        let (operands, list) = (self.operands(), self.own(names.list));
        self.push_name_or(list, code, &[&unnamed[..], &apart, &LANES].concat(), template, operands);
    }

    /// The string of both, or of the second alone.
    fn text_from(&self, first: &str, second: &str, both: Val<'c>) -> Val<'c> {
        let text = self.pool.borrow_mut().text(&format!("{first}{second}"));
        let text = self.own(text);
        let (whole, behind) = (self.c.i64(0), self.c.i64(first.len() as i64));
        text + both.select(whole, behind)
    }

    /// Prints a device: `cpu` or `cuda:0`. If `numbered` is 1, the number is always printed.
    fn device(&self, numbered: Val<'c>) {
        let (got, expected) = (self.context_field(Field::Got), self.context_field(Field::Expected));
        let device = numbered.is_not(0).select(expected, got);
        let (device_type, id) =
            (self.c.value(|b| fields::first(b, device.value())), self.c.value(|b| fields::second(b, device.value())));
        let [device_type, id] = [device_type, id].map(|half| half.sext());
        self.set_operand(operand::KIND, device_type);
        self.set_operand(operand::COUNT, id);
        // a CPU with id 0 is printed without its number
        let other = (device_type ^ DLDeviceType::CPU.0) | id;
        self.set_operand(operand::CONDITION, numbered | other);
        let names = names::devices(&mut self.pool.borrow_mut());
        let unknown = [&[Piece::Text("device type "), number(operand::KIND)][..], &ID].concat();
        let template = self.own_template(&ID);
        let (operands, names) = (self.operands(), self.own(names));
        self.push_name_or(names, device_type, &unknown, template, operands);
    }

    /// Pushes a name and enters `template`, or enters `unknown` if the list has no name at that index.
    fn push_name_or(&self, first: Val<'c>, index: Val<'c>, unknown: &[Piece<'_>], template: Val<'c>, context: Val<'c>) {
        let unknown = self.own_template(unknown);
        self.c.jump(self.named_block(), &[first, index, unknown, template, context]);
    }

    /// The block that looks up a name. It takes the list's first name, the index, and the arguments of
    /// [`push_name_or`](Self::push_name_or).
    fn named_block(&self) -> Block {
        if let Some(block) = self.named.get() {
            return block;
        }
        let here = self.c.current();
        let block = self.c.block();
        self.named.set(Some(block));
        let [list, index] = [Type::Ptr, Type::I64].map(|ty| self.c.block_param(block, ty));
        let [unknown, template, context] = [Type::Ptr; 3].map(|ty| self.c.block_param(block, ty));
        let (head, one, scan, found) = (self.c.block(), self.c.block(), self.c.block(), self.c.block());
        let (at, rest) = (self.c.block_param(head, Type::Ptr), self.c.block_param(head, Type::I64));
        let character = self.c.block_param(scan, Type::Ptr);
        self.c.switch_to(block);
        self.c.jump(head, &[list, index]);
        self.c.switch_to(head);
        // an empty name ends the list
        let first = at.load(Type::I8, 0);
        let inside = first.is_not(0);
        let counted = self.c.block();
        self.c.branch(inside, counted, found, Hint::None);
        self.c.switch_to(counted);
        self.c.branch(rest.is_not(0), one, found, Hint::None);
        self.c.switch_to(one);
        let rest = rest + -1;
        self.c.jump(scan, &[at]);
        self.c.switch_to(scan);
        let byte = character.load(Type::I8, 0);
        let behind = character + 1;
        self.c.branch_with(byte.is(0), (head, &[behind, rest]), (scan, &[behind]), Hint::None);
        self.c.switch_to(found);
        let there = first.ugt(names::NONE);
        let then = self.c.var(Type::Ptr);
        then.set(unknown);
        self.c.when(there, || {
            self.push(at);
            then.set(template);
        });
        self.enter(then.get(), context);
        self.c.switch_to(here);
        block
    }

    /// Prints the name of a static type, the key of a registered type, or the bare index.
    fn type_name(&self) {
        let index = self.context_field(Field::Got);
        let [few, objects] = names::types(&mut self.pool.borrow_mut()).map(|list| self.own(list));
        let object = index - TypeIndex::STATIC_OBJECT_BEGIN.0;
        // as an unsigned number, an index between the two ranges is beyond the last object
        let is_few = index.ult(names::FEW);
        let names = is_few.select(few, objects);
        let index_in_list = is_few.select(index, object);
        let key = Piece::Value(Directive::TypeKey, 0);
        let (template, context) = (self.own_template(&[]), self.context.get());
        self.push_name_or(
            names,
            index_in_list,
            &[key, Piece::Text("type index "), number(Field::Got as u32)],
            template,
            context,
        );
    }

    /// Pushes the key of a registered type and ends the template; continues with the template for other types.
    fn type_key(&self) {
        let (index, payload) = (self.context_field(Field::Got), self.context_field(Field::Payload));
        // Upstream's TVMFFIGetTypeInfo ends the process on an unknown index. So ask only if the payload is an object
        // with this index: only registered types have objects.
        let unknown = self.c.block();
        self.c.or_leave(index.ge(TypeIndex::DYN_OBJECT_BEGIN.0), unknown);
        self.c.or_leave(payload.uge(LEAST_ADDRESS) & (payload & 7).is(0), unknown);
        let own = payload.pointer().load(Type::I32, offset_of!(TVMFFIObject, type_index) as i32);
        self.c.or_leave(own.sext().is(index), unknown);
        let info = capi::result(self.c, capi::GET_TYPE_INFO, &[own]);
        self.c.or_leave(info.is_not(0), unknown);
        let key = offset_of!(TVMFFITypeInfo, type_key) as i32;
        self.push_key(info.load(Type::Ptr, key), info.load(Type::I64, key + 8));
        self.c.jump(self.end, &[]);
        self.c.switch_to(unknown);
    }

    /// Copies a caller's string to the room for numbers, as a C string of valid UTF-8. It is truncated at a character
    /// boundary. A `?` replaces a NUL and each byte that isn't part of a character.
    pub(super) fn copy_text(&self, data: Val<'c>, size: Val<'c>) -> Val<'c> {
        let copy = self.free.get() + (-TEXT_ROOM);
        self.free.set(copy);
        let [written, length, good] = [Type::I64; 3].map(|ty| self.c.var(ty));
        let zero = self.c.i64(0);
        written.set(zero);
        let more = |index: Val<'c>| index.lt(size);
        self.c.repeat(zero, more, |index| {
            let from = data + index;
            self.character(from, size - index, length, good);
            let (start, length) = (written.get(), length.get());
            let to = copy + start;
            let good = good.get().is_not(0);
            self.c.for_up(length, |at| {
                let byte =
                    good.select(self.byte(from, at), self.c.i64(NO_CHARACTER)).convert(ConvertOp::Truncate, Type::I8);
                (to + at).store(0, byte);
            });
            // a character that doesn't fit ends the copy
            let end = start + length;
            let fits = end.lt(COPY_ROOM);
            written.set(fits.select(end, start));
            fits.select(index + length, size)
        });
        (copy + written.get()).store(0, self.c.i8(0));
        copy
    }

    fn byte(&self, base: Val<'c>, index: Val<'c>) -> Val<'c> {
        (base + index).load(Type::I8, 0).zext()
    }

    /// The length in bytes of the UTF-8 character at `from`, with `rest` bytes to the string's end, and whether it is
    /// valid. An invalid character has length 1.
    fn character(&self, from: Val<'c>, rest: Val<'c>, length: Var<'c>, good: Var<'c>) {
        let (zero, one) = (self.c.i64(0), self.c.i64(1));
        let first = self.byte(from, zero);
        length.set(one);
        good.set((first - one).ult(0x7f).zext());
        // the first two bytes decide everything except the top bits of the later bytes: RFC 3629
        let [of_three, of_four] = [0xe0, 0xf0].map(|min| first.uge(min).zext());
        let behind = (of_three + of_four) + one;
        self.c.when(first.uge(0x80) & behind.lt(rest), || {
            let second = self.byte(from, one);
            let both = (first << 8) | second;
            // No character begins below c2 80 or above f4 8f. Those at e0 80 and f0 80 are overlong; those at ed a0 are
            // surrogates.
            let mut ok = both.uge(0xc280);
            for (min, count) in [(0xf490, 0x10000), (0xe080, 0x20), (0xeda0, 0x20), (0xf080, 0x10)] {
                ok = ok & (both - min).uge(count);
            }
            good.set(ok.zext());
            self.c.for_up(behind, |index| {
                good.set((self.byte(from + index, one) & 0xc0).is(0x80).select(good.get(), self.c.i64(0)));
            });
            length.set(good.get().is_not(0).select(behind + one, one));
        });
    }

    /// Pushes the key of a type as a C string on the stack, because a key need not end with a NUL. Keys are ASCII;
    /// other bytes are printed as `?`.
    fn push_key(&self, data: Val<'c>, size: Val<'c>) {
        let size = size.binary(BinaryOp::UMin, self.c.i64(COPY_ROOM - 1));
        let copy = self.c.slot(COPY_ROOM as usize);
        self.c.for_up(size, |index| {
            let byte = (data + index).load(Type::I8, 0);
            let byte = (byte + self.c.i8(-1)).ult(0x7f).select(byte, self.c.i8(NO_CHARACTER));
            (copy + index).store(0, byte);
        });
        (copy + size).store(0, self.c.i8(0));
        self.push(copy);
    }
}
