//! The global functions of structures.

use super::walk;
use crate::registry::Globals;

/// The global functions of structures.
pub(crate) fn globals(globals: &mut Globals) {
    walk::globals(globals);
}
