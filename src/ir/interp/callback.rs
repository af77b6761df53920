//! Entry points for native code: functions of the module that a host can call.

use std::fmt;

use crate::ir::inst::FuncRef;
use crate::ir::types::Type;

/// Runs a function in the interpreter that the first argument points to. The others are the function, the argument
/// words, and room for a result word.
pub(super) type CallbackEntry = unsafe fn(*const (), FuncRef, *const u64, *mut u64);

/// A function of an interpreted module, for which a [`Host`](super::Host) creates an address.
#[derive(Clone, Copy)]
pub struct Callback {
    context: *const (),
    func: FuncRef,
    call: CallbackEntry,
}

impl Callback {
    pub(super) fn new(context: *const (), func: FuncRef, call: CallbackEntry) -> Self {
        Callback { context, func, call }
    }

    /// Calls the function. Native code may call it during a run of the interpreter that has called that code. If the
    /// function fails, the run ends with the reason as soon as native code returns. The result here then signals
    /// failure: -1, null or NaN.
    ///
    /// # Safety
    /// The interpreter is alive. A call on another thread than the interpreter's fails. `args` points to a word for
    /// each parameter, with the argument in its lower bits. `result` has room for a word unless there is no result. The
    /// arguments fulfil the function's contract, as for [`Interpreter::run`](super::Interpreter::run).
    pub unsafe fn call(&self, args: *const u64, result: *mut u64) {
        // SAFETY: the caller guarantees it, and the context is the one that the callback was created with.
        unsafe { (self.call)(self.context, self.func, args, result) }
    }

    /// The result's bits for a failed call.
    pub(super) const fn failed(ty: Type) -> u64 {
        match ty {
            Type::Bool => 0,
            Type::I8 => u8::MAX as u64,
            Type::I16 => u16::MAX as u64,
            Type::I32 => u32::MAX as u64,
            Type::I64 => u64::MAX,
            Type::F32 => f32::NAN.to_bits() as u64,
            Type::F64 => f64::NAN.to_bits(),
            Type::Ptr => 0,
        }
    }
}

impl fmt::Debug for Callback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Callback").field(&self.func).finish()
    }
}
