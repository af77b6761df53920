//! Runs: the frames of one call into the module, and the execution of each instruction.

use std::sync::atomic::Ordering;

use super::datum::Datum;
use super::error::{InterpError, TrapReason};
use super::eval;
use super::host::Host;
use super::memory::{self, Region};
use super::shared::Shared;
use super::stack::{Frame, Stack};
use crate::ir::inst::{BlockCall, FuncRef, Op, Terminator, Value};
use crate::ir::module::Function;
use crate::ir::text::print::DisplayInst;
use crate::ir::types::{FuncSig, Type};

/// The max number of nested calls inside the module in a run.
pub(super) const MAX_DEPTH: usize = 1_000;

/// A call into the module, from outside.
pub(super) struct Run<'s, 'a, H: Host> {
    shared: &'s Shared<'a, H>,
    stack: Stack<'a>,
}

impl<'s, 'a, H: Host> Run<'s, 'a, H> {
    /// Runs a function with arguments of its signature's types; returns its result's bits.
    ///
    /// # Safety
    /// The same as for [`Interpreter::run`](super::Interpreter::run).
    pub(super) unsafe fn of(
        shared: &'s Shared<'a, H>,
        func: FuncRef,
        args: impl Iterator<Item = u64>,
    ) -> Result<u64, InterpError> {
        let mut stack = shared.take_stack();
        stack.values.clear();
        stack.block_args.clear();
        stack.block_args.extend(args);
        let mut run = Run { shared, stack };
        // SAFETY: the caller guarantees it.
        let result = unsafe { run.execute(func) };
        // After errors too: they leave frames behind, with their memory.
        run.stack.callers.clear();
        shared.give_stack(run.stack);
        result
    }

