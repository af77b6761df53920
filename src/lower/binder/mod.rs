//! `int32_t bind(const void* pool, uint32_t signature, const TVMFFIAny* args, int64_t num_args, void* scratch)`: checks a call's
//! arguments exactly, by the signature's [descriptor](crate::lower::protocol::descriptor) and in the contract's order (C2).
//!
//! Where it accepts all arguments, it writes an argument array to the scratch memory that the wrapper's fast path accepts, and returns 0: an
//! int for a float parameter becomes a float, a `DLTensor*` or a tensor without strides becomes a tensor with a header and compact strides,
//! and a default stands for an argument that the call left out. Else it raises the error of the first check that fails and returns -1.
//!
//! `bind` itself goes through the parameters. `check` checks one argument, and calls itself for the values inside. `dim` checks a
//! dimension. `eval` computes an expression. `take_result` checks the result that a kernel has written.

mod check;
mod containers;
mod define;
mod dims;
mod eval;
mod extents;
mod finish;
mod helper;
mod objects;
mod report;
mod results;
mod run;
mod state;
mod strings;
mod structured;
mod tensors;

pub(super) use define::define;
pub use define::helpers_module;
#[cfg(feature = "_engine")] // for modules that a backend adds to
pub(crate) use define::local_helpers_module;
