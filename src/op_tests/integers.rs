use super::{Case, check, pairs, singles};
use crate::ir::*;

/// The cases of one integer type: `$s` signed and `$u` unsigned in Rust.
macro_rules! integer_cases {
    ($ty:expr, $s:ident, $u:ident) => {{
        const BITS: u64 = $u::BITS as u64;
        let values: Vec<u64> = [
            0,
            1,
            2,
            3,
            7,
            $s::MAX,
            $s::MIN,
            -1,
            -2,
            $s::MIN + 1,
            $s::MAX - 1,
            BITS as $s,
            BITS as $s - 1,
            BITS as $s + 1,
            0x55,
        ]
        .iter()
        .map(|&v| u64::from(v as $u))
        .collect();
        let s = |v: u64| v as $s;
        let u = |v: u64| v as $u;
        let word = |v: $s| Some(u64::from(v as $u));
        let uword = |v: $u| Some(u64::from(v));
        let mut cases = Vec::new();
        let mut binary = |op: BinaryOp, f: &dyn Fn(u64, u64) -> Option<u64>| {
            let build = move |b: &mut FunctionBuilder<'_>, v: &[Value]| b.binary(op, v[0], v[1]);
            cases.push(Case::new(format!("{op:?} {}", $ty), &[$ty, $ty], build, pairs(&values, f)));
        };
        binary(BinaryOp::Add, &|a, b| word(s(a).wrapping_add(s(b))));
        binary(BinaryOp::Sub, &|a, b| word(s(a).wrapping_sub(s(b))));
        binary(BinaryOp::Mul, &|a, b| word(s(a).wrapping_mul(s(b))));
        binary(BinaryOp::SDiv, &|a, b| word(s(a).checked_div(s(b))?));
        binary(BinaryOp::UDiv, &|a, b| uword(u(a).checked_div(u(b))?));
        binary(BinaryOp::SRem, &|a, b| word(s(a).checked_rem(s(b))?));
        binary(BinaryOp::URem, &|a, b| uword(u(a).checked_rem(u(b))?));
        binary(BinaryOp::And, &|a, b| Some(a & b));
        binary(BinaryOp::Or, &|a, b| Some(a | b));
        binary(BinaryOp::Xor, &|a, b| Some(a ^ b));
        binary(BinaryOp::Shl, &|a, b| uword(u(a).wrapping_shl((b % BITS) as u32)));
        binary(BinaryOp::LShr, &|a, b| uword(u(a).wrapping_shr((b % BITS) as u32)));
        binary(BinaryOp::AShr, &|a, b| word(s(a).wrapping_shr((b % BITS) as u32)));
        binary(BinaryOp::SMin, &|a, b| word(s(a).min(s(b))));
        binary(BinaryOp::SMax, &|a, b| word(s(a).max(s(b))));
        binary(BinaryOp::UMin, &|a, b| uword(u(a).min(u(b))));
        binary(BinaryOp::UMax, &|a, b| uword(u(a).max(u(b))));
        if $ty == Type::I64 {
            binary(BinaryOp::SMulHi, &|a, b| Some(((i128::from(a as i64) * i128::from(b as i64)) >> 64) as u64));
            binary(BinaryOp::UMulHi, &|a, b| Some(((u128::from(a) * u128::from(b)) >> 64) as u64));
        }
        for (cc, f) in [
            (IntCC::Eq, (|a, b| a == b) as fn(u64, u64) -> bool),
            (IntCC::Ne, |a, b| a != b),
            (IntCC::SLt, |a, b| (a as $s) < b as $s),
            (IntCC::SLe, |a, b| a as $s <= b as $s),
            (IntCC::SGt, |a, b| a as $s > b as $s),
            (IntCC::SGe, |a, b| a as $s >= b as $s),
            (IntCC::ULt, |a, b| (a as $u) < b as $u),
            (IntCC::ULe, |a, b| a as $u <= b as $u),
            (IntCC::UGt, |a, b| a as $u > b as $u),
            (IntCC::UGe, |a, b| a as $u >= b as $u),
        ] {
            let rows = pairs(&values, |a, b| Some(u64::from(f(a, b))));
            cases.push(Case::new(
                format!("{cc:?} {}", $ty),
                &[$ty, $ty],
                move |b, v| b.icmp(cc, v[0], v[1]),
                rows.clone(),
            ));
            // The inverse, and the comparison as the condition of a select.
            cases.push(Case::new(
                format!("not {cc:?} {}", $ty),
                &[$ty, $ty],
                move |b, v| {
                    let c = b.icmp(cc, v[0], v[1]);
                    b.unary(UnaryOp::Not, c)
                },
                rows.iter().map(|(i, o)| (i.clone(), 1 - o)).collect(),
            ));
            cases.push(Case::new(
                format!("select {cc:?} {}", $ty),
                &[$ty, $ty],
                move |b, v| {
                    let c = b.icmp(cc, v[0], v[1]);
                    b.select(c, v[0], v[1])
                },
                rows.iter().map(|(i, o)| (i.clone(), if *o == 1 { i[0] } else { i[1] })).collect(),
            ));
        }
        cases.push(Case::new(
            format!("Neg {}", $ty),
            &[$ty],
            |b, v| b.unary(UnaryOp::Neg, v[0]),
            singles(&values, |a| u64::from((a as $s).wrapping_neg() as $u)),
        ));
        cases.push(Case::new(
            format!("Not {}", $ty),
            &[$ty],
            |b, v| b.unary(UnaryOp::Not, v[0]),
            singles(&values, |a| u64::from(!(a as $u))),
        ));
        check(&cases);
    }};
}

