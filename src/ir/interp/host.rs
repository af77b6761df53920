//! The world outside of a module.

use super::callback::Callback;
use super::datum::Datum;
use crate::ir::types::FuncSig;

/// The world outside the module, as the interpreter needs it: calls of imports and through pointers, and addresses for
/// callbacks.
///
/// Native code that is [called](Self::call) may call back, and what it runs may call the host again. So a host must
/// hold no lock or borrow during a call.
pub trait Host {
    /// The address of an imported symbol, or `None` if it is unknown. Called once for each import. The interpreter only
    /// passes the address to [`call`](Self::call), so a host may number its functions instead.
    fn resolve(&self, name: &str) -> Option<u64>;

    /// Calls native code: an import at the address that [`resolve`](Self::resolve) returned, or any function that the
    /// IR calls through a pointer. The result has the signature's type. A struct by value is given by the address of
    /// its bytes. An error ends the run.
    ///
    /// # Safety
    /// `address` is a C function of that signature, and the arguments fulfil its contract.
    unsafe fn call(&self, address: u64, sig: &FuncSig, args: &[Datum]) -> Result<Option<Datum>, String>;

    /// Creates a nonzero address at which native code can call a function of the module with that signature. It stays
    /// valid as long as the host lives. Called once for each function whose address is taken.
    ///
    /// # Errors
    /// The host doesn't support such addresses, which is the default. The error ends the run.
    fn callback(&self, sig: &FuncSig, callback: Callback) -> Result<u64, String> {
        let _ = callback;
        Err(format!("the host gives functions of the module no addresses, such as one of {sig}"))
    }
}

impl<H: Host + ?Sized> Host for &H {
    fn resolve(&self, name: &str) -> Option<u64> {
        (**self).resolve(name)
    }

    unsafe fn call(&self, address: u64, sig: &FuncSig, args: &[Datum]) -> Result<Option<Datum>, String> {
        // SAFETY: the caller guarantees it.
        unsafe { (**self).call(address, sig, args) }
    }

    fn callback(&self, sig: &FuncSig, callback: Callback) -> Result<u64, String> {
        (**self).callback(sig, callback)
    }
}
