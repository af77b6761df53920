//! Kernels in CUDA C++ and HIP C++.

use std::collections::{BTreeMap, HashMap};
use std::sync::{LazyLock, Mutex, PoisonError};

use codegen::image::rtc::{CompiledSource, Hiprtc, KernelSource, Nvrtc, RtcError};
use codegen::runtime as tvm_ffi;
use codegen::runtime::{Any, Array, Bytes, Result};
use codegen::spec::LaunchedSignature;
use serde::Deserialize;
use serde_json::json;

use crate::error::{bad_value, failure};
use crate::kernel::launch_of;

/// The options of [`tfc_cuda_compile`] and [`tfc_hip_compile`].
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SourceOptions {
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

/// Compilers by their files; None is the machine's.
type Loaded<C> = LazyLock<Mutex<HashMap<Option<String>, C>>>;

static NVRTC: Loaded<Nvrtc> = LazyLock::new(Mutex::default);
static HIPRTC: Loaded<Hiprtc> = LazyLock::new(Mutex::default);

/// A compiler from a file, or the machine's, which is loaded once.
fn compiler<C: Clone>(
    loaded: &Loaded<C>,
    file: Option<&str>,
    load: impl FnOnce(Option<&str>) -> std::result::Result<C, RtcError>,
) -> Result<C> {
    let mut loaded = loaded.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = loaded.get(&file.map(str::to_owned)) {
        return Ok(known.clone());
    }
    let found = load(file).map_err(failure)?;
    loaded.insert(file.map(str::to_owned), found.clone());
    Ok(found)
}

fn nvrtc(file: Option<&str>) -> Result<Nvrtc> {
    compiler(&NVRTC, file, |file| match file {
        // SAFETY: callers of this library's functions guarantee that the file is NVRTC.
        Some(file) => unsafe { Nvrtc::open(file) },
        None => Nvrtc::find(),
    })
}

fn hiprtc(file: Option<&str>) -> Result<Hiprtc> {
    compiler(&HIPRTC, file, |file| match file {
        // SAFETY: callers of this library's functions guarantee that the file is hiprtc.
        Some(file) => unsafe { Hiprtc::open(file) },
        None => Hiprtc::find(),
    })
}

/// Compiles source as the options say. Returns an array of the images and of JSON.
fn compiled(
    source: &str,
    options: &str,
    compile: impl FnOnce(&KernelSource, &[&str]) -> std::result::Result<CompiledSource, RtcError>,
) -> Result<Array<Any>> {
    let options: SourceOptions = serde_json::from_str(options).map_err(|error| bad_value("options", error))?;
    let mut source = KernelSource::new(source);
    if let Some(file) = options.file {
        source = source.file(file);
    }
    source = options.headers.into_iter().fold(source, |source, (name, text)| source.header(name, text));
    source = options.options.into_iter().fold(source, KernelSource::option);
    source = options.kernels.into_iter().fold(source, KernelSource::kernel);
    let archs: Vec<&str> = options.archs.iter().map(String::as_str).collect();
    let compiled = compile(&source, &archs).map_err(failure)?;
    let images = Array::<Bytes>::from_iter(compiled.images().iter().map(|image| Bytes::new(image.bytes())));
    let json = json!({ "entries": compiled.entries(), "log": compiled.log() }).to_string();
    Ok(Array::from_iter([Any::from(images), Any::from(json)]))
}

/// Compiles CUDA C++ with NVRTC, which `nvrtc_file` is a file of, or None for the machine's. `options` is JSON: `archs`
/// (`["sm_90a", "compute_80"]`), and if you like `kernels` (kernels as C++ names them), `options` of the compiler,
/// `headers` (name to text), and `file` (the name of the source in messages). Returns an array of the images, one for
/// each architecture, and of JSON: `entries` (the names of `kernels` in the images), and `log`.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_cuda_compile(nvrtc_file: Option<String>, source: &str, options: &str) -> Result<Array<Any>> {
    let nvrtc = nvrtc(nvrtc_file.as_deref())?;
    compiled(source, options, |source, archs| nvrtc.compile(source, archs))
}

/// Compiles HIP C++ with hiprtc, as [`tfc_cuda_compile`] does with NVRTC. `archs` are `["gfx942", "gfx90a:xnack-"]`.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_hip_compile(hiprtc_file: Option<String>, source: &str, options: &str) -> Result<Array<Any>> {
    let hiprtc = hiprtc(hiprtc_file.as_deref())?;
    compiled(source, options, |source, archs| hiprtc.compile(source, archs))
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
