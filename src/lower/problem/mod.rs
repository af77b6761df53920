//! The problems that errors of lowering list, as values.

mod arg;
mod global;
mod kernel;
mod launch;
mod parts;
mod prototype;

pub use arg::{ArgProblem, TensorMapProblem};
pub use global::GlobalProblem;
pub use kernel::{ConventionProblem, ReturnProblem};
pub use launch::{ImageName, LaunchProblem};
pub(super) use parts::joined;
pub use prototype::PrototypeProblem;
