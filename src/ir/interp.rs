//! stub

use super::types::FuncSig;

/// A value at run time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Datum {
    /// A truth value.
    Bool(bool),
    /// An 8-bit integer.
    I8(u8),
    /// A 16-bit integer.
    I16(u16),
    /// A 32-bit integer.
    I32(u32),
    /// A 64-bit integer.
    I64(u64),
    /// A float.
    F32(f32),
    /// A float.
    F64(f64),
    /// An address in this process.
    Ptr(u64),
}

/// What the interpreter asks of the world outside the module: calls of imports and through pointers.
pub trait Host {
    /// The address of an imported symbol, or `None` if there is none.
    fn resolve(&mut self, name: &str) -> Option<u64>;

    /// Calls native code.
    ///
    /// # Safety
    /// `address` is a C function of that signature, and the arguments keep its contract.
    unsafe fn call(&mut self, address: u64, sig: &FuncSig, args: &[Datum]) -> Result<Option<Datum>, String>;
}
