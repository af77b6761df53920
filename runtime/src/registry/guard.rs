//! Decides which global functions safe code may call, and replaces the others.
//!
//! The rule: safe code may call a function that is sound for any arguments, on any thread. By registering a function,
//! its author states that it is sound. The runtime's own functions have names that begin with `ffi.`, and register
//! themselves. So this file decides for them:
//!
//! - This crate's own functions are sound, except those that load code ([`loads_code`]) and those that trust numbers
//!   ([`TRUSTING`]).
//! - An external runtime's own functions are sound if they make or read immutable values ([`HARMLESS`]). Upstream's
//!   others read lists, dicts and tables without a lock. Some end the process if an argument is missing or a type is
//!   unknown.
//! - The functions that upstream's package has for its own tests (`testing.*`) aren't: some trust their arguments.

use crate::error::runtime_error;
use crate::external;
use crate::function::Function;
use crate::type_table;

/// The global function that loads a file.
pub(crate) const LOAD_FROM_FILE: &str = "ffi.ModuleLoadFromFile";
/// The prefix of the global functions that load files of a format; the extension follows.
pub(crate) const FILE_LOADER: &str = "ffi.Module.load_from_file.";
/// The prefix of a runtime's own functions.
const OWN: &str = "ffi.";
/// The prefix of the loaders that programs register for a kind of module; the kind follows.
const BYTES_LOADER: &str = "ffi.Module.load_from_bytes.";

/// Global functions that take addresses as numbers, or lay out objects of types that other code defines.
const TRUSTING: &[&str] = &["ffi.MakeFieldSetter", "ffi._PyClassRegisterTypeAttrColumns"];

/// The prefix of the functions that upstream's package has for its own tests.
const TESTING: &str = "testing.";
/// A type that the same library of upstream's package registers. If it is unknown, a function with the prefix belongs
/// to other code.
const TESTING_TYPE: &str = "testing.TestIntPair";

/// Functions that make or read immutable values, in any runtime.
const HARMLESS: &[&str] = &[
    "ffi.Array",
    "ffi.ArrayGetItem",
    "ffi.ArraySize",
    "ffi.Bytes",
    "ffi.GetInvalidObject",
    "ffi.GetKwargsObject",
    "ffi.Map",
    "ffi.MapCount",
    "ffi.MapGetItem",
    "ffi.MapGetItemOrMissing",
    "ffi.MapSize",
    "ffi.Shape",
    "ffi.String",
    "ffi.VisitInterrupt",
];

/// True if a global function of that name loads code.
pub(crate) fn loads_code(name: &[u8]) -> bool {
    name == LOAD_FROM_FILE.as_bytes() || name.starts_with(FILE_LOADER.as_bytes())
}

/// True if a global function of that name is an external runtime's own and may be unsound for some arguments.
fn is_external(name: &str) -> bool {
    external::IS_USED && name.starts_with(OWN) && !name.starts_with(BYTES_LOADER) && !HARMLESS.contains(&name)
}

/// True if a global function of that name is one of upstream's tests.
fn is_upstreams_test(name: &str) -> bool {
    name.starts_with(TESTING) && type_table::key_to_index(TESTING_TYPE).is_some()
}

/// Returns the replacement for a global function that safe code must not call; `None` for any other. The replacement
/// raises an error that names other ways to call the function.
pub(super) fn stand_in(name: &str) -> Option<Function> {
    let why = if loads_code(name.as_bytes()) {
        "loads code, for which only unsafe code can answer: call `Module::load_from_file`, or"
    } else if TRUSTING.contains(&name) {
        "trusts its arguments, for which only unsafe code can answer:"
    } else if is_upstreams_test(name) {
        "is a test of upstream's package, which doesn't check its arguments, so that only unsafe code can answer for a \
         call:"
    } else if is_external(name) {
        "is an external runtime's, which checks neither all arguments nor other threads, so that only unsafe code can \
         answer for a call: use this crate's types, or"
    } else {
        return None;
    };
    let message = format!("`{name}` {why} get the function with `registry::get_global_unchecked`");
    Some(Function::from_packed(move |_| Err(runtime_error(&message))))
}
