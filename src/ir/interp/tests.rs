//! The meaning of every operation at its edges, control flow, memory and calls.

#![allow(clippy::unwrap_used, clippy::panic)]

use super::*;
use crate::ir::{BinaryOp, ConvertOp, FloatCC, FunctionBuilder, Hint, IntCC, Linkage, MemFlags, UnaryOp, verify};

/// Functions by name; the address is the place in the list, plus 1.
#[derive(Default)]
struct Table<'f>(Vec<(&'static str, Native<'f>)>);

type Native<'f> = Box<dyn FnMut(&[Datum]) -> Result<Option<Datum>, String> + 'f>;

impl Host for Table<'_> {
    fn resolve(&mut self, name: &str) -> Option<u64> {
        self.0.iter().position(|(known, _)| *known == name).map(|i| i as u64 + 1)
    }

    unsafe fn call(&mut self, address: u64, _: &FuncSig, args: &[Datum]) -> Result<Option<Datum>, String> {
        (self.0[address as usize - 1].1)(args)
    }
}

/// A module with `f(params) -> ret`, whose body ends with a return of what `build` gives.
fn module(params: &[Type], ret: Option<Type>, build: impl FnOnce(&mut FunctionBuilder) -> Option<Value>) -> Module {
    let mut module = Module::new();
    let f = module.declare("f", FuncSig::new(params.iter().copied(), ret), Linkage::Export);
    let mut b = FunctionBuilder::new(&mut module, f);
    let value = build(&mut b);
    b.ret(value);
    b.finish();
    module
}

fn run_with(module: Module, host: Table<'_>, args: &[Datum]) -> Result<Option<Datum>, InterpError> {
    let module = verify(module).unwrap();
    let mut interpreter = Interpreter::new(&module, host)?.with_fuel(1_000_000);
    // SAFETY: the tests' functions touch their own memory, and the host is not native code.
    unsafe { interpreter.run("f", args) }
}

fn run(module: Module, args: &[Datum]) -> Result<Option<Datum>, InterpError> {
    run_with(module, Table::default(), args)
}

/// The result of one operation on arguments.
fn eval(
    args: &[Datum],
    ret: Type,
    op: impl FnOnce(&mut FunctionBuilder, &[Value]) -> Value,
) -> Result<Datum, InterpError> {
    let types: Vec<Type> = args.iter().map(|arg| arg.ty()).collect();
    let module = module(&types, Some(ret), |b| {
        let params: Vec<Value> = (0..args.len()).map(|i| b.param(i)).collect();
        Some(op(b, &params))
    });
    run(module, args).map(Option::unwrap)
}

fn binary(op: BinaryOp, a: Datum, b: Datum) -> Result<Datum, InterpError> {
    eval(&[a, b], a.ty(), |f, v| f.binary(op, v[0], v[1]))
}

fn unary(op: UnaryOp, a: Datum) -> Datum {
    eval(&[a], a.ty(), |f, v| f.unary(op, v[0])).unwrap()
}

fn convert(op: ConvertOp, a: Datum, to: Type) -> Datum {
    eval(&[a], to, |f, v| f.convert(op, to, v[0])).unwrap()
}

fn trap(result: Result<Datum, InterpError>) -> TrapReason {
    match result {
        Err(InterpError::Trap { reason, .. }) => reason,
        other => panic!("{other:?}"),
    }
}

/// Bits, since `==` on floats tells neither zeros nor NaNs apart.
fn assert_bits(found: Datum, expected: Datum) {
    assert_eq!((found.ty(), found.bits()), (expected.ty(), expected.bits()), "{found:?}, not {expected:?}");
}

