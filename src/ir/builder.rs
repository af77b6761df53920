//! Builds a function one instruction at a time.
//!
//! The builder computes result types and keeps a current block. It checks nothing else, since the
//! [verifier](super::verify) runs before every backend.

use super::inst::{
    BinaryOp, Block, BlockCall, ConvertOp, DataRef, FloatCC, FuncRef, Hint, Inst, IntCC, LocationRef, MemFlags, Op,
    SigRef, StackSlot, Terminator, UnaryOp, Value,
};
use super::module::{BlockData, Function, InstData, Module, SlotData, ValueData, ValueDef};
use super::types::{AbiParam, FuncSig, Type};

/// A function under construction inside a module. [`finish`](Self::finish) adds it to the module.
#[derive(Debug)]
pub struct FunctionBuilder<'m> {
    module: &'m mut Module,
    func_ref: FuncRef,
    func: Function,
    current: Block,
    /// The source location of the instructions that follow.
    location: Option<LocationRef>,
    /// The size of all slots in bytes.
    frame: u64,
}

impl<'m> FunctionBuilder<'m> {
    /// Starts the body of a declared function: creates the entry block and its parameters, and switches to it.
    pub fn new(module: &'m mut Module, func_ref: FuncRef) -> Self {
        let types: Vec<Type> = module.functions[func_ref].signature.params.iter().map(|p| p.ty).collect();
        let mut func = Function::default();
        let current = func.blocks.push(BlockData::default());
        let mut builder = FunctionBuilder { module, func_ref, func, current, location: None, frame: 0 };
        for ty in types {
            builder.block_param(current, ty);
        }
        builder
    }

    /// Puts the body into the module.
    pub fn finish(self) -> FuncRef {
        self.module.functions[self.func_ref].body = Some(self.func);
        self.func_ref
    }

    /// The module, for declaring imports and data.
    pub fn module(&mut self) -> &mut Module {
        self.module
    }

    /// The function's parameter number `index`.
    pub fn param(&self, index: usize) -> Value {
        self.func.blocks[Block::from_u32(0)].params[index]
    }

    /// Appends a parameter to the function, and returns its value.
    pub fn add_param(&mut self, ty: Type) -> Value {
        self.module.functions[self.func_ref].signature.params.push(AbiParam::new(ty));
        self.block_param(Block::from_u32(0), ty)
    }

    /// The function that is being built.
    pub fn func_ref(&self) -> FuncRef {
        self.func_ref
    }

    /// The source location that instructions get.
    pub fn location(&self) -> Option<LocationRef> {
        self.location
    }

    /// Sets the source location of the instructions that follow.
    pub fn set_location(&mut self, location: Option<LocationRef>) {
        self.location = location;
    }

    /// A value's type.
    pub fn type_of(&self, value: Value) -> Type {
        self.func.values[value].ty
    }

    /// The operation that defines a value; `None` for a parameter.
    pub(crate) fn op_of(&self, value: Value) -> Option<&Op> {
        match self.func.values[value].def {
            ValueDef::Result(inst) => Some(&self.func.insts[inst].op),
            ValueDef::Param(..) => None,
        }
    }

    /// The value as an integer, if an integer constant defines it.
    pub fn as_int_const(&self, value: Value) -> Option<i64> {
        match self.op_of(value)? {
            // only the type's own bits count: 255 is -1 in an i8
            Op::IntConst { ty, value } => {
                let unused = 64 - ty.bits();
                Some(value << unused >> unused)
            }
            _ => None,
        }
    }

    // Blocks.

    /// A new block without parameters.
    pub fn block(&mut self) -> Block {
        self.func.blocks.push(BlockData::default())
    }

    /// A new block off the usual path.
    pub fn cold_block(&mut self) -> Block {
        self.func.blocks.push(BlockData { cold: true, ..BlockData::default() })
    }

