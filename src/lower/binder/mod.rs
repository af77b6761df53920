//! `int32_t bind(const void* table, uint32_t program, const TVMFFIAny* args, int64_t num_args, void* scratch)`: checks a call's
//! arguments exactly, by the [program](crate::lower::protocol) of the signature and in the contract's order.
//!
//! Where all are acceptable it writes an argument array to the scratch memory that the wrapper's fast path
//! accepts without a doubt, and returns 0: an int for a float parameter becomes a float, a `DLTensor*` or a tensor without
//! strides becomes one with a header and compact strides, a default stands where the call left an argument out. Else it raises the first mismatch and returns -1.
//!
//! `bind` itself goes through the parameters; one is looked at by `check`, which calls itself for what is inside; a dimension
//! by `dim`; an expression is computed by `eval`. `take_result` looks at what a kernel has written as its result.

mod check;
mod containers;
mod define;
mod dims;
mod eval;
mod extents;
mod finish;
mod objects;
mod report;
mod results;
mod routine;
mod run;
mod state;
mod strings;
mod structured;
mod tensors;

pub(super) use define::define;
pub use define::support_module;
