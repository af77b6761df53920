//! The state of attribute columns.

use std::collections::HashMap;

use crate::abi::*;
use crate::any::Any;

/// The attribute columns by name. Columns are leaked, so that C may keep their addresses.
#[derive(Default)]
pub(super) struct Attributes {
    pub(super) columns: HashMap<Vec<u8>, Column>,
}

pub(super) struct Column {
    pub(super) header: *mut TVMFFITypeAttrColumn,
    pub(super) values: Vec<Any>,
}

// SAFETY: the leaked header is only changed under the table's write lock.
unsafe impl Send for Column {}
// SAFETY: as above.
unsafe impl Sync for Column {}
