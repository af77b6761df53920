//! Kernels in CUDA C++ and HIP C++, compiled to images with NVIDIA's NVRTC and AMD's hiprtc. Both are libraries that
//! you load at run time. They need no nvcc or hipcc, no C++ compiler and no device.
//!
//! ```no_run
//! use tvm_ffi_codegen::image::rtc::{KernelSource, Nvrtc};
//!
//! let source = KernelSource::new(
//!     "template <class T> __global__ void scale(T* x, long n, T by) {
//!          long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
//!          if (i < n) x[i] *= by;
//!      }",
//! );
//! let compiled = Nvrtc::find()?.compile(&source.kernel("scale<float>"), &["sm_80", "sm_90"])?;
//! println!("{:?} has {}", compiled.images(), compiled.entries()[0]);
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

mod error;
mod library;
mod log;

use std::path::Path;
use std::sync::Arc;

pub use error::RtcError;
pub use log::{Severity, SourceMessage};

use super::{AmdTarget, CudaTarget, GpuTarget, Image};
use library::{Api, Functions, HIPRTC, NVRTC, Program, c_string};

/// CUDA C++ or HIP C++ source, and what the compiler needs to know to compile it.
#[derive(Clone, PartialEq, Eq, Debug)]
#[must_use]
pub struct KernelSource {
    text: String,
    file: String,
    headers: Vec<(String, String)>,
    options: Vec<String>,
    kernels: Vec<String>,
}

impl KernelSource {
    /// Source code. Messages of the compiler call it `kernels.cu`.
    pub fn new(text: impl Into<String>) -> Self {
        KernelSource {
            text: text.into(),
            file: "kernels.cu".to_owned(),
            headers: Vec::new(),
            options: Vec::new(),
            kernels: Vec::new(),
        }
    }

    /// The name of the source's file in messages.
    pub fn file(mut self, name: impl Into<String>) -> Self {
        self.file = name.into();
        self
    }

    /// A header, by the name with which the source includes it. It needs no file.
    pub fn header(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.headers.push((name.into(), text.into()));
        self
    }

    /// An option of the compiler: `-DN=16`, `--use_fast_math`, `-I/usr/include`.
    pub fn option(mut self, option: impl Into<String>) -> Self {
        self.options.push(option.into());
        self
    }

    /// A kernel as C++ names it: `scale<float>`, `lib::sum`. The compiler instantiates a template, and
    /// [`CompiledSource::entries`] has the name in the images. You needn't state a kernel that is `extern "C"`.
    pub fn kernel(mut self, name: impl Into<String>) -> Self {
        self.kernels.push(name.into());
        self
    }
}

/// The result of compiling source.
#[derive(Clone, Debug)]
pub struct CompiledSource {
    images: Vec<Image>,
    entries: Vec<String>,
    log: String,
}

impl CompiledSource {
    /// The images, one for each architecture, in the same order.
    pub fn images(&self) -> &[Image] {
        &self.images
    }

    /// The names that the kernels of [`KernelSource::kernel`] have in the images, in the same order.
    pub fn entries(&self) -> &[String] {
        &self.entries
    }

    /// The compiler's log. Empty without warnings.
    pub fn log(&self) -> &str {
        &self.log
    }

    /// The warnings and remarks in [`log`](Self::log).
    pub fn messages(&self) -> Vec<SourceMessage> {
        log::messages(&self.log)
    }
}

/// NVRTC, loaded. It stays loaded until the process ends, since it has threads.
#[derive(Clone, Debug)]
pub struct Nvrtc(Compiler);

impl Nvrtc {
    /// Loads the machine's NVRTC: the file that the environment variable `TVM_FFI_CODEGEN_NVRTC` names, or the first
    /// one found of version 13 and 12, by the system's search for libraries, in `CUDA_HOME` or `CUDA_PATH`, and in
    /// `/usr/local/cuda`.
    ///
    /// # Errors
    /// No NVRTC can be loaded, or it lacks a function.
    pub fn find() -> Result<Self, RtcError> {
        Compiler::find(&NVRTC).map(Nvrtc)
    }

