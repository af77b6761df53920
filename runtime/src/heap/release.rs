//! Drops the objects that an object holds, without one stack frame per level of nesting.
//! Beyond a certain depth, objects wait in a per-thread queue, which the outermost drop empties.
//! No header section: upstream recurses.

use std::cell::{Cell, RefCell};

use super::count;
use super::reference::ObjectRef;

/// Levels of nested objects that are dropped by recursion, which is faster.
const MAX_DEPTH: usize = 32;

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    static WAITING: RefCell<Vec<ObjectRef>> = const { RefCell::new(Vec::new()) };
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

/// Drops the objects in a container, the imports of a module, the cause of an error and so on. This happens now, or
/// later during the drop of an outer object.
pub(crate) fn release(objects: impl Iterator<Item = ObjectRef>) {
    let depth = DEPTH.get();
    if depth >= MAX_DEPTH {
        let objects: Vec<ObjectRef> = objects.collect();
        // A terminating thread has no queue any more, so the objects are dropped with the closure.
        let _queued = WAITING.try_with(move |queue| queue.borrow_mut().extend(objects));
        return;
    }
    drop_all(objects);
    if depth == 0 {
        while let Ok(Some(object)) = WAITING.try_with(|queue| queue.borrow_mut().pop()) {
            drop_all(std::iter::once(object));
        }
    }
}

/// As [`release`], for one object. It looks at the depth only if the object is destroyed.
#[inline]
pub(crate) fn release_one(object: ObjectRef) {
    let object = object.into_raw();
    // SAFETY: `object` is the reference that the caller gave up.
    if !unsafe { count::dec_if_shared(object) } {
        // SAFETY: the reference is still there.
        release(unsafe { ObjectRef::from_raw(object) }.into_iter());
    }
}

fn drop_all(objects: impl Iterator<Item = ObjectRef>) {
    let _level = Level::enter();
    objects.for_each(drop);
}