/// Every operation on every pair of edge values, against Rust's own arithmetic of that width.
macro_rules! integer_test {
    ($name:ident, $datum:ident, $unsigned:ty, $signed:ty) => {
        #[test]
        fn $name() {
            type U = $unsigned;
            type S = $signed;
            let edges: [U; 10] = [0, 1, 2, 3, 7, U::BITS as U, S::MAX as U, S::MIN as U, (-7 as S) as U, U::MAX];
            for a in edges {
                assert_eq!(unary(UnaryOp::Neg, Datum::$datum(a)), Datum::$datum(a.wrapping_neg()));
                assert_eq!(unary(UnaryOp::Not, Datum::$datum(a)), Datum::$datum(!a));
                for b in edges {
                    let (sa, sb) = (a as S, b as S);
                    let op = |op| binary(op, Datum::$datum(a), Datum::$datum(b));
                    let wrapping = [
                        (BinaryOp::Add, a.wrapping_add(b)),
                        (BinaryOp::Sub, a.wrapping_sub(b)),
                        (BinaryOp::Mul, a.wrapping_mul(b)),
                        (BinaryOp::And, a & b),
                        (BinaryOp::Or, a | b),
                        (BinaryOp::Xor, a ^ b),
                        (BinaryOp::Shl, a << (b % U::BITS as U)),
                        (BinaryOp::LShr, a >> (b % U::BITS as U)),
                        (BinaryOp::AShr, (sa >> (b % U::BITS as U)) as U),
                        (BinaryOp::SMin, sa.min(sb) as U),
                        (BinaryOp::SMax, sa.max(sb) as U),
                        (BinaryOp::UMin, a.min(b)),
                        (BinaryOp::UMax, a.max(b)),
                    ];
                    for (which, expected) in wrapping {
                        assert_eq!(op(which), Ok(Datum::$datum(expected)), "{which:?} {a} {b}");
                    }
                    let division = [
                        (BinaryOp::SDiv, sa.checked_div(sb).map(|v| v as U)),
                        (BinaryOp::SRem, sa.checked_rem(sb).map(|v| v as U)),
                        (BinaryOp::UDiv, a.checked_div(b)),
                        (BinaryOp::URem, a.checked_rem(b)),
                    ];
                    for (which, expected) in division {
                        match expected {
                            Some(expected) => assert_eq!(op(which), Ok(Datum::$datum(expected)), "{which:?} {a} {b}"),
                            None if b == 0 => assert_eq!(trap(op(which)), TrapReason::DivisionByZero),
                            None => assert_eq!(trap(op(which)), TrapReason::DivisionOverflow),
                        }
                    }
                    let comparisons = [
                        (IntCC::Eq, a == b),
                        (IntCC::Ne, a != b),
                        (IntCC::SLt, sa < sb),
                        (IntCC::SLe, sa <= sb),
                        (IntCC::SGt, sa > sb),
                        (IntCC::SGe, sa >= sb),
                        (IntCC::ULt, a < b),
                        (IntCC::ULe, a <= b),
                        (IntCC::UGt, a > b),
                        (IntCC::UGe, a >= b),
                    ];
                    for (cc, expected) in comparisons {
                        let found = eval(&[Datum::$datum(a), Datum::$datum(b)], Type::I8, |f, v| {
                            let holds = f.icmp(cc, v[0], v[1]);
                            f.convert(ConvertOp::ZExt, Type::I8, holds)
                        });
                        assert_eq!(found, Ok(Datum::I8(expected.into())), "{cc:?} {a} {b}");
                    }
                }
                // Conversions between integers.
                for to in [Type::I8, Type::I16, Type::I32, Type::I64] {
                    let datum = Datum::$datum(a);
                    if to.bits() > U::BITS {
                        let signed = Datum::from_bits(to, a as S as i64 as u64);
                        assert_eq!(convert(ConvertOp::SExt, datum, to), signed);
                        assert_eq!(convert(ConvertOp::ZExt, datum, to), Datum::from_bits(to, u64::from(a)));
                    } else if to.bits() < U::BITS {
                        assert_eq!(convert(ConvertOp::Truncate, datum, to), Datum::from_bits(to, u64::from(a)));
                    }
                }
                // A constant is the low bits, however the rest is filled.
                for filled in [a as u64, a as S as i64 as u64, a as u64 | !u64::from(U::MAX)] {
                    let constant = eval(&[], Type::$datum, |f, _| f.iconst(Type::$datum, filled as i64));
                    assert_eq!(constant, Ok(Datum::$datum(a)));
                }
            }
        }
    };
}

integer_test!(integers_of_8_bits, I8, u8, i8);
integer_test!(integers_of_16_bits, I16, u16, i16);
integer_test!(integers_of_32_bits, I32, u32, i32);
integer_test!(integers_of_64_bits, I64, u64, i64);

#[test]
fn upper_halves_of_products() {
    for a in [0, 1, 2, u64::MAX, i64::MAX as u64, i64::MIN as u64, 0x1234_5678_9abc_def0] {
        for b in [0, 1, 3, u64::MAX, i64::MAX as u64, i64::MIN as u64, 0xfedc_ba98_7654_3210] {
            let unsigned = (u128::from(a) * u128::from(b)) >> 64;
            let signed = (i128::from(a as i64) * i128::from(b as i64)) >> 64;
            assert_eq!(binary(BinaryOp::UMulHi, Datum::I64(a), Datum::I64(b)), Ok(Datum::I64(unsigned as u64)));
            assert_eq!(binary(BinaryOp::SMulHi, Datum::I64(a), Datum::I64(b)), Ok(Datum::I64(signed as u64)));
        }
    }
    let least = Datum::I64(i64::MIN as u64);
    assert_eq!(binary(BinaryOp::SMulHi, least, least), Ok(Datum::I64(1 << 62)));
    assert_eq!(binary(BinaryOp::UMulHi, Datum::I64(u64::MAX), Datum::I64(u64::MAX)), Ok(Datum::I64(u64::MAX - 1)));
}

