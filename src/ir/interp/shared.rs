//! State shared by all runs of an interpreter: the module, its data, and the connections to the host.
//!
//! Native code called by a run may call back, so runs nest. Each has its own stack. Shared state isn't borrowed while
//! native code runs: there are only shared references and cells.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::thread::{self, ThreadId};

use cranelift_entity::{PrimaryMap, SecondaryMap};

use super::callback::{Callback, CallbackEntry};
use super::error::InterpError;
use super::host::Host;
use super::memory::{FrameLayout, Region};
use super::stack::Stack;
use crate::ir::inst::{DataRef, FuncRef};
use crate::ir::module::Module;

/// The default max number of steps of a run.
const DEFAULT_FUEL: u64 = 1_000_000_000;

pub(super) struct Shared<'a, H: Host> {
    pub(super) module: &'a Module,
    pub(super) host: H,
    /// Runs a function of the module for native code.
    entry: CallbackEntry,
    /// Addresses of imports; 0 for other functions.
    pub(super) imports: PrimaryMap<FuncRef, u64>,
    pub(super) data: PrimaryMap<DataRef, Region>,
    pub(super) layouts: PrimaryMap<FuncRef, FrameLayout>,
    /// Addresses at which native code may call functions of the module; 0 for functions whose address wasn't requested.
    addresses: RefCell<SecondaryMap<FuncRef, u64>>,
    functions: RefCell<HashMap<u64, FuncRef>>,
    /// Stacks of runs that have ended.
    stacks: RefCell<Vec<Stack<'a>>>,
    pub(super) fuel: Cell<u64>,
    /// The remaining steps of the active runs.
    pub(super) left: Cell<u64>,
    /// The number of active runs: one from outside, and those that native code has started in it.
    pub(super) runs: Cell<usize>,
    /// The first error of a callback from native code, which can't propagate it.
    failure: RefCell<Option<InterpError>>,
    /// The thread that may use this state.
    pub(super) thread: ThreadId,
}

impl<'a, H: Host> Shared<'a, H> {
    pub(super) fn new(
        module: &'a Module,
        host: H,
        entry: CallbackEntry,
        imports: PrimaryMap<FuncRef, u64>,
        data: PrimaryMap<DataRef, Region>,
        layouts: PrimaryMap<FuncRef, FrameLayout>,
    ) -> Self {
        Shared {
            module,
            host,
            entry,
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

    /// Takes a step, if one is left.
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

    /// The address of a function: that of an import, or that at which native code calls a function of the module.
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
        let address = self.host.callback(&decl.signature, Callback::new(context, func, self.entry))?;
        self.addresses.borrow_mut()[func] = address;
        self.functions.borrow_mut().insert(address, func);
        Ok(address)
    }

    /// The function of the module that native code calls at this address.
    pub(super) fn function_at(&self, address: u64) -> Option<FuncRef> {
        self.functions.borrow().get(&address).copied()
    }

    pub(super) fn note_failure(&self, error: InterpError) {
        self.failure.borrow_mut().get_or_insert(error);
    }
}
