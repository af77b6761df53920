//! Tests each rule with a module that breaks only that rule.

#![allow(clippy::unwrap_used, clippy::panic)]

use super::*;
use crate::ir::{
    AbiParam, BinaryOp, Block, BlockCall, BlockData, ConvertOp, DataKind, DataRef, FloatCC, Function, FunctionBuilder,
    Hint, Inst, InstData, IntCC, MemFlags, Op, PointerFacts, SigRef, StackSlot, StructLayout, Terminator, UnaryOp,
    Value, ValueData, ValueDef,
};

const ALL: [Type; 8] = [Type::Bool, Type::I8, Type::I16, Type::I32, Type::I64, Type::F32, Type::F64, Type::Ptr];

/// `f(v0: i64, v1: ptr) -> i64` with a diamond: block0 branches to block1 and block2(v4: i64), block1 to block2.
fn sample() -> (Module, FuncRef) {
    let mut module = Module::new();
    let ext = module.import("ext", FuncSig::new([Type::Ptr], Some(Type::I32)));
    let data = module.add_data("data", vec![1, 2, 3, 4], 4);
    let f = module.declare("f", FuncSig::new([Type::I64, Type::Ptr], Some(Type::I64)), Linkage::Export);
    let mut b = FunctionBuilder::new(&mut module, f);
    let slot = b.slot(16, 8);
    let sig = b.signature(FuncSig::new([Type::I64], None));
    let (n, p) = (b.param(0), b.param(1));
    let (neg, end) = (b.cold_block(), b.block());
    let result = b.block_param(end, Type::I64);
    let cond = b.icmp_imm(IntCC::SLt, n, 0);
    b.branch_with(cond, (neg, &[]), (end, &[n]), Hint::Unlikely);
    b.switch_to(neg);
    b.call(ext, &[p]);
    b.call_indirect(sig, p, &[n]);
    let address = b.stack_addr(slot);
    b.store(n, address, 8, MemFlags::ALIGNED);
    let from = b.data_addr(data, 4);
    let loaded = b.load(Type::I64, from, -4, MemFlags::UNALIGNED);
    b.jump(end, &[loaded]);
    b.switch_to(end);
    b.ret(Some(result));
    b.finish();
    (module, f)
}

fn rules(module: Module) -> Vec<Rule> {
    match verify(module) {
        Ok(_) => Vec::new(),
        Err(error) => {
            assert!(!error.to_string().is_empty());
            let mut rules: Vec<Rule> = error.problems().iter().map(|p| p.rule).collect();
            rules.dedup();
            rules
        }
    }
}

/// The rules that the sample breaks after a change.
fn changed(change: impl FnOnce(&mut Module, FuncRef)) -> Vec<Rule> {
    let (mut module, f) = sample();
    change(&mut module, f);
    rules(module)
}

fn body_changed(change: impl FnOnce(&mut Function)) -> Vec<Rule> {
    changed(|module, f| change(module.functions[f].body.as_mut().unwrap()))
}

/// The rules that `f(params) -> ret` breaks if its entry block ends by returning what `build` returns.
fn built(params: &[Type], ret: Option<Type>, build: impl FnOnce(&mut FunctionBuilder) -> Option<Value>) -> Vec<Rule> {
    let mut module = Module::new();
    let f = module.declare("f", FuncSig::new(params.iter().copied(), ret), Linkage::Export);
    let mut b = FunctionBuilder::new(&mut module, f);
    let value = build(&mut b);
    b.ret(value);
    b.finish();
    rules(module)
}

fn append(func: &mut Function, block: u32, op: Op, result: Option<Type>) -> Inst {
    let inst = func.insts.push(InstData { op, result: None });
    func.insts[inst].result = result.map(|ty| func.values.push(ValueData { ty, def: ValueDef::Result(inst) }));
    func.blocks[Block::from_u32(block)].insts.push(inst);
    inst
}

fn value(n: u32) -> Value {
    Value::from_u32(n)
}

fn jump(block: u32, args: &[Value]) -> Option<Terminator> {
    Some(Terminator::Jump(BlockCall { block: Block::from_u32(block), args: args.to_vec() }))
}

/// The sample's first instruction whose operation `pick` accepts.
fn find(func: &Function, pick: impl Fn(&Op) -> bool) -> Inst {
    func.insts.iter().find(|(_, data)| pick(&data.op)).unwrap().0
}