#[test]
fn truth_values() {
    // Both as arguments of the operation and as what a mask of more than one bit would spoil.
    for (a, b) in [(false, false), (false, true), (true, false), (true, true)] {
        let found = |op: &dyn Fn(&mut FunctionBuilder, Value, Value) -> Value| {
            let result = eval(&[], Type::I32, |f, _| {
                let (a, b) = (f.bconst(a), f.bconst(b));
                let value = op(f, a, b);
                f.convert(ConvertOp::ZExt, Type::I32, value)
            });
            assert!(matches!(result, Ok(Datum::I32(0 | 1))));
            result == Ok(Datum::I32(1))
        };
        assert_eq!(found(&|f, a, b| f.binary(BinaryOp::And, a, b)), a & b);
        assert_eq!(found(&|f, a, b| f.binary(BinaryOp::Or, a, b)), a | b);
        assert_eq!(found(&|f, a, b| f.binary(BinaryOp::Xor, a, b)), a ^ b);
        assert_eq!(found(&|f, a, _| f.unary(UnaryOp::Not, a)), !a);
        assert_eq!(found(&|f, a, b| f.icmp(IntCC::Eq, a, b)), a == b);
        assert_eq!(found(&|f, a, b| f.icmp(IntCC::Ne, a, b)), a != b);
        assert_eq!(found(&|f, a, b| f.select(a, b, a)), a & b);
    }
}

#[test]
fn float_arithmetic() {
    let d = Datum::F64;
    assert_eq!(binary(BinaryOp::FAdd, d(0.1), d(0.2)), Ok(d(0.1 + 0.2)));
    assert_eq!(binary(BinaryOp::FSub, d(1.0), d(0.9)), Ok(d(1.0 - 0.9)));
    assert_eq!(binary(BinaryOp::FMul, d(1e200), d(1e200)), Ok(d(f64::INFINITY)));
    assert_eq!(binary(BinaryOp::FDiv, d(-1.0), d(0.0)), Ok(d(f64::NEG_INFINITY)));
    // In single precision throughout: in double the sum would be exact.
    assert_eq!(binary(BinaryOp::FAdd, Datum::F32(16_777_216.0), Datum::F32(1.0)), Ok(Datum::F32(16_777_216.0)));
    assert_eq!(binary(BinaryOp::FDiv, Datum::F32(1.0), Datum::F32(3.0)), Ok(Datum::F32(1.0 / 3.0)));
    assert_eq!(binary(BinaryOp::FMul, Datum::F32(1e-30), Datum::F32(1e-30)), Ok(Datum::F32(0.0)));
    assert!(matches!(binary(BinaryOp::FSub, d(f64::INFINITY), d(f64::INFINITY)), Ok(Datum::F64(v)) if v.is_nan()));

    assert_bits(unary(UnaryOp::Sqrt, d(2.0)), d(std::f64::consts::SQRT_2));
    assert_bits(unary(UnaryOp::Sqrt, Datum::F32(-0.0)), Datum::F32(-0.0));
    let rounded = [
        // Value, floor, ceil, trunc, nearest.
        (0.5, 0.0, 1.0, 0.0, 0.0),
        (1.5, 1.0, 2.0, 1.0, 2.0),
        (2.5, 2.0, 3.0, 2.0, 2.0),
        (-0.5, -1.0, -0.0, -0.0, -0.0),
        (-1.7, -2.0, -1.0, -1.0, -2.0),
        (-0.0, -0.0, -0.0, -0.0, -0.0),
        (8_388_609.0, 8_388_609.0, 8_388_609.0, 8_388_609.0, 8_388_609.0),
        (f32::INFINITY, f32::INFINITY, f32::INFINITY, f32::INFINITY, f32::INFINITY),
    ];
    for (value, floor, ceil, trunc, nearest) in rounded {
        let expected =
            [(UnaryOp::Floor, floor), (UnaryOp::Ceil, ceil), (UnaryOp::Trunc, trunc), (UnaryOp::Nearest, nearest)];
        for (op, expected) in expected {
            assert_bits(unary(op, Datum::F32(value)), Datum::F32(expected));
            assert_bits(unary(op, d(value.into())), d(expected.into()));
        }
    }
    // The sign is flipped and cleared on anything, and nothing else changes.
    for bits in [0, 1, 0x8000_0000, 0x7f80_0000, 0xff80_0001, 0x7fc0_1234] {
        let value = Datum::from_bits(Type::F32, bits);
        assert_eq!(unary(UnaryOp::FNeg, value).bits(), bits ^ 0x8000_0000);
        assert_eq!(unary(UnaryOp::FAbs, value).bits(), bits & 0x7fff_ffff);
        let value = Datum::from_bits(Type::F64, bits << 32);
        assert_eq!(unary(UnaryOp::FNeg, value).bits(), bits << 32 ^ 1 << 63);
        assert_eq!(unary(UnaryOp::FAbs, value).bits(), bits << 32 & !(1 << 63));
    }
}

