//! Reference-counted objects: the owning handles over any of them, the allocator of their storage, and opaque objects.

mod opaque;

pub use crate::heap::{AsObject, ObjectRef, WeakRef, alloc, live_objects};
pub use opaque::create_opaque;
