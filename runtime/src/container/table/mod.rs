//! The tables of maps and dicts. Code compiled against upstream's headers reads and changes them too.
//! As upstream, setting an existing key keeps its position in the small form and moves it to the end in the dense form.

mod dense;
mod entries;
mod layout;
mod object;

pub(super) use entries::{COPY_CAPACITY, Position, Table};
pub(super) use layout::KeyValue;
pub(super) use object::new_object;
