//! Functions in this process.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use codegen::diagnostic::{Diagnostic, DiagnosticKind};
use codegen::runtime as tvm_ffi;
use codegen::runtime::{Array, Bytes, Function, Obj, Result};
use codegen::{Backend, Engine, OptLevel};

use crate::error::{failure, raised};
use crate::kernel::{KernelObject, together};
use crate::signature::SignatureObject;

/// An engine for each backend and level, made when it is first asked for.
static ENGINES: LazyLock<Mutex<HashMap<(Backend, OptLevel), Engine>>> = LazyLock::new(Mutex::default);

fn engine(backend: Backend, level: OptLevel) -> Result<Engine> {
    // a map of engines is whole whatever panicked
    let mut engines = ENGINES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(engine) = engines.get(&(backend, level)) {
        return Ok(engine.clone());
    }
    // SAFETY: the symbols of the process are what kernels' objects expect by C's names, as they would from the dynamic linker.
    let builder = unsafe { Engine::builder().search_process() };
    let engine = builder.backend(backend).opt_level(level).build().map_err(failure)?;
    engines.insert((backend, level), engine.clone());
    Ok(engine)
}

/// A backend by its name, the default one unless named.
pub fn backend_of(name: Option<&str>) -> Result<Backend> {
    name.map_or_else(|| Ok(Backend::default()), |name| name.parse().map_err(failure))
}

/// A level of optimisation by its name, `speed` unless named.
pub fn level_of(name: Option<&str>) -> Result<OptLevel> {
    name.map_or(Ok(OptLevel::Speed), |name| name.parse().map_err(failure))
}

/// Compiles a function of a signature and a kernel in this process. The kernel's symbol is looked for in `objects`, objects and archives for this machine,
/// and then in the process. `backend` and `opt_level` are names, or None.
///
/// Whoever calls this vouches for the kernel: it has the prototype that `tfc_kernel_header` tells, and stays within its arguments.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_compile(
    signature: &Obj<SignatureObject>,
    kernel: &Obj<KernelObject>,
    objects: Array<Bytes>,
    backend: Option<String>,
    opt_level: Option<String>,
) -> Result<Function> {
    let engine = engine(backend_of(backend.as_deref())?, level_of(opt_level.as_deref())?)?;
    let kernel = kernel.with_objects(together(&objects)?.as_ref());
    // SAFETY: whoever calls the function vouches for the kernel, as its documentation says.
    unsafe { engine.compile(&signature.signature, &kernel) }.map_err(|error| raised(&advised(Diagnostic::of(&error))))
}

/// The error with advice for those who call functions of TVM FFI; the engine's own is for Rust.
fn advised(mut diagnostic: Diagnostic) -> Diagnostic {
    if diagnostic.kind == DiagnosticKind::UndefinedSymbol {
        let symbols: Vec<_> = diagnostic.symbols.iter().map(ToString::to_string).collect();
        let plural = if symbols.len() == 1 { "" } else { "s" };
        let symbols = symbols.join(", ");
        diagnostic.message = format!(
            "undefined symbol{plural}: {symbols}; give the objects that have them, or load such a library first"
        );
    }
    diagnostic
}
