//! The stack of a run.

use super::datum::Datum;
use super::memory::Region;
use crate::ir::inst::{Block, FuncRef};
use crate::ir::module::Function;

/// An active call.
pub(super) struct Frame<'a> {
    pub(super) func: FuncRef,
    pub(super) code: &'a Function,
    pub(super) block: Block,
    /// The index in the block of the next instruction; while a callee runs, the one after the call.
    pub(super) next: usize,
    /// The index of this frame's first value.
    pub(super) base: usize,
    /// The slots' memory, if the function has slots.
    pub(super) slots: Option<Region>,
}

/// The memory of a run, reused by the next one.
#[derive(Default)]
pub(super) struct Stack<'a> {
    /// The values of all frames, consecutively.
    pub(super) values: Vec<u64>,
    pub(super) callers: Vec<Frame<'a>>,
    pub(super) block_args: Vec<u64>,
    pub(super) call_args: Vec<Datum>,
}
