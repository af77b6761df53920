//! `float16` and `bfloat16`: rounding a `double` to their bits, and converting bits to a `double`.
//!
//! Not every target has instructions for them, and the C library's functions (`__truncdfhf2`) would be extra symbols
//! that an artifact needs. So the conversions are integer code, in functions that a module defines once.

use crate::ir::{
    AbiParam, BinaryOp, ConvertOp, Extension, FuncRef, FuncSig, FunctionBuilder, IntCC, Linkage, Module, Type, Value,
};
use crate::spec::ScalarType;

/// The number of significand bits of a `double`.
const WIDE: i64 = 52;
/// The bias of the exponent of a `double`.
const WIDE_BIAS: i64 = 1023;
/// All bits of a `double` except its sign.
const MAGNITUDE: i64 = i64::MAX;
/// The bits of the infinite `double`.
const INFINITE: i64 = 0x7ff << WIDE;

/// A format of 16 bits.
#[derive(Clone, Copy)]
struct Format {
    name: &'static str,
    /// The number of stored significand bits.
    significand: i64,
    bias: i64,
}

impl Format {
    /// The format of a scalar type; `None` for any other type.
    fn of(ty: ScalarType) -> Option<Self> {
        match ty {
            ScalarType::Float16 => Some(Format { name: "float16", significand: 10, bias: 15 }),
            ScalarType::BFloat16 => Some(Format { name: "bfloat16", significand: 7, bias: 127 }),
            _ => None,
        }
    }

    /// The bits of infinity.
    fn infinite(self) -> i64 {
        0x7fff >> self.significand << self.significand
    }

    /// A power of two as a `double`.
    fn power(exponent: i64) -> f64 {
        f64::from_bits(((exponent + WIDE_BIAS) << WIDE) as u64)
    }
}

/// Rounds a `double` to nearest, ties to even; returns the bits, an `I16`. Returns 0 for any other type.
pub(super) fn narrow(b: &mut FunctionBuilder<'_>, ty: ScalarType, value: Value) -> Value {
    let narrowed = Format::of(ty).and_then(|format| {
        let function = narrowing(b.module(), format);
        b.call(function, &[value])
    });
    narrowed.unwrap_or_else(|| b.iconst(Type::I16, 0))
}

/// Converts bits, an `I16`, to a `double`. Returns 0 for any other type.
pub(super) fn widen(b: &mut FunctionBuilder<'_>, ty: ScalarType, bits: Value) -> Value {
    let widened = Format::of(ty).and_then(|format| {
        let function = widening(b.module(), format);
        b.call(function, &[bits])
    });
    widened.unwrap_or_else(|| b.f64(0.0))
}

