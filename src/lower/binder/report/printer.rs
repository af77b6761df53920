//! `report` under construction: the template that it reads, and the strings that it makes.

use crate::ir::{BinaryOp, Block, ConvertOp, FuncRef, FunctionBuilder, Hint, IntCC, MemFlags, StackSlot, Type, Value};
use crate::lower::binder::helper::ARGUMENT;
use crate::lower::binder::structured::{StructuredCode, Var};
use crate::lower::constants::ConstantPool;
use crate::lower::protocol::{Capabilities, CapabilityBit, Directive, Field, MAX_STRINGS, Piece, SHARED_TEXT, TEXT};

/// The most C strings, the error's kind with them; what more there is is left out. Long are lists of symbols.
pub(super) const CAPACITY: usize = 1 + 160;
const _: () = assert!(CAPACITY > 2 * MAX_STRINGS);
/// Room for a 64-bit number in decimal, its sign and a NUL.
pub(super) const CELL: usize = 24;
/// Templates inside each other: of symbols, their paths, steps.
pub(super) const DEPTH: usize = 4;
/// Bytes of a frame, of a template that has been left for an inner one: where it goes on, and its context.
pub(super) const FRAME: i64 = 16;

/// The most operands of an inner template.
pub(super) const MAX_OPERANDS: usize = 8;

pub(super) struct Printer<'m, 't> {
    pub(super) b: FunctionBuilder<'m>,
    pub(super) pool: &'t mut ConstantPool,
    pub(super) capabilities: Capabilities,
    /// The beginning of the constant pool that has `report`'s own texts.
    pub(super) base: Value,
    /// The next byte of the template.
    pub(super) at: Var,
    /// What its fields are of.
    pub(super) context: Var,
    /// Behind the last template that has been left for one inside.
    pub(super) left: Var,
    /// Where the next string goes.
    pub(super) next: Var,
    /// The end of what is left of the room for numbers.
    pub(super) free: Var,
    /// The next symbol of a list, the next step of a path.
    pub(super) index: Var,
    pub(super) step: Var,
    /// The number of the next subject of a long signature, where there are such signatures.
    pub(super) stated: Option<Var>,
    /// Reads the next byte; goes back to the template that was left, or out of the last.
    pub(super) head: Block,
    pub(super) end: Block,
    /// Where another template is entered, where names are looked for; once something does.
    pub(super) enter: Option<Block>,
    pub(super) named: Option<Block>,
    /// The message's strings, the templates that have been left, the operands of inner templates.
    pub(super) strings: StackSlot,
    pub(super) frames: StackSlot,
    pub(super) operands: StackSlot,
    /// The most strings, where they may be more.
    pub(super) capacity: Option<usize>,
}

impl<'m> StructuredCode<'m> for Printer<'m, '_> {
    fn builder(&mut self) -> &mut FunctionBuilder<'m> {
        &mut self.b
    }
}

impl Printer<'_, '_> {
    /// Goes through the template; then the current block is where it has come to its end.
    pub(super) fn run(&mut self) {
        let (base, template, context) = (self.b.param(0), self.b.param(1), self.b.param(2));
        let template = self.b.convert(ConvertOp::ZExt, Type::I64, template);
        let template = self.b.ptr_add(base, template);
        let [frames, strings] = [self.frames, self.strings].map(|slot| self.b.stack_addr(slot));
        let none = self.b.i64(0);
        for (var, value) in [
            (self.at, template),
            (self.context, context),
            (self.left, frames),
            (self.next, strings),
            (self.index, none),
            (self.step, none),
        ] {
            self.set(var, value);
        }
        self.go_on();

        self.b.switch_to(self.head);
        let start = self.get(self.at);
        let byte = self.next_byte();
        let first = self.b.iconst(Type::I8, i64::from(*TEXT.start()));
        let number = self.b.binary(BinaryOp::Sub, byte, first);
        let is_text = self.b.icmp_imm(IntCC::ULe, number, i64::from(TEXT.end() - TEXT.start()));
        self.on(is_text, |p| p.text(start));
        let is_shared = self.b.icmp_imm(IntCC::UGe, byte, i64::from(SHARED_TEXT));
        self.on(is_shared, |p| {
            let base = p.pool.shared();
            let base = p.own(base);
            let base = p.b.ptr_add_imm(base, -i64::from(SHARED_TEXT));
            let wide = p.b.convert(ConvertOp::ZExt, Type::I64, byte);
            let text = p.b.ptr_add(base, wide);
            p.push(text);
        });
        let is_end = self.is(byte, 0);
        let (end, value) = (self.end, self.b.block());
        self.b.branch(is_end, end, value, Hint::None);
        self.b.switch_to(value);
        self.on_directive(byte, Directive::Text, |p| {
            let start = p.get(p.at);
            p.text(start);
        });
        self.on_directive(byte, Directive::Quoted, |p| {
            let (data, size) = (p.context_field(Field::Got), p.context_field(Field::Payload));
            let data = p.b.convert(ConvertOp::IntToPtr, Type::Ptr, data);
            let copy = p.copy_text(data, size);
            p.push(copy);
        });
        self.on_directive(byte, Directive::Argument, |p| p.argument());
        if let Some(stated) = self.stated {
            self.on_directive(byte, Directive::Calling, |p| p.calling(stated));
            self.on_known_directive(byte, Directive::Stated, |p| p.stated(stated));
        }
        if self.has(Directive::DimPath) || self.has(Directive::Device) || self.has(Directive::DType) {
            self.on_known_directive(byte, Directive::Unless, |p| p.unless());
        }
        self.values(byte);
        self.symbols_and_steps(byte);
        self.fields(byte);
        self.leave();
    }