    /// Adds a parameter to a block.
    pub fn block_param(&mut self, block: Block, ty: Type) -> Value {
        let index = self.func.blocks[block].params.len() as u32;
        let value = self.func.values.push(ValueData { ty, def: ValueDef::Param(block, index) });
        self.func.blocks[block].params.push(value);
        value
    }

    /// Appends further instructions to `block`.
    pub fn switch_to(&mut self, block: Block) {
        self.current = block;
    }

    /// The block that instructions go to.
    pub fn current(&self) -> Block {
        self.current
    }

    /// Whether the current block has its terminator.
    pub fn is_terminated(&self) -> bool {
        self.func.blocks[self.current].terminator.is_some()
    }

    /// Whether a path from the entry leads to the current block, in the part built so far.
    pub fn is_reachable(&self) -> bool {
        let mut seen = vec![false; self.func.blocks.len()];
        let mut work = vec![Block::from_u32(0)];
        while let Some(block) = work.pop() {
            if std::mem::replace(&mut seen[block.as_u32() as usize], true) {
                continue;
            }
            let terminator = self.func.blocks[block].terminator.as_ref();
            work.extend(terminator.into_iter().flat_map(Terminator::targets).map(|to| to.block));
        }
        seen[self.current.as_u32() as usize]
    }

    /// A new slot in the frame.
    pub fn slot(&mut self, size: u32, align: u32) -> StackSlot {
        let slot = SlotData { size, align };
        self.frame = self.frame.saturating_add(slot.frame_bytes());
        self.func.slots.push(slot)
    }

    /// Grows a slot to at least `size` bytes.
    pub fn grow_slot(&mut self, slot: StackSlot, size: u32) {
        let data = &mut self.func.slots[slot];
        let before = data.frame_bytes();
        data.size = data.size.max(size);
        self.frame = self.frame.saturating_add(data.frame_bytes() - before);
    }

    /// The size of all slots in the frame in bytes, including padding.
    pub fn frame_bytes(&self) -> u64 {
        self.frame
    }

    /// Writes code at the end of the entry block, even if the rest of the function already exists. The code has no
    /// branches and no source location.
    pub fn at_entry<R>(&mut self, write: impl FnOnce(&mut Self) -> R) -> R {
        let here = std::mem::replace(&mut self.current, Block::from_u32(0));
        let location = self.location.take();
        let result = write(self);
        self.current = here;
        self.location = location;
        result
    }

    /// A signature for indirect calls.
    pub fn signature(&mut self, sig: FuncSig) -> SigRef {
        match self.func.signatures.iter().find(|(_, known)| **known == sig) {
            Some((found, _)) => found,
            None => self.func.signatures.push(sig),
        }
    }

    // Terminators. A block that already has one keeps it.

    fn terminate(&mut self, terminator: Terminator) {
        self.func.blocks[self.current].terminator.get_or_insert(terminator);
    }

    /// Ends the block with a jump.
    pub fn jump(&mut self, block: Block, args: &[Value]) {
        self.terminate(Terminator::Jump(BlockCall { block, args: args.to_vec() }));
    }

    /// Ends the block with a branch without arguments.
    pub fn branch(&mut self, cond: Value, then: Block, otherwise: Block, hint: Hint) {
        self.branch_with(cond, (then, &[]), (otherwise, &[]), hint);
    }

    /// Ends the block with a branch.
    pub fn branch_with(&mut self, cond: Value, then: (Block, &[Value]), otherwise: (Block, &[Value]), hint: Hint) {
        let call = |(block, args): (Block, &[Value])| BlockCall { block, args: args.to_vec() };
        self.terminate(Terminator::Branch { cond, then: call(then), otherwise: call(otherwise), hint });
    }

    /// Ends the block by leaving the function.
    pub fn ret(&mut self, value: Option<Value>) {
        self.terminate(Terminator::Return(value));
    }

    // Instructions.

