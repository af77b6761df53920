//! The build, the contents of binaries, and the stages of a compilation.

#[cfg(feature = "_llvm")]
use codegen::CodegenError;
use codegen::artifact::{Triple, build_id, inspect, inspect_bytes};
use codegen::explain::{Stage, explain};
use codegen::runtime as tvm_ffi;
use codegen::runtime::{Bytes, Function, Obj, Result};
use codegen::{Backend, Signature, register_globals, set_launch_hook};
use serde_json::json;

use crate::compile::{backend_of, level_of};
#[cfg(not(feature = "_llvm"))]
use crate::error::without_llvm;
use crate::error::{bad_value, failure};
use crate::kernel::KernelObject;
use crate::signature::SignatureObject;

/// This build as JSON: `version`, `build_id`, `target`, `backends` with the default one first, and `linkers`.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_build() -> String {
    let mut backends: Vec<&str> = Backend::ALL.iter().map(|backend| backend.name()).collect();
    backends.sort_by_key(|name| *name != Backend::default().name());
    let linkers: &[&str] = if cfg!(feature = "libwild") { &["wild", "cc"] } else { &["cc"] };
    let json = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "build_id": build_id(),
        "target": Triple::host().to_string(),
        "backends": backends,
        "linkers": linkers,
    });
    json.to_string()
}

/// LLVM's version, such as `22.1.8`. Loads LLVM on first use.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_llvm_version() -> Result<String> {
    #[cfg(feature = "_llvm")]
    {
        let (major, minor, patch) = codegen::embed::llvm::version().map_err(CodegenError::from).map_err(failure)?;
        Ok(format!("{major}.{minor}.{patch}"))
    }
    #[cfg(not(feature = "_llvm"))]
    Err(without_llvm())
}

/// The contents of an object or shared library as JSON.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_inspect(path: &str) -> Result<String> {
    Ok(inspect(path).map_err(failure)?.to_json())
}

/// The contents of an object or shared library in memory as JSON; messages refer to it as `name`.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_inspect_bytes(bytes: Bytes, name: &str) -> Result<String> {
    Ok(inspect_bytes(&bytes, name).map_err(failure)?.to_json())
}

/// Installs an allocator of CPU tensors in the process, for functions that return tensors when no framework has set
/// one.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_install_cpu_allocator() -> Result<()> {
    tvm_ffi::install_cpu_allocator()
}

/// Registers the global functions that libraries ask for at their first launch, unless the process has them: threads
/// for launches on the CPU, and hooks of launches on devices.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_register_globals() -> Result<()> {
    register_globals()
}

/// Sets the functions that the process calls before and after each launch on a device, in place of those before. Both
/// take the kernel's name, grid, block, shared memory in bytes, stream and device.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_set_launch_hook(enter: Option<Function>, exit: Option<Function>) -> Result<()> {
    set_launch_hook(enter.as_ref(), exit.as_ref())
}

/// Sets an error for calls that return tensors. It tells users to call the Python package's `install_cpu_allocator`.
/// Has no effect if the process has an allocator.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_explain_missing_allocator() -> Result<()> {
    tvm_ffi::explain_missing_allocator(
        c"no tensor allocator is set, so a function can't allocate its results or its scratch memory: call \
          `tvm_ffi_codegen.install_cpu_allocator()` for tensors on the CPU, or pass tensors of PyTorch, which brings \
          an allocator",
    )
}

/// The source of a function at a stage of its compilation: `ir`, `clif`, `llvm`, `asm`, `header` or `launch`; or
/// `html`, a page with all of them side by side.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_explain(
    signature: &Obj<SignatureObject>,
    kernel: &Obj<KernelObject>,
    stage: &str,
    backend: Option<String>,
    opt_level: Option<String>,
) -> Result<String> {
    let stage: Stage = stage.parse().map_err(|error| bad_value("stage", error))?;
    let (signature, kernel): (&Signature, _) = (&signature.signature, kernel.kernel());
    explain(signature, &kernel, stage, backend_of(backend.as_deref())?, level_of(opt_level.as_deref())?)
        .map_err(failure)
}
