//! The build, the contents of binaries, and the stages of a compilation.

use codegen::artifact::{Triple, build_id, inspect, inspect_bytes};
#[cfg(feature = "_llvm")]
use codegen::backend::CodegenError;
use codegen::explain::{Stage, explain};
use codegen::runtime as tvm_ffi;
use codegen::runtime::{Bytes, Obj, Result};
use codegen::{Backend, Signature};
use serde_json::json;

use crate::compile::{backend_of, level_of};
use crate::error::failure;
#[cfg(not(feature = "_llvm"))]
use crate::error::without_llvm;
use crate::kernel::KernelObject;
use crate::signature::SignatureObject;

/// This build as JSON: `version`, `build_id`, `target`, `backends`, the default one first, and `linkers`.
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

/// The version of LLVM, `22.1.8`, which is loaded if it isn't yet.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_llvm_version() -> Result<String> {
    #[cfg(feature = "_llvm")]
    {
        let (major, minor, patch) = codegen::backend::llvm::version().map_err(CodegenError::from).map_err(failure)?;
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

/// The contents of an object or shared library in memory as JSON; messages call it by `name`.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_inspect_bytes(bytes: Bytes, name: &str) -> Result<String> {
    Ok(inspect_bytes(&bytes, name).map_err(failure)?.to_json())
}

/// Gives the process an allocator of tensors on the CPU, for functions that return tensors where no framework has set one.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_install_cpu_allocator() -> Result<()> {
    tvm_ffi::install_cpu_allocator()
}

/// Tells calls that return tensors, in a process without an allocator, to call the Python package's `install_cpu_allocator`. A process that has an allocator keeps it.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_explain_missing_allocator() -> Result<()> {
    tvm_ffi::explain_missing_allocator(
        c"there is no allocator of tensors, which a function takes its results and its scratch memory from: call \
          `tvm_ffi_codegen.install_cpu_allocator()` for tensors on the CPU, or pass tensors of PyTorch, which brings an allocator",
    )
}

/// The text of a function at a stage of its compilation: `ir`, `clif`, `llvm`, `asm`, `header` or `launch`; or, as `html`, a page with all of
/// them side by side.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_explain(
    signature: &Obj<SignatureObject>,
    kernel: &Obj<KernelObject>,
    stage: &str,
    backend: Option<String>,
    opt_level: Option<String>,
) -> Result<String> {
    let stage: Stage = stage.parse().map_err(failure)?;
    let (signature, kernel): (&Signature, _) = (&signature.signature, kernel.kernel());
    explain(signature, &kernel, stage, backend_of(backend.as_deref())?, level_of(opt_level.as_deref())?)
        .map_err(failure)
}
