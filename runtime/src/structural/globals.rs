//! The global functions of structures.

use crate::registry::Globals;

/// The global functions of structures.
pub(crate) fn globals(_globals: &mut Globals) {}
