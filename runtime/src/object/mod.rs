//! Reference-counted objects: storage, counts, and the owning handles over them.
//! `alloc` gives storage through the current allocator; `count` holds the counting protocol;
//! `marked` tells this crate's objects from others of the same type;
//! `reference` holds [`ObjectRef`] and [`WeakRef`]; `opaque` wraps foreign handles.

pub mod alloc;
pub(crate) mod count;
pub(crate) mod marked;
mod opaque;
mod reference;

pub(crate) use alloc::{ObjectLayout, make_object};
pub use opaque::create_opaque;
pub(crate) use reference::object_wrapper;
pub use reference::{AsObject, ObjectRef, WeakRef};