#[test]
fn the_sample_passes() {
    let (module, f) = sample();
    let verified = verify(module).unwrap();
    assert_eq!(verified.functions[f].name, "f");
    assert_eq!(verified.module().to_string(), verified.to_string());
    assert_eq!(verified.into_inner().data.len(), 1);
    assert!(rules(Module::new()).is_empty());
}

#[test]
fn errors_show_the_place_the_rule_and_the_listing() {
    let (mut module, f) = sample();
    let func = module.functions[f].body.as_mut().unwrap();
    let load = find(func, |op| matches!(op, Op::Load { .. }));
    func.insts[load].op = Op::Unary(UnaryOp::FNeg, value(0));
    let listing = module.display_function(f).to_string();
    let error = verify(module).unwrap_err();
    let problem = &error.problems()[0];
    assert_eq!((problem.rule, problem.function), (Rule::OperandTypes, Some(f)));
    assert_eq!(problem.place, ProblemLocation::Inst(Block::from_u32(1), load));
    let text = error.to_string();
    let expected = "the IR verifier found 1 problem:\n  function \"f\", block1, inst7, `v8 = fneg.i64 v0`: \
                    v0 is i64; rule 16 (operands are of the operation's types)";
    assert!(text.starts_with(expected), "{text}");
    assert!(text.contains(&listing));
    assert_eq!(format!("{error:?}"), text);
    assert_eq!(error.into_module().functions.len(), 2);
}

#[test]
fn rule_1_symbols() {
    assert_eq!(changed(|m, f| m.functions[f].name.clear()), [Rule::Symbols]);
    assert_eq!(changed(|m, f| m.functions[f].name.push('\0')), [Rule::Symbols]);
    assert_eq!(changed(|m, f| m.functions[f].name = "ext".into()), [Rule::Symbols]);
    assert_eq!(changed(|m, f| m.functions[f].name = "data".into()), [Rule::Symbols]);
    assert_eq!(changed(|m, _| m.data[DataRef::from_u32(0)].name.clear()), [Rule::Symbols]);
}

#[test]
fn rule_2_bodies() {
    assert_eq!(changed(|m, f| m.functions[f].body = None), [Rule::Bodies]);
    assert_eq!(changed(|m, f| m.functions[f].linkage = Linkage::Import), [Rule::Bodies]);
    assert_eq!(changed(|m, _| m.functions[FuncRef::from_u32(0)].linkage = Linkage::Local), [Rule::Bodies]);
}

#[test]
fn rules_3_and_4_signatures() {
    let import = |sig: FuncSig| {
        let mut module = Module::new();
        module.import("ext", sig);
        rules(module)
    };
    assert_eq!(import(FuncSig::new([Type::Bool], None)), [Rule::SignatureTypes]);
    assert_eq!(import(FuncSig::new([], Some(Type::Bool))), [Rule::SignatureTypes]);
    let aggregate = |ty| FuncSig { ret: Some(AbiParam::aggregate(ty)), ..FuncSig::default() };
    assert_eq!(import(aggregate(Type::I32)), []);
    assert_eq!(import(aggregate(Type::I16)), [Rule::SignatureTypes]);
    assert_eq!(
        built(&[], None, |b| {
            b.signature(FuncSig::new([Type::Bool], None));
            None
        }),
        [Rule::SignatureTypes]
    );
    let by_value = AbiParam::by_value(StructLayout::new(16, 8, [(0, Type::I64), (8, Type::F32)]).unwrap());
    let taking = |param| FuncSig { params: vec![param], ret: None };
    assert_eq!(import(taking(by_value)), []);
    assert_eq!(import(taking(AbiParam { ty: Type::I64, ..by_value })), [Rule::SignatureTypes]);
    assert_eq!(import(FuncSig { params: vec![], ret: Some(by_value) }), [Rule::SignatureTypes]);
    let mut module = Module::new();
    let defined = module.declare("taken", taking(by_value), Linkage::Local);
    let mut b = FunctionBuilder::new(&mut module, defined);
    b.ret(None);
    b.finish();
    assert_eq!(rules(module), [Rule::SignatureTypes]);
    for ty in ALL.into_iter().filter(|ty| *ty != Type::Bool) {
        let fine = matches!(ty, Type::I8 | Type::I16 | Type::I32);
        for param in [AbiParam::signed(ty), AbiParam::unsigned(ty)] {
            let expected: &[Rule] = if fine { &[] } else { &[Rule::Extensions] };
            assert_eq!(import(FuncSig { params: vec![param], ret: None }), expected, "{param}");
            assert_eq!(import(FuncSig { params: vec![], ret: Some(param) }), expected, "{param}");
            let sig = FuncSig { params: vec![param], ret: None };
            assert_eq!(
                built(&[], None, |b| {
                    b.signature(sig);
                    None
                }),
                expected,
                "{param}"
            );
        }
    }
}

