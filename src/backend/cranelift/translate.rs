//! Translates the IR to CLIF, Cranelift's own IR, one function at a time.
//!
//! The IR is SSA with block parameters, like CLIF, so translation needs no SSA construction and writes with a
//! `FuncCursor`. Blocks are visited depth first from the entry, so each definition is seen before its uses and
//! unreachable blocks are left out.

use std::cell::OnceCell;

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::entity::packed_option::PackedOption;
use cranelift_codegen::ir::{
    self as clif, BlockArg, ExtFuncData, ExternalName, GlobalValueData, InstBuilder, MemFlagsData, SourceLoc,
    StackSlotData, StackSlotKind, UserExternalName, condcodes, types,
};
use cranelift_codegen::isa::{CallConv, TargetIsa};
use cranelift_entity::{EntityRef, SecondaryMap};

use crate::backend::c_abi::{CAbi, Scalars, Source};
use crate::ir::{
    BinaryOp, Block, BlockCall, ConvertOp, Extension, FloatCC, FuncDecl, FuncRef, FuncSig, Function, Hint, IntCC,
    Linkage, LocationRef, MemFlags, Module, Op, SigRef, StackSlot, Terminator, Type, UnaryOp, Value,
};

/// The namespace of functions in provisional names; the index is the IR's `FuncRef`.
pub(super) const FUNCTIONS: u32 = 0;
/// The namespace of data in provisional names; the index is that of a [`DataLocation::object`].
pub(super) const DATA: u32 = 1;

/// The maximum alignment of a slot: that of the frame.
const FRAME_ALIGN: u32 = 16;

/// Target properties that translation depends on.
#[derive(Clone, Copy)]
pub(super) struct TargetAbi {
    call_conv: CallConv,
    /// How C functions take structs; `None` if that isn't known.
    c_abi: Option<CAbi>,
    /// Whether the C ABI also requires the extension of 32-bit integers, as on RISC-V.
    extend_32: bool,
    /// Whether C functions return even small structs in memory that the caller provides, as on s390x.
    structs_in_memory: bool,
    /// Whether only even addresses can be relative to the code, as on s390x.
    even_addresses: bool,
    /// Whether calls of far functions must use near calls through the linker's table. On s390x Cranelift would
    /// otherwise write their addresses into the code, which is then position-dependent.
    far_by_table: bool,
    /// Whether comparing 16 bytes per instruction is faster.
    vectors: bool,
}

impl TargetAbi {
    pub(super) fn of(isa: &dyn TargetIsa) -> Self {
        use target_lexicon::Architecture;
        let architecture = isa.triple().architecture;
        let s390x = architecture == Architecture::S390x;
        TargetAbi {
            call_conv: isa.default_call_conv(),
            c_abi: CAbi::of(isa.triple()),
            extend_32: s390x || matches!(architecture, Architecture::Riscv64(_)),
            structs_in_memory: s390x,
            even_addresses: s390x,
            vectors: matches!(architecture, Architecture::X86_64 | Architecture::Aarch64(_)),
            far_by_table: s390x && isa.flags().is_pic(),
        }
    }

    /// Whether the result is a struct returned in memory.
    fn returns_in_memory(&self, sig: &FuncSig) -> bool {
        self.structs_in_memory && sig.ret.is_some_and(|ret| ret.aggregate)
    }

    /// The call of a function outside the module that passes arguments as C does; `None` if it is the plain one.
    fn scalars(&self, sig: &FuncSig) -> Option<Scalars> {
        let c_abi = self.c_abi?;
        c_abi.scalars(sig).or_else(|| c_abi.floats_as_integers(sig))
    }

    /// The signature of a function outside the module.
    fn outside(&self, sig: &FuncSig) -> clif::Signature {
        let scalars = self.scalars(sig);
        self.inside(scalars.as_ref().map_or(sig, |scalars| &scalars.sig))
    }

