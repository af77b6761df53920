//! The stack of what a body owns at a program point, with the blocks that release it.

use std::collections::HashMap;

use crate::ir::{Block, DataRef, LocationRef, StackSlot, Value};
use crate::spec::ScalarType;

/// Something that a body has to release when it leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Held {
    /// The `TVMFFIAny` at an address in the frame; it is None after it has been moved.
    Value(Value),
    /// An active call, counted in a cell.
    Depth(DataRef),
    /// The handler of a `try`; its block takes the code of an error.
    Handler(Block),
}

/// A stack entry, with the blocks that start by releasing it.
pub(super) struct HeldEntry {
    pub held: Held,
    pub on_error: Option<Block>,
    pub on_return: Option<Block>,
}

/// The exits of one body.
#[derive(Default)]
pub(super) struct Exits {
    pub stack: Vec<HeldEntry>,
    /// The blocks that append a location to the backtrace and then jump to a block (or return).
    pub traced: HashMap<(Option<Block>, LocationRef), Block>,
    /// The block that returns the code passed to it, created when first needed.
    pub plain: Option<Block>,
    /// The number of jumps to each shared block.
    jumps: HashMap<Block, usize>,
    /// The blocks that later jumps to a full block take.
    pub detours: HashMap<Block, Detour>,
    /// The open loops, from the outermost to the innermost.
    loops: Vec<OpenLoop>,
}

/// The way to a block that takes a code and is full.
#[derive(Clone, Copy)]
pub(super) struct Detour {
    /// The block for the next jumps. It takes the code, stores it and jumps to `gather`.
    pub entry: Block,
    /// The slot of the code.
    pub code: StackSlot,
    /// The block that loads the code and passes it to the full block.
    pub gather: Block,
}

/// The maximum number of jumps to a shared block that takes values. Cranelift's register allocator tries to give a
/// parameter and all values passed for it one register. Its time grows with the square of the number of jumps.
const MAX_JUMPS: usize = 256;

/// A loop whose body is being written.
#[derive(Clone)]
pub(super) struct OpenLoop {
    /// The block at which a turn begins. It takes the index and the turns left, if there are any, and the carried
    /// values.
    pub head: Block,
    /// The block after the loop.
    pub done: Block,
    /// The depth of the stack outside the loop.
    pub depth: usize,
    /// `None` for a loop without an index.
    pub counter: Option<Counter>,
    pub carried: Vec<Carried>,
}

/// The index of a loop.
#[derive(Clone, Copy)]
pub(super) struct Counter {
    pub index: Value,
    /// `None` for a step of 1.
    pub step: Option<Value>,
    /// The number of turns left; `None` if the step is 1.
    pub left: Option<Value>,
}

/// A value that a loop carries, with which the current turn began.
#[derive(Clone, Copy)]
pub(super) struct Carried {
    pub value: Value,
    pub ty: ScalarType,
    /// Whether the first value is a placeholder after an error. The next values may then have any type.
    pub missing: bool,
}

impl Exits {
    /// Counts a jump to a shared block. False if the block is full.
    pub(super) fn takes_jump(&mut self, block: Block) -> bool {
        let jumps = self.jumps.entry(block).or_default();
        *jumps += 1;
        *jumps <= MAX_JUMPS
    }

    /// The current depth of the stack.
    pub(super) fn depth(&self) -> usize {
        self.stack.len()
    }

    pub(super) fn enter_loop(&mut self, entered: OpenLoop) {
        self.loops.push(entered);
    }

    pub(super) fn leave_loop(&mut self) -> Option<OpenLoop> {
        self.loops.pop()
    }

    /// Removes the top entry, because it owns nothing.
    pub(super) fn forget(&mut self) {
        self.stack.pop();
    }

    /// Removes the entries above a depth, because the path that held them has ended.
    pub(super) fn cut(&mut self, depth: usize) {
        self.stack.truncate(depth);
    }

    /// Whether a handler would catch an error.
    pub(super) fn has_handler(&self) -> bool {
        self.stack.iter().any(|entry| matches!(entry.held, Held::Handler(_)))
    }

    /// The number of open loops.
    pub(super) fn loops(&self) -> usize {
        self.loops.len()
    }

    /// The blocks after the open loops; each identifies its loop.
    pub(super) fn open_loops(&self) -> impl Iterator<Item = Block> {
        self.loops.iter().map(|looped| looped.done)
    }

    /// The loop at that nesting depth.
    pub(super) fn loop_at(&self, depth: usize) -> Option<Block> {
        self.loops.get(depth).map(|looped| looped.done)
    }

    /// The innermost loop.
    pub(super) fn innermost_loop(&self) -> Option<OpenLoop> {
        self.loops.last().cloned()
    }
}