#[test]
fn rule_5_alignment() {
    for align in [0, 3, 12, u32::MAX] {
        assert_eq!(changed(|m, _| m.data[DataRef::from_u32(0)].align = align), [Rule::Alignment]);
        assert_eq!(body_changed(|f| f.slots[StackSlot::from_u32(0)].align = align), [Rule::Alignment]);
    }
}

#[test]
fn rule_6_entry() {
    assert_eq!(changed(|m, f| m.functions[f].body = Some(Function::default())), [Rule::Entry]);
    let sig = FuncSig::new([Type::I64], Some(Type::I64));
    assert_eq!(changed(|m, f| m.functions[f].signature = sig), [Rule::Entry]);
    let sig = FuncSig::new([Type::Ptr, Type::I64], Some(Type::I64));
    assert_eq!(changed(|m, f| m.functions[f].signature = sig), [Rule::Entry]);
}

#[test]
fn rule_7_terminators() {
    assert_eq!(body_changed(|f| f.blocks[Block::from_u32(2)].terminator = None), [Rule::Terminators]);
    assert_eq!(body_changed(|f| _ = f.blocks.push(BlockData::default())), [Rule::Terminators]);
}

#[test]
fn rule_8_references() {
    // The maximum index is reserved by the entity types.
    for n in [99, u32::MAX - 1] {
        let expected = [Rule::References];
        let op = |op: Op, ty: Option<Type>| body_changed(|f| _ = append(f, 1, op, ty));
        assert_eq!(op(Op::Unary(UnaryOp::Neg, value(n)), Some(Type::I64)), expected);
        assert_eq!(op(Op::StackAddr(StackSlot::from_u32(n), 0), Some(Type::Ptr)), expected);
        assert_eq!(op(Op::DataAddr(DataRef::from_u32(n), 0), Some(Type::Ptr)), expected);
        assert_eq!(op(Op::Call(FuncRef::from_u32(n), vec![]), None), expected);
        assert_eq!(op(Op::CallIndirect(SigRef::from_u32(n), value(1), vec![]), None), expected);
        assert_eq!(body_changed(|f| f.blocks[Block::from_u32(0)].insts.push(Inst::from_u32(n))), expected);
        assert_eq!(body_changed(|f| f.blocks[Block::from_u32(1)].terminator = jump(n, &[])), expected);
        assert_eq!(body_changed(|f| f.blocks[Block::from_u32(1)].terminator = jump(2, &[value(n)])), expected);
        let ret = Some(Terminator::Return(Some(value(n))));
        assert_eq!(body_changed(|f| f.blocks[Block::from_u32(2)].terminator = ret), expected);
        assert_eq!(body_changed(|f| f.blocks[Block::from_u32(2)].params.push(value(n))), expected);
        let store = |f: &mut Function| {
            let store = append(f, 1, Op::BoolConst(true), None);
            f.insts[store].result = Some(value(n));
        };
        assert_eq!(body_changed(store), expected);
        let def = |def| body_changed(|f| _ = f.values.push(ValueData { ty: Type::I64, def }));
        assert_eq!(def(ValueDef::Result(Inst::from_u32(n))), [Rule::Definitions]);
        assert_eq!(def(ValueDef::Param(Block::from_u32(n), 0)), [Rule::Definitions]);
        assert_eq!(def(ValueDef::Param(Block::from_u32(2), n)), [Rule::Definitions]);
    }
}

#[test]
fn rule_9_placement() {
    let again = |from: u32, to: u32| {
        body_changed(|f| {
            let inst = f.blocks[Block::from_u32(from)].insts[0];
            f.blocks[Block::from_u32(to)].insts.push(inst);
        })
    };
    assert_eq!(again(0, 0), [Rule::Placement]);
    assert_eq!(again(0, 1), [Rule::Placement]);
}

