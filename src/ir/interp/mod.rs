//! The interpreter: runs a verified module in this process, one instruction at a time.
//!
//! It is the oracle that compiled code is compared with, so it follows `inst.rs` to the letter and shares no
//! code with any backend. Memory is real: pointers from outside can be followed and slots' addresses passed
//! out. Imports and calls through pointers go to a [`Host`]; calls inside the module don't use Rust's stack. The host gives
//! functions of the module addresses where code takes them, and native code may call these while it is called itself.
//!
//! What compiled code would only die of, it reports: a division that traps, an access in the first page, an
//! address that breaks the instruction's claim to be aligned.

mod callback;
mod eval;
#[cfg(test)]
mod eval_tests;
mod memory;
mod run;
mod shared;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::fmt::{self, Display, Formatter};
use std::rc::Rc;

use cranelift_entity::PrimaryMap;
use target_lexicon::Endianness;

pub use self::callback::Callback;
use self::memory::{FrameLayout, Region};
use self::shared::Shared;
use super::module::{DataKind, Function, HOST_ENDIANNESS};
use super::types::{FuncSig, PointerFacts, Type};
use super::verify::VerifiedModule;

/// A value at run time. Integers are without sign, as in the IR: `-1i32` is `Datum::I32(u32::MAX)`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Datum {
    /// A truth value. Never an argument or a result, since signatures have none.
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

impl Datum {
    /// The type.
    pub const fn ty(self) -> Type {
        match self {
            Datum::Bool(_) => Type::Bool,
            Datum::I8(_) => Type::I8,
            Datum::I16(_) => Type::I16,
            Datum::I32(_) => Type::I32,
            Datum::I64(_) => Type::I64,
            Datum::F32(_) => Type::F32,
            Datum::F64(_) => Type::F64,
            Datum::Ptr(_) => Type::Ptr,
        }
    }

    /// The bits, zero-extended. Unlike `==` they tell apart zeros and NaNs.
    pub const fn bits(self) -> u64 {
        match self {
            Datum::Bool(value) => value as u64,
            Datum::I8(value) => value as u64,
            Datum::I16(value) => value as u64,
            Datum::I32(value) => value as u64,
            Datum::I64(value) | Datum::Ptr(value) => value,
            Datum::F32(value) => value.to_bits() as u64,
            Datum::F64(value) => value.to_bits(),
        }
    }

    /// The value of a type with the given bits; those above its width are dropped.
    pub const fn from_bits(ty: Type, bits: u64) -> Self {
        match ty {
            Type::Bool => Datum::Bool(bits & 1 != 0),
            Type::I8 => Datum::I8(bits as u8),
            Type::I16 => Datum::I16(bits as u16),
            Type::I32 => Datum::I32(bits as u32),
            Type::I64 => Datum::I64(bits),
            Type::F32 => Datum::F32(f32::from_bits(bits as u32)),
            Type::F64 => Datum::F64(f64::from_bits(bits)),
            Type::Ptr => Datum::Ptr(bits),
        }
    }
}

/// The world outside the module, as the interpreter needs it: calls of imports and through pointers, and addresses for calls back.
///
/// Native code that is [called](Self::call) may call back, and what it then runs calls the host again: a host holds no lock or borrow during
/// a call.
pub trait Host {
    /// The address of an imported symbol, or `None` if there is none. It is asked once for each import. The
    /// interpreter itself only hands the address to [`call`](Self::call), so a host may number its functions.
    fn resolve(&self, name: &str) -> Option<u64>;

    /// Calls native code: an import at the address that [`resolve`](Self::resolve) gave, or whatever the IR
    /// calls through a pointer. The result is of the signature's type. An error ends the run.
    ///
    /// # Safety
    /// `address` is a C function of that signature, and the arguments keep its contract.
    unsafe fn call(&self, address: u64, sig: &FuncSig, args: &[Datum]) -> Result<Option<Datum>, String>;

    /// Makes an address, not 0, at which native code calls a function of the module, of that signature. It is good for as long as the host
    /// lives. It is asked once for each function whose address code takes.
    ///
    /// # Errors
    /// The host has no such addresses, as by default. The error ends the run.
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
        // SAFETY: the caller's promise.
        unsafe { (**self).call(address, sig, args) }
    }

    fn callback(&self, sig: &FuncSig, callback: Callback) -> Result<u64, String> {
        (**self).callback(sig, callback)
    }
}

/// The reason why an instruction can't go on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum TrapReason {
    /// The divisor is 0.
    DivisionByZero,
    /// The least integer is divided by -1.
    DivisionOverflow,
    /// A load, store or call at an address in the first page, usually near null.
    NullAccess(u64),
    /// A load or store that claims to be aligned, at an address that isn't.
    Misaligned(u64),
    /// A pointer parameter that is not what the function's facts say of it.
    BrokenFact {
        /// The facts.
        facts: PointerFacts,
        /// The address.
        address: u64,
    },
}

impl Display for TrapReason {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            TrapReason::DivisionByZero => f.write_str("division by zero"),
            TrapReason::DivisionOverflow => f.write_str("division of the least integer by -1"),
            TrapReason::NullAccess(address) => write!(f, "access through null at {address:#x}"),
            TrapReason::Misaligned(address) => write!(f, "an access that claims alignment at {address:#x}"),
            TrapReason::BrokenFact { facts, address } => write!(f, "{address:#x} is said to be{facts}"),
        }
    }
}