#[test]
fn minimum_and_maximum() {
    let infinity = f64::INFINITY;
    let cases = [
        (1.0, 2.0, 1.0, 2.0),
        (-1.0, 1.0, -1.0, 1.0),
        (0.0, -0.0, -0.0, 0.0),
        (-0.0, -0.0, -0.0, -0.0),
        (0.0, 0.0, 0.0, 0.0),
        (-infinity, infinity, -infinity, infinity),
        (3.0, 3.0, 3.0, 3.0),
    ];
    for (a, b, min, max) in cases {
        for (a, b) in [(a, b), (b, a)] {
            assert_bits(binary(BinaryOp::FMin, Datum::F64(a), Datum::F64(b)).unwrap(), Datum::F64(min));
            assert_bits(binary(BinaryOp::FMax, Datum::F64(a), Datum::F64(b)).unwrap(), Datum::F64(max));
            let (a, b) = (Datum::F32(a as f32), Datum::F32(b as f32));
            assert_bits(binary(BinaryOp::FMin, a, b).unwrap(), Datum::F32(min as f32));
            assert_bits(binary(BinaryOp::FMax, a, b).unwrap(), Datum::F32(max as f32));
        }
    }
    for op in [BinaryOp::FMin, BinaryOp::FMax] {
        for (a, b) in [(f64::NAN, 1.0), (1.0, f64::NAN), (f64::NAN, f64::NAN), (-infinity, f64::NAN)] {
            assert!(matches!(binary(op, Datum::F64(a), Datum::F64(b)), Ok(Datum::F64(v)) if v.is_nan()));
            let (a, b) = (Datum::F32(a as f32), Datum::F32(b as f32));
            assert!(matches!(binary(op, a, b), Ok(Datum::F32(v)) if v.is_nan()));
        }
    }
}

#[test]
fn float_comparisons() {
    let values = [f64::NEG_INFINITY, -1.0, -0.0, 0.0, 0.5, f64::INFINITY, f64::NAN];
    for a in values {
        for b in values {
            let expected = [
                (FloatCC::Eq, a == b),
                (FloatCC::Ne, a != b),
                (FloatCC::Lt, a < b),
                (FloatCC::Le, a <= b),
                (FloatCC::Gt, a > b),
                (FloatCC::Ge, a >= b),
            ];
            for (cc, expected) in expected {
                let pairs = [[Datum::F64(a), Datum::F64(b)], [Datum::F32(a as f32), Datum::F32(b as f32)]];
                for args in pairs {
                    let found = eval(&args, Type::I8, |f, v| {
                        let holds = f.fcmp(cc, v[0], v[1]);
                        f.convert(ConvertOp::ZExt, Type::I8, holds)
                    });
                    assert_eq!(found, Ok(Datum::I8(expected.into())), "{cc:?} {a} {b}");
                }
            }
        }
    }
}

