//! The parts of a kernel that determine its wrapper's code.

use super::kernel::{Kernel, KernelCode, NativeTarget};
use super::launch::{BlockFunction, LaunchSpec};
use super::native::NativeCode;

/// A kernel without a comparable identity: a body, which is a closure, or an address, which has another meaning in
/// another process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NoIdentity;

impl Kernel {
    /// Passes the parts to `part`, one after the other. Two kernels with the same parts have the same wrapper for the
    /// same signature.
    pub(crate) fn identity(&self, part: &mut dyn FnMut(&[u8])) -> Result<(), NoIdentity> {
        match &self.code {
            KernelCode::CheckOnly => part(b"check only"),
            KernelCode::Body(_) => return Err(NoIdentity),
            KernelCode::Native { target, call } => {
                part(format!("{call:?}").as_bytes());
                match target {
                    NativeTarget::Symbol(symbol) => {
                        part(b"symbol");
                        part(symbol.as_bytes());
                    }
                    NativeTarget::Address(_) => return Err(NoIdentity),
                    NativeTarget::Launch(spec) => spec.identity(part)?,
                    NativeTarget::FirstUses(specs) => {
                        part(b"first uses");
                        specs.iter().try_for_each(|spec| spec.identity(part))?;
                    }
                }
            }
        }
        if !self.given.is_empty() {
            return Err(NoIdentity);
        }
        for code in self.native_code().map(|(code, _)| code).into_iter().chain(&self.beside) {
            part(code.name().as_bytes());
            part(code.bytes());
        }
        Ok(())
    }
}

impl LaunchSpec {
    fn identity(&self, part: &mut dyn FnMut(&[u8])) -> Result<(), NoIdentity> {
        part(b"launch");
        part(self.launch.to_string().as_bytes());
        match self.block_function() {
            None => self.images().iter().for_each(|image| part(image.bytes())),
            Some(BlockFunction::Symbol(symbol)) => part(symbol.as_bytes()),
            Some(BlockFunction::Address(_) | BlockFunction::Other) => return Err(NoIdentity),
        }
        Ok(())
    }
}

impl NativeCode {
    fn bytes(&self) -> &[u8] {
        match self {
            NativeCode::Object(bytes) => bytes,
            #[cfg(feature = "_llvm")]
            NativeCode::LlvmIr(text) => text.as_bytes(),
            #[cfg(feature = "_llvm")]
            NativeCode::Bitcode(bytes) => bytes,
        }
    }
}