#[test]
fn rule_10_definitions() {
    // Two parameters that are the same value.
    assert_eq!(
        changed(|m, f| {
            let func = m.functions[f].body.as_mut().unwrap();
            let twice = func.blocks[Block::from_u32(2)].params[0];
            func.blocks[Block::from_u32(2)].params.push(twice);
            for block in func.blocks.values_mut() {
                match block.terminator.as_mut().unwrap() {
                    Terminator::Jump(to) | Terminator::Branch { otherwise: to, .. } => to.args.push(to.args[0]),
                    Terminator::Return(_) => {}
                }
            }
        }),
        [Rule::Definitions]
    );
    // Two instructions with the same result.
    assert_eq!(
        body_changed(|f| {
            let inst = append(f, 1, Op::IntConst { ty: Type::I64, value: 1 }, None);
            f.insts[inst].result = Some(value(0));
        }),
        [Rule::Definitions]
    );
    // A value without a definition.
    let def = ValueDef::Param(Block::from_u32(0), 1);
    assert_eq!(body_changed(|f| _ = f.values.push(ValueData { ty: Type::I64, def })), [Rule::Definitions]);
}

#[test]
fn rule_11_dominance() {
    // A value of one arm, used at the end.
    assert_eq!(
        body_changed(|f| {
            let inst = append(f, 1, Op::IntConst { ty: Type::I64, value: 1 }, Some(Type::I64));
            f.blocks[Block::from_u32(2)].terminator = Some(Terminator::Return(f.insts[inst].result));
        }),
        [Rule::Dominance]
    );
    // Used before its definition in the same block, and then by its own definition.
    assert_eq!(body_changed(|f| f.blocks[Block::from_u32(0)].insts.reverse()), [Rule::Dominance]);
    assert_eq!(
        body_changed(|f| {
            let inst = append(f, 1, Op::Unary(UnaryOp::Neg, value(0)), Some(Type::I64));
            f.insts[inst].op = Op::Unary(UnaryOp::Neg, f.insts[inst].result.unwrap());
        }),
        [Rule::Dominance]
    );
    // A definition that is in no block.
    assert_eq!(body_changed(|f| _ = f.blocks[Block::from_u32(0)].insts.remove(0)), [Rule::Dominance]);
}

#[test]
fn unreachable_blocks_may_use_what_does_not_dominate_but_not_what_is_nowhere() {
    let unreachable = |args: &[Value]| {
        let mut args = args.to_vec();
        body_changed(|f| {
            let later = append(f, 1, Op::IntConst { ty: Type::I64, value: 1 }, Some(Type::I64));
            if args.is_empty() {
                args.push(f.insts[later].result.unwrap());
            }
            f.blocks.push(BlockData { terminator: jump(2, &args), ..BlockData::default() });
        })
    };
    assert!(unreachable(&[]).is_empty());
    assert_eq!(unreachable(&[value(99)]), [Rule::References]);
    assert_eq!(unreachable(&[value(1)]), [Rule::BranchArguments]);
    // A definition in an unreachable block dominates nothing that is reachable.
    assert_eq!(
        body_changed(|f| {
            f.blocks.push(BlockData { terminator: jump(2, &[value(0)]), ..BlockData::default() });
            let inst = append(f, 3, Op::IntConst { ty: Type::I64, value: 1 }, Some(Type::I64));
            f.blocks[Block::from_u32(2)].terminator = Some(Terminator::Return(f.insts[inst].result));
        }),
        [Rule::Dominance]
    );
}

#[test]
fn rules_12_and_13_branches() {
    let ends = |terminator| body_changed(|f| f.blocks[Block::from_u32(1)].terminator = terminator);
    assert_eq!(ends(jump(2, &[])), [Rule::BranchArguments]);
    assert_eq!(ends(jump(2, &[value(0), value(0)])), [Rule::BranchArguments]);
    assert_eq!(ends(jump(2, &[value(1)])), [Rule::BranchArguments]);
    assert_eq!(ends(jump(0, &[value(0), value(1)])), [Rule::EntryTarget]);
}