    /// Adds any instruction. Its result, if it has one, is of that type.
    pub(super) fn push(&mut self, op: Op, result: Option<Type>) -> Option<Value> {
        let inst = self.func.insts.push(InstData { op, result: None });
        let value = result.map(|ty| self.func.values.push(ValueData { ty, def: ValueDef::Result(inst) }));
        self.func.insts[inst].result = value;
        self.place(inst);
        value
    }

    /// Puts an instruction at the end of the current block.
    fn place(&mut self, inst: Inst) {
        self.func.blocks[self.current].insts.push(inst);
        if self.location.is_some() {
            self.func.locations[inst] = self.location.into();
        }
    }

    /// Like [`push`](Self::push), for an instruction that always has a result.
    fn value(&mut self, op: Op, ty: Type) -> Value {
        let inst = self.func.insts.next_key();
        let value = self.func.values.push(ValueData { ty, def: ValueDef::Result(inst) });
        self.func.insts.push(InstData { op, result: Some(value) });
        self.place(inst);
        value
    }

    /// An integer constant.
    pub fn iconst(&mut self, ty: Type, value: i64) -> Value {
        self.value(Op::IntConst { ty, value }, ty)
    }

    /// An `I64` constant.
    pub fn i64(&mut self, value: i64) -> Value {
        self.iconst(Type::I64, value)
    }

    /// An `F32` constant.
    pub fn f32(&mut self, value: f32) -> Value {
        self.value(Op::FloatConst { ty: Type::F32, bits: u64::from(value.to_bits()) }, Type::F32)
    }

    /// An `F64` constant.
    pub fn f64(&mut self, value: f64) -> Value {
        self.value(Op::FloatConst { ty: Type::F64, bits: value.to_bits() }, Type::F64)
    }

    /// A truth value.
    pub fn bconst(&mut self, value: bool) -> Value {
        self.value(Op::BoolConst(value), Type::Bool)
    }

    /// An absolute address; 0 is null.
    pub fn ptr_const(&mut self, address: u64) -> Value {
        self.value(Op::PtrConst(address), Type::Ptr)
    }

    /// A one-operand operation.
    pub fn unary(&mut self, op: UnaryOp, a: Value) -> Value {
        let ty = self.type_of(a);
        self.value(Op::Unary(op, a), ty)
    }

    /// A two-operand operation.
    pub fn binary(&mut self, op: BinaryOp, a: Value, b: Value) -> Value {
        let ty = self.type_of(a);
        self.value(Op::Binary(op, a, b), ty)
    }

    /// Like [`binary`](Self::binary), with an integer constant of the other's type.
    pub fn binary_imm(&mut self, op: BinaryOp, a: Value, imm: i64) -> Value {
        let imm = self.iconst(self.type_of(a), imm);
        self.binary(op, a, imm)
    }

    /// An integer, pointer or truth-value comparison.
    pub fn icmp(&mut self, cc: IntCC, a: Value, b: Value) -> Value {
        self.value(Op::ICmp(cc, a, b), Type::Bool)
    }

    /// A comparison with a constant of the same type, pointers included.
    pub fn icmp_imm(&mut self, cc: IntCC, a: Value, imm: i64) -> Value {
        let b = match self.type_of(a) {
            Type::Ptr => self.ptr_const(imm as u64),
            ty => self.iconst(ty, imm),
        };
        self.icmp(cc, a, b)
    }

    /// A float comparison.
    pub fn fcmp(&mut self, cc: FloatCC, a: Value, b: Value) -> Value {
        self.value(Op::FCmp(cc, a, b), Type::Bool)
    }

    /// `then` if `cond` holds, else `otherwise`.
    pub fn select(&mut self, cond: Value, then: Value, otherwise: Value) -> Value {
        let ty = self.type_of(then);
        self.value(Op::Select(cond, then, otherwise), ty)
    }

    /// A conversion to `ty`.
    pub fn convert(&mut self, op: ConvertOp, ty: Type, a: Value) -> Value {
        self.value(Op::Convert(op, ty, a), ty)
    }

