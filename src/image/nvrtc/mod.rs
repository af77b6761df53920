//! CUDA C++ source, compiled to images by NVIDIA's NVRTC. It is a library that you load at run time. It needs no nvcc,
//! no C++ compiler and no device.
//!
//! ```no_run
//! use tvm_ffi_codegen::image::nvrtc::{CudaSource, Nvrtc};
//!
//! let source = CudaSource::new(
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

pub use error::NvrtcError;
pub use log::{CudaMessage, Severity};

use super::{CudaTarget, Image};
use library::{Functions, Program, c_string};

/// CUDA C++ source, and what the compiler needs to know to compile it.
#[derive(Clone, PartialEq, Eq, Debug)]
#[must_use]
pub struct CudaSource {
    text: String,
    file: String,
    headers: Vec<(String, String)>,
    options: Vec<String>,
    kernels: Vec<String>,
}

impl CudaSource {
    /// Source code. Messages of the compiler call it `kernels.cu`.
    pub fn new(text: impl Into<String>) -> Self {
        CudaSource {
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
    /// [`CompiledSource::entries`] has the kernel's name in the images. A kernel that is `extern "C"` needs no such line.
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

    /// The names that the kernels of [`CudaSource::kernel`] have in the images, in the same order.
    pub fn entries(&self) -> &[String] {
        &self.entries
    }

    /// The compiler's log. Empty without warnings.
    pub fn log(&self) -> &str {
        &self.log
    }

    /// The warnings and remarks in [`log`](Self::log).
    pub fn messages(&self) -> Vec<CudaMessage> {
        log::messages(&self.log)
    }
}

/// NVRTC, loaded. It stays loaded until the process ends, since it has threads.
#[derive(Clone, Debug)]
pub struct Nvrtc {
    functions: Arc<Functions>,
}

impl Nvrtc {
    /// Loads the machine's NVRTC: the file that the environment variable `TVM_FFI_CODEGEN_NVRTC` names, or the first one
    /// found of version 13 and 12, by the system's search for libraries, in `CUDA_HOME` or `CUDA_PATH`, and in
    /// `/usr/local/cuda`.
    ///
    /// # Errors
    /// No NVRTC can be loaded, or it lacks a function.
    pub fn find() -> Result<Self, NvrtcError> {
        // SAFETY: files of these names are NVIDIA's, and the variable's documentation asks for such a file.
        let functions = unsafe { library::first(library::candidates()) }?;
        Ok(Nvrtc { functions: Arc::new(functions) })
    }

    /// Loads an NVRTC from a file, such as `nvidia/cuda_nvrtc/lib/libnvrtc.so.12` of the PyPI package
    /// `nvidia-cuda-nvrtc-cu12`.
    ///
    /// # Errors
    /// The file can't be loaded, or it lacks a function.
    ///
    /// # Safety
    /// The file is NVIDIA's NVRTC, of version 12.0 or later.
    pub unsafe fn open(file: impl AsRef<Path>) -> Result<Self, NvrtcError> {
        // SAFETY: the caller guarantees what `first` asks for.
        let functions = unsafe { library::first(vec![file.as_ref().to_owned()]) }?;
        Ok(Nvrtc { functions: Arc::new(functions) })
    }

    /// The version: major and minor number.
    ///
    /// # Errors
    /// NVRTC reports an error.
    pub fn version(&self) -> Result<(u32, u32), NvrtcError> {
        self.functions.version()
    }

    /// The compute capabilities that it compiles for, in ascending order: 90 for `sm_90` and `compute_90`.
    ///
    /// # Errors
    /// NVRTC reports an error.
    pub fn capabilities(&self) -> Result<Vec<u32>, NvrtcError> {
        self.functions.capabilities()
    }

    /// Compiles source for architectures: an image of machine code for `sm_90a`, of PTX for `compute_80`. Threads may
    /// compile at the same time.
    ///
    /// # Errors
    /// The source or an option is wrong ([`NvrtcError::Source`] has the compiler's messages), no architecture is stated,
    /// a name isn't one of an architecture, or NVRTC fails.
    pub fn compile(&self, source: &CudaSource, architectures: &[&str]) -> Result<CompiledSource, NvrtcError> {
        if architectures.is_empty() {
            return Err(NvrtcError::NoArchitecture);
        }
        let targets = architectures.iter().map(|name| target(name)).collect::<Result<Vec<_>, _>>()?;
        let mut compiled = CompiledSource { images: Vec::new(), entries: Vec::new(), log: String::new() };
        for (number, target) in targets.into_iter().enumerate() {
            let program = self.program(source)?;
            let mut options = vec![format!("--gpu-architecture={target}")];
            options.extend(source.options.iter().cloned());
            let succeeded = program.compile(&options)?;
            let log = program.log()?;
            if !succeeded {
                return Err(NvrtcError::Source { file: source.file.clone(), target, log });
            }
            let image = Image::from_bytes(program.code(target.is_virtual)?);
            compiled.images.push(image.map_err(|error| NvrtcError::Image { target, error })?);
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
    fn program(&self, source: &CudaSource) -> Result<Program<'_>, NvrtcError> {
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

fn target(name: &str) -> Result<CudaTarget, NvrtcError> {
    name.parse().map_err(|()| NvrtcError::Architecture { name: name.to_owned() })
}