    /// The signature of a declaration.
    pub(super) fn signature(&self, decl: &FuncDecl) -> clif::Signature {
        match decl.linkage {
            Linkage::Import => self.outside(&decl.signature),
            Linkage::Local | Linkage::Export => self.inside(&decl.signature),
        }
    }

    /// The signature of a function that the module defines.
    fn inside(&self, sig: &FuncSig) -> clif::Signature {
        let param = |p: &crate::ir::AbiParam| {
            let ty = clif_type(p.ty);
            match p.ext {
                _ if p.ty == Type::I32 && !self.extend_32 => clif::AbiParam::new(ty),
                _ if !p.ty.is_int() || p.ty == Type::I64 => clif::AbiParam::new(ty),
                Extension::None => clif::AbiParam::new(ty),
                Extension::Signed => clif::AbiParam::new(ty).sext(),
                Extension::Unsigned => clif::AbiParam::new(ty).uext(),
            }
        };
        let mut out = clif::Signature::new(self.call_conv);
        let in_memory = self.returns_in_memory(sig);
        if in_memory {
            out.params.push(clif::AbiParam::special(types::I64, clif::ArgumentPurpose::StructReturn));
        }
        out.params.extend(sig.params.iter().map(param));
        out.returns.extend(sig.ret.iter().filter(|_| !in_memory).map(param));
        out
    }
}

/// The target's signature of a C function.
pub(crate) fn c_signature(isa: &dyn TargetIsa, sig: &FuncSig) -> clif::Signature {
    TargetAbi::of(isa).outside(sig)
}

fn clif_type(ty: Type) -> clif::Type {
    match ty {
        Type::Bool | Type::I8 => types::I8,
        Type::I16 => types::I16,
        Type::I32 => types::I32,
        Type::I64 | Type::Ptr => types::I64,
        Type::F32 => types::F32,
        Type::F64 => types::F64,
    }
}

/// Per-function tables, kept to reuse their memory.
#[derive(Default)]
pub(super) struct Scratch {
    values: SecondaryMap<Value, PackedOption<clif::Value>>,
    funcs: SecondaryMap<FuncRef, PackedOption<clif::FuncRef>>,
    slots: SecondaryMap<StackSlot, PackedOption<clif::StackSlot>>,
    signatures: SecondaryMap<SigRef, PackedOption<clif::SigRef>>,
    blocks: SecondaryMap<Block, BlockState>,
    pending: Vec<Block>,
    /// Blocks that an `Unlikely` branch leads to.
    unlikely: Vec<Block>,
    operands: Vec<clif::Value>,
    args: [Vec<BlockArg>; 2],
    /// The first failed look-up, which can't occur in a verified module. The function must not be used then.
    missing: OnceCell<String>,
}

#[derive(Clone, Copy, Default)]
struct BlockState {
    seen: bool,
    predecessors: u32,
}

impl Scratch {
    fn clear(&mut self) {
        self.values.clear();
        self.funcs.clear();
        self.slots.clear();
        self.signatures.clear();
        self.blocks.clear();
        self.pending.clear();
        self.unlikely.clear();
        self.missing.take();
    }

    /// Takes the failed look-up, if there was one. A verified module has none.
    pub(super) fn take_missing(&mut self) -> Option<String> {
        self.missing.take()
    }
}

/// The module that a function is part of.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    pub(super) module: &'a Module,
    pub(super) target: TargetAbi,
    /// The location of each data object of the IR.
    pub(super) data: &'a [DataLocation],
}

/// The location of a piece of data.
#[derive(Clone, Copy)]
pub(super) struct DataLocation {
    /// The index of the data object in the compiled module.
    pub(super) object: u32,
    /// The offset in that object.
    pub(super) offset: u32,
    /// Whether the symbol is certainly defined in the same library as the code; another library may define the same
    /// name.
    pub(super) near: bool,
}

