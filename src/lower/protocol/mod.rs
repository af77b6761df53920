//! Definitions that the encoder and the binder share: layouts of descriptors, the expression code, message templates,
//! the state of one call, and capabilities of the runtime helpers.

mod capability;
pub(super) mod derive;
pub(super) mod descriptor;
pub(super) mod expr_code;
pub(super) mod helpers;
pub(super) mod launch_table;
pub(super) mod layout;
pub(super) mod state;
pub(super) mod template;

pub use capability::Capabilities;
pub(super) use capability::{Capability, CapabilityBit};
pub(super) use descriptor::*;
pub(super) use expr_code::{Opcode, TARGET};
pub(super) use layout::{Descriptor, DescriptorField, Descriptors, Encode, field, offset};
pub(super) use state::{Binding, Deferred, Field, Path, Step, StepKind, bindings_offset, state_offset};
pub(super) use template::*;
