//! The ways out of a body: what it holds is released on each of them, in reverse order, once.
//!
//! The values that a body holds at a point of its text are a stack. Each entry has at most two blocks, made when a way out first needs them: one
//! for errors, which takes the code, and one for returning. Such a block releases its entry and goes on to the block of the entry below.
//! An error ends at the innermost handler, or in a return of its code.

use super::function::BodyLowerer;
use super::held::{Entry, Held};
use crate::ir::{Block, FuncRef, FuncSig, FunctionBuilder, Hint, IntCC, Linkage, MemFlags, Type, Value};
use crate::lower::abi::{PAYLOAD, TYPE_INDEX};
use crate::lower::{ffi_call, trace};
use tvm_ffi_runtime::abi::TypeIndex;

impl BodyLowerer<'_> {
    /// Holds a thing until the block of the text that is being written ends.
    pub(super) fn hold(&mut self, held: Held) {
        self.exits.stack.push(Entry { held, on_error: None, on_return: None });
    }

    /// Releases, on the present way, what is held above a depth, and holds it no longer.
    pub(super) fn let_go(&mut self, depth: usize) {
        self.release_above(depth);
        self.exits.stack.truncate(depth);
    }

    /// Releases what is held above a depth on the present way; other ways still hold it.
    pub(super) fn release_above(&mut self, depth: usize) {
        let held: Vec<Held> =
            self.exits.stack[depth.min(self.exits.stack.len())..].iter().map(|entry| entry.held).collect();
        for held in held.into_iter().rev() {
            self.release(held, false);
        }
    }

    fn release(&mut self, held: Held, on_error: bool) {
        match held {
            Held::Value(any) => release_any(&mut self.b, any, !on_error),
            Held::Depth(cell) => {
                let cell = self.b.data_addr(cell, 0);
                let less = self.b.i64(-1);
                self.b.atomic_add(cell, less);
            }
            Held::Handler(_) => {}
        }
    }

    /// Ends the current block with a code that is not 0: releases all that is held up to the innermost handler, and goes on there, or returns
    /// the code. The error's backtrace is extended by the source location, if there is one.
    pub(super) fn exit(&mut self, code: Value) {
        match self.exit_block() {
            Some(block) => self.b.jump(block, &[code]),
            None => self.b.ret(Some(code)),
        }
    }

    /// [`exit`](Self::exit) where the frame has a copy of a value, by which the value is released if it is what is held last: then no
    /// register keeps the value's own address on the way that doesn't leave.
    pub(super) fn exit_with_copy(&mut self, any: Value, copy: Value, code: Value) {
        let depth = self.exits.depth();
        match self.exits.stack.last_mut() {
            Some(entry) if entry.held == Held::Value(any) => {
                let own = std::mem::replace(entry, Entry { held: Held::Value(copy), on_error: None, on_return: None });
                self.exit(code);
                self.exits.stack[depth - 1] = own;
            }
            _ => self.exit(code),
        }
    }

    /// The block of [`exit`](Self::exit), which takes the code; `None` where a return is all.
    pub(super) fn exit_block(&mut self) -> Option<Block> {
        let untraced = self.on_error(self.exits.depth());
        let Some(location) = self.b.location() else { return untraced };
        if let Some(known) = self.exits.traced.get(&(untraced, location)) {
            return Some(*known);
        }
        let (block, _) = self.aside(|l, code| {
            let line = {
                let at = &l.b.module().locations[location];
                trace::line(&at.file, at.line, &at.function)
            };
            // a C function has no wrapper whose frame tells how far the stack was walked: the line itself tells
            let seen = if l.is_c { line.clone() } else { trace::end_of_line(l.wrapper) };
            let [line, wrapper] = [line, seen].map(|text| trace::text(&mut l.b, l.pool, &text));
            trace::append_texts(&mut l.b, line, wrapper, code);
            match untraced {
                Some(next) => l.b.jump(next, &[code]),
                None => l.b.ret(Some(code)),
            }
        });
        self.exits.traced.insert((untraced, location), block);
        Some(block)
    }

    /// A cold block that takes a code, written apart from the present block and without a source location.
    fn aside(&mut self, write: impl FnOnce(&mut Self, Value)) -> (Block, Value) {
        let (here, location) = (self.b.current(), self.b.location());
        let block = self.b.cold_block();
        let code = self.b.block_param(block, Type::I32);
        self.b.switch_to(block);
        write(self, code);
        self.b.switch_to(here);
        self.b.set_location(location);
        (block, code)
    }

    /// The block that releases what is held below a depth and passes an error's code on; `None` for a return of the code.
    fn on_error(&mut self, depth: usize) -> Option<Block> {
        let entry = &self.exits.stack[..depth].last()?;
        if let Held::Handler(block) = entry.held {
            return Some(block);
        }
        if let Some(known) = entry.on_error {
            return Some(known);
        }
        let held = entry.held;
        let below = self.on_error(depth - 1);
        let (block, _) = self.aside(|l, code| {
            l.b.set_location(None);
            l.release(held, true);
            match below {
                Some(below) => l.b.jump(below, &[code]),
                None => l.b.ret(Some(code)),
            }
        });
        self.exits.stack[depth - 1].on_error = Some(block);
        Some(block)
    }

    /// Ends the current block by returning 0, once all that is held is released.
    pub(super) fn succeed(&mut self) {
        let depth = self.exits.depth();
        if depth > 0 && !self.exits.has_handler() {
            if let Some(block) = self.on_error(depth) {
                let code = self.b.iconst(Type::I32, 0);
                self.b.jump(block, &[code]);
            }
            return;
        }
        match self.on_return(depth) {
            Some(block) => self.b.jump(block, &[]),
            None => crate::lower::abi::succeed(&mut self.b),
        }
    }

    /// The block that releases what is held below a depth and returns 0; `None` where nothing is. It is needed where a handler is
    /// below: else the block for errors does the same, with the code 0.
    fn on_return(&mut self, depth: usize) -> Option<Block> {
        let entry = &self.exits.stack[..depth].last()?;
        let held = entry.held;
        if let Held::Handler(_) = held {
            return self.on_return(depth - 1);
        }
        if let Some(known) = entry.on_return {
            return Some(known);
        }
        let below = self.on_return(depth - 1);
        let (here, location) = (self.b.current(), self.b.location());
        let block = self.b.block();
        self.b.switch_to(block);
        self.b.set_location(None);
        self.release(held, false);
        match below {
            Some(below) => self.b.jump(below, &[]),
            None => crate::lower::abi::succeed(&mut self.b),
        }
        self.b.switch_to(here);
        self.b.set_location(location);
        self.exits.stack[depth - 1].on_return = Some(block);
        Some(block)
    }

    /// The block of [`exit`](Self::exit), which takes the code, also where a return is all.
    pub(super) fn exit_target(&mut self) -> Block {
        if let Some(block) = self.exit_block() {
            return block;
        }
        if let Some(known) = self.exits.plain {
            return known;
        }
        let (block, _) = self.aside(|l, code| l.b.ret(Some(code)));
        *self.exits.plain.insert(block)
    }

    /// Goes on where `code` is 0, else leaves by [`exit`](Self::exit).
    pub(super) fn exit_unless_zero(&mut self, code: Value) {
        let exit = self.exit_target();
        let next = self.b.block();
        let fine = self.b.icmp_imm(IntCC::Eq, code, 0);
        self.b.branch_with(fine, (next, &[]), (exit, &[code]), Hint::Likely);
        self.b.switch_to(next);
    }
}

