use super::{Case, check, pairs, singles};
use crate::ir::*;

/// The cases of one float type: `$f` in Rust, with bits in `$bits`.
macro_rules! float_cases {
    ($ty:expr, $f:ident, $bits:ident) => {{
        let word = |v: $f| u64::from(v.to_bits());
        let float = |w: u64| $f::from_bits(w as $bits);
        let values: Vec<u64> = [
            0.0,
            -0.0,
            1.0,
            -1.0,
            0.5,
            -0.5,
            1.5,
            2.5,
            -2.5,
            0.1,
            1e-40,
            16777217.0,
            $f::MAX,
            $f::MIN,
            $f::MIN_POSITIVE,
            $f::EPSILON,
            $f::INFINITY,
            $f::NEG_INFINITY,
            $f::NAN,
        ]
        .iter()
        .map(|&v| word(v))
        .collect();
        // It is unspecified which NaN an operation returns: rows with a NaN result only test whether it is one.
        let mut cases = Vec::new();
        let mut value_case = |name: String,
                              inputs: &[Type],
                              build: fn(&mut FunctionBuilder<'_>, &[Value], Op2) -> Value,
                              op: Op2,
                              rows: Vec<(Vec<u64>, u64)>| {
            let (nan, rows): (Vec<_>, Vec<_>) = rows.into_iter().partition(|(_, r)| float(*r).is_nan());
            cases.push(Case::new(name.clone(), inputs, move |b, v| build(b, v, op), rows));
            let is_nan = move |b: &mut FunctionBuilder<'_>, v: &[Value]| {
                let r = build(b, v, op);
                b.fcmp(FloatCC::Ne, r, r)
            };
            cases.push(Case::new(
                format!("NaN of {name}"),
                inputs,
                is_nan,
                nan.into_iter().map(|(i, _)| (i, 1)).collect(),
            ));
        };
        let minimum = |a: $f, b: $f| {
            if a.is_nan() || b.is_nan() {
                $f::NAN
            } else if a == b {
                if a.is_sign_negative() { a } else { b }
            } else {
                a.min(b)
            }
        };
        let maximum = |a: $f, b: $f| -minimum(-a, -b);
        let binaries: [(BinaryOp, &dyn Fn($f, $f) -> $f); 6] = [
            (BinaryOp::FAdd, &|a, b| a + b),
            (BinaryOp::FSub, &|a, b| a - b),
            (BinaryOp::FMul, &|a, b| a * b),
            (BinaryOp::FDiv, &|a, b| a / b),
            (BinaryOp::FMin, &minimum),
            (BinaryOp::FMax, &maximum),
        ];
        for (op, f) in binaries {
            let rows = pairs(&values, |a, b| Some(word(f(float(a), float(b)))));
            value_case(format!("{op:?} {}", $ty), &[$ty, $ty], build2, Op2::Binary(op), rows);
        }
        let unaries: [(UnaryOp, fn($f) -> $f); 5] = [
            (UnaryOp::Sqrt, $f::sqrt),
            (UnaryOp::Floor, $f::floor),
            (UnaryOp::Ceil, $f::ceil),
            (UnaryOp::Trunc, $f::trunc),
            (UnaryOp::Nearest, $f::round_ties_even),
        ];
        for (op, f) in unaries {
            let rows = singles(&values, |a| word(f(float(a))));
            value_case(format!("{op:?} {}", $ty), &[$ty], build2, Op2::Unary(op), rows);
        }
        // These only change the sign, also of a NaN.
        let sign = 1u64 << ($ty.bits() - 1);
        for (op, f) in [(UnaryOp::FNeg, &(|a| a ^ sign) as &dyn Fn(u64) -> u64), (UnaryOp::FAbs, &|a| a & !sign)] {
            let build = move |b: &mut FunctionBuilder<'_>, v: &[Value]| b.unary(op, v[0]);
            cases.push(Case::new(format!("{op:?} {}", $ty), &[$ty], build, singles(&values, f)));
        }
        for (cc, f) in [
            (FloatCC::Eq, (|a, b| a == b) as fn($f, $f) -> bool),
            (FloatCC::Ne, |a, b| a != b),
            (FloatCC::Lt, |a, b| a < b),
            (FloatCC::Le, |a, b| a <= b),
            (FloatCC::Gt, |a, b| a > b),
            (FloatCC::Ge, |a, b| a >= b),
        ] {
            let rows = pairs(&values, |a, b| Some(u64::from(f(float(a), float(b)))));
            let build = move |b: &mut FunctionBuilder<'_>, v: &[Value]| b.fcmp(cc, v[0], v[1]);
            cases.push(Case::new(format!("{cc:?} {}", $ty), &[$ty, $ty], build, rows.clone()));
            // With a NaN, the inverse holds: it isn't the same as the opposite comparison.
            let build = move |b: &mut FunctionBuilder<'_>, v: &[Value]| {
                let c = b.fcmp(cc, v[0], v[1]);
                b.unary(UnaryOp::Not, c)
            };
            let inverse = rows.into_iter().map(|(i, o)| (i, 1 - o)).collect();
            cases.push(Case::new(format!("not {cc:?} {}", $ty), &[$ty, $ty], build, inverse));
        }
        let edges: Vec<u64> = [
            0.4,
            -0.9,
            2147483647.0,
            2147483648.0,
            -2147483648.0,
            -2147483649.0,
            4294967295.0,
            4294967296.0,
            9223372036854775807.0,
            -9223372036854775808.0,
            18446744073709551615.0,
            1e30,
            -1e30,
        ]
        .iter()
        .map(|&v| word(v as $f))
        .chain(values.iter().copied())
        .collect();
        let to_ints: [(ConvertOp, Type, fn($f) -> u64); 4] = [
            (ConvertOp::FloatToSInt, Type::I32, |v| u64::from(v as i32 as u32)),
            (ConvertOp::FloatToUInt, Type::I32, |v| u64::from(v as u32)),
            (ConvertOp::FloatToSInt, Type::I64, |v| v as i64 as u64),
            (ConvertOp::FloatToUInt, Type::I64, |v| v as u64),
        ];
        for (op, to, f) in to_ints {
            let build = move |b: &mut FunctionBuilder<'_>, v: &[Value]| b.convert(op, to, v[0]);
            cases.push(Case::new(format!("{op:?} {} to {to}", $ty), &[$ty], build, singles(&edges, |v| f(float(v)))));
        }
        let ints = [
            0,
            1,
            2,
            0x7fff_ffff,
            0x8000_0000,
            0xffff_ffff,
            0x0100_0001,
            0x0100_0003,
            i64::MAX as u64,
            1 << 63,
            u64::MAX,
            (1 << 53) + 1,
            (1 << 53) + 3,
            (1 << 63) + 1025,
        ];
        let from_ints: [(ConvertOp, Type, fn(u64) -> $f); 4] = [
            (ConvertOp::SIntToFloat, Type::I32, |v| v as i32 as $f),
            (ConvertOp::UIntToFloat, Type::I32, |v| v as u32 as $f),
            (ConvertOp::SIntToFloat, Type::I64, |v| v as i64 as $f),
            (ConvertOp::UIntToFloat, Type::I64, |v| v as $f),
        ];
        for (op, from, f) in from_ints {
            let build = move |b: &mut FunctionBuilder<'_>, v: &[Value]| b.convert(op, $ty, v[0]);
            let mask = u64::MAX >> (64 - from.bits());
            let ints = ints.map(|v| v & mask);
            cases.push(Case::new(format!("{op:?} {from} to {}", $ty), &[from], build, singles(&ints, |v| word(f(v)))));
        }
        let int = if $ty == Type::F32 { Type::I32 } else { Type::I64 };
        for (from, to) in [($ty, int), (int, $ty)] {
            let build = move |b: &mut FunctionBuilder<'_>, v: &[Value]| b.convert(ConvertOp::Bitcast, to, v[0]);
            cases.push(Case::new(format!("Bitcast {from} to {to}"), &[from], build, singles(&values, |v| v)));
        }
        let rows = singles(&[0, 1], |c| values[c as usize + 2]);
        let (x, y) = (float(values[3]), float(values[2]));
        cases.push(Case::new(
            format!("Select {}", $ty),
            &[Type::Bool],
            move |b, v| {
                let (x, y) = if $ty == Type::F32 {
                    (b.f32(x as f32), b.f32(y as f32))
                } else {
                    (b.f64(f64::from(x)), b.f64(f64::from(y)))
                };
                b.select(v[0], x, y)
            },
            rows,
        ));
        check(&cases);
    }};
}

