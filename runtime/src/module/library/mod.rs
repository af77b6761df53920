//! Library modules: functions `__tvm_ffi_<name>` of a shared library (`dynamic`) or of the system library (`system`).
//! `embedded` loads the modules in `__tvm_ffi__library_bin`, and `context` sets a library's variables at load. Header:
//! namespace `symbol` of `extra/module.h`.

mod context;
mod dynamic;
mod embedded;
mod kind;
mod open;
mod symbols;
mod system;

pub(crate) use context::register as register_context_symbol;
pub(super) use context::symbols as context_symbols;
pub(super) use open::open;
pub(crate) use system::register as register_system_symbol;
