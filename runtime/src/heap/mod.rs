//! Objects on the heap: storage, counts, and the owning handles.
//! `live` counts objects in debug builds. `alloc` provides storage from the current allocator, and `spare` provides the
//! blocks of the builtin one. `count` implements the counting protocol. `reference` defines [`ObjectRef`] and
//! [`WeakRef`]. `prefixed` makes objects with a word before their header. `release` drops long chains of objects.
//! `raised` is the thread's slot for the raised error, which a failing allocator sets.

pub mod alloc;
pub(crate) mod count;
pub(crate) mod live;
mod prefixed;
pub(crate) mod raised;
mod reference;
mod release;
mod spare;

pub(crate) use alloc::{ObjectLayout, make_object, make_object_with_index, make_own_object, try_make_object};
pub use live::{live_objects, live_objects_of_thread};
pub(crate) use prefixed::make_prefixed_object;
pub use reference::{AsObject, ObjectRef, WeakRef};
pub(crate) use release::{release, release_one};