    /// A load from `ptr + offset`.
    pub fn load(&mut self, ty: Type, ptr: Value, offset: i32, flags: MemFlags) -> Value {
        self.value(Op::Load { ty, ptr, offset, flags }, ty)
    }

    /// A store to `ptr + offset`.
    pub fn store(&mut self, value: Value, ptr: Value, offset: i32, flags: MemFlags) {
        self.push(Op::Store { value, ptr, offset, flags }, None);
    }

    /// A pointer moved by a number of bytes.
    pub fn ptr_add(&mut self, ptr: Value, bytes: Value) -> Value {
        self.value(Op::PtrAdd(ptr, bytes), Type::Ptr)
    }

    /// A pointer moved by a constant number of bytes.
    pub fn ptr_add_imm(&mut self, ptr: Value, bytes: i64) -> Value {
        let bytes = self.i64(bytes);
        self.ptr_add(ptr, bytes)
    }

    /// The address of an array's element.
    pub fn element(&mut self, base: Value, index: Value, ty: Type) -> Value {
        self.value(Op::Element { base, index, ty }, Type::Ptr)
    }

    /// Whether `bytes` bytes are equal at both addresses of each pair; see [`Op::SameBytes`].
    pub fn same_bytes(&mut self, pairs: Vec<(Value, Value)>, bytes: u32) -> Value {
        self.value(Op::SameBytes(pairs, bytes), Type::Bool)
    }

    /// The address of a stack slot.
    pub fn stack_addr(&mut self, slot: StackSlot) -> Value {
        self.stack_addr_at(slot, 0)
    }

    /// The address at an offset in a stack slot.
    pub fn stack_addr_at(&mut self, slot: StackSlot, offset: u32) -> Value {
        self.value(Op::StackAddr(slot, offset), Type::Ptr)
    }

    /// The stack slot whose address a value is.
    pub fn slot_of(&self, value: Value) -> Option<StackSlot> {
        match self.op_of(value)? {
            Op::StackAddr(slot, 0) => Some(*slot),
            _ => None,
        }
    }

    /// The address `offset` bytes into static data.
    pub fn data_addr(&mut self, data: DataRef, offset: u32) -> Value {
        self.value(Op::DataAddr(data, offset), Type::Ptr)
    }

    /// The address of a function.
    pub fn func_addr(&mut self, func: FuncRef) -> Value {
        self.value(Op::FuncAddr(func), Type::Ptr)
    }

    /// Loads a pointer with acquire order, so later reads see what another thread has written before it stored the
    /// pointer.
    pub fn load_acquire(&mut self, ptr: Value) -> Value {
        self.value(Op::LoadAcquire(ptr), Type::Ptr)
    }

    /// Atomically adds to an `I64` in memory; returns the previous value.
    pub fn atomic_add(&mut self, ptr: Value, value: Value) -> Value {
        self.value(Op::AtomicAdd(ptr, value), Type::I64)
    }

    /// Atomically replaces the pointer in memory if it equals `expected`; returns the previous pointer.
    pub fn compare_exchange(&mut self, ptr: Value, expected: Value, new: Value) -> Value {
        self.value(Op::CompareExchange(ptr, expected, new), Type::Ptr)
    }

    /// Emits a call; returns its result, if the callee has one.
    pub fn call(&mut self, callee: FuncRef, args: &[Value]) -> Option<Value> {
        let ty = self.module.functions[callee].signature.ret.map(|r| r.ty);
        self.push(Op::Call(callee, args.to_vec()), ty)
    }

    /// Emits a call through a pointer; returns its result, if the signature has one.
    pub fn call_indirect(&mut self, sig: SigRef, callee: Value, args: &[Value]) -> Option<Value> {
        let ty = self.func.signatures[sig].ret.map(|r| r.ty);
        self.push(Op::CallIndirect(sig, callee, args.to_vec()), ty)
    }
}