#[test]
fn conversions_of_floats() {
    use ConvertOp::*;
    for v in [0.0, -0.0, 0.9, -0.9, 1.5, -1.5, 2e9, 3e9, -3e9, 5e9, 1e19, -1e19, 1e30, f64::NAN, f64::INFINITY] {
        assert_eq!(convert(FloatToSInt, Datum::F64(v), Type::I32), Datum::I32(v as i32 as u32), "{v}");
        assert_eq!(convert(FloatToSInt, Datum::F64(v), Type::I64), Datum::I64(v as i64 as u64), "{v}");
        assert_eq!(convert(FloatToUInt, Datum::F64(v), Type::I32), Datum::I32(v as u32), "{v}");
        assert_eq!(convert(FloatToUInt, Datum::F64(v), Type::I64), Datum::I64(v as u64), "{v}");
        let s = v as f32;
        assert_eq!(convert(FloatToSInt, Datum::F32(s), Type::I32), Datum::I32(s as i32 as u32), "{s}");
        assert_eq!(convert(FloatToSInt, Datum::F32(s), Type::I64), Datum::I64(s as i64 as u64), "{s}");
        assert_eq!(convert(FloatToUInt, Datum::F32(s), Type::I32), Datum::I32(s as u32), "{s}");
        assert_eq!(convert(FloatToUInt, Datum::F32(s), Type::I64), Datum::I64(s as u64), "{s}");
    }
    // A few of those spelt out.
    assert_eq!(convert(FloatToSInt, Datum::F64(f64::NAN), Type::I64), Datum::I64(0));
    assert_eq!(convert(FloatToSInt, Datum::F64(-1e30), Type::I32), Datum::I32(0x8000_0000));
    assert_eq!(convert(FloatToUInt, Datum::F64(-1.0), Type::I32), Datum::I32(0));
    assert_eq!(convert(FloatToUInt, Datum::F32(f32::INFINITY), Type::I64), Datum::I64(u64::MAX));

    for v in [0, 1, 16_777_217, i64::MAX as u64, i64::MIN as u64, u64::MAX, 0x0020_0000_4000_0001] {
        let (word, half) = (Datum::I64(v), Datum::I32(v as u32));
        assert_eq!(convert(SIntToFloat, word, Type::F32), Datum::F32(v as i64 as f32));
        assert_eq!(convert(SIntToFloat, word, Type::F64), Datum::F64(v as i64 as f64));
        assert_eq!(convert(UIntToFloat, word, Type::F32), Datum::F32(v as f32));
        assert_eq!(convert(UIntToFloat, word, Type::F64), Datum::F64(v as f64));
        assert_eq!(convert(SIntToFloat, half, Type::F32), Datum::F32(v as i32 as f32));
        assert_eq!(convert(SIntToFloat, half, Type::F64), Datum::F64(f64::from(v as i32)));
        assert_eq!(convert(UIntToFloat, half, Type::F32), Datum::F32(v as u32 as f32));
        assert_eq!(convert(UIntToFloat, half, Type::F64), Datum::F64(f64::from(v as u32)));
    }
    assert_eq!(convert(FPromote, Datum::F32(0.1), Type::F64), Datum::F64(f64::from(0.1f32)));
    assert_eq!(convert(FDemote, Datum::F64(0.1), Type::F32), Datum::F32(0.1));
    assert_eq!(convert(FDemote, Datum::F64(1e300), Type::F32), Datum::F32(f32::INFINITY));
    // Halfway between two neighbours: to the even one.
    assert_eq!(convert(FDemote, Datum::F64(16_777_217.0), Type::F32), Datum::F32(16_777_216.0));
    assert_eq!(convert(Bitcast, Datum::F32(1.0), Type::I32), Datum::I32(0x3f80_0000));
    assert_eq!(convert(Bitcast, Datum::I32(0x3f80_0000), Type::F32), Datum::F32(1.0));
    assert_eq!(convert(Bitcast, Datum::F64(-0.0), Type::I64), Datum::I64(1 << 63));
    assert_eq!(convert(Bitcast, Datum::I64(1 << 63), Type::F64).bits(), 1 << 63);
    assert_eq!(convert(PtrToInt, Datum::Ptr(u64::MAX), Type::I64), Datum::I64(u64::MAX));
    assert_eq!(convert(IntToPtr, Datum::I64(42), Type::Ptr), Datum::Ptr(42));
    // The high half of a single's bits is not part of it.
    let single = eval(&[], Type::F32, |f, _| f.f32(-1.0));
    assert_eq!(single.unwrap().bits(), 0xbf80_0000);
}

#[test]
fn addresses_wrap() {
    let add = |p, n: i64| eval(&[Datum::Ptr(p), Datum::I64(n as u64)], Type::Ptr, |f, v| f.ptr_add(v[0], v[1]));
    assert_eq!(add(100, -1), Ok(Datum::Ptr(99)));
    assert_eq!(add(u64::MAX, 2), Ok(Datum::Ptr(1)));
    for (ty, size) in [(Type::Bool, 1), (Type::I8, 1), (Type::I16, 2), (Type::F32, 4), (Type::Ptr, 8)] {
        let element =
            |i: i64| eval(&[Datum::Ptr(1000), Datum::I64(i as u64)], Type::Ptr, |f, v| f.element(v[0], v[1], ty));
        assert_eq!(element(3), Ok(Datum::Ptr(1000 + 3 * size)));
        assert_eq!(element(-3), Ok(Datum::Ptr(1000 - 3 * size)));
    }
    let compare = |a, b| {
        eval(&[Datum::Ptr(a), Datum::Ptr(b)], Type::I8, |f, v| {
            let less = f.icmp(IntCC::ULt, v[0], v[1]);
            f.convert(ConvertOp::ZExt, Type::I8, less)
        })
    };
    assert_eq!(compare(1, 1 << 63), Ok(Datum::I8(1)));
}

#[test]
fn loads_and_stores_of_every_type() {
    for (ty, bits) in [
        (Type::I8, 0xab),
        (Type::I16, 0xabcd),
        (Type::I32, 0x89ab_cdef),
        (Type::I64, 0x0123_4567_89ab_cdef),
        (Type::F32, 0x7f80_0001),
        (Type::F64, 0x7ff0_0000_0000_0001),
        (Type::Ptr, u64::MAX),
    ] {
        // A signalling NaN stays one. One byte off, and from behind with a negative offset.
        let mut memory = [0x11u8; 24];
        let value = Datum::from_bits(ty, bits);
        let address = memory.as_mut_ptr().expose_provenance() as u64;
        let copy = module(&[Type::Ptr, ty], Some(ty), |b| {
            let (p, v) = (b.param(0), b.param(1));
            b.store(v, p, 1, MemFlags::UNALIGNED);
            let end = b.ptr_add_imm(p, 24);
            Some(b.load(ty, end, -23, MemFlags::UNALIGNED))
        });
        assert_bits(run(copy, &[Datum::Ptr(address), value]).unwrap().unwrap(), value);
        let size = ty.bytes() as usize;
        assert_eq!(memory[1..=size], bits.to_le_bytes()[..size]);
        assert!(memory[0] == 0x11 && memory[size + 1..].iter().all(|byte| *byte == 0x11));
    }
}

