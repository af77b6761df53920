//! Backends: from the [IR](crate::ir) to machine code.
//!
//! A backend takes a [`VerifiedModule`](crate::ir::VerifiedModule) and gives code with relocations. It knows neither
//! signatures nor the rules of the TVM FFI ABI: whatever a wrapper checks or says is in the IR already, so two
//! backends can't differ on it. Each one is also usable alone, to add a wrapper to a module that the caller owns.

#[cfg(feature = "cranelift")]
pub mod cranelift;

/// How much a backend optimises. Every backend gives these the same meaning.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum OptLevel {
    /// The least time to compile.
    None,
    /// Fast code. Wrappers are small, so this costs little more.
    #[default]
    Speed,
}
