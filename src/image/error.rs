//! The errors of reading images, and of comparing them with launches.

use std::fmt;

/// The error of reading an image.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// The bytes are not a known kind of image.
    #[error("expected a cubin, a fatbin, PTX or an AMD code object, got {found}")]
    Unknown {
        /// A description of the bytes.
        found: String,
    },
    /// The image is broken.
    #[error("the {kind} is broken: {problem}")]
    Broken {
        /// The kind of image.
        kind: &'static str,
        /// The problem.
        problem: String,
    },
}

/// The parameters that a launch passes differ from those that the kernel takes.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct MismatchedParams {
    /// The kernel.
    pub kernel: String,
    /// The sizes of the kernel's parameters, in bytes.
    pub takes: Vec<u32>,
    /// The sizes of the passed parameters, in bytes.
    pub passed: Vec<u32>,
}

impl fmt::Display for MismatchedParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes = |sizes: &[u32]| match sizes {
            [] => "none".to_owned(),
            sizes => sizes.iter().map(u32::to_string).collect::<Vec<_>>().join(", "),
        };
        let (takes, passed) = (sizes(&self.takes), sizes(&self.passed));
        match self.takes.len() == self.passed.len() {
            true => write!(
                f,
                "kernel `{}` takes parameters of {takes} bytes, and those of {passed} are passed",
                self.kernel
            ),
            false => write!(
                f,
                "kernel `{}` takes {} parameters (of {takes} bytes), and {} are passed (of {passed})",
                self.kernel,
                self.takes.len(),
                self.passed.len()
            ),
        }
    }
}

impl std::error::Error for MismatchedParams {}
