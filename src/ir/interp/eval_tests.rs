//! Tests every operation on edge values.

#![allow(clippy::unwrap_used)]

use super::tests::{assert_bits, eval, trap};
use super::*;

use crate::ir::{BinaryOp, ConvertOp, FloatCC, FunctionBuilder, IntCC, Type, UnaryOp, Value};

fn binary(op: BinaryOp, a: Datum, b: Datum) -> Result<Datum, InterpError> {
    eval(&[a, b], a.ty(), |f, v| f.binary(op, v[0], v[1]))
}

fn unary(op: UnaryOp, a: Datum) -> Datum {
    eval(&[a], a.ty(), |f, v| f.unary(op, v[0])).unwrap()
}

fn convert(op: ConvertOp, a: Datum, to: Type) -> Datum {
    eval(&[a], to, |f, v| f.convert(op, to, v[0])).unwrap()
}

/// Checks every operation on every pair of edge values against Rust's arithmetic of that width.
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
                // A constant is the low bits, whatever the upper bits are.
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
    let min = Datum::I64(i64::MIN as u64);
    assert_eq!(binary(BinaryOp::SMulHi, min, min), Ok(Datum::I64(1 << 62)));
    assert_eq!(binary(BinaryOp::UMulHi, Datum::I64(u64::MAX), Datum::I64(u64::MAX)), Ok(Datum::I64(u64::MAX - 1)));
}

#[test]
fn truth_values() {
    // As arguments of the operation, and in a form that a mask of more than one bit would spoil.
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
    // All in single precision: in double precision the sum would be exact.
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
    // Flips and clears the sign of every value, and changes nothing else.
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
    // A few of these written out.
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
    // Halfway between two neighbours: rounds to the even one.
    assert_eq!(convert(FDemote, Datum::F64(16_777_217.0), Type::F32), Datum::F32(16_777_216.0));
    assert_eq!(convert(Bitcast, Datum::F32(1.0), Type::I32), Datum::I32(0x3f80_0000));
    assert_eq!(convert(Bitcast, Datum::I32(0x3f80_0000), Type::F32), Datum::F32(1.0));
    assert_eq!(convert(Bitcast, Datum::F64(-0.0), Type::I64), Datum::I64(1 << 63));
    assert_eq!(convert(Bitcast, Datum::I64(1 << 63), Type::F64).bits(), 1 << 63);
    assert_eq!(convert(PtrToInt, Datum::Ptr(u64::MAX), Type::I64), Datum::I64(u64::MAX));
    assert_eq!(convert(IntToPtr, Datum::I64(42), Type::Ptr), Datum::Ptr(42));
    // The upper half of an `F32`'s bits is not part of it.
    let single = eval(&[], Type::F32, |f, _| f.f32(-1.0));
    assert_eq!(single.unwrap().bits(), 0xbf80_0000);
}

#[test]
fn data_and_their_bits() {
    for ty in [Type::Bool, Type::I8, Type::I16, Type::I32, Type::I64, Type::F32, Type::F64, Type::Ptr] {
        let datum = Datum::from_bits(ty, u64::MAX);
        assert_eq!(datum.ty(), ty);
        assert_eq!(datum.bits(), u64::MAX >> (64 - ty.bits()));
    }
}
