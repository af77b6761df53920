//! The interpreter: runs a verified module in this process, one instruction at a time.
//!
//! It is the oracle that compiled code is compared with, so it follows `inst.rs` to the letter and shares no
//! code with any backend. Memory is real: pointers from outside can be followed and slots' addresses passed
//! out. Imports and calls through pointers go to a [`Host`]; calls inside the module don't use Rust's stack.
//!
//! What compiled code would only die of, it reports: a division that traps, an access in the first page, an
//! address that breaks the instruction's claim to be aligned.

mod eval;
#[cfg(test)]
mod eval_tests;
mod memory;
#[cfg(test)]
mod tests;

use std::fmt::{self, Display, Formatter};
use std::sync::atomic::Ordering;

use cranelift_entity::PrimaryMap;
use target_lexicon::Endianness;

use self::memory::{FrameLayout, Region};
use super::inst::{Block, BlockCall, DataRef, FuncRef, Op, Terminator, Value};
use super::module::{DataKind, Function, HOST_ENDIANNESS, Module};
use super::print::DisplayInst;
use super::types::{FuncSig, PointerFacts, Type};
use super::verify::VerifiedModule;

/// Steps that a run may take if [`Interpreter::with_fuel`] doesn't say.
const DEFAULT_FUEL: u64 = 1_000_000_000;

/// Calls inside the module that may be under way at once.
const MAX_DEPTH: usize = 1_000;

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

/// The world outside the module, as the interpreter needs it: calls of imports and through pointers.
pub trait Host {
    /// The address of an imported symbol, or `None` if there is none. It is asked once for each import. The
    /// interpreter itself only hands the address to [`call`](Self::call), so a host may number its functions.
    fn resolve(&mut self, name: &str) -> Option<u64>;

    /// Calls native code: an import at the address that [`resolve`](Self::resolve) gave, or whatever the IR
    /// calls through a pointer. The result is of the signature's type. An error ends the run.
    ///
    /// # Safety
    /// `address` is a C function of that signature, and the arguments keep its contract.
    unsafe fn call(&mut self, address: u64, sig: &FuncSig, args: &[Datum]) -> Result<Option<Datum>, String>;
}

impl<H: Host + ?Sized> Host for &mut H {
    fn resolve(&mut self, name: &str) -> Option<u64> {
        (**self).resolve(name)
    }

    unsafe fn call(&mut self, address: u64, sig: &FuncSig, args: &[Datum]) -> Result<Option<Datum>, String> {
        // SAFETY: the caller's promise.
        unsafe { (**self).call(address, sig, args) }
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
    /// Calls inside the module are nested too deep.
    #[error("more than {limit} nested calls, at a call of {function}")]
    TooDeep {
        /// The function that would be called next.
        function: String,
        /// The greatest number of nested calls.
        limit: usize,
    },
}

/// A call under way.
struct Frame<'a> {
    func: FuncRef,
    code: &'a Function,
    block: Block,
    /// The instruction of the block to run next; while a callee runs, the one after the call.
    next: usize,
    /// Where this frame's values begin.
    base: usize,
    /// The slots' memory, if there are slots.
    slots: Option<Region>,
}

/// Runs the functions of a module. Static data keeps its address as long as the interpreter lives; a run
/// leaves nothing else behind, whether it ends well or not.
pub struct Interpreter<'a, H: Host> {
    module: &'a Module,
    host: H,
    fuel: u64,
    /// Addresses of imports; 0 for other functions.
    imports: PrimaryMap<FuncRef, u64>,
    data: PrimaryMap<DataRef, Region>,
    layouts: PrimaryMap<FuncRef, FrameLayout>,
    /// The values of every frame, one after the other. Kept between runs for its memory, as are the lists below.
    values: Vec<u64>,
    callers: Vec<Frame<'a>>,
    block_args: Vec<u64>,
    call_args: Vec<Datum>,
}

impl<H: Host> fmt::Debug for Interpreter<'_, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interpreter").field("fuel", &self.fuel).finish_non_exhaustive()
    }
}

