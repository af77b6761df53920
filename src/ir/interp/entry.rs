//! Entry points of a module: calls from outside, and callbacks from native code.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use super::callback::Callback;
use super::datum::Datum;
use super::error::InterpError;
use super::host::Host;
use super::run::Run;
use super::shared::Shared;
use crate::ir::inst::FuncRef;

/// Max number of nested callbacks from native code. Unlike calls inside the module, each uses some of this thread's
/// stack.
pub(super) const MAX_CALLBACKS: usize = 64;

/// Runs a function with arguments of its signature's types; returns its result's bits.
///
/// # Safety
/// The same as for [`Interpreter::run`](super::Interpreter::run).
pub(super) unsafe fn run<H: Host>(
    shared: &Shared<'_, H>,
    func: FuncRef,
    args: impl Iterator<Item = u64>,
) -> Result<u64, InterpError> {
    /// Decrements the count of active runs, even if the host panics.
    struct UnderWay<'c>(&'c Cell<usize>);
    impl Drop for UnderWay<'_> {
        fn drop(&mut self) {
            self.0.set(self.0.get() - 1);
        }
    }
    let runs = shared.runs.get();
    if runs == 0 {
        shared.left.set(shared.fuel.get());
    }
    if runs > MAX_CALLBACKS {
        let function = shared.module.functions[func].name.clone();
        return Err(InterpError::TooDeep { function, limit: MAX_CALLBACKS });
    }
    shared.runs.set(runs + 1);
    let _under_way = UnderWay(&shared.runs);
    // SAFETY: the caller guarantees it.
    unsafe { Run::of(shared, func, args) }
}

/// Runs a function for native code. After a failure it records the error, and returns a value that signals failure if
/// the result's type has one.
///
/// # Safety
/// The same as for [`Callback::call`]; `context` is a `Shared<H>`.
pub(super) unsafe fn call_back<H: Host>(context: *const (), func: FuncRef, args: *const u64, result: *mut u64) {
    // SAFETY: the caller guarantees that the interpreter lives, and it owns the state shared by its runs.
    let shared = unsafe { &*context.cast::<Shared<'_, H>>() };
    let sig = &shared.module.functions[func].signature;
    let answer = |bits: Option<u64>| {
        if let Some(ret) = sig.ret {
            // SAFETY: the caller guarantees it.
            unsafe { result.write(bits.unwrap_or_else(|| Callback::failed(ret.ty))) };
        }
    };
    // the shared cells belong to that thread
    if thread::current().id() != shared.thread {
        return answer(None);
    }
    let done = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the array is as long as the signature says. Upper bits of narrow arguments are arbitrary.
        let word = |(i, ty)| Datum::from_bits(ty, unsafe { args.add(i).read() }).bits();
        let args = sig.params.iter().map(|param| param.ty).enumerate().map(word);
        // SAFETY: the caller guarantees it.
        unsafe { run(shared, func, args) }
    }));
    answer(match done {
        Ok(Ok(bits)) => Some(bits),
        Ok(Err(error)) => {
            shared.note_failure(error);
            None
        }
        Err(payload) => {
            shared.note_failure(panicked(&shared.module.functions[func].name, &*payload));
            None
        }
    });
}

/// The error for a callback from native code that panicked.
fn panicked(function: &str, payload: &(dyn Any + Send)) -> InterpError {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("unknown");
    InterpError::Host {
        function: function.to_owned(),
        location: "a call by native code".to_owned(),
        message: format!("panic: {text}"),
    }
}