#[test]
fn bad_accesses_are_reported() {
    let load = |address: u64, offset, flags| {
        eval(&[Datum::Ptr(address)], Type::I32, |f, v| f.load(Type::I32, v[0], offset, flags))
    };
    assert_eq!(trap(load(0, 8, MemFlags::ALIGNED)), TrapReason::NullAccess(8));
    assert_eq!(trap(load(8, -8, MemFlags::ALIGNED)), TrapReason::NullAccess(0));
    let memory = [0u64; 2];
    let address = memory.as_ptr().expose_provenance() as u64;
    assert_eq!(load(address, 2, MemFlags::UNALIGNED), Ok(Datum::I32(0)));
    assert_eq!(trap(load(address, 2, MemFlags::READONLY)), TrapReason::Misaligned(address + 2));
    let store = module(&[Type::Ptr], None, |b| {
        b.store(b.param(0), b.param(0), 0, MemFlags::ALIGNED);
        None
    });
    let error = run(store, &[Datum::Ptr(16)]).unwrap_err();
    assert_eq!(error.to_string(), "access through null at 0x10, in f, block0, inst0, `store.ptr aligned v0, v0`");
}

#[test]
fn loops_carry_values_in_parameters() {
    // The sum of 0..n.
    let sum = module(&[Type::I64], Some(Type::I64), |b| {
        let (head, body, end) = (b.block(), b.block(), b.block());
        let (i, total) = (b.block_param(head, Type::I64), b.block_param(head, Type::I64));
        let zero = b.i64(0);
        b.jump(head, &[zero, zero]);
        b.switch_to(head);
        let more = b.icmp(IntCC::ULt, i, b.param(0));
        b.branch(more, body, end, Hint::Likely);
        b.switch_to(body);
        let (one, next_total) = (b.i64(1), b.binary(BinaryOp::Add, total, i));
        let next = b.binary(BinaryOp::Add, i, one);
        b.jump(head, &[next, next_total]);
        b.switch_to(end);
        Some(total)
    });
    assert_eq!(run(sum.clone(), &[Datum::I64(0)]), Ok(Some(Datum::I64(0))));
    assert_eq!(run(sum.clone(), &[Datum::I64(1001)]), Ok(Some(Datum::I64(500_500))));
    let verified = verify(sum).unwrap();
    let mut interpreter = Interpreter::new(&verified, Table::default()).unwrap().with_fuel(1000);
    // SAFETY: the function touches no memory.
    let error = unsafe { interpreter.run("f", &[Datum::I64(1001)]) };
    assert_eq!(error, Err(InterpError::OutOfFuel { function: "f".into(), fuel: 1000 }));
    // Every run has the whole of it.
    for _ in 0..3 {
        // SAFETY: as above.
        assert_eq!(unsafe { interpreter.run("f", &[Datum::I64(100)]) }, Ok(Some(Datum::I64(4950))));
    }
}

#[test]
fn branch_arguments_are_assigned_at_once() {
    // a, b, c go round n times; one after the other they would run into each other.
    let rotate = module(&[Type::I64], Some(Type::I64), |b| {
        let (head, body, end) = (b.block(), b.block(), b.block());
        let [i, x, y, z] = [(); 4].map(|()| b.block_param(head, Type::I64));
        let start = [b.param(0), b.i64(1), b.i64(2), b.i64(3)];
        b.jump(head, &start);
        b.switch_to(head);
        let done = b.icmp_imm(IntCC::Eq, i, 0);
        b.branch(done, end, body, Hint::None);
        b.switch_to(body);
        let one = b.i64(1);
        let next = b.binary(BinaryOp::Sub, i, one);
        b.jump(head, &[next, y, z, x]);
        b.switch_to(end);
        let ten = b.i64(10);
        let high = b.binary(BinaryOp::Mul, x, ten);
        let high = b.binary(BinaryOp::Add, high, y);
        let high = b.binary(BinaryOp::Mul, high, ten);
        Some(b.binary(BinaryOp::Add, high, z))
    });
    for (n, expected) in [(0, 123), (1, 231), (2, 312), (3, 123)] {
        assert_eq!(run(rotate.clone(), &[Datum::I64(n)]), Ok(Some(Datum::I64(expected))));
    }
}