fn local(module: &mut Module, name: String, sig: FuncSig, write: impl FnOnce(&mut FunctionBuilder<'_>)) -> FuncRef {
    if let Some((known, _)) = module.function_named(&name) {
        return known;
    }
    let func = module.declare(name, sig, Linkage::Local);
    let mut b = FunctionBuilder::new(module, func);
    write(&mut b);
    b.finish()
}

fn half_param() -> AbiParam {
    AbiParam { ext: Extension::Unsigned, ..AbiParam::new(Type::I16) }
}

/// `uint16_t to(double value)`.
fn narrowing(module: &mut Module, format: Format) -> FuncRef {
    let sig = FuncSig { ret: Some(half_param()), ..FuncSig::new([Type::F64], None) };
    local(module, format!("__tvm_ffi_codegen_to_{}", format.name), sig, |b| {
        let Format { significand, bias, .. } = format;
        let (shift, infinite) = (WIDE - significand, b.i64(format.infinite()));
        let bits = b.param(0);
        let bits = b.convert(ConvertOp::Bitcast, Type::I64, bits);
        let sign = b.binary_imm(BinaryOp::LShr, bits, 48);
        let sign = b.binary_imm(BinaryOp::And, sign, 0x8000);
        let magnitude = b.binary_imm(BinaryOp::And, bits, MAGNITUDE);

        // normal number: rebias the exponent, and round the significand with a carry
        let rebiased = b.binary_imm(BinaryOp::Sub, magnitude, (WIDE_BIAS - bias) << WIDE);
        let odd = b.binary_imm(BinaryOp::LShr, rebiased, shift);
        let odd = b.binary_imm(BinaryOp::And, odd, 1);
        let carry = b.binary_imm(BinaryOp::Add, odd, (1 << (shift - 1)) - 1);
        let rounded = b.binary(BinaryOp::Add, rebiased, carry);
        let rounded = b.binary_imm(BinaryOp::LShr, rounded, shift);
        // a number that is too large becomes infinity
        let fits = b.icmp(IntCC::ULt, rounded, infinite);
        let normal = b.select(fits, rounded, infinite);

        // subnormal: a multiple of the smallest one; adding a power of two leaves the multiple in the low bits
        let magic = Format::power(WIDE + 1 - bias - significand);
        let added = b.f64(magic);
        let value = b.convert(ConvertOp::Bitcast, Type::F64, magnitude);
        let sum = b.binary(BinaryOp::FAdd, value, added);
        let sum = b.convert(ConvertOp::Bitcast, Type::I64, sum);
        let multiple = b.binary_imm(BinaryOp::Sub, sum, magic.to_bits() as i64);
        let is_small = b.icmp_imm(IntCC::ULt, magnitude, Format::power(1 - bias).to_bits() as i64);
        let number = b.select(is_small, multiple, normal);

        // a NaN stays a NaN and becomes quiet
        let payload = b.binary_imm(BinaryOp::LShr, magnitude, shift);
        let payload = b.binary_imm(BinaryOp::And, payload, (1 << significand) - 1);
        let quiet = b.binary_imm(BinaryOp::Or, payload, format.infinite() | 1 << (significand - 1));
        let is_nan = b.icmp_imm(IntCC::UGt, magnitude, INFINITE);
        let result = b.select(is_nan, quiet, number);

        let result = b.binary(BinaryOp::Or, result, sign);
        let result = b.convert(ConvertOp::Truncate, Type::I16, result);
        b.ret(Some(result));
    })
}

/// `double from(uint16_t bits)`.
fn widening(module: &mut Module, format: Format) -> FuncRef {
    let sig = FuncSig { params: vec![half_param()], ret: Some(AbiParam::new(Type::F64)) };
    local(module, format!("__tvm_ffi_codegen_from_{}", format.name), sig, |b| {
        let Format { significand, bias, .. } = format;
        let bits = b.param(0);
        let bits = b.convert(ConvertOp::ZExt, Type::I64, bits);
        let sign = b.binary_imm(BinaryOp::LShr, bits, 15);
        let sign = b.binary_imm(BinaryOp::Shl, sign, 63);
        let magnitude = b.binary_imm(BinaryOp::And, bits, 0x7fff);
        let moved = b.binary_imm(BinaryOp::Shl, magnitude, WIDE - significand);
        let normal = b.binary_imm(BinaryOp::Add, moved, (WIDE_BIAS - bias) << WIDE);

        // infinity or NaN
        let largest = b.binary_imm(BinaryOp::Or, moved, INFINITE);
        let is_large = b.icmp_imm(IntCC::UGe, magnitude, format.infinite());
        let number = b.select(is_large, largest, normal);

        // subnormal: a multiple of the smallest one
        let least = b.f64(Format::power(1 - bias - significand));
        let multiple = b.convert(ConvertOp::SIntToFloat, Type::F64, magnitude);
        let multiple = b.binary(BinaryOp::FMul, multiple, least);
        let multiple = b.convert(ConvertOp::Bitcast, Type::I64, multiple);
        let is_small = b.icmp_imm(IntCC::ULt, magnitude, 1 << significand);
        let result = b.select(is_small, multiple, number);

        let result = b.binary(BinaryOp::Or, result, sign);
        let result = b.convert(ConvertOp::Bitcast, Type::F64, result);
        b.ret(Some(result));
    })
}
