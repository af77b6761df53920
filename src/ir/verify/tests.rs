//! Tests the rules with modules that no text has. `fixtures/ir/verify.txt` has the others.

#![allow(clippy::unwrap_used, clippy::panic)]

use super::*;
use crate::ir::{
    BinaryOp, Block, BlockCall, ConvertOp, DataRef, FloatCC, Function, FunctionBuilder, Hint, Inst, InstData, IntCC,
    MemFlags, Op, PointerFacts, SigRef, StackSlot, Terminator, UnaryOp, Value, ValueData, ValueDef,
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
    // a definition that is in no block
    assert_eq!(body_changed(|f| _ = f.blocks[Block::from_u32(0)].insts.remove(0)), [Rule::Dominance]);
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
}

#[test]
fn rule_17_results() {
    assert_eq!(
        body_changed(|f| _ = append(f, 1, Op::IntConst { ty: Type::I64, value: 1 }, Some(Type::I32))),
        [Rule::Results]
    );
    let store = Op::Store { value: value(0), ptr: value(1), offset: 0, flags: MemFlags::ALIGNED };
    assert_eq!(body_changed(|f| _ = append(f, 1, store, Some(Type::I64))), [Rule::Results]);
    let call = Op::Call(FuncRef::from_u32(0), vec![value(1)]);
    assert_eq!(body_changed(|f| _ = append(f, 1, call, Some(Type::I64))), [Rule::Results]);
}

#[test]
fn rule_21_facts() {
    for count in [1, 3] {
        let facts = vec![PointerFacts::NONE; count];
        assert_eq!(changed(|m, f| m.functions[f].param_facts = facts), [Rule::Facts]);
    }
}

#[test]
fn rules_22_and_23_unknown_functions() {
    let unknown = FuncRef::from_u32(9);
    let with_address = |m: &mut Module| {
        let data = &mut m.data[DataRef::from_u32(0)];
        *data = Data { align: 8, bytes: vec![0; 8], addresses: vec![(0, unknown)], ..data.clone() };
    };
    assert_eq!(changed(|m, _| with_address(m)), [Rule::Addresses]);
    assert_eq!(changed(|m, _| m.constructors.push(unknown)), [Rule::Constructors]);
    assert_eq!(changed(|m, _| m.destructors.push(unknown)), [Rule::Constructors]);
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
