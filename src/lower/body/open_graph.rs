//! A graph of launches under construction.

use crate::ir::{Block, FunctionBuilder, StackSlot};
use crate::lower::device_api::Api;
use crate::lower::launch::shot::{self, Shot};

/// A graph under construction.
#[derive(Debug)]
pub(super) struct OpenGraph {
    /// Where the launches are noted.
    pub slot: StackSlot,
    /// The block that clears them, which goes on to `start`. It is written at the end, when their number is known.
    clear: Block,
    start: Block,
    /// The kernels of the launches so far.
    pub entries: Vec<String>,
    /// The API of the first launch, and the stream that it states.
    pub first: Option<(&'static Api, Option<String>)>,
}

impl OpenGraph {
    /// Begins a graph.
    pub(super) fn new(b: &mut FunctionBuilder<'_>) -> Self {
        let slot = shot::slot(b);
        let (clear, start) = (b.block(), b.block());
        b.jump(clear, &[]);
        b.switch_to(start);
        OpenGraph { slot, clear, start, entries: Vec::new(), first: None }
    }

    /// The place of the next launch, of a kernel with that name.
    pub(super) fn next_shot(&mut self, b: &mut FunctionBuilder<'_>, entry: &str) -> Shot {
        let number = self.count();
        self.entries.push(entry.to_owned());
        Shot::next(b, self.slot, number)
    }

    /// Ends the code of the launches.
    pub(super) fn close(&self, b: &mut FunctionBuilder<'_>) {
        let here = b.current();
        b.switch_to(self.clear);
        shot::clear(b, self.slot, self.count());
        b.jump(self.start, &[]);
        b.switch_to(here);
    }

    /// The number of launches so far.
    fn count(&self) -> u32 {
        u32::try_from(self.entries.len()).unwrap_or(u32::MAX)
    }
}
