//! Proves that a wrapper reads and writes only the memory that its checks allow, without running it.
//!
//! The pass works on the IR and knows `docs/reference/contract.md` and the layouts of `tvm/ffi/c_api.h`. It shares no
//! code with `src/lower`. It gives each value a [term](terms) and collects the [facts](facts) that the branches before
//! an access imply. The [rules](rules) say which facts an access needs:
//!
//! | access | needs | clause |
//! | --- | --- | --- |
//! | `args[i]` | `num_args` is known and above `i` | C3.1 |
//! | | `args` isn't NULL | C3.3 |
//! | an object of an argument or of a tuple's item | the type index is known, the object has that field | C4.1 |
//! | | the pointer isn't NULL | C4.4, C5.1 |
//! | item `i` of a tuple, entry `i` of a Shape | the length is known and above `i` | C4.6, C4.13 |
//! | `shape[i]`, `strides[i]` | `ndim` is known and above `i` | C5.2 |
//! | | the pointer isn't NULL | C5.8, C5.17 |
//! | a write | to the result, to memory of the wrapper, or to the elements of a tensor | C2.2 |
//!
//! Memory that the runtime or the binder returns is trusted. So are the elements of a tensor, which a body addresses
//! itself. [`Proof`] counts both, so a test sees what remains.

mod facts;
pub mod graph;
mod rules;
mod terms;

use std::fmt;

use tvm_ffi_codegen::ir::{Function, HOST_ENDIANNESS, Module, Type};

/// The accesses of a module's wrappers.
#[derive(Clone, Copy, Default, Debug)]
pub struct Proof {
    /// Reads of the caller's memory that follow their checks.
    pub proven: usize,
    /// Accesses to the wrapper's own memory and to its result, inside their bounds.
    pub own: usize,
    /// Accesses to elements of tensors, and to memory that the runtime or the binder returned.
    pub trusted: usize,
}

/// An access that isn't allowed.
struct Violation {
    function: String,
    block: String,
    access: String,
    problem: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}: {}: {}", self.function, self.block, self.access, self.problem)
    }
}

/// Checks every function of the module that has a wrapper's parameters.
///
/// # Errors
/// The accesses that aren't allowed, a line each.
pub fn prove(module: &Module) -> Result<Proof, String> {
    let (mut proof, mut violations) = (Proof::default(), Vec::new());
    // The pass reads the halves of words in the order of this machine's.
    if module.endianness != HOST_ENDIANNESS || cfg!(target_endian = "big") {
        return Ok(proof);
    }
    for decl in module.functions.values() {
        if let Some(body) = decl.body.as_ref().filter(|body| is_wrapper(body)) {
            rules::check(module, &decl.name, body, &mut proof, &mut violations);
        }
    }
    let lines: Vec<String> = violations.iter().map(ToString::to_string).collect();
    if lines.is_empty() { Ok(proof) } else { Err(lines.join("\n")) }
}

/// True if the first parameters are a wrapper's: handle, arguments, number of arguments, result.
pub fn is_wrapper(body: &Function) -> bool {
    const PARAMS: [Type; 4] = [Type::Ptr, Type::Ptr, Type::I32, Type::Ptr];
    let params = body.entry().map(|entry| &body.blocks[entry].params);
    let types = params.map(|params| params.iter().map(|&param| body.type_of(param)));
    types.is_some_and(|types| types.take(4).eq(PARAMS))
}
