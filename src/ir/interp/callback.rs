//! The way in for native code: functions of the module as something that a host can call.

use std::fmt;

use crate::ir::inst::FuncRef;
use crate::ir::types::Type;

/// A function of an interpreted module, for a [`Host`](super::Host) to give an address to.
#[derive(Clone, Copy)]
pub struct Callback {
    context: *const (),
    func: FuncRef,
    call: unsafe fn(*const (), FuncRef, *const u64, *mut u64),
}

impl Callback {
    pub(super) fn new(
        context: *const (),
        func: FuncRef,
        call: unsafe fn(*const (), FuncRef, *const u64, *mut u64),
    ) -> Self {
        Callback { context, func, call }
    }

    /// Calls the function. It may be called while the interpreter runs, as by native code that the run has called. Where the function has no
    /// result, the run under way ends with the reason as soon as native code returns, and the result here is as if it had failed: -1, null
    /// or NaN.
    ///
    /// # Safety
    /// The interpreter lives, and this is its thread; on any other the call fails. There are as many words at `args` as the signature has
    /// parameters, each with the argument in its lower bits, and room for a word at `result` unless there is no result. The arguments keep the
    /// function's contract, as for [`Interpreter::run`](super::Interpreter::run).
    pub unsafe fn call(&self, args: *const u64, result: *mut u64) {
        // SAFETY: the caller's promise; the context is what the function was made for.
        unsafe { (self.call)(self.context, self.func, args, result) }
    }

    /// The bits of a result of a call that has none.
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