    /// Creates the frame of a call whose arguments are in `block_args`.
    fn enter(&mut self, func: FuncRef) -> Result<Frame<'a>, InterpError> {
        let decl = &self.shared.module.functions[func];
        // Imports aren't called through here, and other functions have a body with an entry.
        let (Some(code), Some(block)) = (&decl.body, decl.body.as_ref().and_then(Function::entry)) else {
            return Err(InterpError::NoSuchFunction { name: decl.name.clone() });
        };
        for (i, (&facts, &address)) in decl.param_facts.iter().zip(&self.stack.block_args).enumerate() {
            if !memory::holds(facts, address) {
                let reason = TrapReason::BrokenFact { facts, address };
                let function = decl.name.clone();
                return Err(InterpError::Trap { function, location: format!("parameter {i}"), reason });
            }
        }
        if self.stack.callers.len() >= MAX_DEPTH {
            return Err(InterpError::TooDeep { function: decl.name.clone(), limit: MAX_DEPTH });
        }
        let slots = self.shared.layouts[func].allocate();
        let slots = slots.map_err(|_| InterpError::OutOfMemory { what: decl.name.clone() })?;
        let base = self.stack.values.len();
        self.stack.values.resize(base + code.values.len(), 0);
        let frame = Frame { func, code, block, next: 0, base, slots };
        self.assign_params(&frame);
        Ok(frame)
    }

    /// Assigns the values in `block_args` to the parameters of the frame's block.
    fn assign_params(&mut self, frame: &Frame<'a>) {
        for (&param, &bits) in frame.code.blocks[frame.block].params.iter().zip(&self.stack.block_args) {
            self.stack.values[frame.base + param.as_u32() as usize] = bits;
        }
    }

    fn get(&self, frame: &Frame<'a>, value: Value) -> u64 {
        self.stack.values[frame.base + value.as_u32() as usize]
    }

    /// Collects values in `block_args`: all are read before any parameter is written.
    fn collect(&mut self, frame: &Frame<'a>, args: &[Value]) {
        self.stack.block_args.clear();
        for &arg in args {
            let bits = self.stack.values[frame.base + arg.as_u32() as usize];
            self.stack.block_args.push(bits);
        }
    }

    fn branch(&mut self, frame: &mut Frame<'a>, to: &BlockCall) {
        self.collect(frame, &to.args);
        frame.block = to.block;
        frame.next = 0;
        self.assign_params(frame);
    }

    /// Runs a function with the arguments in `block_args`; returns its result's bits.
    ///
    /// # Safety
    /// The same as for [`of`](Self::of).
    unsafe fn execute(&mut self, func: FuncRef) -> Result<u64, InterpError> {
        let module = self.shared.module;
        let mut frame = self.enter(func)?;
        loop {
            if !self.shared.take_step() {
                let function = module.functions[frame.func].name.clone();
                return Err(InterpError::OutOfFuel { function, fuel: self.shared.fuel() });
            }
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
                        self.stack.values.truncate(frame.base);
                        match self.stack.callers.pop() {
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
            if let Some((callee, args)) = self.own_callee(&frame, op) {
                self.collect(&frame, args);
                let caller = frame;
                self.stack.callers.push(caller);
                frame = self.enter(callee)?;
                continue;
            }
            // SAFETY: the caller guarantees it.
            match unsafe { self.evaluate(&frame, op) } {
                Ok(bits) => self.finish_inst(&frame, bits),
                Err(stop) => return Err(self.error(&frame, stop)),
            }
        }
    }

    /// The callee of a call inside the module, with the arguments; `None` for any other operation.
    fn own_callee(&self, frame: &Frame<'a>, op: &'a Op) -> Option<(FuncRef, &'a [Value])> {
        match op {
            Op::Call(callee, args) if self.shared.module.functions[*callee].body.is_some() => Some((*callee, args)),
            Op::CallIndirect(sig, callee, args) => {
                let callee = self.shared.function_at(self.get(frame, *callee))?;
                // if the signatures differ, the address is treated as native code
                let fits = self.shared.module.functions[callee].signature == frame.code.signatures[*sig];
                fits.then_some((callee, args))
            }
            _ => None,
        }
    }

    /// Stores the result of the instruction before `next`, if it has one.
    fn finish_inst(&mut self, frame: &Frame<'a>, bits: u64) {
        let inst = frame.code.blocks[frame.block].insts[frame.next - 1];
        if let Some(result) = frame.code.insts[inst].result {
            self.stack.values[frame.base + result.as_u32() as usize] = bits;
        }
    }

    /// Executes everything but calls inside the module; returns 0 for an operation without a result.
    ///
    /// # Safety
    /// The same as for [`of`](Self::of).
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
                // SAFETY: the module reads only memory that its caller guarantees, its own data and its slots.
                unsafe { memory::load(*ty, address, flags.aligned)? }
            }
            Op::SameBytes(pairs, bytes) => {
                let mut same = true;
                for (a, b) in pairs {
                    let (a, b) = (self.get(frame, *a), self.get(frame, *b));
                    for offset in (0..u64::from(*bytes)).step_by(8) {
                        // SAFETY: as for a load.
                        let word = |base: u64| unsafe { memory::load(Type::I64, base.wrapping_add(offset), true) };
                        same &= word(a)? == word(b)?;
                    }
                }
                u64::from(same)
            }
            Op::Store { value, ptr, offset, flags } => {
                let address = self.get(frame, *ptr).wrapping_add_signed(i64::from(*offset));
                // SAFETY: the module writes only memory that its caller guarantees, its own data and its slots.
                unsafe { memory::store(ty(*value), address, flags.aligned, self.get(frame, *value))? };
                0
            }
            Op::PtrAdd(ptr, bytes) => self.get(frame, *ptr).wrapping_add(self.get(frame, *bytes)),
            Op::Element { base, index, ty } => {
                let bytes = self.get(frame, *index).wrapping_mul(u64::from(ty.bytes()));
                self.get(frame, *base).wrapping_add(bytes)
            }
            Op::StackAddr(slot, offset) => {
                let base = frame.slots.as_ref().map_or(0, Region::address);
                base + self.shared.layouts[frame.func].offset(slot.as_u32() as usize) + u64::from(*offset)
            }
            Op::DataAddr(data, offset) => self.shared.data[*data].address() + u64::from(*offset),
            Op::FuncAddr(func) => self.shared.address_of(*func).map_err(Stop::Host)?,
            Op::LoadAcquire(ptr) => {
                // SAFETY: as for a load.
                unsafe { memory::atomic(self.get(frame, *ptr))? }.load(Ordering::Acquire)
            }
            Op::AtomicAdd(ptr, value) => {
                // SAFETY: as for a store.
                unsafe { memory::atomic(self.get(frame, *ptr))? }.fetch_add(self.get(frame, *value), Ordering::SeqCst)
            }
            Op::CompareExchange(ptr, expected, new) => {
                let (expected, new) = (self.get(frame, *expected), self.get(frame, *new));
                // SAFETY: as for a store.
                let at = unsafe { memory::atomic(self.get(frame, *ptr))? };
                at.compare_exchange(expected, new, Ordering::SeqCst, Ordering::SeqCst).unwrap_or_else(|found| found)
            }
            Op::Call(callee, args) => {
                let sig = &self.shared.module.functions[*callee].signature;
                // SAFETY: the caller's guarantee covers calls of imports.
                unsafe { self.call_host(frame, self.shared.imports[*callee], sig, args)? }
            }
            Op::CallIndirect(sig, callee, args) => {
                let address = self.get(frame, *callee);
                if address == 0 {
                    return Err(Stop::Trap(TrapReason::NullAccess(address)));
                }
                // SAFETY: the caller's guarantee covers calls through pointers.
                unsafe { self.call_host(frame, address, &frame.code.signatures[*sig], args)? }
            }
        };
        Ok(bits)
    }

    /// # Safety
    /// The same as for [`Host::call`].
    unsafe fn call_host(
        &mut self,
        frame: &Frame<'a>,
        address: u64,
        sig: &FuncSig,
        args: &[Value],
    ) -> Result<u64, Stop> {
        self.stack.call_args.clear();
        for &arg in args {
            let bits = self.stack.values[frame.base + arg.as_u32() as usize];
            self.stack.call_args.push(Datum::from_bits(frame.code.type_of(arg), bits));
        }
        // SAFETY: the caller guarantees it.
        let result = unsafe { self.shared.host.call(address, sig, &self.stack.call_args) };
        if let Some(error) = self.shared.take_failure() {
            return Err(Stop::Nested(error));
        }
        let result = result.map_err(Stop::Host)?;
        let (want, got) = (sig.ret.map(|ret| ret.ty), result.map(Datum::ty));
        if want != got {
            return Err(Stop::Host(format!("the host gave {got:?} as the result of {sig}")));
        }
        Ok(result.map_or(0, Datum::bits))
    }

    fn error(&self, frame: &Frame<'a>, stop: Stop) -> InterpError {
        let function = self.shared.module.functions[frame.func].name.clone();
        let inst = frame.code.blocks[frame.block].insts[frame.next - 1];
        let text = DisplayInst { module: self.shared.module, func: frame.code, inst };
        let location = format!("{}, {inst}, `{text}`", frame.block);
        match stop {
            Stop::Trap(reason) => InterpError::Trap { function, location, reason },
            Stop::Host(message) => InterpError::Host { function, location, message },
            Stop::Nested(error) => error,
        }
    }
}

/// Why an instruction ends the run. Its location is added where it is known.
enum Stop {
    Trap(TrapReason),
    Host(String),
    /// A callback from native code has failed.
    Nested(InterpError),
}

impl From<TrapReason> for Stop {
    fn from(reason: TrapReason) -> Self {
        Stop::Trap(reason)
    }
}
