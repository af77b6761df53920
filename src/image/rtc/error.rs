//! The errors of compiling kernels in C++.

use super::log::{SourceMessage, messages};
use crate::image::{GpuTarget, ImageError};

/// The error of loading a compiler or of compiling with it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RtcError {
    /// No file of the compiler can be loaded.
    #[error("{compiler} can't be loaded: {}", reason(problems))]
    NotFound {
        /// The compiler: `NVRTC` or `hiprtc`.
        compiler: &'static str,
        /// The loader's message for each file that was tried.
        problems: Vec<String>,
    },
    /// The library lacks a function.
    #[error("{file} has no function `{function}`; {compiler} has to be of version {since} or later")]
    Function {
        /// The library.
        file: String,
        /// The function.
        function: String,
        /// The compiler.
        compiler: &'static str,
        /// The oldest version that has all functions.
        since: &'static str,
    },
    /// A name that isn't an architecture's.
    #[error("unknown architecture `{name}`, expected one such as {expected}")]
    Architecture {
        /// The name.
        name: String,
        /// Names of architectures that the compiler has code for, in words.
        expected: &'static str,
    },
    /// The caller states no architecture.
    #[error("no architectures are stated, expected one or more such as {expected}")]
    NoArchitecture {
        /// Names of architectures, in words.
        expected: &'static str,
    },
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
        target: GpuTarget,
        /// The compiler's log.
        log: String,
    },
    /// The compiler doesn't know a kernel of the source.
    #[error("the source has no kernel `{kernel}`")]
    Kernel {
        /// The kernel, as it was stated.
        kernel: String,
    },
    /// A function of the compiler fails.
    #[error("`{function}` failed with {text} ({status})")]
    Call {
        /// The function.
        function: String,
        /// The status, an `nvrtcResult` or `hiprtcResult`.
        status: i32,
        /// The compiler's name of the status.
        text: String,
    },
    /// The code can't be read.
    #[error("the compiler's code for {target} can't be read: {error}")]
    Image {
        /// The architecture.
        target: GpuTarget,
        /// The problem.
        error: ImageError,
    },
}

impl RtcError {
    /// The compiler's messages about the source: errors, and warnings between them. Empty for other errors.
    pub fn messages(&self) -> Vec<SourceMessage> {
        match self {
            RtcError::Source { log, .. } => messages(log),
            _ => Vec::new(),
        }
    }
}

/// The loader's messages, or why there are none.
fn reason(problems: &[String]) -> String {
    if problems.is_empty() { "no file of it is known on this system".to_owned() } else { problems.join("; ") }
}