/// Gives up the reference that a `TVMFFIAny` has, if it is an object's; `inline` says that a call is only made where it is one.
pub(super) fn release_any(b: &mut FunctionBuilder<'_>, any: Value, inline: bool) {
    let release = releaser(b);
    if !inline {
        b.call(release, &[any]);
        return;
    }
    let index = b.load(Type::I32, any, TYPE_INDEX, MemFlags::ALIGNED);
    let is_object = b.icmp_imm(IntCC::SGe, index, i64::from(TypeIndex::STATIC_OBJECT_BEGIN.0));
    let (yes, no) = (b.block(), b.block());
    b.branch(is_object, yes, no, Hint::None);
    b.switch_to(yes);
    b.call(release, &[any]);
    b.jump(no, &[]);
    b.switch_to(no);
}

/// `void release(const TVMFFIAny* any)`: gives up the reference that a value has, if it is an object's.
fn releaser(b: &mut FunctionBuilder<'_>) -> FuncRef {
    const NAME: &str = "__tvm_ffi_codegen_release";
    let module = b.module();
    if let Some((known, _)) = module.function_named(NAME) {
        return known;
    }
    let func = module.declare(NAME, FuncSig::new([Type::Ptr], None), Linkage::Local);
    module.functions[func].cold = true;
    let mut b = FunctionBuilder::new(module, func);
    let any = b.param(0);
    let (object, release, done) = (b.block(), b.block(), b.block());
    let index = b.load(Type::I32, any, TYPE_INDEX, MemFlags::ALIGNED);
    let is_object = b.icmp_imm(IntCC::SGe, index, i64::from(TypeIndex::STATIC_OBJECT_BEGIN.0));
    b.branch(is_object, object, done, Hint::None);
    b.switch_to(object);
    let payload = b.load(Type::Ptr, any, PAYLOAD, MemFlags::ALIGNED);
    // a callee that took the object has left NULL
    let there = b.icmp_imm(IntCC::Ne, payload, 0);
    b.branch(there, release, done, Hint::None);
    b.switch_to(release);
    ffi_call::release(&mut b, payload);
    b.jump(done, &[]);
    b.switch_to(done);
    b.ret(None);
    b.finish()
}