#[test]
fn i8() {
    integer_cases!(Type::I8, i8, u8);
}

#[test]
fn i16() {
    integer_cases!(Type::I16, i16, u16);
}

#[test]
fn i32() {
    integer_cases!(Type::I32, i32, u32);
}

#[test]
fn i64() {
    integer_cases!(Type::I64, i64, u64);
}

#[test]
fn widths() {
    let ints = [Type::I8, Type::I16, Type::I32, Type::I64];
    let mut cases = Vec::new();
    for from in ints {
        let mask = u64::MAX >> (64 - from.bits());
        let values: Vec<u64> =
            [0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0x7fff_ffff, 0x8000_0000, u64::MAX >> 1, 1 << 63, u64::MAX]
                .iter()
                .map(|v| v & mask)
                .collect();
        for to in ints {
            let to_mask = u64::MAX >> (64 - to.bits());
            let mut convert = |op: ConvertOp, f: &dyn Fn(u64) -> u64| {
                cases.push(Case::new(
                    format!("{op:?} {from} to {to}"),
                    &[from],
                    move |b, v| b.convert(op, to, v[0]),
                    singles(&values, |v| f(v) & to_mask),
                ));
            };
            if to.bits() > from.bits() {
                convert(ConvertOp::ZExt, &|v| v);
                let up = 64 - from.bits();
                convert(ConvertOp::SExt, &|v| (((v << up) as i64) >> up) as u64);
            } else if to.bits() < from.bits() {
                convert(ConvertOp::Truncate, &|v| v);
            }
        }
    }
    for to in ints {
        cases.push(Case::new(
            format!("ZExt bool to {to}"),
            &[Type::Bool],
            move |b, v| b.convert(ConvertOp::ZExt, to, v[0]),
            singles(&[0, 1, 0xff], |v| u64::from(v != 0)),
        ));
    }
    for op in [ConvertOp::PtrToInt, ConvertOp::IntToPtr] {
        let (from, to) = if op == ConvertOp::PtrToInt { (Type::Ptr, Type::I64) } else { (Type::I64, Type::Ptr) };
        let rows = singles(&[0, 1, u64::MAX], |v| v);
        cases.push(Case::new(format!("{op:?}"), &[from], move |b, v| b.convert(op, to, v[0]), rows));
    }
    check(&cases);
}

#[test]
fn truth_values() {
    let values = [0, 1, 2];
    let mut cases = Vec::new();
    for (op, f) in [
        (BinaryOp::And, (|a, b| a & b) as fn(bool, bool) -> bool),
        (BinaryOp::Or, |a, b| a | b),
        (BinaryOp::Xor, |a, b| a ^ b),
    ] {
        let rows = pairs(&values, |a, b| Some(u64::from(f(a != 0, b != 0))));
        cases.push(Case::new(format!("{op:?} bool"), &[Type::Bool; 2], move |b, v| b.binary(op, v[0], v[1]), rows));
    }
    for (cc, equal) in [(IntCC::Eq, true), (IntCC::Ne, false)] {
        let rows = pairs(&values, |a, b| Some(u64::from(((a != 0) == (b != 0)) == equal)));
        cases.push(Case::new(format!("{cc:?} bool"), &[Type::Bool; 2], move |b, v| b.icmp(cc, v[0], v[1]), rows));
    }
    let rows = singles(&values, |a| u64::from(a == 0));
    cases.push(Case::new("Not bool", &[Type::Bool], |b, v| b.unary(UnaryOp::Not, v[0]), rows));
    let select = |b: &mut FunctionBuilder<'_>, v: &[Value]| b.select(v[0], v[1], v[2]);
    let mut rows = Vec::new();
    for c in values {
        for a in [0, 1] {
            rows.push((vec![c, a, 1 - a], if c != 0 { a } else { 1 - a }));
        }
    }
    cases.push(Case::new("Select bool", &[Type::Bool; 3], select, rows));
    let rows = vec![(vec![1, 5, 6], 5), (vec![0, 5, 6], 6)];
    cases.push(Case::new("Select ptr", &[Type::Bool, Type::Ptr, Type::Ptr], select, rows));
    check(&cases);
}

#[test]
fn pointer_comparisons() {
    let values = [0, 1, i64::MAX as u64, 1 << 63, u64::MAX];
    let mut cases = Vec::new();
    for (cc, f) in [
        (IntCC::Eq, (|a, b| a == b) as fn(u64, u64) -> bool),
        (IntCC::Ne, |a, b| a != b),
        (IntCC::ULt, |a, b| a < b),
        (IntCC::ULe, |a, b| a <= b),
        (IntCC::UGt, |a, b| a > b),
        (IntCC::UGe, |a, b| a >= b),
    ] {
        let rows = pairs(&values, |a, b| Some(u64::from(f(a, b))));
        cases.push(Case::new(format!("{cc:?} ptr"), &[Type::Ptr; 2], move |b, v| b.icmp(cc, v[0], v[1]), rows));
    }
    check(&cases);
}