/// Translates `body` into `func`, which is empty except for its signature.
pub(super) fn translate(cx: Context<'_>, body: &Function, func: &mut clif::Function, scratch: &mut Scratch) {
    scratch.clear();
    let Some(entry) = body.entry() else { return };
    // smallest first: small slots are used most, and displacements are shorter near the frame's end
    let mut slots: Vec<_> = body.slots.iter().collect();
    slots.sort_by_key(|(_, slot)| slot.size);
    for (index, slot) in slots {
        // Cranelift aligns slots within the frame, but not the frame itself. For more alignment, reserve room to align
        // the address.
        let room = if slot.align > FRAME_ALIGN { slot.align } else { 0 };
        let shift = slot.align.min(FRAME_ALIGN).trailing_zeros() as u8;
        let data = StackSlotData::new(StackSlotKind::ExplicitSlot, slot.size.saturating_add(room), shift);
        scratch.slots[index] = func.create_sized_stack_slot(data).into();
    }
    let by_address = func.signature.uses_struct_return_param();
    let mut result_to = None;
    for (block, data) in &body.blocks {
        let new = func.dfg.make_block();
        debug_assert_eq!(new, clif_block(block));
        if block == entry && by_address {
            result_to = Some(func.dfg.append_block_param(new, types::I64));
        }
        for &param in &data.params {
            let value = func.dfg.append_block_param(new, clif_type(body.type_of(param)));
            scratch.values[param] = value.into();
        }
    }
    let located = !cx.module.locations.is_empty();
    let mut pos = FuncCursor::new(func);
    if located {
        // Cranelift counts locations from the first one it gets, and the default location can't be that one.
        pos.set_srcloc(SourceLoc::new(0));
        pos.set_srcloc(SourceLoc::default());
    }
    let mut t = Translator { cx, body, pos, s: scratch, result_to, located };
    t.visit(entry);
    while let Some(block) = t.s.pending.pop() {
        t.block(block);
    }
    // A hint makes a block cold only if the block has no other predecessor.
    for &block in &t.s.unlikely {
        if t.s.blocks[block].predecessors == 1 {
            t.pos.func.layout.set_cold(clif_block(block));
        }
    }
}

/// CLIF blocks are created in the order of the IR's blocks, so they share indices.
fn clif_block(block: Block) -> clif::Block {
    clif::Block::new(block.index())
}

struct Translator<'a> {
    cx: Context<'a>,
    body: &'a Function,
    pos: FuncCursor<'a>,
    s: &'a mut Scratch,
    /// Where the function writes a struct that it returns in memory.
    result_to: Option<clif::Value>,
    /// Whether any instruction of the module has a source location.
    located: bool,
}