impl<'a, H: Host> Interpreter<'a, H> {
    /// Resolves the imports and places the static data.
    pub fn new(module: &'a VerifiedModule, mut host: H) -> Result<Self, InterpError> {
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
        Ok(Interpreter {
            module,
            host,
            fuel: DEFAULT_FUEL,
            imports,
            data,
            layouts,
            values: Vec::new(),
            callers: Vec::new(),
            block_args: Vec::new(),
            call_args: Vec::new(),
        })
    }

    /// Sets how many steps, instructions and terminators, each run may take.
    pub fn with_fuel(mut self, steps: u64) -> Self {
        self.fuel = steps;
        self
    }

    /// The address of a variable, which is good for as long as the interpreter lives.
    pub fn variable(&self, name: &str) -> Option<u64> {
        let mut variables = self.module.data.iter().filter(|(_, data)| data.kind == DataKind::Variable);
        let (data, _) = variables.find(|(_, data)| data.name == name)?;
        Some(self.data[data].address())
    }

    /// The host.
    pub fn host(&self) -> &H {
        &self.host
    }

    /// The host, to change what it does in later runs.
    pub fn host_mut(&mut self) -> &mut H {
        &mut self.host
    }

    /// Runs a function that the module defines, exported or not.
    ///
    /// # Safety
    /// The arguments keep the function's contract: the memory that it will read and write through them is
    /// there, and the native functions that it will call may be called as it does.
    pub unsafe fn run(&mut self, function: &str, args: &[Datum]) -> Result<Option<Datum>, InterpError> {
        let module = self.module;
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
        self.values.clear();
        self.block_args.clear();
        self.block_args.extend(args.iter().map(|arg| arg.bits()));
        // SAFETY: the caller's promise.
        let result = unsafe { self.execute(func) };
        // Not only after success: an error leaves frames behind, with their memory.
        self.callers.clear();
        let bits = result?;
        Ok(sig.ret.map(|ret| Datum::from_bits(ret.ty, bits)))
    }

