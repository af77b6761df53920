//! Functions in this process.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use codegen::diagnostic::Diagnostic;
use codegen::engine::EngineError;
use codegen::runtime as tvm_ffi;
use codegen::runtime::{Array, Bytes, Function, Obj, Result};
use codegen::{Backend, Engine, OptLevel};

use crate::error::{bad_value, failure, raised};
use crate::kernel::{KernelObject, together};
use crate::signature::SignatureObject;

/// An engine for each backend and level, created on first use.
static ENGINES: LazyLock<Mutex<HashMap<(Backend, OptLevel), Engine>>> = LazyLock::new(Mutex::default);

/// The engine of a backend and a level.
pub fn engine(backend: Backend, level: OptLevel) -> Result<Engine> {
    // a panic never leaves a map of engines in an inconsistent state
    let mut engines = ENGINES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(engine) = engines.get(&(backend, level)) {
        return Ok(engine.clone());
    }
    // SAFETY: kernel objects refer to C symbols of the process, as they would through the dynamic linker.
    let builder = unsafe { Engine::builder().search_process() };
    let engine = builder.backend(backend).opt_level(level).build().map_err(failure)?;
    engines.insert((backend, level), engine.clone());
    Ok(engine)
}

/// A backend by its name, the default one unless named.
pub fn backend_of(name: Option<&str>) -> Result<Backend> {
    name.map_or_else(|| Ok(Backend::default()), |name| name.parse().map_err(|error| bad_value("backend", error)))
}

/// A level of optimisation by its name, `speed` unless named.
pub fn level_of(name: Option<&str>) -> Result<OptLevel> {
    name.map_or(Ok(OptLevel::Speed), |name| name.parse().map_err(|error| bad_value("opt_level", error)))
}

/// Compiles a function from a signature and a kernel in this process. The kernel's symbol is looked up in `objects`
/// (objects and archives for this machine), then in the process. `backend` and `opt_level` are names, or None.
///
/// The caller guarantees that the kernel has the prototype that `tfc_kernel_header` returns, and that it stays within
/// its arguments.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_compile(
    signature: &Obj<SignatureObject>,
    kernel: &Obj<KernelObject>,
    objects: Array<Bytes>,
    backend: Option<String>,
    opt_level: Option<String>,
) -> Result<Function> {
    let engine = engine(backend_of(backend.as_deref())?, level_of(opt_level.as_deref())?)?;
    let kernel = kernel.with_objects(together(&objects)?.as_ref())?;
    // SAFETY: the caller guarantees this, as the function's documentation says.
    unsafe { engine.compile(&signature.signature, &kernel) }.map_err(|error| raised(&advised(&error)))
}

/// Replaces the engine's advice, which is for Rust, with advice for callers of TVM FFI functions.
pub fn advised(error: &EngineError) -> Diagnostic {
    let mut diagnostic = Diagnostic::of(error);
    if matches!(error, EngineError::Unresolved { .. }) {
        let symbols: Vec<_> = diagnostic.symbols.iter().map(ToString::to_string).collect();
        let plural = if symbols.len() == 1 { "" } else { "s" };
        let symbols = symbols.join(", ");
        diagnostic.message = format!(
            "undefined symbol{plural}: {symbols}; give the objects that have them, or their addresses as symbols, or \
             load such a library first"
        );
    }
    diagnostic
}