    /// The argument's number, where the value is an argument.
    fn argument(&mut self) {
        let context = self.get(self.context);
        let number = self.context_field(Field::Arg);
        let is_argument = self.b.icmp_imm(IntCC::SGe, number, 0);
        self.on(is_argument, |p| {
            let template = p.own_template(&ARGUMENT);
            p.enter(template, context);
        });
    }

    /// The signature that is called: a text, or a template that begins with the first subject.
    fn calling(&mut self, stated: Var) {
        let context = self.get(self.context);
        let calling = self.context_field(Field::Calling);
        let calling = self.b.convert(ConvertOp::IntToPtr, Type::Ptr, calling);
        let first = self.b.load(Type::I8, calling, 0, MemFlags::ALIGNED);
        let is_template = self.is(first, i64::from(Directive::Stated.own_code()));
        self.on(is_template, |p| {
            let call = p.b.i64(-1);
            p.set(stated, call);
            p.enter(calling, context);
        });
        self.push(calling);
    }

    /// A text of a subject, which is passed over where the message is about another.
    fn stated(&mut self, stated: Var) {
        let start = self.get(self.at);
        let (number, subject) = (self.get(stated), self.context_field(Field::Arg));
        let next = self.b.binary_imm(BinaryOp::Add, number, 1);
        self.set(stated, next);
        let is_subject = self.b.icmp(IntCC::Eq, number, subject);
        self.when(is_subject, |p| p.push(start));
        self.pass_text();
    }

    /// A value in a field that the byte tells.
    pub(super) fn fields(&mut self, byte: Value) {
        let fifteen = self.b.i64(15);
        let number = self.b.convert(ConvertOp::ZExt, Type::I64, byte);
        let number = self.and(number, fifteen);
        let context = self.get(self.context);
        let field = self.b.element(context, number, Type::I64);
        // fields are counted from 1
        let value = self.b.load(Type::I64, field, -8, MemFlags::ALIGNED);
        let is_number = self.b.icmp_imm(IntCC::ULt, byte, 0x10);
        self.on(is_number, |p| p.push_number(value));
        let address = self.b.convert(ConvertOp::IntToPtr, Type::Ptr, value);
        let is_string = self.b.icmp_imm(IntCC::ULt, byte, 0x20);
        self.on(is_string, |p| p.push(address));
        self.path_directive(byte, address);
    }

    /// Goes on with the template.
    pub(super) fn go_on(&mut self) {
        let head = self.head;
        self.b.jump(head, &[]);
    }

    pub(super) fn next_byte(&mut self) -> Value {
        let at = self.get(self.at);
        let byte = self.b.load(Type::I8, at, 0, MemFlags::ALIGNED);
        self.advance_imm(self.at, 1);
        byte
    }

    /// Runs `then` and goes on with the template where `cond` holds.
    pub(super) fn on(&mut self, cond: Value, then: impl FnOnce(&mut Self)) {
        let (yes, no) = (self.b.block(), self.b.block());
        self.b.branch(cond, yes, no, Hint::None);
        self.b.switch_to(yes);
        then(self);
        if !self.b.is_terminated() {
            self.go_on();
        }
        self.b.switch_to(no);
    }

