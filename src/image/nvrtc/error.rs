//! The errors of compiling CUDA C++.

use super::log::{CudaMessage, messages};
use crate::image::{CudaTarget, ImageError};

/// The error of loading NVRTC or of compiling with it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NvrtcError {
    /// No NVRTC can be loaded.
    #[error("NVRTC can't be loaded: {}", problems.join("; "))]
    NotFound {
        /// The loader's message for each file that was tried.
        problems: Vec<String>,
    },
    /// The library lacks a function.
    #[error("{file} has no function `{function}`; NVRTC has to be of version 12.0 or later")]
    Function {
        /// The library.
        file: String,
        /// The function.
        function: &'static str,
    },
    /// A name that isn't an architecture's.
    #[error("unknown architecture `{name}`, expected one such as `sm_90a` or `compute_80`")]
    Architecture {
        /// The name.
        name: String,
    },
    /// There is no architecture to compile for.
    #[error("no architectures are stated, expected one or more such as `sm_90a` or `compute_80`")]
    NoArchitecture,
    /// A text that the compiler can't be given.
    #[error("{what} has a NUL byte")]
    Nul {
        /// The text.
        what: &'static str,
    },
    /// The compiler refuses the source or an option.
    #[error("can't compile {file} for {target}:\n{}", log.trim_end())]
    Source {
        /// The name of the source's file.
        file: String,
        /// The architecture.
        target: CudaTarget,
        /// The compiler's log.
        log: String,
    },
    /// The compiler doesn't know a kernel of the source.
    #[error("the source has no kernel `{kernel}`")]
    Kernel {
        /// The kernel, as it was stated.
        kernel: String,
    },
    /// A function of NVRTC fails.
    #[error("`{function}` failed with {text} ({status})")]
    Call {
        /// The function.
        function: &'static str,
        /// The status, an `nvrtcResult`.
        status: i32,
        /// NVRTC's name of the status.
        text: String,
    },
    /// The code can't be read.
    #[error("NVRTC's code for {target} can't be read: {error}")]
    Image {
        /// The architecture.
        target: CudaTarget,
        /// The problem.
        error: ImageError,
    },
}

impl NvrtcError {
    /// The compiler's messages about the source: errors, and warnings between them. Empty for other errors.
    pub fn messages(&self) -> Vec<CudaMessage> {
        match self {
            NvrtcError::Source { log, .. } => messages(log),
            _ => Vec::new(),
        }
    }
}