/// An error of the interpreter: it can't be made, or a run has no result.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InterpError {
    /// The host lacks imports; these are all of them.
    #[error("imports that the host does not have: {}", .names.join(", "))]
    MissingImports {
        /// The symbols.
        names: Vec<String>,
    },
    /// The module is for machines of another byte order than this one.
    #[error("the module is for {module:?}-endian machines")]
    Endianness {
        /// The module's byte order.
        module: Endianness,
    },
    /// The module has what only an object file can have.
    #[error("{what} can't be interpreted, only put into an object file")]
    OnlyInObjects {
        /// The part of the module that it is, in words.
        what: String,
    },
    /// There is no memory for data or a frame.
    #[error("no memory for {what}")]
    OutOfMemory {
        /// The data, or the function whose slots they are.
        what: String,
    },
    /// The module defines no function of that name; it may still import it.
    #[error("the module defines no function {name:?}")]
    NoSuchFunction {
        /// The name.
        name: String,
    },
    /// The arguments of a run don't fit the function's signature.
    #[error("arguments {args:?} for {function}{signature}")]
    Arguments {
        /// The function.
        function: String,
        /// The function's signature.
        signature: String,
        /// The types of the arguments that were given.
        args: Vec<Type>,
    },
    /// An instruction can't go on.
    #[error("{reason}, in {function}, {location}")]
    Trap {
        /// The function.
        function: String,
        /// The instruction: block, number and text.
        location: String,
        /// The reason.
        reason: TrapReason,
    },
    /// The host reported an error, or gave a result that the signature doesn't have.
    #[error("{message}, in {function}, {location}")]
    Host {
        /// The function that called.
        function: String,
        /// The call: block, number and text.
        location: String,
        /// The host's words.
        message: String,
    },
    /// The run took more steps than its fuel.
    #[error("no end after {fuel} steps, in {function}")]
    OutOfFuel {
        /// The function it was in.
        function: String,
        /// The number of steps that were allowed.
        fuel: u64,
    },
    /// Calls inside the module, or calls from native code, are nested too deep.
    #[error("more than {limit} nested calls, at a call of {function}")]
    TooDeep {
        /// The function that would be called next.
        function: String,
        /// The greatest number of nested calls.
        limit: usize,
    },
}

/// Runs the functions of a module, on the thread that made it. Static data keeps its address as long as the interpreter lives, and so do
/// functions; a run leaves nothing else behind, whether it ends well or not.
///
/// The module's destructors run when the interpreter is dropped, if anything was run before.
pub struct Interpreter<'a, H: Host> {
    /// Counted, since native code has the address.
    shared: Rc<Shared<'a, H>>,
    /// Whether anything was run, so that somebody has vouched for the module's code.
    ran: Cell<bool>,
}

impl<H: Host> fmt::Debug for Interpreter<'_, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interpreter").field("fuel", &self.shared.fuel()).finish_non_exhaustive()
    }
}

impl<'a, H: Host> Interpreter<'a, H> {
    /// Resolves the imports and places the static data.
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
        let shared = Rc::new(Shared::new(module, host, imports, data, layouts));
        Ok(Interpreter { shared, ran: Cell::new(false) })
    }

    /// Sets how many steps, instructions and terminators, each run may take, with what native code calls back in it.
    pub fn with_fuel(self, steps: u64) -> Self {
        self.shared.set_fuel(steps);
        self
    }

    /// The address of a variable, which is good for as long as the interpreter lives.
    pub fn variable(&self, name: &str) -> Option<u64> {
        let mut variables = self.shared.module.data.iter().filter(|(_, data)| data.kind == DataKind::Variable);
        let (data, _) = variables.find(|(_, data)| data.name == name)?;
        Some(self.shared.data[data].address())
    }

    /// The address at which native code may call a function that the module defines, on this thread and for as long as the interpreter lives.
    ///
    /// # Errors
    /// There is no such function, or the host gives none an address.
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

    /// The error of a call that native code has made while nothing ran: of the first since the last run, if any has failed.
    pub fn take_failure(&mut self) -> Option<InterpError> {
        self.shared.take_failure()
    }

    /// Runs a function that the module defines, exported or not.
    ///
    /// # Safety
    /// The arguments keep the function's contract: the memory that it will read and write through them is
    /// there, and the native functions that it will call may be called as it does. The same holds for functions of the module that native
    /// code calls, and for the module's destructors when the interpreter is dropped.
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
        // SAFETY: the caller's promise.
        let bits = unsafe { self.shared.run(func, args.iter().map(|arg| arg.bits())) }?;
        Ok(sig.ret.map(|ret| Datum::from_bits(ret.ty, bits)))
    }
}

impl<H: Host> Drop for Interpreter<'_, H> {
    fn drop(&mut self) {
        if !self.ran.get() {
            return;
        }
        // as a library's: the last first
        for &func in self.shared.module.destructors.iter().rev() {
            // Nobody is there to be told of an error.
            // SAFETY: whoever has run a function has vouched for it.
            drop(unsafe { self.shared.run(func, std::iter::empty()) });
        }
    }
}