    /// Loads an NVRTC from a file, such as `nvidia/cuda_nvrtc/lib/libnvrtc.so.12` of the PyPI package
    /// `nvidia-cuda-nvrtc-cu12`.
    ///
    /// # Errors
    /// The file can't be loaded, or it lacks a function.
    ///
    /// # Safety
    /// The file is NVIDIA's NVRTC, of version 12.0 or later.
    pub unsafe fn open(file: impl AsRef<Path>) -> Result<Self, RtcError> {
        // SAFETY: the caller guarantees what `open` asks for.
        unsafe { Compiler::open(&NVRTC, file.as_ref()) }.map(Nvrtc)
    }

    /// The version: major and minor number.
    ///
    /// # Errors
    /// NVRTC reports an error.
    pub fn version(&self) -> Result<(u32, u32), RtcError> {
        self.0.functions.version()
    }

    /// The compute capabilities that it compiles for, in ascending order: 90 for `sm_90` and `compute_90`.
    ///
    /// # Errors
    /// NVRTC reports an error.
    pub fn capabilities(&self) -> Result<Vec<u32>, RtcError> {
        self.0.functions.capabilities()
    }

    /// Compiles source for architectures: an image of machine code for `sm_90a`, of PTX for `compute_80`. Threads may
    /// compile at the same time.
    ///
    /// # Errors
    /// The source or an option is wrong ([`RtcError::Source`] has the compiler's messages), no architecture is stated,
    /// a name isn't one of an architecture, or NVRTC fails.
    pub fn compile(&self, source: &KernelSource, architectures: &[&str]) -> Result<CompiledSource, RtcError> {
        let target = |name: &str| name.parse::<CudaTarget>().ok().map(GpuTarget::Cuda);
        self.0.compile(source, architectures, ("`sm_90a` or `compute_80`", target))
    }
}

/// hiprtc, loaded. It stays loaded until the process ends.
#[derive(Clone, Debug)]
pub struct Hiprtc(Compiler);

impl Hiprtc {
    /// Loads the machine's hiprtc: the file that the environment variable `TVM_FFI_CODEGEN_HIPRTC` names, or the first
    /// one found, by the system's search for libraries, in `ROCM_PATH` or `HIP_PATH`, and in `/opt/rocm`. On Windows
    /// only the variable counts.
    ///
    /// # Errors
    /// No hiprtc can be loaded, or it lacks a function.
    pub fn find() -> Result<Self, RtcError> {
        Compiler::find(&HIPRTC).map(Hiprtc)
    }

    /// Loads a hiprtc from a file.
    ///
    /// # Errors
    /// The file can't be loaded, or it lacks a function.
    ///
    /// # Safety
    /// The file is AMD's hiprtc, or a library of HIP that has its functions.
    pub unsafe fn open(file: impl AsRef<Path>) -> Result<Self, RtcError> {
        // SAFETY: the caller guarantees what `open` asks for.
        unsafe { Compiler::open(&HIPRTC, file.as_ref()) }.map(Hiprtc)
    }

    /// The version: major and minor number.
    ///
    /// # Errors
    /// hiprtc reports an error.
    pub fn version(&self) -> Result<(u32, u32), RtcError> {
        self.0.functions.version()
    }

    /// Compiles source for architectures: a code object for `gfx942` or `gfx90a:xnack-`.
    ///
    /// # Errors
    /// As [`Nvrtc::compile`].
    pub fn compile(&self, source: &KernelSource, architectures: &[&str]) -> Result<CompiledSource, RtcError> {
        let target = |name: &str| name.parse::<AmdTarget>().ok().map(GpuTarget::Amd);
        self.0.compile(source, architectures, ("`gfx942` or `gfx90a:xnack-`", target))
    }
}

