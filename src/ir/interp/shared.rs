//! What all runs of an interpreter share: the module, its data, and the way out and back in.
//!
//! Native code that a run calls may call back, so that runs nest. Each has a stack of its own, and of what they share nothing is borrowed
//! while native code runs: there are only shared references, and cells.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::{self, ThreadId};

use cranelift_entity::{PrimaryMap, SecondaryMap};

use super::callback::Callback;
use super::memory::{FrameLayout, Region};
use super::run::{Run, Stack};
use super::{Host, InterpError};
use crate::ir::inst::{DataRef, FuncRef};
use crate::ir::module::Module;

/// Steps that a run may take if nobody says how many.
const DEFAULT_FUEL: u64 = 1_000_000_000;

/// Calls from native code that may be under way at once. Each takes some of this thread's stack, unlike those inside the module.
pub(super) const MAX_CALLBACKS: usize = 64;

pub(super) struct Shared<'a, H: Host> {
    pub(super) module: &'a Module,
    pub(super) host: H,
    /// Addresses of imports; 0 for other functions.
    pub(super) imports: PrimaryMap<FuncRef, u64>,
    pub(super) data: PrimaryMap<DataRef, Region>,
    pub(super) layouts: PrimaryMap<FuncRef, FrameLayout>,
    /// Addresses that native code may call functions of the module at; 0 for those that nobody asked for.
    addresses: RefCell<SecondaryMap<FuncRef, u64>>,
    functions: RefCell<HashMap<u64, FuncRef>>,
    /// Stacks of runs that have ended.
    stacks: RefCell<Vec<Stack<'a>>>,
    fuel: Cell<u64>,
    /// Steps that are left to the runs under way.
    left: Cell<u64>,
    /// Runs under way: one from outside, and those in it that native code has begun.
    runs: Cell<usize>,
    /// The first error of a call from native code, which has no way to hand it on.
    failure: RefCell<Option<InterpError>>,
    /// Nothing here may be used on another thread.
    thread: ThreadId,
}

impl<'a, H: Host> Shared<'a, H> {
    pub(super) fn new(
        module: &'a Module,
        host: H,
        imports: PrimaryMap<FuncRef, u64>,
        data: PrimaryMap<DataRef, Region>,
        layouts: PrimaryMap<FuncRef, FrameLayout>,
    ) -> Self {
        Shared {
            module,
            host,
            imports,
            data,
            layouts,
            addresses: RefCell::default(),
            functions: RefCell::default(),
            stacks: RefCell::default(),
            fuel: Cell::new(DEFAULT_FUEL),
            left: Cell::new(0),
            runs: Cell::new(0),
            failure: RefCell::default(),
            thread: thread::current().id(),
        }
    }

    pub(super) fn fuel(&self) -> u64 {
        self.fuel.get()
    }

    pub(super) fn set_fuel(&self, steps: u64) {
        self.fuel.set(steps);
    }

    /// Uses up a step, if one is left.
    pub(super) fn take_step(&self) -> bool {
        let left = self.left.get();
        self.left.set(left.saturating_sub(1));
        left > 0
    }

    pub(super) fn take_stack(&self) -> Stack<'a> {
        self.stacks.borrow_mut().pop().unwrap_or_default()
    }

    pub(super) fn give_stack(&self, stack: Stack<'a>) {
        self.stacks.borrow_mut().push(stack);
    }

    pub(super) fn take_failure(&self) -> Option<InterpError> {
        self.failure.take()
    }

    /// Runs a function on arguments of its signature's types; gives its result's bits.
    ///
    /// # Safety
    /// As for [`Interpreter::run`](super::Interpreter::run).
    pub(super) unsafe fn run(&self, func: FuncRef, args: impl Iterator<Item = u64>) -> Result<u64, InterpError> {
        /// Counts a run out, even if the host panics.
        struct UnderWay<'c>(&'c Cell<usize>);
        impl Drop for UnderWay<'_> {
            fn drop(&mut self) {
                self.0.set(self.0.get() - 1);
            }
        }
        let runs = self.runs.get();
        if runs == 0 {
            self.left.set(self.fuel.get());
        }
        if runs > MAX_CALLBACKS {
            let function = self.module.functions[func].name.clone();
            return Err(InterpError::TooDeep { function, limit: MAX_CALLBACKS });
        }
        self.runs.set(runs + 1);
        let _under_way = UnderWay(&self.runs);
        // SAFETY: the caller's promise.
        unsafe { Run::of(self, func, args) }
    }

    /// The address of a function: of an import, or one that native code calls a function of the module at.
    pub(super) fn address_of(&self, func: FuncRef) -> Result<u64, String> {
        let decl = &self.module.functions[func];
        if decl.body.is_none() {
            return Ok(self.imports[func]);
        }
        let known = self.addresses.borrow()[func];
        if known != 0 {
            return Ok(known);
        }
        let context = std::ptr::from_ref(self).cast();
        let address = self.host.callback(&decl.signature, Callback::new(context, func, call_back::<H>))?;
        self.addresses.borrow_mut()[func] = address;
        self.functions.borrow_mut().insert(address, func);
        Ok(address)
    }

    /// The function of the module that native code calls at this address.
    pub(super) fn function_at(&self, address: u64) -> Option<FuncRef> {
        self.functions.borrow().get(&address).copied()
    }

    fn note_failure(&self, error: InterpError) {
        self.failure.borrow_mut().get_or_insert(error);
    }

    fn panicked(&self, func: FuncRef, payload: &(dyn Any + Send)) -> InterpError {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("unknown");
        InterpError::Host {
            function: self.module.functions[func].name.clone(),
            location: "a call by native code".to_owned(),
            message: format!("panic: {text}"),
        }
    }
}

/// Runs a function for native code. Where it has no result, the error is noted, and the result is one that a caller takes for a failure, as
/// far as its type has such a one.
///
/// # Safety
/// As [`Callback::call`]; `context` is a `Shared<H>`.
unsafe fn call_back<H: Host>(context: *const (), func: FuncRef, args: *const u64, result: *mut u64) {
    // SAFETY: the interpreter lives, as the caller promises, and owns what all its runs share.
    let shared = unsafe { &*context.cast::<Shared<'_, H>>() };
    let sig = &shared.module.functions[func].signature;
    let answer = |bits: Option<u64>| {
        if let Some(ret) = sig.ret {
            // SAFETY: the caller's promise.
            unsafe { result.write(bits.unwrap_or_else(|| Callback::failed(ret.ty))) };
        }
    };
    // its cells are that thread's
    if thread::current().id() != shared.thread {
        return answer(None);
    }
    let done = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the array is as long as the signature says. Upper bits of narrow arguments are anything.
        let word = |(i, ty)| super::Datum::from_bits(ty, unsafe { args.add(i).read() }).bits();
        let args = sig.params.iter().map(|param| param.ty).enumerate().map(word);
        // SAFETY: the caller's promise.
        unsafe { shared.run(func, args) }
    }));
    answer(match done {
        Ok(Ok(bits)) => Some(bits),
        Ok(Err(error)) => {
            shared.note_failure(error);
            None
        }
        Err(payload) => {
            shared.note_failure(shared.panicked(func, &*payload));
            None
        }
    });
}
