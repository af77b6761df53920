//! What a body holds at a point of its text: a stack, with the blocks by which it is given up.

use std::collections::HashMap;

use crate::ir::{Block, DataRef, LocationRef, Value};

/// A thing that a body has to give up when it leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Held {
    /// The value at an address of the frame, a `TVMFFIAny`; it is None once it has been moved elsewhere.
    Value(Value),
    /// A call that is counted in a cell.
    Depth(DataRef),
    /// The handler of a `try`, which takes the code of an error.
    Handler(Block),
}

/// An entry of the stack, with the blocks that begin at it.
pub(super) struct Entry {
    pub held: Held,
    pub on_error: Option<Block>,
    pub on_return: Option<Block>,
}

/// The ways out of one body.
#[derive(Default)]
pub(super) struct Exits {
    pub stack: Vec<Entry>,
    /// The blocks that extend the backtrace by a location, and go on at a block (or return).
    pub traced: HashMap<(Option<Block>, LocationRef), Block>,
    /// The block that returns the code that it takes, once one is needed.
    pub plain: Option<Block>,
    /// The loops that are being written, each inside of the one before.
    loops: Vec<LoopExit>,
}

/// The way out of a loop.
#[derive(Clone, Copy)]
pub(super) struct LoopExit {
    /// The block behind the loop.
    pub done: Block,
    /// How many entries the stack has outside of the loop.
    pub depth: usize,
}

impl Exits {
    /// How many things are held.
    pub(super) fn depth(&self) -> usize {
        self.stack.len()
    }

    pub(super) fn enter_loop(&mut self, done: Block) {
        let depth = self.depth();
        self.loops.push(LoopExit { done, depth });
    }

    pub(super) fn leave_loop(&mut self) {
        self.loops.pop();
    }

    /// Holds the thing that was held last no longer: it has turned out to own nothing.
    pub(super) fn forget(&mut self) {
        self.stack.pop();
    }

    /// Holds what is above a depth no longer: the way that held it has ended.
    pub(super) fn cut(&mut self, depth: usize) {
        self.stack.truncate(depth);
    }

    /// Whether an error would end at a handler.
    pub(super) fn has_handler(&self) -> bool {
        self.stack.iter().any(|entry| matches!(entry.held, Held::Handler(_)))
    }

    /// How many loops are being written.
    pub(super) fn loops(&self) -> usize {
        self.loops.len()
    }

    /// The innermost loop.
    pub(super) fn innermost_loop(&self) -> Option<LoopExit> {
        self.loops.last().copied()
    }
}