    /// The same where the byte is a directive, if templates have it.
    pub(super) fn on_directive(&mut self, byte: Value, directive: Directive, then: impl FnOnce(&mut Self)) {
        if self.has(directive) {
            self.on_known_directive(byte, directive, then);
        }
    }

    /// The same for a directive that templates have.
    pub(super) fn on_known_directive(&mut self, byte: Value, directive: Directive, then: impl FnOnce(&mut Self)) {
        let is = self.is(byte, i64::from(directive.own_code()));
        self.on(is, then);
    }

    /// The same where the byte is one of two directives with codes in a row, for as many of them as templates have; `then` gets whether it is the second.
    pub(super) fn on_either(&mut self, byte: Value, directives: [Directive; 2], then: impl FnOnce(&mut Self, Value)) {
        match directives.map(|directive| self.has(directive)) {
            [true, true] => {
                let first = self.b.iconst(Type::I8, i64::from(directives[0].own_code()));
                let number = self.b.binary(BinaryOp::Sub, byte, first);
                let is_either = self.b.icmp_imm(IntCC::ULe, number, 1);
                self.on(is_either, |p| {
                    let number = p.b.convert(ConvertOp::ZExt, Type::I64, number);
                    then(p, number);
                });
            }
            [first, second] => {
                let directive = if first { directives[0] } else { directives[1] };
                self.on_directive(byte, directive, |p| {
                    let number = p.b.i64(i64::from(second));
                    then(p, number);
                });
            }
        }
    }

    pub(super) fn has(&self, feature: impl CapabilityBit) -> bool {
        self.capabilities.has(feature)
    }

    /// A field of the context.
    pub(super) fn context_field(&mut self, field: Field) -> Value {
        let context = self.get(self.context);
        self.b.load(Type::I64, context, 8 * field as i32, MemFlags::ALIGNED)
    }

    /// Pushes the text that is at `start`, and goes on behind it.
    pub(super) fn text(&mut self, start: Value) {
        self.push(start);
        self.pass_text();
    }

    /// Goes on behind the text that comes next.
    fn pass_text(&mut self) {
        let (inside, done) = (self.b.block(), self.b.block());
        self.b.jump(inside, &[]);
        self.b.switch_to(inside);
        let byte = self.next_byte();
        let more = self.b.icmp_imm(IntCC::Ne, byte, 0);
        self.b.branch(more, inside, done, Hint::None);
        self.b.switch_to(done);
    }

    /// Ends the template unless field 1 is something.
    pub(super) fn unless(&mut self) {
        let context = self.get(self.context);
        let condition = self.b.load(Type::I64, context, 8, MemFlags::ALIGNED);
        let holds = self.is_not(condition, 0);
        let (head, end) = (self.head, self.end);
        self.b.branch(holds, head, end, Hint::None);
    }

    /// Goes through another template, then on with this one.
    pub(super) fn enter(&mut self, template: Value, context: Value) {
        if let Some(block) = self.enter {
            return self.b.jump(block, &[template, context]);
        }
        let block = self.b.block();
        self.enter = Some(block);
        let params = [Type::Ptr, Type::Ptr].map(|ty| self.b.block_param(block, ty));
        self.b.jump(block, &[template, context]);
        let here = self.b.current();
        self.b.switch_to(block);
        let left = self.get(self.left);
        for (offset, var, inside) in [(0, self.at, params[0]), (8, self.context, params[1])] {
            let outside = self.get(var);
            self.b.store(outside, left, offset, MemFlags::ALIGNED);
            self.set(var, inside);
        }
        self.advance_imm(self.left, FRAME);
        self.go_on();
        self.b.switch_to(here);
    }

    /// The end of a template.
    pub(super) fn leave(&mut self) {
        self.b.switch_to(self.end);
        let (left, frames) = (self.get(self.left), self.b.stack_addr(self.frames));
        let inside = self.b.icmp(IntCC::Ne, left, frames);
        self.on(inside, |p| {
            p.advance_imm(p.left, -FRAME);
            let left = p.get(p.left);
            for (offset, var) in [(0, p.at), (8, p.context)] {
                let outside = p.b.load(Type::Ptr, left, offset, MemFlags::ALIGNED);
                p.set(var, outside);
            }
        });
    }

