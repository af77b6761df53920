//! Translates each operation of the IR to LLVM instructions, with exactly the semantics of the IR.
//!
//! LLVM leaves more cases undefined than the IR does: shifts by the width or more, trapping divisions, float
//! conversions out of range. Nothing here sets fast-math flags or allows contracting a product and a sum.

use std::num::NonZero;

use inkwell::values::{BasicMetadataValueEnum, BasicValue, BasicValueEnum, IntValue, PointerValue};
use inkwell::{AtomicOrdering, AtomicRMWBinOp, FloatPredicate, IntPredicate};

use super::function::{BuildError, Built, FunctionTranslator};
use crate::backend::c_abi::Source;
use crate::ir::{
    BinaryOp, ConvertOp, FloatCC, FuncRef, FuncSig, Hint, IntCC, Linkage, MemFlags, Op, SigRef, Type, UnaryOp, Value,
};

impl<'ctx> FunctionTranslator<'_, '_, 'ctx> {
    pub(super) fn op(&mut self, op: &Op) -> Built<Option<BasicValueEnum<'ctx>>> {
        let types = self.m.types;
        Ok(Some(match *op {
            Op::IntConst { ty, value } => self.iconst(ty, value).into(),
            Op::FloatConst { ty: Type::F32, bits } => {
                // bitwise, so a NaN keeps its payload
                let bits = types.i32.const_int(bits & 0xffff_ffff, false);
                self.builder.build_bit_cast(bits, types.f32, "")?
            }
            Op::FloatConst { bits, .. } => {
                self.builder.build_bit_cast(types.i64.const_int(bits, false), types.f64, "")?
            }
            Op::BoolConst(value) => types.bool.const_int(u64::from(value), false).into(),
            Op::PtrConst(0) => types.ptr.const_null().into(),
            Op::PtrConst(address) => types.i64.const_int(address, false).const_to_pointer(types.ptr).into(),
            Op::Unary(op, a) => self.unary(op, a)?,
            Op::Binary(op, a, b) => self.binary(op, a, b)?,
            Op::ICmp(cc, a, b) => self.icmp(cc, a, b)?.into(),
            Op::FCmp(cc, a, b) => {
                let (a, b) = (self.float(a)?, self.float(b)?);
                self.builder.build_float_compare(float_predicate(cc), a, b, "")?.into()
            }
            Op::Select(cond, a, b) => {
                let (cond, a, b) = (self.int(cond)?, self.value(a)?, self.value(b)?);
                self.builder.build_select(cond, a, b, "")?
            }
            Op::Convert(op, ty, a) => self.convert(op, ty, a)?,
            Op::Load { ty, ptr, offset, flags } => {
                let address = self.address(ptr, offset)?;
                let value = self.builder.build_load(types.of(ty), address, "")?;
                if let Some(load) = value.as_instruction_value() {
                    // This fails only if the alignment isn't a power of two, and it is one.
                    let _ = load.set_alignment(alignment(flags, ty));
                    if flags.readonly && self.invariant {
                        self.m.facts.invariant_load(load);
                    }
                }
                value
            }
            Op::SameBytes(ref pairs, bytes) => self.same_bytes(pairs, bytes)?.into(),
            Op::Store { value, ptr, offset, flags } => {
                let ty = self.body.type_of(value);
                let (value, address) = (self.value(value)?, self.address(ptr, offset)?);
                let store = self.builder.build_store(address, value)?;
                let _ = store.set_alignment(alignment(flags, ty));
                return Ok(None);
            }
            Op::PtrAdd(ptr, bytes) => {
                let (ptr, bytes) = (self.ptr(ptr)?, self.int(bytes)?);
                self.offset(Type::I8, ptr, bytes)?.into()
            }
            Op::Element { base, index, ty } => {
                let (base, index) = (self.ptr(base)?, self.int(index)?);
                self.offset(ty, base, index)?.into()
            }
            Op::StackAddr(slot, offset) => {
                let known = self.slots.get(slot.as_u32() as usize).copied();
                let base = known.ok_or(BuildError::Missing("no such slot"))?;
                match offset {
                    0 => base.into(),
                    _ => self.offset(Type::I8, base, types.i64.const_int(u64::from(offset), false))?.into(),
                }
            }
            Op::DataAddr(data, offset) => {
                let base = self.m.data(data);
                let offset = types.i64.const_int(u64::from(offset), false);
                self.offset(Type::I8, base, offset)?.into()
            }
            Op::FuncAddr(func) => self.m.function(func).as_global_value().as_pointer_value().into(),
            Op::LoadAcquire(ptr) => {
                let value = self.builder.build_load(types.ptr, self.ptr(ptr)?, "")?;
                let load = value.as_instruction_value().ok_or(BuildError::Missing("a load is no instruction"))?;
                let atomic = load.set_alignment(8).and_then(|()| load.set_atomic_ordering(AtomicOrdering::Acquire));
                atomic.map_err(|_| BuildError::Missing("this LLVM has no atomic load"))?;
                value
            }
            Op::AtomicAdd(ptr, value) => {
                let (ptr, value) = (self.ptr(ptr)?, self.int(value)?);
                let order = AtomicOrdering::SequentiallyConsistent;
                self.builder.build_atomicrmw(AtomicRMWBinOp::Add, ptr, value, order)?.into()
            }
            Op::CompareExchange(ptr, expected, new) => {
                let (ptr, expected, new) = (self.ptr(ptr)?, self.ptr(expected)?, self.ptr(new)?);
                let order = AtomicOrdering::SequentiallyConsistent;
                let both = self.builder.build_cmpxchg(ptr, expected, new, order, order)?;
                self.builder.build_extract_value(both, 0, "")?
            }
            Op::Call(callee, ref args) => return self.call(callee, args),
            Op::CallIndirect(sig, callee, ref args) => return self.call_indirect(sig, callee, args),
        }))
    }

    fn iconst(&self, ty: Type, value: i64) -> IntValue<'ctx> {
        // LLVM requires the bits above the type to be zero.
        let mask = u64::MAX >> (64 - ty.bits());
        self.m.types.int(ty).const_int(value as u64 & mask, false)
    }

    /// Compares in vectors as wide as the target compares at a time: all are equal if the OR of their differences is
    /// zero.
    fn same_bytes(&self, pairs: &[(Value, Value)], bytes: u32) -> Built<IntValue<'ctx>> {
        let i64 = self.m.types.i64;
        let widest = self.m.widest_piece;
        let mut same: Option<IntValue<'ctx>> = None;
        let mut offset = 0;
        for size in [widest, 16, 8] {
            let (words, bits) = (size / 8, NonZero::new(size * 8));
            let vector = i64.vec_type(words);
            let mut all = None;
            while bytes - offset >= size {
                let piece = |base| {
                    let piece = self.builder.build_load(vector, self.address(base, offset as i32)?, "")?;
                    if let Some(load) = piece.as_instruction_value() {
                        let _ = load.set_alignment(8);
                    }
                    Ok::<_, BuildError>(piece.into_vector_value())
                };
                for (a, b) in pairs {
                    let differs = self.builder.build_xor(piece(*a)?, piece(*b)?, "")?;
                    all = Some(match all {
                        None => differs,
                        Some(before) => self.builder.build_or(before, differs, "")?,
                    });
                }
                offset += size;
            }
            let Some((all, bits)) = all.zip(bits) else { continue };
            let whole = self.m.context.custom_width_int_type(bits).map_err(BuildError::Missing)?;
            let all = self.builder.build_bit_cast(all, whole, "")?.into_int_value();
            let equal = self.builder.build_int_compare(IntPredicate::EQ, all, whole.const_zero(), "")?;
            same = Some(match same {
                None => equal,
                Some(before) => self.builder.build_and(before, equal, "")?,
            });
        }
        // the verifier guarantees at least one piece
        Ok(same.unwrap_or_else(|| self.m.types.bool.const_int(1, false)))
    }

    fn address(&self, ptr: Value, offset: i32) -> Built<PointerValue<'ctx>> {
        let ptr = self.ptr(ptr)?;
        if offset == 0 {
            return Ok(ptr);
        }
        let offset = self.m.types.i64.const_int(i64::from(offset) as u64, true);
        self.offset(Type::I8, ptr, offset)
    }

    /// A pointer to element `index` of an array. Not `inbounds`: the IR lets addresses wrap as long as they aren't
    /// accessed.
    fn offset(&self, ty: Type, ptr: PointerValue<'ctx>, index: IntValue<'ctx>) -> Built<PointerValue<'ctx>> {
        // SAFETY: LLVM allows one index into a scalar type here, and nothing is read.
        let address = unsafe { self.builder.build_gep(self.m.types.of(ty), ptr, &[index], "") };
        Ok(address?)
    }

    fn call(&mut self, callee: FuncRef, args: &[Value]) -> Built<Option<BasicValueEnum<'ctx>>> {
        let decl = &self.m.ir.functions[callee];
        let args = self.args(&decl.signature, decl.linkage == Linkage::Import, args)?;
        let function = self.m.function(callee);
        let call = self.builder.build_direct_call(function, &args, "")?;
        // A calling convention other than the callee's would be undefined behaviour. Only a caller's own kernel can
        // have another one.
        call.set_call_convention(function.get_call_conventions());
        self.m.facts.call(call, &decl.signature);
        Ok(call.try_as_basic_value().basic())
    }

    fn call_indirect(&mut self, sig: SigRef, callee: Value, args: &[Value]) -> Built<Option<BasicValueEnum<'ctx>>> {
        let sig = &self.body.signatures[sig];
        let args = self.args(sig, true, args)?;
        let callee = self.ptr(callee)?;
        let call = self.builder.build_indirect_call(self.m.types.outside(sig), callee, &args, "")?;
        self.m.facts.call(call, sig);
        Ok(call.try_as_basic_value().basic())
    }

    fn args(&self, sig: &FuncSig, is_outside: bool, args: &[Value]) -> Built<Vec<BasicMetadataValueEnum<'ctx>>> {
        let Some(scalars) = self.m.types.scalars(sig).filter(|_| is_outside) else {
            if sig.params.iter().any(|param| param.by_value.is_some()) {
                return Err(BuildError::Missing("how the target passes structs by value isn't known"));
            }
            return args.iter().map(|&arg| Ok(self.value(arg)?.into())).collect();
        };
        let sources = scalars.sig.params.iter().zip(scalars.sources);
        sources.map(|(param, source)| Ok(self.scalar(param.ty, source, args)?.into())).collect()
    }

    /// A scalar of a call that takes structs.
    fn scalar(&self, ty: Type, source: Source, args: &[Value]) -> Built<BasicValueEnum<'ctx>> {
        Ok(match source {
            Source::Argument(number) => {
                let value = self.value(args[number])?;
                match (self.body.type_of(args[number]), ty) {
                    (Type::F32 | Type::F64, Type::I32 | Type::I64) => {
                        self.builder.build_bit_cast(value, self.m.types.int(ty), "")?
                    }
                    (Type::I32, Type::I64) => {
                        self.builder.build_int_z_extend(value.into_int_value(), self.m.types.i64, "")?.into()
                    }
                    _ => value,
                }
            }
            Source::Field(number, offset) => {
                let address = self.address(args[number], offset as i32)?;
                self.builder.build_load(self.m.types.of(ty), address, "")?
            }
            Source::Filler => self.m.types.int(ty).const_zero().into(),
        })
    }

    /// An intrinsic with a result, overloaded on the type of its first argument.
    fn of_same_type(&mut self, name: &'static str, args: &[BasicValueEnum<'ctx>]) -> Built<BasicValueEnum<'ctx>> {
        let ty = args[0].get_type();
        self.intrinsic(name, &[ty], args)?.ok_or(BuildError::Missing("an intrinsic without a result"))
    }

    fn unary(&mut self, op: UnaryOp, a: Value) -> Built<BasicValueEnum<'ctx>> {
        let intrinsic = match op {
            UnaryOp::Neg => return Ok(self.builder.build_int_neg(self.int(a)?, "")?.into()),
            UnaryOp::Not => return Ok(self.builder.build_not(self.int(a)?, "")?.into()),
            UnaryOp::FNeg => return Ok(self.builder.build_float_neg(self.float(a)?, "")?.into()),
            UnaryOp::FAbs => "llvm.fabs",
            UnaryOp::Sqrt => "llvm.sqrt",
            UnaryOp::Floor => "llvm.floor",
            UnaryOp::Ceil => "llvm.ceil",
            UnaryOp::Trunc => "llvm.trunc",
            // In LLVM's default environment the rounding mode is to nearest even. Where the CPU has no instruction for
            // it, every C library has `nearbyint`, but not `roundeven`.
            UnaryOp::Nearest => "llvm.nearbyint",
        };
        let a = self.value(a)?;
        self.of_same_type(intrinsic, &[a])
    }

    fn binary(&mut self, op: BinaryOp, a: Value, b: Value) -> Built<BasicValueEnum<'ctx>> {
        let intrinsic = match op {
            BinaryOp::FAdd | BinaryOp::FSub | BinaryOp::FMul | BinaryOp::FDiv => return self.float_binary(op, a, b),
            BinaryOp::SMin => "llvm.smin",
            BinaryOp::SMax => "llvm.smax",
            BinaryOp::UMin => "llvm.umin",
            BinaryOp::UMax => "llvm.umax",
            BinaryOp::FMin => "llvm.minimum",
            BinaryOp::FMax => "llvm.maximum",
            _ => return Ok(self.int_binary(op, a, b)?.into()),
        };
        let (a, b) = (self.value(a)?, self.value(b)?);
        self.of_same_type(intrinsic, &[a, b])
    }

    fn float_binary(&mut self, op: BinaryOp, a: Value, b: Value) -> Built<BasicValueEnum<'ctx>> {
        let (a, b) = (self.float(a)?, self.float(b)?);
        let value = match op {
            BinaryOp::FAdd => self.builder.build_float_add(a, b, ""),
            BinaryOp::FSub => self.builder.build_float_sub(a, b, ""),
            BinaryOp::FMul => self.builder.build_float_mul(a, b, ""),
            _ => self.builder.build_float_div(a, b, ""),
        };
        Ok(value?.into())
    }

    fn int_binary(&mut self, op: BinaryOp, a: Value, b: Value) -> Built<IntValue<'ctx>> {
        let (a, b) = (self.int(a)?, self.int(b)?);
        match op {
            BinaryOp::SMulHi | BinaryOp::UMulHi => return self.upper_half(op == BinaryOp::SMulHi, a, b),
            BinaryOp::SDiv | BinaryOp::SRem => self.guard_division(a, b, true)?,
            BinaryOp::UDiv | BinaryOp::URem => self.guard_division(a, b, false)?,
            _ => {}
        }
        let builder = &self.builder;
        let value = match op {
            BinaryOp::Sub => builder.build_int_sub(a, b, ""),
            BinaryOp::Mul => builder.build_int_mul(a, b, ""),
            BinaryOp::SDiv => builder.build_int_signed_div(a, b, ""),
            BinaryOp::UDiv => builder.build_int_unsigned_div(a, b, ""),
            BinaryOp::SRem => builder.build_int_signed_rem(a, b, ""),
            BinaryOp::URem => builder.build_int_unsigned_rem(a, b, ""),
            BinaryOp::And => builder.build_and(a, b, ""),
            BinaryOp::Or => builder.build_or(a, b, ""),
            BinaryOp::Xor => builder.build_xor(a, b, ""),
            BinaryOp::Shl => builder.build_left_shift(a, self.amount(b)?, ""),
            BinaryOp::LShr => builder.build_right_shift(a, self.amount(b)?, false, ""),
            BinaryOp::AShr => builder.build_right_shift(a, self.amount(b)?, true, ""),
            // `Add`; all other operations are above or in `binary`.
            _ => builder.build_int_add(a, b, ""),
        };
        Ok(value?)
    }

    /// A shift's amount modulo the width; LLVM folds the mask into the CPU's own masking.
    fn amount(&self, b: IntValue<'ctx>) -> Built<IntValue<'ctx>> {
        let mask = b.get_type().const_int(u64::from(b.get_type().get_bit_width()) - 1, false);
        Ok(self.builder.build_and(b, mask, "")?)
    }

    fn upper_half(&self, signed: bool, a: IntValue<'ctx>, b: IntValue<'ctx>) -> Built<IntValue<'ctx>> {
        let (builder, wide) = (&self.builder, self.m.types.i128);
        let widen = |v| match signed {
            true => builder.build_int_s_extend(v, wide, ""),
            false => builder.build_int_z_extend(v, wide, ""),
        };
        let product = builder.build_int_mul(widen(a)?, widen(b)?, "")?;
        let upper = builder.build_right_shift(product, wide.const_int(64, false), false, "")?;
        Ok(builder.build_int_truncate(upper, self.m.types.i64, "")?)
    }

    /// Traps where the IR's divisions trap; in LLVM they would be undefined.
    fn guard_division(&mut self, a: IntValue<'ctx>, b: IntValue<'ctx>, signed: bool) -> Built<()> {
        match b.get_sign_extended_constant() {
            Some(0) | None => {}
            Some(-1) if signed => {}
            Some(_) => return Ok(()),
        }
        let (builder, ty) = (&self.builder, b.get_type());
        let equal = |x, y| builder.build_int_compare(IntPredicate::EQ, x, y, "");
        let mut bad = equal(b, ty.const_zero())?;
        if signed {
            let min = ty.const_int(1 << (ty.get_bit_width() - 1), false);
            let overflow = builder.build_and(equal(a, min)?, equal(b, ty.const_all_ones())?, "")?;
            bad = builder.build_or(bad, overflow, "")?;
        }
        self.trap_if(bad)
    }

    fn icmp(&mut self, cc: IntCC, a: Value, b: Value) -> Built<IntValue<'ctx>> {
        let predicate = match cc {
            IntCC::Eq => IntPredicate::EQ,
            IntCC::Ne => IntPredicate::NE,
            IntCC::SLt => IntPredicate::SLT,
            IntCC::SLe => IntPredicate::SLE,
            IntCC::SGt => IntPredicate::SGT,
            IntCC::SGe => IntPredicate::SGE,
            IntCC::ULt => IntPredicate::ULT,
            IntCC::ULe => IntPredicate::ULE,
            IntCC::UGt => IntPredicate::UGT,
            IntCC::UGe => IntPredicate::UGE,
        };
        let value = match self.value(a)? {
            BasicValueEnum::PointerValue(a) => self.builder.build_int_compare(predicate, a, self.ptr(b)?, ""),
            a => self.builder.build_int_compare(predicate, a.into_int_value(), self.int(b)?, ""),
        };
        Ok(value?)
    }

    fn convert(&mut self, op: ConvertOp, to: Type, a: Value) -> Built<BasicValueEnum<'ctx>> {
        let types = self.m.types;
        let builder = &self.builder;
        Ok(match op {
            ConvertOp::SExt => builder.build_int_s_extend(self.int(a)?, types.int(to), "")?.into(),
            ConvertOp::ZExt => builder.build_int_z_extend(self.int(a)?, types.int(to), "")?.into(),
            ConvertOp::Truncate => builder.build_int_truncate(self.int(a)?, types.int(to), "")?.into(),
            ConvertOp::SIntToFloat => builder.build_signed_int_to_float(self.int(a)?, types.float(to), "")?.into(),
            ConvertOp::UIntToFloat => builder.build_unsigned_int_to_float(self.int(a)?, types.float(to), "")?.into(),
            ConvertOp::FloatToSInt if to == Type::I64 && self.m.x86_64 && !self.body.has_loop() => {
                self.float_to_i64(a)?
            }
            ConvertOp::FloatToSInt | ConvertOp::FloatToUInt => {
                let name = if op == ConvertOp::FloatToSInt { "llvm.fptosi.sat" } else { "llvm.fptoui.sat" };
                let a = self.value(a)?;
                self.saturated(name, to, a)?
            }
            ConvertOp::FPromote => builder.build_float_ext(self.float(a)?, types.float(to), "")?.into(),
            ConvertOp::FDemote => builder.build_float_trunc(self.float(a)?, types.float(to), "")?.into(),
            ConvertOp::Bitcast => builder.build_bit_cast(self.value(a)?, types.of(to), "")?,
            ConvertOp::PtrToInt => builder.build_ptr_to_int(self.ptr(a)?, types.i64, "")?.into(),
            ConvertOp::IntToPtr => builder.build_int_to_ptr(self.int(a)?, types.ptr, "")?.into(),
        })
    }

    /// Uses the CPU's own conversion. Its result for everything out of range is the minimum, so results that small are
    /// recomputed exactly. In loops LLVM's saturating conversion is better, since it can be vectorised.
    fn float_to_i64(&mut self, a: Value) -> Built<BasicValueEnum<'ctx>> {
        let types = self.m.types;
        let (lanes, name) = match self.body.type_of(a) {
            Type::F32 => (4, "llvm.x86.sse.cvttss2si64"),
            _ => (2, "llvm.x86.sse2.cvttsd2si64"),
        };
        let a = self.float(a)?;
        let vector = a.get_type().vec_type(lanes).get_poison();
        let vector = self.builder.build_insert_element(vector, a, types.i64.const_zero(), "")?;
        let quick = self.intrinsic(name, &[], &[vector.into()])?;
        let quick = quick.ok_or(BuildError::Missing("an intrinsic without a result"))?;
        // an immediate that a comparison can encode
        let small = types.i64.const_int(i64::from(i32::MIN) as u64, true);
        let doubtful = self.builder.build_int_compare(IntPredicate::SLE, quick.into_int_value(), small, "")?;

        let here = self.current()?;
        let exactly = self.m.context.append_basic_block(self.function, "");
        let join = self.m.context.append_basic_block(self.function, "");
        let branch = self.builder.build_conditional_branch(doubtful, exactly, join)?;
        self.m.facts.branch(branch, Hint::Unlikely);
        self.builder.position_at_end(exactly);
        let exact = self.saturated("llvm.fptosi.sat", Type::I64, a.into())?;
        self.builder.build_unconditional_branch(join)?;
        self.builder.position_at_end(join);
        let value = self.builder.build_phi(types.i64, "")?;
        value.add_incoming(&[(&quick, here), (&exact, exactly)]);
        Ok(value.as_basic_value())
    }

    fn saturated(&mut self, name: &'static str, to: Type, a: BasicValueEnum<'ctx>) -> Built<BasicValueEnum<'ctx>> {
        let value = self.intrinsic(name, &[self.m.types.of(to), a.get_type()], &[a])?;
        value.ok_or(BuildError::Missing("an intrinsic without a result"))
    }
}

fn alignment(flags: MemFlags, ty: Type) -> u32 {
    if flags.aligned { ty.bytes() } else { 1 }
}

/// Ordered predicates, so comparisons with a NaN are false; `Ne` is unordered.
fn float_predicate(cc: FloatCC) -> FloatPredicate {
    match cc {
        FloatCC::Eq => FloatPredicate::OEQ,
        FloatCC::Ne => FloatPredicate::UNE,
        FloatCC::Lt => FloatPredicate::OLT,
        FloatCC::Le => FloatPredicate::OLE,
        FloatCC::Gt => FloatPredicate::OGT,
        FloatCC::Ge => FloatPredicate::OGE,
    }
}
