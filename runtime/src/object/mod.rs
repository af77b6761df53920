//! Reference-counted objects: the owning handles to any of them, the allocator of their storage, opaque objects, and
//! two sentinels.

mod opaque;
mod sentinel;

pub use crate::heap::{AsObject, ObjectRef, WeakRef, alloc, live_objects, live_objects_of_thread};
pub use opaque::create_opaque;
pub(crate) use sentinel::{kwargs, missing};
