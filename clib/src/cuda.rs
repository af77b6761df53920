//! Kernels in CUDA C++.

use std::collections::{BTreeMap, HashMap};
use std::sync::{LazyLock, Mutex, PoisonError};

use codegen::image::nvrtc::{CudaSource, Nvrtc};
use codegen::runtime as tvm_ffi;
use codegen::runtime::{Any, Array, Bytes, Result};
use codegen::spec::LaunchedSignature;
use serde::Deserialize;
use serde_json::json;

use crate::error::{bad_value, failure};
use crate::kernel::launch_of;

/// The options of [`tfc_cuda_compile`].
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CudaOptions {
    archs: Vec<String>,
    #[serde(default)]
    file: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    options: Vec<String>,
    #[serde(default)]
    kernels: Vec<String>,
}

/// NVRTC from a file, or the machine's.
fn nvrtc(file: Option<&str>) -> Result<Nvrtc> {
    static LOADED: LazyLock<Mutex<HashMap<Option<String>, Nvrtc>>> = LazyLock::new(Mutex::default);
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = loaded.get(&file.map(str::to_owned)) {
        return Ok(known.clone());
    }
    let found = match file {
        // SAFETY: callers of this library's functions guarantee that the file is NVRTC.
        Some(file) => unsafe { Nvrtc::open(file) },
        None => Nvrtc::find(),
    };
    let found = found.map_err(failure)?;
    loaded.insert(file.map(str::to_owned), found.clone());
    Ok(found)
}

/// Compiles CUDA C++ with NVRTC, which `nvrtc` names a file of, or None for the machine's. `options` is JSON: `archs`
/// (`["sm_90a", "compute_80"]`), and if you like `kernels` (kernels as C++ names them), `options` of the compiler,
/// `headers` (name to text), and `file` (the name of the source in messages). Returns an array of the images, one for
/// each architecture, and of JSON: `entries` (the names of `kernels` in the images), and `log`.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_cuda_compile(nvrtc_file: Option<String>, source: &str, options: &str) -> Result<Array<Any>> {
    let options: CudaOptions = serde_json::from_str(options).map_err(|error| bad_value("options", error))?;
    let mut source = CudaSource::new(source);
    if let Some(file) = options.file {
        source = source.file(file);
    }
    source = options.headers.into_iter().fold(source, |source, (name, text)| source.header(name, text));
    source = options.options.into_iter().fold(source, CudaSource::option);
    source = options.kernels.into_iter().fold(source, CudaSource::kernel);
    let archs: Vec<&str> = options.archs.iter().map(String::as_str).collect();
    let compiled = nvrtc(nvrtc_file.as_deref())?.compile(&source, &archs).map_err(failure)?;
    let images = Array::<Bytes>::from_iter(compiled.images().iter().map(|image| Bytes::new(image.bytes())));
    let json = json!({ "entries": compiled.entries(), "log": compiled.log() }).to_string();
    Ok(Array::from_iter([Any::from(images), Any::from(json)]))
}

/// The compute capabilities that NVRTC compiles for, in ascending order: 90 for `sm_90`.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_cuda_capabilities(nvrtc_file: Option<String>) -> Result<Array<i64>> {
    let capabilities = nvrtc(nvrtc_file.as_deref())?.capabilities().map_err(failure)?;
    Ok(Array::from_iter(capabilities.into_iter().map(i64::from)))
}

/// The parts of `SIGNATURE @ launch ENTRY ...`: the text of the signature, that of the launch, and the entry.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_launched_signature(text: &str) -> Result<Array<String>> {
    let LaunchedSignature { signature, launch } = text.parse().map_err(failure)?;
    Ok(Array::from_iter([signature.to_string(), launch.to_string(), launch.entry().to_owned()]))
}

/// The text of a launch, of another kernel: `entry` is its name in the images.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_launch_with_entry(launch: &str, entry: &str) -> Result<String> {
    Ok(launch_of(launch)?.with_entry(entry).to_string())
}