impl Translator<'_> {
    fn visit(&mut self, block: Block) {
        let state = &mut self.s.blocks[block];
        state.predecessors += 1;
        if !state.seen {
            state.seen = true;
            self.s.pending.push(block);
        }
    }

    fn block(&mut self, block: Block) {
        let data = &self.body.blocks[block];
        let is_entry = self.body.entry() == Some(block);
        let new = clif_block(block);
        self.pos.func.layout.append_block(new);
        // CLIF doesn't allow a cold entry block, which would have no effect anyway.
        if data.cold && !is_entry {
            self.pos.func.layout.set_cold(new);
        }
        self.pos.goto_bottom(new);
        if self.located {
            self.pos.set_srcloc(SourceLoc::default());
        }
        for &inst in &data.insts {
            if self.located {
                self.locate(self.body.locations[inst]);
            }
            let inst = &self.body.insts[inst];
            let value = self.op(&inst.op);
            if let (Some(result), Some(value)) = (inst.result, value) {
                self.s.values[result] = value.into();
            }
        }
        let end = self.body.end_locations[block];
        if self.located && end.is_some() {
            self.locate(end);
        }
        match &data.terminator {
            Some(Terminator::Jump(to)) => {
                self.args(0, to);
                self.pos.ins().jump(clif_block(to.block), &self.s.args[0]);
                self.visit(to.block);
            }
            Some(Terminator::Branch { cond, then, otherwise, hint }) => {
                self.args(0, then);
                self.args(1, otherwise);
                let cond = self.value(*cond);
                let [then_args, else_args] = &self.s.args;
                self.pos.ins().brif(cond, clif_block(then.block), then_args, clif_block(otherwise.block), else_args);
                match hint {
                    Hint::None => {}
                    Hint::Likely => self.s.unlikely.push(otherwise.block),
                    Hint::Unlikely => self.s.unlikely.push(then.block),
                }
                // The last block pushed is visited next: visit the likely successor first, so it is close to the
                // branch.
                let (first, second) = if *hint == Hint::Unlikely { (otherwise, then) } else { (then, otherwise) };
                self.visit(second.block);
                self.visit(first.block);
            }
            Some(Terminator::Return(value)) => {
                let mut value = value.map(|v| self.value(v));
                if let (Some(to), Some(result)) = (self.result_to, value) {
                    self.pos.ins().store(MemFlagsData::trusted(), result, to, 0);
                    value = None;
                }
                self.pos.ins().return_(value.as_slice());
            }
            // Can't happen in a verified module.
            None => {
                self.lacks(|| format!("a terminator of {block}"));
                self.pos.ins().trap(clif::TrapCode::INTEGER_OVERFLOW);
            }
        }
    }

    /// Sets the location of the code that follows. A terminator without a location has that of the last instruction
    /// before it.
    fn locate(&mut self, location: PackedOption<LocationRef>) {
        let location = location.expand().map_or_else(SourceLoc::default, |location| SourceLoc::new(location.as_u32()));
        self.pos.set_srcloc(location);
    }

    /// Notes a failed look-up that can't fail in a verified module. Compiling the function then ends in an error,
    /// whatever its code is.
    fn lacks(&self, what: impl FnOnce() -> String) {
        self.s.missing.get_or_init(what);
    }

    fn value(&self, value: Value) -> clif::Value {
        self.s.values[value].expand().unwrap_or_else(|| {
            self.lacks(|| format!("a definition of {value} before its use"));
            clif::Value::new(0)
        })
    }

    fn args(&mut self, which: usize, call: &BlockCall) {
        let mut args = std::mem::take(&mut self.s.args[which]);
        args.clear();
        args.extend(call.args.iter().map(|&v| BlockArg::Value(self.value(v))));
        self.s.args[which] = args;
    }

    /// The operands of a call, in a list that is kept to reuse its memory.
    fn operands(&mut self, sig: &FuncSig, is_outside: bool, args: &[Value]) -> Vec<clif::Value> {
        let mut operands = std::mem::take(&mut self.s.operands);
        operands.clear();
        match self.cx.target.scalars(sig).filter(|_| is_outside) {
            None => operands.extend(args.iter().map(|&v| self.value(v))),
            Some(scalars) => {
                for (param, source) in scalars.sig.params.iter().zip(scalars.sources) {
                    operands.push(self.scalar(param.ty, source, args));
                }
            }
        }
        if self.cx.target.c_abi.is_none() && sig.params.iter().any(|param| param.by_value.is_some()) {
            self.lacks(|| "how the target passes structs by value".to_owned());
        }
        operands
    }

    /// A scalar of a call that takes structs.
    fn scalar(&mut self, ty: Type, source: Source, args: &[Value]) -> clif::Value {
        match source {
            Source::Argument(number) => {
                let value = self.value(args[number]);
                match (self.body.type_of(args[number]), ty) {
                    (Type::F32 | Type::F64, Type::I32 | Type::I64) => {
                        self.pos.ins().bitcast(clif_type(ty), MemFlagsData::new(), value)
                    }
                    (Type::I32, Type::I64) => self.pos.ins().uextend(types::I64, value),
                    _ => value,
                }
            }
            Source::Field(number, offset) => {
                let address = self.value(args[number]);
                self.pos.ins().load(clif_type(ty), mem_flags(MemFlags::ALIGNED), address, offset as i32)
            }
            Source::Filler => self.iconst(ty, 0),
        }
    }

    fn op(&mut self, op: &Op) -> Option<clif::Value> {
        Some(match *op {
            Op::IntConst { ty, value } => self.iconst(ty, value),
            Op::FloatConst { ty: Type::F32, bits } => {
                self.pos.ins().f32const(clif::immediates::Ieee32::with_bits(bits as u32))
            }
            Op::FloatConst { bits, .. } => self.pos.ins().f64const(clif::immediates::Ieee64::with_bits(bits)),
            Op::BoolConst(value) => self.iconst(Type::I8, i64::from(value)),
            Op::PtrConst(address) => self.iconst(Type::I64, address as i64),
            Op::Unary(op, a) => self.unary(op, a),
            Op::Binary(op, a, b) => self.binary(op, a, b),
            Op::ICmp(cc, a, b) => {
                let (a, b) = (self.value(a), self.value(b));
                self.pos.ins().icmp(int_cc(cc), a, b)
            }
            Op::FCmp(cc, a, b) => {
                let (a, b) = (self.value(a), self.value(b));
                self.pos.ins().fcmp(float_cc(cc), a, b)
            }
            Op::Select(cond, a, b) => {
                let (cond, a, b) = (self.value(cond), self.value(a), self.value(b));
                self.pos.ins().select(cond, a, b)
            }
            Op::Convert(op, ty, a) => self.convert(op, ty, a),
            Op::Load { ty, ptr, offset, flags } => {
                let ptr = self.value(ptr);
                self.pos.ins().load(clif_type(ty), mem_flags(flags), ptr, offset)
            }
            Op::SameBytes(ref pairs, bytes) => self.same_bytes(pairs, bytes),
            Op::Store { value, ptr, offset, flags } => {
                let (value, ptr) = (self.value(value), self.value(ptr));
                self.pos.ins().store(mem_flags(flags), value, ptr, offset);
                return None;
            }
            Op::PtrAdd(ptr, bytes) => {
                let (ptr, bytes) = (self.value(ptr), self.value(bytes));
                self.pos.ins().iadd(ptr, bytes)
            }
            Op::Element { base, index, ty } => {
                let (base, index) = (self.value(base), self.value(index));
                // Shift by a constant, which addressing modes absorb.
                let step = match ty.bytes().trailing_zeros() {
                    0 => index,
                    shift => self.pos.ins().ishl_imm_u(index, i64::from(shift)),
                };
                self.pos.ins().iadd(base, step)
            }
            Op::StackAddr(slot, offset) => self.stack_addr(slot, offset),
            Op::DataAddr(data, offset) => self.data_addr(data.index(), offset),
            Op::FuncAddr(func) => {
                let func = self.callee(func);
                self.pos.ins().func_addr(types::I64, func)
            }
            // Cranelift's atomic accesses are sequentially consistent, which is stronger than required
            Op::LoadAcquire(ptr) => {
                let ptr = self.value(ptr);
                self.pos.ins().atomic_load(types::I64, mem_flags(MemFlags::ALIGNED), ptr)
            }
            Op::AtomicAdd(ptr, value) => {
                let (ptr, value) = (self.value(ptr), self.value(value));
                let flags = mem_flags(MemFlags::ALIGNED);
                self.pos.ins().atomic_rmw(types::I64, flags, clif::AtomicRmwOp::Add, ptr, value)
            }
            Op::CompareExchange(ptr, expected, new) => {
                let (ptr, expected, new) = (self.value(ptr), self.value(expected), self.value(new));
                self.pos.ins().atomic_cas(mem_flags(MemFlags::ALIGNED), ptr, expected, new)
            }
            Op::Call(callee, ref args) => {
                let decl = &self.cx.module.functions[callee];
                let mut args = self.operands(&decl.signature, decl.linkage == Linkage::Import, args);
                let written = self.result_slot(&decl.signature, &mut args);
                let callee = self.callee(callee);
                let call = self.pos.ins().call(callee, &args);
                self.s.operands = args;
                return self.call_result(call, written);
            }
            Op::CallIndirect(sig, callee, ref args) => {
                let body = self.body;
                let mut args = self.operands(&body.signatures[sig], true, args);
                let written = self.result_slot(&body.signatures[sig], &mut args);
                let callee = self.value(callee);
                let sig = self.indirect_signature(sig);
                let call = self.pos.ins().call_indirect(sig, callee, &args);
                self.s.operands = args;
                return self.call_result(call, written);
            }
        })
    }

    /// Adds the first argument of a call that returns a struct in memory: the address of a slot for it. Returns the
    /// struct's type and that address.
    fn result_slot(&mut self, sig: &FuncSig, args: &mut Vec<clif::Value>) -> Option<(clif::Type, clif::Value)> {
        let ret = sig.ret.filter(|_| self.cx.target.returns_in_memory(sig))?;
        let slot = StackSlotData::new(StackSlotKind::ExplicitSlot, 8, 3);
        let slot = self.pos.func.create_sized_stack_slot(slot);
        let address = self.pos.ins().stack_addr(types::I64, slot, 0);
        args.insert(0, address);
        Some((clif_type(ret.ty), address))
    }

    fn call_result(&mut self, call: clif::Inst, written: Option<(clif::Type, clif::Value)>) -> Option<clif::Value> {
        match written {
            Some((ty, address)) => Some(self.pos.ins().load(ty, MemFlagsData::trusted(), address, 0)),
            None => self.pos.func.dfg.inst_results(call).first().copied(),
        }
    }

    fn iconst(&mut self, ty: Type, value: i64) -> clif::Value {
        // CLIF requires the bits above the type to be zero.
        let mask = if ty.bits() == 64 { -1 } else { (1i64 << ty.bits()) - 1 };
        self.pos.ins().iconst(clif_type(ty), value & mask)
    }

    fn stack_addr(&mut self, slot: StackSlot, offset: u32) -> clif::Value {
        let known = self.s.slots[slot].expand().unwrap_or_else(|| {
            self.lacks(|| format!("the stack slot {slot}"));
            clif::StackSlot::new(0)
        });
        let align = self.body.slots[slot].align;
        if let Ok(offset) = i32::try_from(offset)
            && align <= FRAME_ALIGN
        {
            return self.pos.ins().stack_addr(types::I64, known, offset);
        }
        let address = self.pos.ins().stack_addr(types::I64, known, 0);
        let up = self.pos.ins().iadd_imm_s(address, i64::from(align) - 1);
        let address = self.pos.ins().band_imm_s(up, -i64::from(align));
        match offset {
            0 => address,
            _ => self.pos.ins().iadd_imm_s(address, i64::from(offset)),
        }
    }

    fn data_addr(&mut self, data: usize, offset: u32) -> clif::Value {
        let place = self.cx.data[data];
        let offset = i64::from(place.offset) + i64::from(offset);
        let odd = if self.cx.target.even_addresses { offset & 1 } else { 0 };
        let name = UserExternalName { namespace: DATA, index: place.object };
        let name = self.pos.func.declare_imported_user_function(name);
        let global = self.pos.func.create_global_value(GlobalValueData::Symbol {
            name: ExternalName::user(name),
            offset: (offset - odd).into(),
            colocated: place.near,
            tls: false,
        });
        let even = self.pos.ins().symbol_value(types::I64, global);
        if odd == 0 { even } else { self.pos.ins().iadd_imm_s(even, odd) }
    }

    fn callee(&mut self, callee: FuncRef) -> clif::FuncRef {
        if let Some(known) = self.s.funcs[callee].expand() {
            return known;
        }
        let decl = &self.cx.module.functions[callee];
        let func = &mut *self.pos.func;
        let signature = func.import_signature(self.cx.target.signature(decl));
        let name =
            func.declare_imported_user_function(UserExternalName { namespace: FUNCTIONS, index: callee.as_u32() });
        let new = func.import_function(ExtFuncData {
            name: ExternalName::user(name),
            signature,
            // The runtime's functions and kernels may be out of range of a near call.
            colocated: decl.linkage != Linkage::Import || self.cx.target.far_by_table,
            patchable: false,
        });
        self.s.funcs[callee] = new.into();
        new
    }

    fn indirect_signature(&mut self, sig: SigRef) -> clif::SigRef {
        if let Some(known) = self.s.signatures[sig].expand() {
            return known;
        }
        let signature = self.cx.target.outside(&self.body.signatures[sig]);
        let new = self.pos.func.import_signature(signature);
        self.s.signatures[sig] = new.into();
        new
    }

    fn unary(&mut self, op: UnaryOp, a: Value) -> clif::Value {
        let is_bool = self.body.type_of(a) == Type::Bool;
        let a = self.value(a);
        match op {
            UnaryOp::Neg => self.pos.ins().ineg(a),
            // Cranelift folds this into the adjacent comparison or branch.
            UnaryOp::Not if is_bool => self.pos.ins().icmp_imm_u(condcodes::IntCC::Equal, a, 0),
            UnaryOp::Not => self.pos.ins().bnot(a),
            UnaryOp::FNeg => self.pos.ins().fneg(a),
            UnaryOp::FAbs => self.pos.ins().fabs(a),
            UnaryOp::Sqrt => self.pos.ins().sqrt(a),
            UnaryOp::Floor => self.pos.ins().floor(a),
            UnaryOp::Ceil => self.pos.ins().ceil(a),
            UnaryOp::Trunc => self.pos.ins().trunc(a),
            UnaryOp::Nearest => self.pos.ins().nearest(a),
        }
    }

    fn binary(&mut self, op: BinaryOp, a: Value, b: Value) -> clif::Value {
        let (a, b) = (self.value(a), self.value(b));
        let ins = self.pos.ins();
        match op {
            BinaryOp::Add => ins.iadd(a, b),
            BinaryOp::Sub => ins.isub(a, b),
            BinaryOp::Mul => ins.imul(a, b),
            BinaryOp::SMulHi => ins.smulhi(a, b),
            BinaryOp::UMulHi => ins.umulhi(a, b),
            BinaryOp::SDiv => ins.sdiv(a, b),
            BinaryOp::UDiv => ins.udiv(a, b),
            BinaryOp::SRem => ins.srem(a, b),
            BinaryOp::URem => ins.urem(a, b),
            BinaryOp::And => ins.band(a, b),
            BinaryOp::Or => ins.bor(a, b),
            BinaryOp::Xor => ins.bxor(a, b),
            BinaryOp::Shl => ins.ishl(a, b),
            BinaryOp::LShr => ins.ushr(a, b),
            BinaryOp::AShr => ins.sshr(a, b),
            BinaryOp::SMin => ins.smin(a, b),
            BinaryOp::SMax => ins.smax(a, b),
            BinaryOp::UMin => ins.umin(a, b),
            BinaryOp::UMax => ins.umax(a, b),
            BinaryOp::FAdd => ins.fadd(a, b),
            BinaryOp::FSub => ins.fsub(a, b),
            BinaryOp::FMul => ins.fmul(a, b),
            BinaryOp::FDiv => ins.fdiv(a, b),
            BinaryOp::FMin => ins.fmin(a, b),
            BinaryOp::FMax => ins.fmax(a, b),
        }
    }

    /// Compares pairs of byte ranges: they are equal if the OR of all pieces' differences is zero.
    fn same_bytes(&mut self, pairs: &[(Value, Value)], bytes: u32) -> clif::Value {
        let ty = if self.cx.target.vectors && bytes.is_multiple_of(16) { clif::types::I64X2 } else { clif::types::I64 };
        // 8-byte pieces are aligned, 16-byte pieces may not be
        let flags = if ty.is_vector() { mem_flags(MemFlags::UNALIGNED) } else { mem_flags(MemFlags::ALIGNED) };
        let mut all = None;
        for offset in (0..bytes as i32).step_by(ty.bytes() as usize) {
            // load a value that several others are compared with only once; it may stand for the others, since all must
            // be equal
            let mut known: Option<(Value, clif::Value)> = None;
            for (a, b) in pairs {
                let x = match known {
                    Some((of, piece)) if of == *a => piece,
                    _ => {
                        let base = self.value(*a);
                        self.pos.ins().load(ty, flags, base, offset)
                    }
                };
                let base = self.value(*b);
                let y = self.pos.ins().load(ty, flags, base, offset);
                known = Some((*a, y));
                let differs = self.pos.ins().bxor(x, y);
                all = Some(match all {
                    None => differs,
                    Some(before) => self.pos.ins().bor(before, differs),
                });
            }
        }
        let any = match all {
            Some(all) if ty.is_vector() => self.pos.ins().vany_true(all),
            Some(all) => all,
            // the verifier guarantees at least one piece
            None => self.pos.ins().iconst(clif::types::I64, 0),
        };
        self.pos.ins().icmp_imm_s(clif::condcodes::IntCC::Equal, any, 0)
    }

    fn convert(&mut self, op: ConvertOp, to: Type, a: Value) -> clif::Value {
        let from = self.body.type_of(a);
        let a = self.value(a);
        let ty = clif_type(to);
        let same = clif_type(from) == ty;
        let ins = self.pos.ins();
        match op {
            // A `Bool` is an i8 already, and a pointer an i64.
            ConvertOp::PtrToInt | ConvertOp::IntToPtr => a,
            ConvertOp::ZExt | ConvertOp::SExt | ConvertOp::Truncate | ConvertOp::Bitcast if same => a,
            ConvertOp::SExt => ins.sextend(ty, a),
            ConvertOp::ZExt => ins.uextend(ty, a),
            ConvertOp::Truncate => ins.ireduce(ty, a),
            ConvertOp::SIntToFloat => ins.fcvt_from_sint(ty, a),
            ConvertOp::UIntToFloat => ins.fcvt_from_uint(ty, a),
            ConvertOp::FloatToSInt => ins.fcvt_to_sint_sat(ty, a),
            ConvertOp::FloatToUInt => ins.fcvt_to_uint_sat(ty, a),
            ConvertOp::FPromote => ins.fpromote(ty, a),
            ConvertOp::FDemote => ins.fdemote(ty, a),
            ConvertOp::Bitcast => ins.bitcast(ty, MemFlagsData::new(), a),
        }
    }
}

