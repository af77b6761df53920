//! Dropping what a container holds, without one stack frame for every level of nesting.
//! From some depth on, values wait in a queue of the thread that its outermost drop empties.
//! No header section: upstream recurses.

use std::cell::{Cell, RefCell};

use crate::any::Any;

/// Levels of nested containers that are dropped by recursion, which is the faster way.
const MAX_DEPTH: usize = 32;

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    static WAITING: RefCell<Vec<Any>> = const { RefCell::new(Vec::new()) };
}

/// Counts one level while it lives.
struct Level;

impl Level {
    fn enter() -> Self {
        DEPTH.set(DEPTH.get() + 1);
        Self
    }
}

impl Drop for Level {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}

/// Drops the values of a container or the imports of a module, now or later in the drop of an outer one.
pub(crate) fn release(values: impl Iterator<Item = Any>) {
    let depth = DEPTH.get();
    if depth >= MAX_DEPTH {
        let values: Vec<Any> = values.collect();
        // A thread that is ending has no queue any more: the values then drop with the closure.
        let _queued = WAITING.try_with(move |queue| queue.borrow_mut().extend(values));
        return;
    }
    drop_all(values);
    if depth == 0 {
        while let Ok(Some(value)) = WAITING.try_with(|queue| queue.borrow_mut().pop()) {
            drop_all(std::iter::once(value));
        }
    }
}

fn drop_all(values: impl Iterator<Item = Any>) {
    let _level = Level::enter();
    values.for_each(drop);
}