/// NVRTC or hiprtc.
#[derive(Clone, Debug)]
struct Compiler {
    functions: Arc<Functions>,
}

impl Compiler {
    fn find(api: &'static Api) -> Result<Self, RtcError> {
        // SAFETY: files of these names are the vendor's, and the variable's documentation asks for such a file.
        let functions = unsafe { api.first(api.candidates()) }?;
        Ok(Compiler { functions: Arc::new(functions) })
    }

    /// # Safety
    /// The file is this compiler's library.
    unsafe fn open(api: &'static Api, file: &Path) -> Result<Self, RtcError> {
        // SAFETY: the caller guarantees what `first` asks for.
        let functions = unsafe { api.first(vec![file.to_owned()]) }?;
        Ok(Compiler { functions: Arc::new(functions) })
    }

    /// Compiles for architectures by their names. `expected` are such names in words.
    fn compile(
        &self,
        source: &KernelSource,
        architectures: &[&str],
        (expected, target): (&'static str, impl Fn(&str) -> Option<GpuTarget>),
    ) -> Result<CompiledSource, RtcError> {
        let unknown = |name: &str| RtcError::Architecture { name: name.to_owned(), expected };
        let targets = architectures.iter().map(|name| target(name).ok_or_else(|| unknown(name)));
        let targets = targets.collect::<Result<Vec<_>, _>>()?;
        if targets.is_empty() {
            return Err(RtcError::NoArchitecture { expected });
        }
        let mut compiled = CompiledSource { images: Vec::new(), entries: Vec::new(), log: String::new() };
        for (number, target) in targets.into_iter().enumerate() {
            let program = self.program(source)?;
            let (option, is_virtual) = match target {
                GpuTarget::Cuda(target) => ("--gpu-architecture", target.is_virtual),
                GpuTarget::Amd(_) => ("--offload-arch", false),
            };
            let mut options = vec![format!("{option}={target}")];
            options.extend(source.options.iter().cloned());
            let succeeded = program.compile(&options)?;
            let log = program.log()?;
            let log = if matches!(target, GpuTarget::Amd(_)) { with_name(&log, &source.file) } else { log };
            if !succeeded {
                return Err(RtcError::Source { file: source.file.clone(), target, log });
            }
            let image = Image::from_bytes(program.code(is_virtual)?);
            compiled.images.push(image.map_err(|error| RtcError::Image { target, error })?);
            if number == 0 {
                let names = source.kernels.iter().map(|kernel| program.lowered_name(kernel));
                compiled.entries = names.collect::<Result<_, _>>()?;
            }
            // most architectures get the same warnings
            if !log.is_empty() && !compiled.log.contains(&log) {
                compiled.log.push_str(&log);
            }
        }
        Ok(compiled)
    }

    /// A program of the source, whose kernels are stated.
    fn program(&self, source: &KernelSource) -> Result<Program<'_>, RtcError> {
        let text = c_string(&source.text, "the source")?;
        let file = c_string(&source.file, "the name of the source")?;
        let strings = |of: fn(&(String, String)) -> &String| {
            source.headers.iter().map(|header| c_string(of(header), "a header")).collect::<Result<Vec<_>, _>>()
        };
        let (names, texts) = (strings(|header| &header.0)?, strings(|header| &header.1)?);
        let program = self.functions.program(&text, &file, &names, &texts)?;
        source.kernels.iter().try_for_each(|kernel| program.state(kernel))?;
        Ok(program)
    }
}

/// The log of hiprtc, which compiles a temporary file, with the source's name in its messages.
fn with_name(log: &str, file: &str) -> String {
    const TEMPORARY: &str = "/input/CompileSource:";
    let named = |line: &str| match line.split_once(TEMPORARY) {
        Some((folder, rest)) if !folder.contains(' ') => format!("{file}:{rest}"),
        _ => line.to_owned(),
    };
    log.split_inclusive('\n').map(named).collect()
}
