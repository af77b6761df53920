//! Exits from a body: each exit releases all held values once, in reverse order.
//!
//! The values held at a program point form a stack. Each entry has at most two blocks, created when an exit first needs
//! them: one for errors, which takes the code, and one for returning. Such a block releases its entry and jumps to the
//! block of the entry below. An error path ends at the innermost handler, or returns the code.

use super::function::BodyLowerer;
use super::held::{Detour, Held, HeldEntry};
use crate::ir::{Block, FuncRef, FuncSig, FunctionBuilder, Hint, IntCC, MemFlags, Module, Type, Value};
use crate::lower::abi::{PAYLOAD, TYPE_INDEX};
use crate::lower::{ffi_call, trace};
use tvm_ffi_runtime::abi::TypeIndex;

impl BodyLowerer<'_> {
    /// Holds a value until the end of the current block of the body.
    pub(super) fn hold(&mut self, held: Held) {
        self.exits.stack.push(HeldEntry { held, on_error: None, on_return: None });
    }

    /// Releases everything held above a depth on the current path, and stops holding it.
    pub(super) fn let_go(&mut self, depth: usize) {
        self.release_above(depth);
        self.exits.stack.truncate(depth);
    }

    /// Releases everything held above a depth on the current path only; other paths still hold it.
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

    /// Ends the current block with a nonzero code. Releases everything up to the innermost handler and jumps there, or
    /// returns the code. If there is a source location, it is appended to the error's backtrace.
    pub(super) fn exit(&mut self, code: Value) {
        match self.exit_block() {
            Some(block) => self.b.jump(block, &[code]),
            None => self.b.ret(Some(code)),
        }
    }

    /// Like [`exit`](Self::exit), for a value that also has a copy in the frame. If the value is the top of the stack,
    /// it is released through the copy. So no register keeps the value's own address on the path that doesn't leave.
    pub(super) fn exit_with_copy(&mut self, any: Value, copy: Value, code: Value) {
        let depth = self.exits.depth();
        match self.exits.stack.last_mut() {
            Some(entry) if entry.held == Held::Value(any) => {
                let own =
                    std::mem::replace(entry, HeldEntry { held: Held::Value(copy), on_error: None, on_return: None });
                self.exit(code);
                self.exits.stack[depth - 1] = own;
            }
            _ => self.exit(code),
        }
    }

    /// The block of [`exit`](Self::exit), which takes the code of one jump; `None` if returning the code is enough.
    pub(super) fn exit_block(&mut self) -> Option<Block> {
        self.traced_exit().map(|block| self.with_room(block))
    }

    /// The block of [`exit_block`](Self::exit_block), which may be full.
    fn traced_exit(&mut self) -> Option<Block> {
        let untraced = self.on_error(self.exits.depth());
        let Some(location) = self.b.location() else { return untraced };
        if let Some(known) = self.exits.traced.get(&(untraced, location)) {
            return Some(*known);
        }
        let block = self.aside(|l, code| {
            let line = {
                let at = &l.b.module().locations[location];
                trace::line(&at.file, at.line, &at.function)
            };
            // A wrapper's frame in the traceback shows how far the stack was walked. A C function has no wrapper, so
            // its own line shows that.
            let seen = if l.is_c { line.clone() } else { trace::end_of_line(l.wrapper) };
            l.b.structured(|c| {
                let [line, wrapper] = [line, seen].map(|text| trace::text(c, l.pool, &text));
                trace::append_texts(c, line, wrapper, c.val(code));
            });
            l.pass_on(code, untraced);
        });
        self.exits.traced.insert((untraced, location), block);
        Some(block)
    }

    /// Ends the current block: passes a code to a shared block, or returns it.
    fn pass_on(&mut self, code: Value, next: Option<Block>) {
        match next.map(|block| self.with_room(block)) {
            Some(block) => self.b.jump(block, &[code]),
            None => self.b.ret(Some(code)),
        }
    }

    /// A shared block that takes a code, or a detour to it if it is full. For one jump.
    fn with_room(&mut self, block: Block) -> Block {
        let detour = self.exits.detours.get(&block).copied();
        let entry = detour.map_or(block, |detour| detour.entry);
        if self.exits.takes_jump(entry) {
            return entry;
        }
        let (slot, gather) = detour.map(|detour| (detour.code, detour.gather)).unwrap_or_else(|| {
            let slot = self.b.slot(4, 4);
            let gather = self.b.cold_block();
            self.write_aside(gather, |l| {
                l.b.set_location(None);
                let place = l.b.stack_addr(slot);
                let code = l.b.load(Type::I32, place, 0, MemFlags::ALIGNED);
                l.b.jump(block, &[code]);
            });
            (slot, gather)
        });
        let entry = self.aside(|l, code| {
            l.b.set_location(None);
            let place = l.b.stack_addr(slot);
            l.b.store(code, place, 0, MemFlags::ALIGNED);
            l.b.jump(gather, &[]);
        });
        self.exits.takes_jump(entry);
        self.exits.detours.insert(block, Detour { entry, code: slot, gather });
        entry
    }

    /// Writes a cold block that takes a code. The current block and its source location don't change.
    fn aside(&mut self, write: impl FnOnce(&mut Self, Value)) -> Block {
        let block = self.b.cold_block();
        let code = self.b.block_param(block, Type::I32);
        self.write_aside(block, |l| write(l, code));
        block
    }

    /// Writes a block. The current block and its source location don't change.
    fn write_aside(&mut self, block: Block, write: impl FnOnce(&mut Self)) {
        let (here, location) = (self.b.current(), self.b.location());
        self.b.switch_to(block);
        write(self);
        self.b.switch_to(here);
        self.b.set_location(location);
    }

    /// The block that releases everything held below a depth and passes an error's code on; `None` if returning the
    /// code is enough.
    fn on_error(&mut self, depth: usize) -> Option<Block> {
        // find the innermost entry that has a block already; the entries above it get theirs, from the bottom up
        let known = |entry: &HeldEntry| match entry.held {
            Held::Handler(block) => Some(block),
            _ => entry.on_error,
        };
        let at = self.exits.stack[..depth].iter().rposition(|entry| known(entry).is_some());
        let mut below = at.and_then(|at| known(&self.exits.stack[at]));
        for index in at.map_or(0, |at| at + 1)..depth {
            let held = self.exits.stack[index].held;
            let block = self.aside(|l, code| {
                l.b.set_location(None);
                l.release(held, true);
                l.pass_on(code, below);
            });
            self.exits.stack[index].on_error = Some(block);
            below = Some(block);
        }
        below
    }

    /// Ends the current block: releases everything held, and returns 0.
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

    /// The block that releases everything held below a depth and returns 0; `None` if nothing is held. Only a body with
    /// a handler below needs it: otherwise the block for errors does the same with code 0.
    fn on_return(&mut self, depth: usize) -> Option<Block> {
        let at = self.exits.stack[..depth].iter().rposition(|entry| entry.on_return.is_some());
        let mut below = at.and_then(|at| self.exits.stack[at].on_return);
        let (here, location) = (self.b.current(), self.b.location());
        for index in at.map_or(0, |at| at + 1)..depth {
            let held = self.exits.stack[index].held;
            if let Held::Handler(_) = held {
                continue;
            }
            let block = self.b.block();
            self.b.switch_to(block);
            self.b.set_location(None);
            self.release(held, false);
            match below {
                Some(below) => self.b.jump(below, &[]),
                None => crate::lower::abi::succeed(&mut self.b),
            }
            self.exits.stack[index].on_return = Some(block);
            below = Some(block);
        }
        self.b.switch_to(here);
        self.b.set_location(location);
        below
    }

    /// The block of [`exit`](Self::exit), which takes the code, even if returning the code is enough.
    pub(super) fn exit_target(&mut self) -> Block {
        if let Some(block) = self.exit_block() {
            return block;
        }
        let plain = match self.exits.plain {
            Some(known) => known,
            None => self.aside(|l, code| l.b.ret(Some(code))),
        };
        self.exits.plain = Some(plain);
        self.with_room(plain)
    }

    /// Continues if `code` is 0, otherwise leaves with [`exit`](Self::exit).
    pub(super) fn exit_unless_zero(&mut self, code: Value) {
        let exit = self.exit_target();
        let next = self.b.block();
        let fine = self.b.icmp_imm(IntCC::Eq, code, 0);
        self.b.branch_with(fine, (next, &[]), (exit, &[code]), Hint::Likely);
        self.b.switch_to(next);
    }
}