/// Accesses never trap: lowering has checked the address. `readonly` lets Cranelift merge equal loads. It doesn't let
/// Cranelift move a load above its check, which would take `can_move`.
fn mem_flags(flags: MemFlags) -> MemFlagsData {
    let mut out = MemFlagsData::new().with_notrap();
    if flags.aligned {
        out = out.with_aligned();
    }
    if flags.readonly {
        out = out.with_readonly();
    }
    out
}

fn int_cc(cc: IntCC) -> condcodes::IntCC {
    match cc {
        IntCC::Eq => condcodes::IntCC::Equal,
        IntCC::Ne => condcodes::IntCC::NotEqual,
        IntCC::SLt => condcodes::IntCC::SignedLessThan,
        IntCC::SLe => condcodes::IntCC::SignedLessThanOrEqual,
        IntCC::SGt => condcodes::IntCC::SignedGreaterThan,
        IntCC::SGe => condcodes::IntCC::SignedGreaterThanOrEqual,
        IntCC::ULt => condcodes::IntCC::UnsignedLessThan,
        IntCC::ULe => condcodes::IntCC::UnsignedLessThanOrEqual,
        IntCC::UGt => condcodes::IntCC::UnsignedGreaterThan,
        IntCC::UGe => condcodes::IntCC::UnsignedGreaterThanOrEqual,
    }
}

fn float_cc(cc: FloatCC) -> condcodes::FloatCC {
    match cc {
        FloatCC::Eq => condcodes::FloatCC::Equal,
        FloatCC::Ne => condcodes::FloatCC::NotEqual,
        FloatCC::Lt => condcodes::FloatCC::LessThan,
        FloatCC::Le => condcodes::FloatCC::LessThanOrEqual,
        FloatCC::Gt => condcodes::FloatCC::GreaterThan,
        FloatCC::Ge => condcodes::FloatCC::GreaterThanOrEqual,
    }
}
