//! `report` under construction: the template that it reads, and the strings that it creates.

use std::cell::{Cell, RefCell};

use crate::ir::{BinaryOp, Block, ConvertOp, Emitter, FuncRef, Hint, StackSlot, Type, Val, Var};
use crate::lower::binder::helper::ARGUMENT;
use crate::lower::constants::ConstantPool;
use crate::lower::protocol::{Capabilities, CapabilityBit, Directive, Field, MAX_STRINGS, Piece, SHARED_TEXT, TEXT};

/// The max number of C strings, including the error's kind; further ones are omitted. Only lists of variables get long.
pub(super) const CAPACITY: usize = 1 + 160;
const _: () = assert!(CAPACITY > 2 * MAX_STRINGS);
/// Room for a 64-bit number in decimal, its sign and a NUL.
pub(super) const CELL: usize = 24;
/// Max nesting of templates: variables, their paths, steps.
pub(super) const DEPTH: usize = 4;
/// Bytes of a frame, which saves the outer template's position and context while an inner one is read.
pub(super) const FRAME: i64 = 16;

/// The max number of operands of an inner template.
pub(super) const MAX_OPERANDS: usize = 8;

pub(super) struct Printer<'c, 't> {
    pub(super) c: Emitter<'c>,
    pub(super) pool: RefCell<&'t mut ConstantPool>,
    pub(super) capabilities: Capabilities,
    /// The start of the constant pool with `report`'s own strings.
    pub(super) base: Val<'c>,
    /// The address of the template's next byte.
    pub(super) at: Var<'c>,
    /// The context that the template's fields refer to.
    pub(super) context: Var<'c>,
    /// The end of the stack of frames.
    pub(super) left: Var<'c>,
    /// Where to store the next string.
    pub(super) next: Var<'c>,
    /// The end of the remaining room for numbers. It is filled from the end.
    pub(super) free: Var<'c>,
    /// The next variable of a list, the next step of a path.
    pub(super) index: Var<'c>,
    pub(super) step: Var<'c>,
    /// The number of the next subject of a long signature; `None` if there are no long signatures.
    pub(super) stated: Option<Var<'c>>,
    /// `head` reads the next byte. `end` returns to the outer template, or leaves the outermost one.
    pub(super) head: Block,
    pub(super) end: Block,
    /// The blocks that enter a template and look up a name; created on first use.
    pub(super) enter: Cell<Option<Block>>,
    pub(super) named: Cell<Option<Block>>,
    /// The stack slots of the message's strings, the frames, and the operands of inner templates.
    pub(super) strings: StackSlot,
    pub(super) frames: StackSlot,
    pub(super) operands: StackSlot,
    /// The max number of strings, if there may be more.
    pub(super) capacity: Option<usize>,
}

