//! Proves that a wrapper releases each reference that it owns once, on each path, without running it.
//!
//! The pass [walks](walk) through the IR with [symbolic values](symbols), and knows what the C functions of
//! `tvm/ffi/c_api.h` and `extra/c_env_api.h` [do with references](calls). It shares no code with `src/lower`. A call
//! fails, or gives its results. A result of type `Any` may be an object or not, and a handle may be NULL: a branch of
//! the code decides it.
//!
//! | the code owns | clause |
//! | --- | --- |
//! | the results of calls, allocated tensors, and caught errors | C15.10 |
//! | a value that the kernel has written, also if the kernel fails | C11.29, C12.4 |
//! | a tensor that the wrapper has allocated for the kernel | C11.25 |
//! | the captured values of a closure, until the closure exists | C15.11 |
//!
//! A path gives a reference up: it releases or returns it, a callee takes a moved value, or a variable of the module
//! keeps it. It is a violation if a path returns while it owns a reference, or releases one that it doesn't own.
//!
//! The pass doesn't know which types the binder accepts. So a value that the binder has accepted must be released only
//! if some path releases it. References in lists that the binder fills, for the fields of records, are trusted.

mod calls;
mod reads;
mod state;
mod symbols;
mod walk;

use std::collections::BTreeSet;

use tvm_ffi_codegen::ir::{FuncRef, HOST_ENDIANNESS, Inst, Module};

use super::accesses::is_wrapper;

/// The paths of a module's wrappers.
#[derive(Clone, Default, Debug)]
pub struct Proof {
    /// The references that calls give, each counted once for the place in the code.
    pub owned: usize,
    /// The calls that release a reference on some path, and the calls around them.
    pub releases: BTreeSet<(FuncRef, Inst)>,
    /// The releases of references in lists that the binder has filled.
    pub trusted: usize,
    /// The functions with too many states.
    pub undecided: usize,
}

/// Checks every function of the module that has a wrapper's parameters, and that no other such function calls.
///
/// # Errors
/// The violations, a line each.
pub fn prove(module: &Module) -> Result<Proof, String> {
    let (mut proof, mut violations) = (Proof::default(), Vec::new());
    // The pass reads the halves of words in the order of this machine's.
    if module.endianness != HOST_ENDIANNESS || cfg!(target_endian = "big") {
        return Ok(proof);
    }
    for (func, decl) in module.functions.iter() {
        if PARTS.iter().any(|part| decl.name.ends_with(part)) {
            continue;
        }
        if let Some(body) = decl.body.as_ref().filter(|body| is_wrapper(body)) {
            violations.extend(walk::check(module, func, body, &mut proof));
        }
    }
    if violations.is_empty() { Ok(proof) } else { Err(violations.join("\n")) }
}

/// The ends of the names of functions that a wrapper calls with its own parameters.
const PARTS: [&str; 2] = ["-slow-path", "-records"];
