//! What the encoder and the binder share: layouts of descriptors, the expression code, message templates, the state of one call, and
//! which parts of the runtime helpers all of these make use of.

pub(super) mod capability;
pub(super) mod descriptor;
pub(super) mod expr_code;
pub(super) mod helpers;
pub(super) mod state;
pub(super) mod template;

pub(super) use capability::{Aspect, Feature, Features};
pub(super) use descriptor::*;
pub(super) use expr_code::{Rpn, TARGET};
pub(super) use state::{Field, notes_offset};
pub(super) use template::*;
