//! Objects on the heap: storage, counts, and the owning handles over them.
//! `live` counts objects in debug builds. `alloc` gives storage through the current allocator, `spare` the blocks of the builtin one; `count` holds the counting protocol; `reference` holds [`ObjectRef`] and
//! [`WeakRef`]; `marked` tells this crate's objects from others of the same type; `release` drops long chains
//! of objects; `raised` is the thread's place for the raised error,
//! which an allocator that fails fills.

pub mod alloc;
pub(crate) mod count;
pub(crate) mod live;
pub(crate) mod marked;
pub(crate) mod raised;
mod reference;
mod release;
mod spare;

pub(crate) use alloc::{ObjectLayout, make_object, make_object_with_index, make_own_object};
pub use live::{live_objects, live_objects_of_thread};
pub use reference::{AsObject, ObjectRef, WeakRef};
pub(crate) use release::release;