#[test]
fn rules_14_and_15_conditions_and_returns() {
    let ends = |terminator| body_changed(|f| f.blocks[Block::from_u32(1)].terminator = Some(terminator));
    let to = || BlockCall { block: Block::from_u32(2), args: vec![value(0)] };
    let branch = Terminator::Branch { cond: value(0), then: to(), otherwise: to(), hint: Hint::None };
    assert_eq!(ends(branch), [Rule::Conditions]);
    assert_eq!(
        built(&[Type::I8], Some(Type::I8), |b| {
            let v = b.param(0);
            Some(b.select(v, v, v))
        }),
        [Rule::Conditions]
    );
    assert_eq!(ends(Terminator::Return(None)), [Rule::Returns]);
    assert_eq!(ends(Terminator::Return(Some(value(1)))), [Rule::Returns]);
    assert_eq!(built(&[Type::I8], None, |b| Some(b.param(0))), [Rule::Returns]);
}

/// Whether an operation on values of the given types passes. Breaking a rule other than 16 is an error of the test.
fn accepts(types: &[Type], op: impl FnOnce(&mut FunctionBuilder, &[Value])) -> bool {
    let broken = built(&[], None, |b| {
        let values: Vec<Value> = types
            .iter()
            .map(|ty| match ty {
                Type::Bool => b.bconst(true),
                Type::F32 => b.f32(0.0),
                Type::F64 => b.f64(0.0),
                Type::Ptr => b.ptr_const(0),
                int => b.iconst(*int, 1),
            })
            .collect();
        op(b, &values);
        None
    });
    assert!(broken.is_empty() || broken == [Rule::OperandTypes], "{broken:?}");
    broken.is_empty()
}

#[test]
fn rule_16_operand_types() {
    let ints = [Type::I8, Type::I16, Type::I32, Type::I64];
    let floats = [Type::F32, Type::F64];
    for ty in ALL {
        let int = ints.contains(&ty);
        let float = floats.contains(&ty);
        let bits = int || ty == Type::Bool;
        assert_eq!(accepts(&[], |b, _| _ = b.iconst(ty, 0)), int);
        assert_eq!(accepts(&[ty], |b, v| _ = b.unary(UnaryOp::Neg, v[0])), int);
        assert_eq!(accepts(&[ty], |b, v| _ = b.unary(UnaryOp::Not, v[0])), bits);
        use UnaryOp::*;
        for op in [FNeg, FAbs, Sqrt, Floor, Ceil, Trunc, Nearest] {
            assert_eq!(accepts(&[ty], |b, v| _ = b.unary(op, v[0])), float);
        }
        use BinaryOp::*;
        for op in [Add, Sub, Mul, SDiv, UDiv, SRem, URem, Shl, LShr, AShr, SMin, SMax, UMin, UMax] {
            assert_eq!(accepts(&[ty, ty], |b, v| _ = b.binary(op, v[0], v[1])), int, "{op:?} {ty}");
        }
        for op in [SMulHi, UMulHi] {
            assert_eq!(accepts(&[ty, ty], |b, v| _ = b.binary(op, v[0], v[1])), ty == Type::I64);
        }
        for op in [And, Or, Xor] {
            assert_eq!(accepts(&[ty, ty], |b, v| _ = b.binary(op, v[0], v[1])), bits);
        }
        for op in [FAdd, FSub, FMul, FDiv, FMin, FMax] {
            assert_eq!(accepts(&[ty, ty], |b, v| _ = b.binary(op, v[0], v[1])), float);
        }
        for cc in [IntCC::Eq, IntCC::Ne] {
            assert_eq!(accepts(&[ty, ty], |b, v| _ = b.icmp(cc, v[0], v[1])), !float);
        }
        for cc in [IntCC::ULt, IntCC::ULe, IntCC::UGt, IntCC::UGe] {
            assert_eq!(accepts(&[ty, ty], |b, v| _ = b.icmp(cc, v[0], v[1])), int || ty == Type::Ptr);
        }
        for cc in [IntCC::SLt, IntCC::SLe, IntCC::SGt, IntCC::SGe] {
            assert_eq!(accepts(&[ty, ty], |b, v| _ = b.icmp(cc, v[0], v[1])), int);
        }
        assert_eq!(accepts(&[ty, ty], |b, v| _ = b.fcmp(FloatCC::Eq, v[0], v[1])), float);
        assert_eq!(accepts(&[ty], |b, v| _ = b.load(Type::I8, v[0], 0, MemFlags::ALIGNED)), ty == Type::Ptr);
        assert_eq!(accepts(&[Type::I8, ty], |b, v| b.store(v[0], v[1], 0, MemFlags::ALIGNED)), ty == Type::Ptr);
        for other in ALL {
            let pair = [ty, other];
            let same = ty == other;
            assert_eq!(accepts(&pair, |b, v| _ = b.binary(Add, v[0], v[1])), same && int);
            assert_eq!(accepts(&pair, |b, v| _ = b.icmp(IntCC::Eq, v[0], v[1])), same && !float);
            assert_eq!(accepts(&pair, |b, v| _ = b.fcmp(FloatCC::Lt, v[0], v[1])), same && float);
            assert_eq!(accepts(&[Type::Bool, ty, other], |b, v| _ = b.select(v[0], v[1], v[2])), same);
            let offset = pair == [Type::Ptr, Type::I64];
            assert_eq!(accepts(&pair, |b, v| _ = b.ptr_add(v[0], v[1])), offset);
            assert_eq!(accepts(&pair, |b, v| _ = b.element(v[0], v[1], Type::I8)), offset);
            let convert = |op| accepts(&[ty], |b, v| _ = b.convert(op, other, v[0]));
            let word = |ty| ty == Type::I32 || ty == Type::I64;
            let both_int = int && other.is_int();
            assert_eq!(convert(ConvertOp::SExt), both_int && ty.bits() < other.bits());
            assert_eq!(convert(ConvertOp::ZExt), bits && other.is_int() && ty.bits() < other.bits());
            assert_eq!(convert(ConvertOp::Truncate), both_int && ty.bits() > other.bits());
            assert_eq!(convert(ConvertOp::SIntToFloat), word(ty) && other.is_float());
            assert_eq!(convert(ConvertOp::UIntToFloat), word(ty) && other.is_float());
            assert_eq!(convert(ConvertOp::FloatToSInt), float && word(other));
            assert_eq!(convert(ConvertOp::FloatToUInt), float && word(other));
            assert_eq!(convert(ConvertOp::FPromote), pair == [Type::F32, Type::F64]);
            assert_eq!(convert(ConvertOp::FDemote), pair == [Type::F64, Type::F32]);
            let cast = ty.bytes() == other.bytes() && ((word(ty) && other.is_float()) || (float && word(other)));
            assert_eq!(convert(ConvertOp::Bitcast), cast);
            assert_eq!(convert(ConvertOp::PtrToInt), pair == [Type::Ptr, Type::I64]);
            assert_eq!(convert(ConvertOp::IntToPtr), pair == [Type::I64, Type::Ptr]);
        }
        let float_const = |f: &mut Function| _ = append(f, 1, Op::FloatConst { ty, bits: 0 }, Some(ty));
        assert_eq!(body_changed(float_const).is_empty(), float);
    }
    // The callee of an indirect call.
    assert_eq!(
        built(&[Type::I64], None, |b| {
            let sig = b.signature(FuncSig::default());
            let callee = b.param(0);
            b.call_indirect(sig, callee, &[])
        }),
        [Rule::OperandTypes]
    );
}

