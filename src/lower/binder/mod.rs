//! `int32_t bind(const void* pool, uint32_t signature, const TVMFFIAny* args, int64_t num_args, void* scratch)`: checks
//! a call's arguments exactly, using the signature's [descriptor](crate::lower::protocol::descriptor), in the
//! contract's order (C2).
//!
//! If it accepts all arguments, it writes an argument array that the wrapper's fast path accepts to the scratch memory,
//! and returns 0. An int for a float parameter becomes a float. A `DLTensor*` or a tensor without strides becomes a
//! tensor with a header and contiguous strides. An omitted argument becomes its default. Otherwise `bind` raises the
//! error of the first check that fails, and returns -1.
//!
//! `bind` itself iterates over the parameters. `check` checks one argument and calls itself for values inside it. `dim`
//! checks a dimension. `eval` computes an expression. `take_result` checks the result that a kernel has written.

mod check;
mod containers;
mod define;
mod dims;
mod eval;
mod extents;
mod finish;
mod helper;
mod objects;
mod records;
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