#[test]
fn slots_are_aligned_apart_and_fresh() {
    let sizes = [(1, 1), (24, 64), (0, 1), (3, 2), (8, 4096)];
    for (which, (_, align)) in sizes.into_iter().enumerate() {
        // All slots are written, then one is read: nothing overlaps.
        let m = module(&[], Some(Type::Ptr), |b| {
            let slots = sizes.map(|(size, align)| b.slot(size, align));
            let addresses = slots.map(|slot| b.stack_addr(slot));
            for (i, (size, _)) in sizes.into_iter().enumerate() {
                for at in 0..size {
                    let byte = b.iconst(Type::I8, i as i64 + 1);
                    b.store(byte, addresses[i], at as i32, MemFlags::UNALIGNED);
                }
            }
            let mut fine = b.bconst(true);
            for (i, (size, _)) in sizes.into_iter().enumerate() {
                for at in 0..size {
                    let byte = b.load(Type::I8, addresses[i], at as i32, MemFlags::UNALIGNED);
                    let same = b.icmp_imm(IntCC::Eq, byte, i as i64 + 1);
                    fine = b.binary(BinaryOp::And, fine, same);
                }
            }
            let null = b.ptr_const(0);
            Some(b.select(fine, addresses[which], null))
        });
        let Ok(Some(Datum::Ptr(address))) = run(m, &[]) else { panic!() };
        assert!(address != 0 && address.is_multiple_of(align.into()));
    }
    // A slot nobody wrote holds neither zeros nor what an earlier call left.
    let m = module(&[], Some(Type::I8), |b| {
        let slot = b.slot(1, 1);
        let address = b.stack_addr(slot);
        let before = b.load(Type::I8, address, 0, MemFlags::UNALIGNED);
        let byte = b.iconst(Type::I8, 7);
        b.store(byte, address, 0, MemFlags::UNALIGNED);
        Some(before)
    });
    let verified = verify(m).unwrap();
    let mut interpreter = Interpreter::new(&verified, Table::default()).unwrap();
    for _ in 0..2 {
        // SAFETY: the function touches its own slot.
        assert_eq!(unsafe { interpreter.run("f", &[]) }, Ok(Some(Datum::I8(0xa5))));
    }
}

#[test]
fn slots_too_large_for_memory_are_an_error() {
    let m = module(&[], None, |b| {
        b.slot(8, 1 << 31);
        for _ in 0..1 << 16 {
            b.slot(u32::MAX, 1 << 31);
        }
        None
    });
    let error = run(m, &[]);
    assert_eq!(error, Err(InterpError::OutOfMemory { what: "f".into() }));
}

#[test]
fn static_data_is_aligned_and_stays() {
    let mut m = module(&[], Some(Type::Ptr), |b| {
        let data = b.module().add_data("table", vec![1, 2, 3, 4, 5], 64);
        Some(b.data_addr(data, 5))
    });
    m.add_data("empty", vec![], 1);
    let verified = verify(m).unwrap();
    let mut interpreter = Interpreter::new(&verified, Table::default()).unwrap();
    // SAFETY: the function touches no memory.
    let (first, second) = unsafe { (interpreter.run("f", &[]), interpreter.run("f", &[])) };
    assert_eq!(first, second);
    let Ok(Some(Datum::Ptr(end))) = first else { panic!() };
    assert!((end - 5).is_multiple_of(64));
    let bytes = std::ptr::with_exposed_provenance::<[u8; 5]>(end as usize - 5);
    // SAFETY: the interpreter is alive, and with it the data.
    assert_eq!(unsafe { bytes.read() }, [1, 2, 3, 4, 5]);
}

/// `fact(n) = n == 0 ? 1 : n * fact(n - 1)`, with the product in a slot over the call, and `f(n) = fact(n)`.
fn factorial() -> Module {
    let mut m = Module::new();
    let sig = FuncSig::new([Type::I64], Some(Type::I64));
    let fact = m.declare("fact", sig.clone(), Linkage::Local);
    let mut b = FunctionBuilder::new(&mut m, fact);
    let (n, slot) = (b.param(0), b.slot(8, 8));
    let (base, step) = (b.block(), b.block());
    let zero = b.icmp_imm(IntCC::Eq, n, 0);
    b.branch(zero, base, step, Hint::None);
    b.switch_to(base);
    let one = b.i64(1);
    b.ret(Some(one));
    b.switch_to(step);
    let address = b.stack_addr(slot);
    b.store(n, address, 0, MemFlags::ALIGNED);
    let minus_one = b.i64(-1);
    let less = b.binary(BinaryOp::Add, n, minus_one);
    let rest = b.call(fact, &[less]).unwrap();
    let kept = b.load(Type::I64, address, 0, MemFlags::ALIGNED);
    let product = b.binary(BinaryOp::Mul, kept, rest);
    b.ret(Some(product));
    b.finish();
    let f = m.declare("f", sig, Linkage::Export);
    let mut b = FunctionBuilder::new(&mut m, f);
    let result = b.call(fact, &[b.param(0)]);
    b.ret(result);
    b.finish();
    m
}

