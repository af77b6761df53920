//! The interpreter: runs a verified module in this process, one instruction at a time.
//!
//! It is the oracle for compiled code, so it follows `inst.rs` exactly and shares no code with any backend. It uses
//! real memory: pointers from outside can be dereferenced, and addresses of slots passed out. Imports and calls through
//! pointers go to a [`Host`]; calls inside the module don't use Rust's stack. When code takes the address of a function
//! of the module, the host creates one. Native code may call the function there, even while the interpreter is calling
//! that native code.
//!
//! It reports what would crash compiled code: a trapping division, an access to the first page, an unaligned address in
//! an access marked as aligned.

mod callback;
mod datum;
mod entry;
mod error;
mod eval;
#[cfg(test)]
mod eval_tests;
mod host;
mod memory;
mod run;
mod shared;
mod stack;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::fmt;
use std::rc::Rc;

use cranelift_entity::PrimaryMap;

pub use self::callback::Callback;
pub use self::datum::Datum;
pub use self::error::{InterpError, TrapReason};
pub use self::host::Host;
use self::memory::{FrameLayout, Region};
use self::shared::Shared;
use super::module::{DataKind, Function, HOST_ENDIANNESS};
use super::verify::VerifiedModule;

/// Runs the functions of a module, on the thread that created it. Static data and functions keep their addresses as
/// long as the interpreter lives. A run leaves nothing else behind, whether it succeeds or not.
///
/// Dropping the interpreter runs the module's destructors, if a function was run before.
pub struct Interpreter<'a, H: Host> {
    /// In an `Rc`, because native code has the address.
    shared: Rc<Shared<'a, H>>,
    /// Whether a function was run, so a caller has guaranteed that the module's code may run.
    ran: Cell<bool>,
}

impl<H: Host> fmt::Debug for Interpreter<'_, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interpreter").field("fuel", &self.shared.fuel()).finish_non_exhaustive()
    }
}

impl<'a, H: Host> Interpreter<'a, H> {
    /// Resolves the imports and allocates the static data.
    pub fn new(module: &'a VerifiedModule, host: H) -> Result<Self, InterpError> {
        let module = module.module();
        if module.endianness != HOST_ENDIANNESS {
            return Err(InterpError::Endianness { module: module.endianness });
        }
        if let Some(what) = module.only_in_objects() {
            return Err(InterpError::OnlyInObjects { what });
        }
        let mut missing = Vec::new();
        let mut imports = PrimaryMap::with_capacity(module.functions.len());
        let mut layouts = PrimaryMap::with_capacity(module.functions.len());
        let none = Function::default();
        for decl in module.functions.values() {
            layouts.push(FrameLayout::new(decl.body.as_ref().unwrap_or(&none)));
            let address = if decl.body.is_some() { Some(0) } else { host.resolve(&decl.name) };
            imports.push(address.unwrap_or_default());
            if address.is_none() {
                missing.push(decl.name.clone());
            }
        }
        if !missing.is_empty() {
            return Err(InterpError::MissingImports { names: missing });
        }
        let mut data = PrimaryMap::with_capacity(module.data.len());
        for piece in module.data.values() {
            let region = Region::with_bytes(&piece.bytes, piece.align);
            data.push(region.ok_or_else(|| InterpError::OutOfMemory { what: piece.name.clone() })?);
        }
        let shared = Rc::new(Shared::new(module, host, entry::call_back::<H>, imports, data, layouts));
        Ok(Interpreter { shared, ran: Cell::new(false) })
    }

    /// Sets the max number of steps (instructions and terminators) of each run, including callbacks from native code.
    #[must_use]
    pub fn with_fuel(self, steps: u64) -> Self {
        self.shared.set_fuel(steps);
        self
    }

    /// The address of a variable. It is valid as long as the interpreter lives.
    pub fn variable(&self, name: &str) -> Option<u64> {
        let mut variables = self.shared.module.data.iter().filter(|(_, data)| data.kind == DataKind::Variable);
        let (data, _) = variables.find(|(_, data)| data.name == name)?;
        Some(self.shared.data[data].address())
    }

    /// The address at which native code may call a function that the module defines, on this thread and as long as the
    /// interpreter lives.
    ///
    /// # Errors
    /// There is no such function, or the host doesn't support such addresses.
    pub fn function(&self, name: &str) -> Result<u64, InterpError> {
        let found = self.shared.module.function_named(name).filter(|(_, decl)| decl.body.is_some());
        let (func, _) = found.ok_or_else(|| InterpError::NoSuchFunction { name: name.to_owned() })?;
        let failed =
            |message| InterpError::Host { function: name.to_owned(), location: "its address".to_owned(), message };
        self.shared.address_of(func).map_err(failed)
    }

    /// The host.
    pub fn host(&self) -> &H {
        &self.shared.host
    }

    /// The error of a callback from native code outside of a run: the first since the last run, if one has failed.
    pub fn take_failure(&mut self) -> Option<InterpError> {
        self.shared.take_failure()
    }

    /// Runs a function that the module defines, exported or not.
    ///
    /// # Safety
    /// The arguments fulfil the function's contract: the memory that it reads and writes through them is valid, and the
    /// native functions that it calls may be called so. The same holds for functions of the module that native code
    /// calls, and for the module's destructors when the interpreter is dropped.
    pub unsafe fn run(&mut self, function: &str, args: &[Datum]) -> Result<Option<Datum>, InterpError> {
        let module = self.shared.module;
        let found = module.function_named(function).filter(|(_, decl)| decl.body.is_some());
        let Some((func, decl)) = found else {
            return Err(InterpError::NoSuchFunction { name: function.to_owned() });
        };
        let sig = &decl.signature;
        if !args.iter().map(|arg| arg.ty()).eq(sig.params.iter().map(|p| p.ty)) {
            return Err(InterpError::Arguments {
                function: function.to_owned(),
                signature: sig.to_string(),
                args: args.iter().map(|arg| arg.ty()).collect(),
            });
        }
        self.ran.set(true);
        drop(self.shared.take_failure());
        // SAFETY: the caller guarantees it.
        let bits = unsafe { entry::run(&self.shared, func, args.iter().map(|arg| arg.bits())) }?;
        Ok(sig.ret.map(|ret| Datum::from_bits(ret.ty, bits)))
    }
}

impl<H: Host> Drop for Interpreter<'_, H> {
    fn drop(&mut self) {
        if !self.ran.get() {
            return;
        }
        // in reverse order, as for a library
        for &func in self.shared.module.destructors.iter().rev() {
            // A drop can't report an error.
            // SAFETY: the caller of `run` has guaranteed that the module's functions may run.
            drop(unsafe { entry::run(&self.shared, func, std::iter::empty()) });
        }
    }
}