#[test]
fn rule_17_results() {
    let one = || Op::IntConst { ty: Type::I64, value: 1 };
    assert_eq!(body_changed(|f| _ = append(f, 1, one(), None)), [Rule::Results]);
    assert_eq!(body_changed(|f| _ = append(f, 1, one(), Some(Type::I32))), [Rule::Results]);
    let store = Op::Store { value: value(0), ptr: value(1), offset: 0, flags: MemFlags::ALIGNED };
    assert_eq!(body_changed(|f| _ = append(f, 1, store, Some(Type::I64))), [Rule::Results]);
    let call = || Op::Call(FuncRef::from_u32(0), vec![value(1)]);
    assert_eq!(body_changed(|f| _ = append(f, 1, call(), None)), [Rule::Results]);
    assert_eq!(body_changed(|f| _ = append(f, 1, call(), Some(Type::I64))), [Rule::Results]);
}

#[test]
fn rule_18_memory() {
    let load = |b: &mut FunctionBuilder| {
        let p = b.param(0);
        b.load(Type::Bool, p, 0, MemFlags::UNALIGNED);
    };
    assert_eq!(
        built(&[Type::Ptr], None, |b| {
            load(b);
            None
        }),
        [Rule::Memory]
    );
    assert_eq!(
        built(&[Type::Ptr], None, |b| {
            let (p, v) = (b.param(0), b.bconst(true));
            b.store(v, p, 0, MemFlags::UNALIGNED);
            None
        }),
        [Rule::Memory]
    );
    assert_eq!(
        built(&[Type::Ptr], None, |b| {
            let p = b.param(0);
            b.store(p, p, 0, MemFlags::READONLY);
            None
        }),
        [Rule::Memory]
    );
}