#[test]
fn calls_inside_the_module() {
    let verified = verify(factorial()).unwrap();
    let mut interpreter = Interpreter::new(&verified, Table::default()).unwrap();
    // SAFETY: the functions touch their own slots.
    let mut run = |name: &str, n| unsafe { interpreter.run(name, &[Datum::I64(n)]) };
    assert_eq!(run("f", 10), Ok(Some(Datum::I64(3_628_800))));
    assert_eq!(run("fact", 3), Ok(Some(Datum::I64(6))));
    let deep = run("f", 5000);
    assert_eq!(deep, Err(InterpError::TooDeep { function: "fact".into(), limit: MAX_DEPTH }));
    // What the failed run left doesn't matter.
    assert_eq!(run("f", 5), Ok(Some(Datum::I64(120))));
    assert!(run("f", 900).is_ok());
}

#[test]
fn calls_of_the_host() {
    let build = || {
        module(&[Type::I8, Type::F32], Some(Type::F64), |b| {
            let log = b.module().import("log", FuncSig::new([Type::I8], None));
            let mix = b.module().import("mix", FuncSig::new([Type::F32, Type::I8], Some(Type::Ptr)));
            let sig = b.signature(FuncSig::new([Type::Ptr], Some(Type::F64)));
            let (byte, single) = (b.param(0), b.param(1));
            b.call(log, &[byte]);
            let pointer = b.call(mix, &[single, byte]).unwrap();
            b.call_indirect(sig, pointer, &[pointer])
        })
    };
    let args = [Datum::I8(200), Datum::F32(0.5)];
    let mut logged = Vec::new();
    let host = Table(vec![
        (
            "log",
            Box::new(|args| {
                logged.extend_from_slice(args);
                Ok(None)
            }),
        ),
        (
            "mix",
            Box::new(|args| {
                assert_eq!(args, [Datum::F32(0.5), Datum::I8(200)]);
                Ok(Some(Datum::Ptr(3)))
            }),
        ),
        (
            "by its address",
            Box::new(|args| {
                assert_eq!(args, [Datum::Ptr(3)]);
                Ok(Some(Datum::F64(2.5)))
            }),
        ),
    ]);
    assert_eq!(run_with(build(), host, &args), Ok(Some(Datum::F64(2.5))));
    assert_eq!(logged, [Datum::I8(200)]);

    let missing = run_with(build(), Table(vec![("other", Box::new(|_| Ok(None)))]), &args);
    assert_eq!(missing, Err(InterpError::MissingImports { names: vec!["log".into(), "mix".into()] }));

    let failing = Table(vec![("log", Box::new(|_| Err("no paper".into()))), ("mix", Box::new(|_| Ok(None)))]);
    let error = run_with(build(), failing, &args).unwrap_err();
    assert_eq!(error.to_string(), "no paper, in f, block0, inst0, `call @log(v0)`");

    // A result that isn't the signature's, and null as the callee.
    let wrong = Table(vec![("log", Box::new(|_| Ok(None))), ("mix", Box::new(|_| Ok(Some(Datum::I64(3)))))]);
    assert!(matches!(run_with(build(), wrong, &args), Err(InterpError::Host { .. })));
    let null = Table(vec![("log", Box::new(|_| Ok(None))), ("mix", Box::new(|_| Ok(Some(Datum::Ptr(0)))))]);
    let error = run_with(build(), null, &args);
    assert!(matches!(error, Err(InterpError::Trap { reason: TrapReason::NullAccess(0), .. })));
}

#[test]
fn runs_that_do_not_fit_are_errors() {
    let build = || {
        module(&[Type::I64], None, |b| {
            b.module().import("ext", FuncSig::default());
            None
        })
    };
    let verified = verify(build()).unwrap();
    let mut host = Table(vec![("ext", Box::new(|_| Ok(None)))]);
    let mut interpreter = Interpreter::new(&verified, &mut host).unwrap();
    // SAFETY: the function touches no memory.
    let mut run = |name: &str, args: &[Datum]| unsafe { interpreter.run(name, args) };
    assert_eq!(run("f", &[Datum::I64(1)]), Ok(None));
    for name in ["g", "ext"] {
        assert_eq!(run(name, &[]), Err(InterpError::NoSuchFunction { name: name.into() }));
    }
    for args in [&[][..], &[Datum::Ptr(1)], &[Datum::I64(1), Datum::I64(1)]] {
        assert!(matches!(run("f", args), Err(InterpError::Arguments { .. })));
    }
}

#[test]
fn data_and_their_bits() {
    for ty in [Type::Bool, Type::I8, Type::I16, Type::I32, Type::I64, Type::F32, Type::F64, Type::Ptr] {
        let datum = Datum::from_bits(ty, u64::MAX);
        assert_eq!(datum.ty(), ty);
        assert_eq!(datum.bits(), u64::MAX >> (64 - ty.bits()));
    }
}
