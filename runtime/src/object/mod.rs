//! Reference-counted objects: storage, counts, and the owning handles over them.
//! `alloc` gives storage through the current allocator; `count` holds the counting protocol;
//! `reference` holds [`ObjectRef`] and [`WeakRef`]; `opaque` wraps foreign handles.

pub mod alloc;
pub(crate) mod count;
mod opaque;
mod reference;

pub(crate) use alloc::{ObjectLayout, make_object};
pub use opaque::create_opaque;
pub(crate) use reference::object_wrapper;
pub use reference::{AsObject, ObjectRef, WeakRef};