/// Releases the reference in a `TVMFFIAny`, if it holds an object. With `inline`, the type is checked inline, and only
/// objects need a call.
///
/// The value is identified by the address of its payload, computed here and used only here. The value's own address
/// would stay live from its creation to here, and compile time would grow with the square of the number of values.
pub(super) fn release_any(b: &mut FunctionBuilder<'_>, any: Value, inline: bool) {
    let payload = match b.slot_of(any) {
        Some(slot) => b.stack_addr_at(slot, PAYLOAD as u32),
        None => b.ptr_add_imm(any, i64::from(PAYLOAD)),
    };
    let release = releaser(b.module());
    b.structured(|c| {
        let payload = c.val(payload);
        let call = || {
            c.call(release, &[payload]);
        };
        match inline {
            true => c.pass_unless(payload.load(Type::I32, TYPE_INDEX - PAYLOAD).ge(OBJECTS), call),
            false => call(),
        }
    });
}

/// The least type index of an object.
const OBJECTS: i32 = TypeIndex::STATIC_OBJECT_BEGIN.0;

/// `void release(const int64_t* payload)`: releases the reference in a `TVMFFIAny`, given the address of its payload,
/// if it holds an object.
fn releaser(module: &mut Module) -> FuncRef {
    module.cold_local_once("__tvm_ffi_codegen_release", FuncSig::new([Type::Ptr], None), |c| {
        let at = c.param(0);
        let [object, release, done] = c.blocks();
        c.branch(at.load(Type::I32, TYPE_INDEX - PAYLOAD).ge(OBJECTS), object, done, Hint::None);
        c.switch_to(object);
        let payload = at.load(Type::Ptr, 0);
        // a callee that took the object has left NULL
        c.branch(payload.is_not(0), release, done, Hint::None);
        c.switch_to(release);
        ffi_call::release(c, payload);
        c.jump(done, &[]);
        c.switch_to(done);
        c.ret(None);
    })
}