impl<'c> Printer<'c, '_> {
    /// Processes the template. Afterwards the current block is the one that follows its end.
    pub(super) fn run(&self) {
        let (base, template, context) = (self.c.param(0), self.c.param(1), self.c.param(2));
        let template = base + template.zext();
        let [frames, strings] = [self.frames, self.strings].map(|slot| self.c.stack_addr(slot));
        let none = self.c.i64(0);
        for (var, value) in [
            (self.at, template),
            (self.context, context),
            (self.left, frames),
            (self.next, strings),
            (self.index, none),
            (self.step, none),
        ] {
            var.set(value);
        }
        self.go_on();

        self.c.switch_to(self.head);
        let start = self.at.get();
        let byte = self.next_byte();
        self.on((byte - self.c.i8(i64::from(*TEXT.start()))).ule(i64::from(TEXT.end() - TEXT.start())), || {
            self.text(start)
        });
        self.on(byte.uge(SHARED_TEXT), || {
            self.push((self.own(self.pool.borrow_mut().shared()) + (-i64::from(SHARED_TEXT))) + byte.zext());
        });
        let is_end = byte.is(0);
        let (end, value) = (self.end, self.c.block());
        self.c.branch(is_end, end, value, Hint::None);
        self.c.switch_to(value);
        self.on_directive(byte, Directive::Text, || {
            self.text(self.at.get());
        });
        self.on_directive(byte, Directive::Quoted, || {
            let (data, size) = (self.context_field(Field::Got), self.context_field(Field::Payload));
            self.push(self.copy_text(data.pointer(), size));
        });
        self.on_directive(byte, Directive::Argument, || self.argument());
        if let Some(stated) = self.stated {
            self.on_directive(byte, Directive::Calling, || self.calling(stated));
            self.on_known_directive(byte, Directive::Stated, || self.stated(stated));
        }
        if self.has(Directive::DimPath) || self.has(Directive::Device) || self.has(Directive::DType) {
            self.on_known_directive(byte, Directive::Unless, || self.unless());
        }
        self.values(byte);
        self.vars_and_steps(byte);
        self.fields(byte);
        self.leave();
    }

    /// Prints the argument's number if the value is an argument.
    fn argument(&self) {
        let context = self.context.get();
        self.on(self.context_field(Field::Arg).ge(0), || {
            self.enter(self.own_template(&ARGUMENT), context);
        });
    }

    /// Prints the signature that is called: a string, or a template that begins with the first subject.
    fn calling(&self, stated: Var<'c>) {
        let context = self.context.get();
        let calling = self.context_field(Field::Calling).pointer();
        self.on(calling.load(Type::I8, 0).is(Directive::Stated.own_code()), || {
            stated.set(self.c.i64(-1));
            self.enter(calling, context);
        });
        self.push(calling);
    }

    /// Prints the string of a subject, or skips it if the message is about another one.
    fn stated(&self, stated: Var<'c>) {
        let start = self.at.get();
        let (number, subject) = (stated.get(), self.context_field(Field::Arg));
        stated.set(number + 1);
        self.c.when(number.is(subject), || self.push(start));
        self.pass_text();
    }

    /// Prints the value of the field that the byte encodes.
    pub(super) fn fields(&self, byte: Val<'c>) {
        let fifteen = self.c.i64(15);
        let number = byte.zext() & fifteen;
        let field = self.context.get().element(number, Type::I64);
        // fields are counted from 1
        let value = field.load(Type::I64, -8);
        self.on(byte.ult(0x10), || self.push_number(value));
        let address = value.pointer();
        self.on(byte.ult(0x20), || self.push(address));
        self.path_directive(byte, address);
    }

    /// Continues with the template.
    pub(super) fn go_on(&self) {
        self.c.jump(self.head, &[]);
    }

    pub(super) fn next_byte(&self) -> Val<'c> {
        let byte = self.at.get().load(Type::I8, 0);
        self.at.advance(1);
        byte
    }

    /// If `cond` holds, runs `then` and continues with the template.
    pub(super) fn on(&self, cond: Val<'c>, then: impl FnOnce()) {
        let (yes, no) = (self.c.block(), self.c.block());
        self.c.branch(cond, yes, no, Hint::None);
        self.c.switch_to(yes);
        then();
        if !self.c.is_terminated() {
            self.go_on();
        }
        self.c.switch_to(no);
    }

    /// The same for a byte that is a directive, if any template uses the directive.
    pub(super) fn on_directive(&self, byte: Val<'c>, directive: Directive, then: impl FnOnce()) {
        if self.has(directive) {
            self.on_known_directive(byte, directive, then);
        }
    }

    /// The same for a directive that templates use.
    pub(super) fn on_known_directive(&self, byte: Val<'c>, directive: Directive, then: impl FnOnce()) {
        self.on(byte.is(directive.own_code()), then);
    }

    /// The same for a byte that is one of two directives with consecutive codes, if any template uses them. `then`
    /// receives whether it is the second.
    pub(super) fn on_either(&self, byte: Val<'c>, directives: [Directive; 2], then: impl FnOnce(Val<'c>)) {
        match directives.map(|directive| self.has(directive)) {
            [true, true] => {
                let first = self.c.i8(directives[0].own_code().into());
                let number = byte - first;
                self.on(number.ule(1), || {
                    then(number.zext());
                });
            }
            [first, second] => {
                let directive = if first { directives[0] } else { directives[1] };
                self.on_directive(byte, directive, || {
                    then(self.c.i64(second.into()));
                });
            }
        }
    }

    pub(super) fn has(&self, feature: impl CapabilityBit) -> bool {
        self.capabilities.has(feature)
    }

    /// A field of the context.
    pub(super) fn context_field(&self, field: Field) -> Val<'c> {
        self.context.get().load(Type::I64, 8 * field as i32)
    }

    /// Pushes the string at `start` and continues after it.
    pub(super) fn text(&self, start: Val<'c>) {
        self.push(start);
        self.pass_text();
    }

    /// Skips the string that comes next.
    fn pass_text(&self) {
        let (inside, done) = (self.c.block(), self.c.block());
        self.c.jump(inside, &[]);
        self.c.switch_to(inside);
        self.c.branch(self.next_byte().is_not(0), inside, done, Hint::None);
        self.c.switch_to(done);
    }

    /// Ends the template unless field 1 is nonzero.
    pub(super) fn unless(&self) {
        let holds = self.context.get().load(Type::I64, 8).is_not(0);
        let (head, end) = (self.head, self.end);
        self.c.branch(holds, head, end, Hint::None);
    }

    /// Reads another template, then continues with this one.
    pub(super) fn enter(&self, template: Val<'c>, context: Val<'c>) {
        if let Some(block) = self.enter.get() {
            return self.c.jump(block, &[template, context]);
        }
        let block = self.c.block();
        self.enter.set(Some(block));
        let params = [Type::Ptr, Type::Ptr].map(|ty| self.c.block_param(block, ty));
        self.c.jump(block, &[template, context]);
        let here = self.c.current();
        self.c.switch_to(block);
        let left = self.left.get();
        for (offset, var, inside) in [(0, self.at, params[0]), (8, self.context, params[1])] {
            left.store(offset, var.get());
            var.set(inside);
        }
        self.left.advance(FRAME);
        self.go_on();
        self.c.switch_to(here);
    }

    /// Emits the end of a template.
    pub(super) fn leave(&self) {
        self.c.switch_to(self.end);
        let (left, frames) = (self.left.get(), self.c.stack_addr(self.frames));
        self.on(left.is_not(frames), || {
            self.left.advance(-FRAME);
            let left = self.left.get();
            for (offset, var) in [(0, self.at), (8, self.context)] {
                var.set(left.load(Type::Ptr, offset));
            }
        });
    }

    /// Raises the error. The first string is its kind.
    pub(super) fn raise(&self, set_raised: FuncRef) {
        let strings = self.c.stack_addr(self.strings);
        let next = self.next.get();
        let kind = strings.load(Type::Ptr, 0);
        let pieces = strings + 8;
        let [from, to] = [pieces, next].map(|address| address.address());
        self.c.call(set_raised, &[kind, pieces, ((to - from) >> 3).convert(ConvertOp::Truncate, Type::I32)]);
        self.c.ret(self.c.i32(-1));
    }

    /// Whether there is room for a string; `None` if room can't run out.
    pub(super) fn has_room(&self) -> Option<Val<'c>> {
        let end = 8 * self.capacity? as i64;
        let (next, strings) = (self.next.get(), self.c.stack_addr(self.strings));
        Some(next.is_not(strings + end))
    }

    /// The address of the operands of an inner template.
    pub(super) fn operands(&self) -> Val<'c> {
        self.c.stack_addr(self.operands)
    }

    /// Adds a C string to the message if there is room.
    pub(super) fn push(&self, string: Val<'c>) {
        let write = || {
            self.next.get().store(0, string);
            self.next.advance(8);
        };
        match self.has_room() {
            Some(room) => self.c.when(room, write),
            None => write(),
        }
    }

    /// An address in the constant pool with `report`'s own strings.
    pub(super) fn own(&self, offset: u32) -> Val<'c> {
        self.base + offset
    }

    /// Adds the inner template that a directive expands to.
    pub(super) fn own_template(&self, pieces: &[Piece<'_>]) -> Val<'c> {
        self.own(self.pool.borrow_mut().inner_template(pieces))
    }

    /// Pushes a number in decimal.
    pub(super) fn push_number(&self, value: Val<'c>) {
        let c = self.c;
        let end = self.free.get();
        let negative = value.lt(0);
        let zero = c.i64(0);
        // the minimum is its own negative, which is correct as an unsigned number
        let magnitude = negative.select(zero - value, value);
        let end = end + -1;
        end.store(0, c.i8(0));
        let (digits, sign, minus, done) = (c.block(), c.block(), c.block(), c.block());
        let at = c.block_param(digits, Type::Ptr);
        let rest = c.block_param(digits, Type::I64);
        let start = c.block_param(done, Type::Ptr);
        c.jump(digits, &[end, magnitude]);
        c.switch_to(digits);
        let ten = c.i64(10);
        let quotient = rest.binary(BinaryOp::UDiv, ten);
        let digit = (rest - quotient * ten + i64::from(b'0')).convert(ConvertOp::Truncate, Type::I8);
        let before = at + -1;
        before.store(0, digit);
        c.branch_with(quotient.is_not(0), (digits, &[before, quotient]), (sign, &[]), Hint::None);
        c.switch_to(sign);
        c.branch_with(negative, (minus, &[]), (done, &[before]), Hint::None);
        c.switch_to(minus);
        let dash = c.i8(i64::from(b'-'));
        let first = before + -1;
        first.store(0, dash);
        c.jump(done, &[first]);
        c.switch_to(done);
        self.free.set(start);
        self.push(start);
    }
}
