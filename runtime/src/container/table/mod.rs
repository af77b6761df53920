//! Tables of entries in the memory of maps and dicts, which code on upstream's headers reads and changes, too.
//! Setting a key that is there keeps its place in the small form and makes it the last one in the dense form, as upstream.

mod dense;
mod entries;
mod layout;
mod object;

pub(super) use entries::{COPY_CAPACITY, Place, Table};
pub(super) use layout::Entry;
pub(super) use object::new_object;