    /// Makes the frame of a call whose arguments are in `block_args`.
    fn enter(&mut self, func: FuncRef) -> Result<Frame<'a>, InterpError> {
        let decl = &self.module.functions[func];
        // Calls of imports don't come here, and other functions have bodies with an entry.
        let (Some(code), Some(block)) = (&decl.body, decl.body.as_ref().and_then(Function::entry)) else {
            return Err(InterpError::NoSuchFunction { name: decl.name.clone() });
        };
        for (i, (&facts, &address)) in decl.param_facts.iter().zip(&self.block_args).enumerate() {
            if !memory::holds(facts, address) {
                let reason = TrapReason::BrokenFact { facts, address };
                let function = decl.name.clone();
                return Err(InterpError::Trap { function, location: format!("parameter {i}"), reason });
            }
        }
        if self.callers.len() >= MAX_DEPTH {
            return Err(InterpError::TooDeep { function: decl.name.clone(), limit: MAX_DEPTH });
        }
        let slots = self.layouts[func].allocate();
        let slots = slots.map_err(|_| InterpError::OutOfMemory { what: decl.name.clone() })?;
        let base = self.values.len();
        self.values.resize(base + code.values.len(), 0);
        let frame = Frame { func, code, block, next: 0, base, slots };
        self.assign_params(&frame);
        Ok(frame)
    }

    /// Gives the parameters of the frame's block the values in `block_args`.
    fn assign_params(&mut self, frame: &Frame<'a>) {
        for (&param, &bits) in frame.code.blocks[frame.block].params.iter().zip(&self.block_args) {
            self.values[frame.base + param.as_u32() as usize] = bits;
        }
    }

    fn get(&self, frame: &Frame<'a>, value: Value) -> u64 {
        self.values[frame.base + value.as_u32() as usize]
    }

    /// Collects values in `block_args`: all are read before any parameter is written.
    fn collect(&mut self, frame: &Frame<'a>, args: &[Value]) {
        self.block_args.clear();
        for &arg in args {
            let bits = self.values[frame.base + arg.as_u32() as usize];
            self.block_args.push(bits);
        }
    }

    fn branch(&mut self, frame: &mut Frame<'a>, to: &BlockCall) {
        self.collect(frame, &to.args);
        frame.block = to.block;
        frame.next = 0;
        self.assign_params(frame);
    }

    /// Runs a function on the arguments in `block_args`; gives its result's bits.
    ///
    /// # Safety
    /// As for `run`.
    unsafe fn execute(&mut self, func: FuncRef) -> Result<u64, InterpError> {
        let module = self.module;
        let mut frame = self.enter(func)?;
        let mut fuel = self.fuel;
        loop {
            if fuel == 0 {
                let function = module.functions[frame.func].name.clone();
                return Err(InterpError::OutOfFuel { function, fuel: self.fuel });
            }
            fuel -= 1;
            let block = &frame.code.blocks[frame.block];
            let Some(&inst) = block.insts.get(frame.next) else {
                match &block.terminator {
                    Some(Terminator::Jump(to)) => self.branch(&mut frame, to),
                    Some(Terminator::Branch { cond, then, otherwise, .. }) => {
                        let to = if self.get(&frame, *cond) != 0 { then } else { otherwise };
                        self.branch(&mut frame, to);
                    }
                    // Every block of a verified function has a terminator.
                    Some(Terminator::Return(_)) | None => {
                        let value = match &block.terminator {
                            Some(Terminator::Return(Some(value))) => self.get(&frame, *value),
                            _ => 0,
                        };
                        self.values.truncate(frame.base);
                        match self.callers.pop() {
                            Some(caller) => frame = caller,
                            None => return Ok(value),
                        }
                        self.finish_inst(&frame, value);
                    }
                }
                continue;
            };
            frame.next += 1;
            let op = &frame.code.insts[inst].op;
            if let Op::Call(callee, args) = op
                && module.functions[*callee].body.is_some()
            {
                self.collect(&frame, args);
                let caller = frame;
                self.callers.push(caller);
                frame = self.enter(*callee)?;
                continue;
            }
            // SAFETY: the caller's promise.
            match unsafe { self.evaluate(&frame, op) } {
                Ok(bits) => self.finish_inst(&frame, bits),
                Err(stop) => return Err(self.error(&frame, stop)),
            }
        }
    }

    /// Stores the result of the instruction before `next`, if it has one.
    fn finish_inst(&mut self, frame: &Frame<'a>, bits: u64) {
        let inst = frame.code.blocks[frame.block].insts[frame.next - 1];
        if let Some(result) = frame.code.insts[inst].result {
            self.values[frame.base + result.as_u32() as usize] = bits;
        }
    }

    /// Everything but calls inside the module; 0 for an operation without result.
    ///
    /// # Safety
    /// As for `run`.
    unsafe fn evaluate(&mut self, frame: &Frame<'a>, op: &Op) -> Result<u64, Stop> {
        let ty = |value: Value| frame.code.type_of(value);
        let bits = match op {
            Op::IntConst { ty, value } => eval::mask(*ty, *value as u64),
            Op::FloatConst { ty, bits } => eval::mask(*ty, *bits),
            Op::BoolConst(value) => u64::from(*value),
            Op::PtrConst(address) => *address,
            Op::Unary(op, a) => eval::unary(*op, ty(*a), self.get(frame, *a)),
            Op::Binary(op, a, b) => eval::binary(*op, ty(*a), self.get(frame, *a), self.get(frame, *b))?,
            Op::ICmp(cc, a, b) => u64::from(eval::icmp(*cc, ty(*a), self.get(frame, *a), self.get(frame, *b))),
            Op::FCmp(cc, a, b) => u64::from(eval::fcmp(*cc, ty(*a), self.get(frame, *a), self.get(frame, *b))),
            Op::Select(cond, a, b) => self.get(frame, if self.get(frame, *cond) != 0 { *a } else { *b }),
            Op::Convert(op, to, a) => eval::convert(*op, ty(*a), *to, self.get(frame, *a)),
            Op::Load { ty, ptr, offset, flags } => {
                let address = self.get(frame, *ptr).wrapping_add_signed(i64::from(*offset));
                // SAFETY: the module only reads what its caller has promised, its own data and its slots.
                unsafe { memory::load(*ty, address, flags.aligned)? }
            }
            Op::SameBytes(pairs, bytes) => {
                let mut same = true;
                for (a, b) in pairs {
                    let (a, b) = (self.get(frame, *a), self.get(frame, *b));
                    for offset in (0..u64::from(*bytes)).step_by(8) {
                        // SAFETY: as of a load.
                        let word = |base: u64| unsafe { memory::load(Type::I64, base.wrapping_add(offset), true) };
                        same &= word(a)? == word(b)?;
                    }
                }
                u64::from(same)
            }
            Op::Store { value, ptr, offset, flags } => {
                let address = self.get(frame, *ptr).wrapping_add_signed(i64::from(*offset));
                // SAFETY: the module only writes what its caller has promised and its slots.
                unsafe { memory::store(ty(*value), address, flags.aligned, self.get(frame, *value))? };
                0
            }
            Op::PtrAdd(ptr, bytes) => self.get(frame, *ptr).wrapping_add(self.get(frame, *bytes)),
            Op::Element { base, index, ty } => {
                let bytes = self.get(frame, *index).wrapping_mul(u64::from(ty.bytes()));
                self.get(frame, *base).wrapping_add(bytes)
            }
            Op::StackAddr(slot) => {
                let base = frame.slots.as_ref().map_or(0, Region::address);
                base + self.layouts[frame.func].offset(slot.as_u32() as usize)
            }
            Op::DataAddr(data, offset) => self.data[*data].address() + u64::from(*offset),
            Op::FuncAddr(func) => self.imports[*func],
            Op::LoadAcquire(ptr) => {
                // SAFETY: as of a load.
                unsafe { memory::atomic(self.get(frame, *ptr))? }.load(Ordering::Acquire)
            }
            Op::AtomicAdd(ptr, value) => {
                // SAFETY: as of a store.
                unsafe { memory::atomic(self.get(frame, *ptr))? }.fetch_add(self.get(frame, *value), Ordering::SeqCst)
            }
            Op::CompareExchange(ptr, expected, new) => {
                let (expected, new) = (self.get(frame, *expected), self.get(frame, *new));
                // SAFETY: as of a store.
                let at = unsafe { memory::atomic(self.get(frame, *ptr))? };
                at.compare_exchange(expected, new, Ordering::SeqCst, Ordering::SeqCst).unwrap_or_else(|found| found)
            }
            Op::Call(callee, args) => {
                let sig = &self.module.functions[*callee].signature;
                // SAFETY: the caller's promise covers the calls of imports.
                unsafe { self.call_host(frame, self.imports[*callee], sig, args)? }
            }
            Op::CallIndirect(sig, callee, args) => {
                let address = self.get(frame, *callee);
                if address == 0 {
                    return Err(Stop::Trap(TrapReason::NullAccess(address)));
                }
                // SAFETY: the caller's promise covers the calls through pointers.
                unsafe { self.call_host(frame, address, &frame.code.signatures[*sig], args)? }
            }
        };
        Ok(bits)
    }

    /// # Safety
    /// As for [`Host::call`].
    unsafe fn call_host(
        &mut self,
        frame: &Frame<'a>,
        address: u64,
        sig: &FuncSig,
        args: &[Value],
    ) -> Result<u64, Stop> {
        self.call_args.clear();
        for &arg in args {
            let bits = self.values[frame.base + arg.as_u32() as usize];
            self.call_args.push(Datum::from_bits(frame.code.type_of(arg), bits));
        }
        // SAFETY: the caller's promise.
        let result = unsafe { self.host.call(address, sig, &self.call_args) }.map_err(Stop::Host)?;
        let (want, got) = (sig.ret.map(|ret| ret.ty), result.map(Datum::ty));
        if want != got {
            return Err(Stop::Host(format!("the host gave {got:?} as the result of {sig}")));
        }
        Ok(result.map_or(0, Datum::bits))
    }

    fn error(&self, frame: &Frame<'a>, stop: Stop) -> InterpError {
        let function = self.module.functions[frame.func].name.clone();
        let inst = frame.code.blocks[frame.block].insts[frame.next - 1];
        let text = DisplayInst { module: self.module, func: frame.code, inst };
        let location = format!("{}, {inst}, `{text}`", frame.block);
        match stop {
            Stop::Trap(reason) => InterpError::Trap { function, location, reason },
            Stop::Host(message) => InterpError::Host { function, location, message },
        }
    }
}

/// Why an instruction ends the run; the place is added where it is known.
enum Stop {
    Trap(TrapReason),
    Host(String),
}

impl From<TrapReason> for Stop {
    fn from(reason: TrapReason) -> Self {
        Stop::Trap(reason)
    }
}
