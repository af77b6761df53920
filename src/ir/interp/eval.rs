//! The results of operations on values, exactly as documented in `inst.rs`.
//!
//! A value is 64 raw bits: integers zero-extended, floats as bits, a truth value as 0 or 1. All functions here take and
//! return that form. Operations on types that the verifier rejects return 0.

use crate::ir::inst::{BinaryOp, ConvertOp, FloatCC, IntCC, UnaryOp};
use crate::ir::types::Type;

use super::error::TrapReason;

/// The low bits, as many as the type has.
pub(super) fn mask(ty: Type, bits: u64) -> u64 {
    bits & (u64::MAX >> (64 - ty.bits()))
}

/// A value as a signed number.
fn signed(ty: Type, bits: u64) -> i64 {
    let unused = 64 - ty.bits();
    ((bits << unused) as i64) >> unused
}

fn f32_of(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

fn bits_of(value: f32) -> u64 {
    u64::from(value.to_bits())
}

pub(super) fn unary(op: UnaryOp, ty: Type, a: u64) -> u64 {
    match op {
        UnaryOp::Neg => mask(ty, a.wrapping_neg()),
        UnaryOp::Not => mask(ty, !a),
        // Change the sign bitwise, since arithmetic may change a NaN's sign arbitrarily.
        UnaryOp::FNeg => a ^ sign_bit(ty),
        UnaryOp::FAbs => a & !sign_bit(ty),
        UnaryOp::Sqrt => float_unary(ty, a, f32::sqrt, f64::sqrt),
        UnaryOp::Floor => float_unary(ty, a, f32::floor, f64::floor),
        UnaryOp::Ceil => float_unary(ty, a, f32::ceil, f64::ceil),
        UnaryOp::Trunc => float_unary(ty, a, f32::trunc, f64::trunc),
        UnaryOp::Nearest => float_unary(ty, a, f32::round_ties_even, f64::round_ties_even),
    }
}

fn sign_bit(ty: Type) -> u64 {
    1 << (ty.bits() - 1)
}

fn float_unary(ty: Type, a: u64, single: fn(f32) -> f32, double: fn(f64) -> f64) -> u64 {
    match ty {
        Type::F32 => bits_of(single(f32_of(a))),
        Type::F64 => double(f64::from_bits(a)).to_bits(),
        _ => 0,
    }
}

pub(super) fn binary(op: BinaryOp, ty: Type, a: u64, b: u64) -> Result<u64, TrapReason> {
    let (sa, sb) = (signed(ty, a), signed(ty, b));
    let amount = (b % u64::from(ty.bits())) as u32;
    let bits = match op {
        BinaryOp::Add => a.wrapping_add(b),
        BinaryOp::Sub => a.wrapping_sub(b),
        BinaryOp::Mul => a.wrapping_mul(b),
        BinaryOp::SMulHi => ((i128::from(sa) * i128::from(sb)) >> 64) as u64,
        BinaryOp::UMulHi => ((u128::from(a) * u128::from(b)) >> 64) as u64,
        BinaryOp::SDiv => {
            check_signed_division(ty, sa, sb)?;
            sa.wrapping_div(sb) as u64
        }
        BinaryOp::SRem => {
            check_signed_division(ty, sa, sb)?;
            sa.wrapping_rem(sb) as u64
        }
        BinaryOp::UDiv => a.checked_div(b).ok_or(TrapReason::DivisionByZero)?,
        BinaryOp::URem => a.checked_rem(b).ok_or(TrapReason::DivisionByZero)?,
        BinaryOp::And => a & b,
        BinaryOp::Or => a | b,
        BinaryOp::Xor => a ^ b,
        BinaryOp::Shl => a << amount,
        BinaryOp::LShr => a >> amount,
        BinaryOp::AShr => (sa >> amount) as u64,
        BinaryOp::SMin => sa.min(sb) as u64,
        BinaryOp::SMax => sa.max(sb) as u64,
        BinaryOp::UMin => a.min(b),
        BinaryOp::UMax => a.max(b),
        BinaryOp::FAdd => float_binary(ty, a, b, |a, b| a + b, |a, b| a + b),
        BinaryOp::FSub => float_binary(ty, a, b, |a, b| a - b, |a, b| a - b),
        BinaryOp::FMul => float_binary(ty, a, b, |a, b| a * b, |a, b| a * b),
        BinaryOp::FDiv => float_binary(ty, a, b, |a, b| a / b, |a, b| a / b),
        BinaryOp::FMin => extremum(ty, a, b, false),
        BinaryOp::FMax => extremum(ty, a, b, true),
    };
    Ok(mask(ty, bits))
}

fn check_signed_division(ty: Type, a: i64, b: i64) -> Result<(), TrapReason> {
    if b == 0 {
        Err(TrapReason::DivisionByZero)
    } else if b == -1 && a == signed(ty, sign_bit(ty)) {
        Err(TrapReason::DivisionOverflow)
    } else {
        Ok(())
    }
}

fn float_binary(ty: Type, a: u64, b: u64, single: fn(f32, f32) -> f32, double: fn(f64, f64) -> f64) -> u64 {
    match ty {
        Type::F32 => bits_of(single(f32_of(a), f32_of(b))),
        Type::F64 => double(f64::from_bits(a), f64::from_bits(b)).to_bits(),
        _ => 0,
    }
}

/// IEEE 754-2019 `minimum` or `maximum`; unlike the standard library's `min` it returns a NaN if an operand is one.
fn extremum(ty: Type, a: u64, b: u64, max: bool) -> u64 {
    let (x, y) = match ty {
        Type::F32 => (f64::from(f32_of(a)), f64::from(f32_of(b))),
        _ => (f64::from_bits(a), f64::from_bits(b)),
    };
    if x.is_nan() || y.is_nan() {
        // The sum is a quiet NaN with the payload of one operand, as on hardware.
        float_binary(ty, a, b, |a, b| a + b, |a, b| a + b)
    } else if x == y {
        // Only zeros can be equal with different bits, and then only the sign differs.
        if max { a & b } else { a | b }
    } else if (x < y) != max {
        a
    } else {
        b
    }
}

pub(super) fn icmp(cc: IntCC, ty: Type, a: u64, b: u64) -> bool {
    let (sa, sb) = (signed(ty, a), signed(ty, b));
    match cc {
        IntCC::Eq => a == b,
        IntCC::Ne => a != b,
        IntCC::SLt => sa < sb,
        IntCC::SLe => sa <= sb,
        IntCC::SGt => sa > sb,
        IntCC::SGe => sa >= sb,
        IntCC::ULt => a < b,
        IntCC::ULe => a <= b,
        IntCC::UGt => a > b,
        IntCC::UGe => a >= b,
    }
}

pub(super) fn fcmp(cc: FloatCC, ty: Type, a: u64, b: u64) -> bool {
    // Widening preserves order, equality and NaN.
    let (a, b) = match ty {
        Type::F32 => (f64::from(f32_of(a)), f64::from(f32_of(b))),
        _ => (f64::from_bits(a), f64::from_bits(b)),
    };
    match cc {
        FloatCC::Eq => a == b,
        FloatCC::Ne => a != b,
        FloatCC::Lt => a < b,
        FloatCC::Le => a <= b,
        FloatCC::Gt => a > b,
        FloatCC::Ge => a >= b,
    }
}

pub(super) fn convert(op: ConvertOp, from: Type, to: Type, a: u64) -> u64 {
    match op {
        ConvertOp::SExt => mask(to, signed(from, a) as u64),
        ConvertOp::ZExt | ConvertOp::Bitcast | ConvertOp::PtrToInt | ConvertOp::IntToPtr => a,
        ConvertOp::Truncate => mask(to, a),
        // Each converts directly from the integer: an intermediate float would round twice.
        ConvertOp::SIntToFloat => match to {
            Type::F32 => bits_of(signed(from, a) as f32),
            _ => (signed(from, a) as f64).to_bits(),
        },
        ConvertOp::UIntToFloat => match to {
            Type::F32 => bits_of(a as f32),
            _ => (a as f64).to_bits(),
        },
        // `as` saturates and converts NaN to 0. Widening a float first is exact.
        ConvertOp::FloatToSInt => {
            let value = if from == Type::F32 { f64::from(f32_of(a)) } else { f64::from_bits(a) };
            if to == Type::I32 { u64::from(value as i32 as u32) } else { value as i64 as u64 }
        }
        ConvertOp::FloatToUInt => {
            let value = if from == Type::F32 { f64::from(f32_of(a)) } else { f64::from_bits(a) };
            if to == Type::I32 { u64::from(value as u32) } else { value as u64 }
        }
        ConvertOp::FPromote => f64::from(f32_of(a)).to_bits(),
        ConvertOp::FDemote => bits_of(f64::from_bits(a) as f32),
    }
}