#[test]
fn rule_19_calls() {
    for args in [vec![], vec![value(0)], vec![value(1), value(1)]] {
        let call = Op::Call(FuncRef::from_u32(0), args);
        assert_eq!(body_changed(|f| _ = append(f, 1, call, Some(Type::I32))), [Rule::Calls]);
    }
    for args in [vec![], vec![value(1)], vec![value(0), value(0)]] {
        let call = Op::CallIndirect(SigRef::from_u32(0), value(1), args);
        assert_eq!(body_changed(|f| _ = append(f, 1, call, None)), [Rule::Calls]);
    }
}

#[test]
fn rule_20_data_offsets() {
    let at = |offset| {
        let op = Op::DataAddr(DataRef::from_u32(0), offset);
        body_changed(|f| _ = append(f, 1, op, Some(Type::Ptr)))
    };
    assert!(at(4).is_empty());
    assert_eq!(at(5), [Rule::DataOffsets]);
    assert_eq!(at(u32::MAX), [Rule::DataOffsets]);
}

#[test]
fn rule_21_facts() {
    let with = |facts: &[PointerFacts]| changed(|m, f| m.functions[f].param_facts = facts.to_vec());
    let some = PointerFacts { nonnull: true, noalias: true, readonly: true, dereferenceable: 8, align: 16 };
    assert_eq!(with(&[PointerFacts::NONE, some]), []);
    assert_eq!(with(&[some, PointerFacts::NONE]), [Rule::Facts]);
    assert_eq!(with(&[PointerFacts::NONE]), [Rule::Facts]);
    assert_eq!(with(&[PointerFacts::NONE; 3]), [Rule::Facts]);
    for align in [0, 3] {
        assert_eq!(with(&[PointerFacts::NONE, PointerFacts { align, ..some }]), [Rule::Facts]);
    }
}

#[test]
fn rule_22_addresses() {
    let data = DataRef::from_u32(0);
    let with = |align, len: usize, offset, func: FuncRef| {
        changed(|m, _| {
            m.data[data] = Data { align, bytes: vec![0; len], ..m.data[data].clone() };
            m.data[data].addresses = vec![(offset, func)];
        })
    };
    let (import, f) = (FuncRef::from_u32(0), FuncRef::from_u32(1));
    for func in [import, f] {
        assert_eq!(with(8, 24, 16, func), []);
    }
    for (align, len, offset, func) in
        [(4, 24, 16, f), (8, 23, 16, f), (8, 24, 12, f), (8, 24, u32::MAX, f), (8, 24, 8, FuncRef::from_u32(9))]
    {
        assert_eq!(with(align, len, offset, func), [Rule::Addresses]);
    }
}

#[test]
fn rule_23_constructors() {
    let with = |func: FuncRef| changed(|m, _| m.constructors = vec![func]);
    let with_destructor = |func: FuncRef| changed(|m, _| m.destructors = vec![func]);
    for func in [0, 1, 9].map(FuncRef::from_u32) {
        assert_eq!(with(func), [Rule::Constructors]);
        assert_eq!(with_destructor(func), [Rule::Constructors]);
    }
    let good = changed(|m, _| {
        let start = m.declare("start", FuncSig::default(), Linkage::Local);
        let mut b = FunctionBuilder::new(m, start);
        b.ret(None);
        b.finish();
        m.constructors.push(start);
        m.data[DataRef::from_u32(0)].kind = DataKind::Variable;
        assert_eq!(m.only_in_objects().unwrap(), "the constructor `start`");
        let listing = m.to_string();
        assert!(listing.contains("constructor @start\n") && listing.contains("data0 variable \"data\""), "{listing}");
    });
    assert_eq!(good, []);
}

#[test]
fn rule_24_state() {
    let with = |bytes: Vec<u8>| {
        changed(|m, _| {
            let state = m.add_state("state", bytes.len(), 8);
            m.data[state].bytes = bytes;
        })
    };
    assert_eq!(with(vec![0; 8]), []);
    assert_eq!(with(vec![0, 0, 1, 0]), [Rule::State]);
}
