//! Keys of artifacts: everything that decides their bytes.

use std::fmt;

use hmac_sha256::Hash as Sha256;

use super::super::LibraryBuilder;
use crate::lower::{Kernel, NoIdentity};
use crate::spec::{Part, Signature};

/// Identifies this build of the library: its version and a hash of its sources. Another build may generate other
/// code.
pub fn build_id() -> &'static str {
    concat!(env!("CARGO_PKG_VERSION"), "-", env!("TVM_FFI_CODEGEN_BUILD_ID"))
}

/// The error for a kernel that can't be part of a key. A body is a closure, and an address has another meaning in
/// another process.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "the kernel of function `{function}` is a body or an address, and can't be told from another one in a later process"
)]
#[non_exhaustive]
pub struct NotCacheable {
    /// The function.
    pub function: String,
}

/// The key of an artifact in a [`Cache`](super::Cache): a SHA-256 of everything that decides its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct CacheKey([u8; 32]);

impl CacheKey {
    /// Starts a key that has only the [build](build_id) as a part.
    pub fn builder() -> CacheKeyBuilder {
        CacheKeyBuilder(Sha256::new()).part("build", build_id())
    }
}

impl fmt::Display for CacheKey {
    /// Writes 64 hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for CacheKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CacheKey({self})")
    }
}

/// A builder of a [`CacheKey`]. The order of the parts matters.
#[derive(Clone)]
#[must_use]
pub struct CacheKeyBuilder(Sha256);

impl fmt::Debug for CacheKeyBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CacheKeyBuilder").finish_non_exhaustive()
    }
}

impl CacheKeyBuilder {
    /// Adds a part: for example the bytes of a linked object, a linker option, or the version of the compiler that
    /// built a kernel.
    pub fn part(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.add(name.as_bytes());
        self.add(value.as_ref());
        self
    }

    /// Adds a signature with the places of its parts.
    pub fn signature(mut self, signature: &Signature) -> Self {
        self.add(signature.to_string().as_bytes());
        for (part, place) in signature.own_locations() {
            let part = match part {
                Part::Signature => "signature".to_owned(),
                other => format!("{other:?}"),
            };
            self = self.part(&part, format!("{}\0{}\0{}", place.file, place.line, place.function));
        }
        self.part("", "")
    }

    /// Adds the kernel of a function, with its images and objects.
    ///
    /// # Errors
    /// The kernel is a body or an address.
    pub fn kernel(mut self, function: &str, kernel: &Kernel) -> Result<Self, NotCacheable> {
        let identity = kernel.identity(&mut |part| self.add(part));
        identity.map_err(|NoIdentity| NotCacheable { function: function.to_owned() })?;
        Ok(self.part("", ""))
    }

    /// Adds everything that decides a library's object: functions, target, options and the code generator's version.
    ///
    /// # Errors
    /// The kernel of a function is a body or an address.
    pub fn library(mut self, library: &LibraryBuilder) -> Result<Self, NotCacheable> {
        for (name, value) in library.cached_options() {
            self = self.part(name, value);
        }
        for (signature, kernel) in library.cached_functions() {
            self = self
                .signature(signature)
                .kernel(signature.name(), kernel)?
                .part("doc", format!("{:?}", signature.doc()));
        }
        Ok(self)
    }

    /// The key.
    pub fn finish(self) -> CacheKey {
        CacheKey(self.0.finalize())
    }

    /// Adds the length and then the bytes, so different lists of parts never give the same bytes.
    fn add(&mut self, bytes: &[u8]) {
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }
}