/// An operation of either kind.
#[derive(Clone, Copy)]
enum Op2 {
    Unary(UnaryOp),
    Binary(BinaryOp),
}

fn build2(b: &mut FunctionBuilder<'_>, v: &[Value], op: Op2) -> Value {
    match op {
        Op2::Unary(op) => b.unary(op, v[0]),
        Op2::Binary(op) => b.binary(op, v[0], v[1]),
    }
}

#[test]
fn f32() {
    float_cases!(Type::F32, f32, u32);
}

#[test]
fn f64() {
    float_cases!(Type::F64, f64, u64);
}

#[test]
fn between_floats() {
    let promote = [0.0f32, -0.0, 1.5, f32::MAX, f32::MIN_POSITIVE, 1e-45, f32::INFINITY, f32::NEG_INFINITY];
    let demote = [0.0f64, -0.0, 0.1, 1e39, -1e39, 1e-46, 16777217.0, 16777219.0, f64::INFINITY, f64::MIN_POSITIVE];
    let promote: Vec<u64> = promote.iter().map(|v| u64::from(v.to_bits())).collect();
    let demote: Vec<u64> = demote.iter().map(|v| v.to_bits()).collect();
    check(&[
        Case::new(
            "FPromote",
            &[Type::F32],
            |b, v| b.convert(ConvertOp::FPromote, Type::F64, v[0]),
            singles(&promote, |v| f64::from(f32::from_bits(v as u32)).to_bits()),
        ),
        Case::new(
            "FDemote",
            &[Type::F64],
            |b, v| b.convert(ConvertOp::FDemote, Type::F32, v[0]),
            singles(&demote, |v| u64::from((f64::from_bits(v) as f32).to_bits())),
        ),
    ]);
}
