//! Blocks at the ends of pages: the next page is inaccessible, so a read or write past the end of a block ends the
//! process. Only the fuzz target of calls installs an allocator that makes them.

use std::cell::Cell;

thread_local! {
    static IS_ON: Cell<bool> = const { Cell::new(false) };
}

/// Runs a closure whose blocks are at the ends of pages, if the program has such an allocator.
pub fn at_page_ends<R>(make: impl FnOnce() -> R) -> R {
    IS_ON.set(true);
    let made = make();
    IS_ON.set(false);
    made
}

/// Returns whether this thread's blocks have to be at the ends of pages.
pub fn is_on() -> bool {
    // an ending thread has no flag any more
    IS_ON.try_with(Cell::get).unwrap_or(false)
}