    /// The first string is the error's kind.
    pub(super) fn raise(&mut self, set_raised: FuncRef) {
        let strings = self.b.stack_addr(self.strings);
        let next = self.get(self.next);
        let kind = self.b.load(Type::Ptr, strings, 0, MemFlags::ALIGNED);
        let pieces = self.b.ptr_add_imm(strings, 8);
        let [from, to] = [pieces, next].map(|address| self.b.convert(ConvertOp::PtrToInt, Type::I64, address));
        let bytes = self.b.binary(BinaryOp::Sub, to, from);
        let three = self.b.i64(3);
        let count = self.b.binary(BinaryOp::LShr, bytes, three);
        let count = self.b.convert(ConvertOp::Truncate, Type::I32, count);
        self.b.call(set_raised, &[kind, pieces, count]);
        let failed = self.b.iconst(Type::I32, -1);
        self.b.ret(Some(failed));
    }

    /// Whether there is room for a string, where it may run out.
    pub(super) fn has_room(&mut self) -> Option<Value> {
        let end = 8 * self.capacity? as i64;
        let (next, strings) = (self.get(self.next), self.b.stack_addr(self.strings));
        let end = self.b.ptr_add_imm(strings, end);
        Some(self.b.icmp(IntCC::Ne, next, end))
    }

    /// The address of the operands of an inner template.
    pub(super) fn operands(&mut self) -> Value {
        self.b.stack_addr(self.operands)
    }

    /// Adds a C string to the message, where there is room.
    pub(super) fn push(&mut self, string: Value) {
        let write = |p: &mut Self| {
            let next = p.get(p.next);
            p.b.store(string, next, 0, MemFlags::ALIGNED);
            p.advance_imm(p.next, 8);
        };
        match self.has_room() {
            Some(room) => self.when(room, write),
            None => write(self),
        }
    }

    /// An address in the constant pool that has `report`'s own texts.
    pub(super) fn own(&mut self, offset: u32) -> Value {
        self.b.ptr_add_imm(self.base, i64::from(offset))
    }

    /// An inner template: the template that a directive stands for.
    pub(super) fn own_template(&mut self, pieces: &[Piece<'_>]) -> Value {
        let template = self.pool.inner_template(pieces);
        self.own(template)
    }

    /// Pushes a number in decimal.
    pub(super) fn push_number(&mut self, value: Value) {
        let end = self.get(self.free);
        let b = &mut self.b;
        let negative = b.icmp_imm(IntCC::SLt, value, 0);
        let zero = b.i64(0);
        // the least value is its own negative, and right as an unsigned number
        let negated = b.binary(BinaryOp::Sub, zero, value);
        let magnitude = b.select(negative, negated, value);
        let end = b.ptr_add_imm(end, -1);
        let nul = b.iconst(Type::I8, 0);
        b.store(nul, end, 0, MemFlags::ALIGNED);
        let (digits, sign, minus, done) = (b.block(), b.block(), b.block(), b.block());
        let at = b.block_param(digits, Type::Ptr);
        let rest = b.block_param(digits, Type::I64);
        let start = b.block_param(done, Type::Ptr);
        b.jump(digits, &[end, magnitude]);
        b.switch_to(digits);
        let ten = b.i64(10);
        let quotient = b.binary(BinaryOp::UDiv, rest, ten);
        let whole = b.binary(BinaryOp::Mul, quotient, ten);
        let digit = b.binary(BinaryOp::Sub, rest, whole);
        let ascii_zero = b.i64(i64::from(b'0'));
        let digit = b.binary(BinaryOp::Add, digit, ascii_zero);
        let digit = b.convert(ConvertOp::Truncate, Type::I8, digit);
        let before = b.ptr_add_imm(at, -1);
        b.store(digit, before, 0, MemFlags::ALIGNED);
        let more = b.icmp_imm(IntCC::Ne, quotient, 0);
        b.branch_with(more, (digits, &[before, quotient]), (sign, &[]), Hint::None);
        b.switch_to(sign);
        b.branch_with(negative, (minus, &[]), (done, &[before]), Hint::None);
        b.switch_to(minus);
        let dash = b.iconst(Type::I8, i64::from(b'-'));
        let first = b.ptr_add_imm(before, -1);
        b.store(dash, first, 0, MemFlags::ALIGNED);
        b.jump(done, &[first]);
        b.switch_to(done);
        self.set(self.free, start);
        self.push(start);
    }
}
