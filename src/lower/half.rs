//! `float16` and `bfloat16`: rounding a `double` to their bits, and converting bits to a `double`.
//!
//! Not every target has instructions for them, and the C library's functions (`__truncdfhf2`) would be extra symbols
//! that an artifact needs. So the conversions are integer code, in functions that a module defines once.

use crate::ir::{AbiParam, BinaryOp, ConvertOp, Extension, FuncRef, FuncSig, FunctionBuilder, Module, Type, Value};
use crate::spec::Half;

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
    fn of(half: Half) -> Self {
        match half {
            Half::Float16 => Format { name: "float16", significand: 10, bias: 15 },
            Half::BFloat16 => Format { name: "bfloat16", significand: 7, bias: 127 },
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

/// Rounds a `double` to nearest, ties to even; returns the bits, an `I16`.
pub(super) fn narrow(b: &mut FunctionBuilder<'_>, half: Half, value: Value) -> Value {
    let function = narrowing(b.module(), Format::of(half));
    b.call(function, &[value]).unwrap_or_else(|| b.iconst(Type::I16, 0))
}

/// Converts bits, an `I16`, to a `double`.
pub(super) fn widen(b: &mut FunctionBuilder<'_>, half: Half, bits: Value) -> Value {
    let function = widening(b.module(), Format::of(half));
    b.call(function, &[bits]).unwrap_or_else(|| b.f64(0.0))
}

/// Rounds a `float` to nearest, ties to even; returns the bits, an `I16`.
pub(super) fn of_float32(b: &mut FunctionBuilder<'_>, half: Half, value: Value) -> Value {
    let wide = b.convert(ConvertOp::FPromote, Type::F64, value);
    narrow(b, half, wide)
}

/// Converts bits, an `I16`, to a `float`, which has all values of both formats.
pub(super) fn to_float32(b: &mut FunctionBuilder<'_>, half: Half, bits: Value) -> Value {
    let wide = widen(b, half, bits);
    b.convert(ConvertOp::FDemote, Type::F32, wide)
}

fn half_param() -> AbiParam {
    AbiParam { ext: Extension::Unsigned, ..AbiParam::new(Type::I16) }
}

/// `uint16_t to(double value)`.
fn narrowing(module: &mut Module, format: Format) -> FuncRef {
    let sig = FuncSig { ret: Some(half_param()), ..FuncSig::new([Type::F64], None) };
    module.local_once(&format!("__tvm_ffi_codegen_to_{}", format.name), sig, |c| {
        let Format { significand, bias, .. } = format;
        let (shift, infinite) = (WIDE - significand, c.i64(format.infinite()));
        let bits = c.param(0).convert(ConvertOp::Bitcast, Type::I64);
        let sign = (bits >> 48) & 0x8000;
        let magnitude = bits & MAGNITUDE;

        // normal number: rebias the exponent, and round the significand with a carry
        let rebiased = magnitude - ((WIDE_BIAS - bias) << WIDE);
        let odd = (rebiased >> shift) & 1;
        let carry = odd + ((1_i64 << (shift - 1)) - 1);
        let rounded = (rebiased + carry) >> shift;
        // a number that is too large becomes infinity
        let normal = rounded.ult(infinite).select(rounded, infinite);

        // subnormal: a multiple of the smallest one; adding a power of two leaves the multiple in the low bits
        let magic = Format::power(WIDE + 1 - bias - significand);
        let added = c.value(|b| b.f64(magic));
        let sum = magnitude.convert(ConvertOp::Bitcast, Type::F64).binary(BinaryOp::FAdd, added);
        let multiple = sum.convert(ConvertOp::Bitcast, Type::I64) - magic.to_bits() as i64;
        let is_small = magnitude.ult(Format::power(1 - bias).to_bits() as i64);
        let number = is_small.select(multiple, normal);

        // a NaN stays a NaN and becomes quiet
        let payload = (magnitude >> shift) & ((1_i64 << significand) - 1);
        let quiet = payload | (format.infinite() | 1 << (significand - 1));
        let result = magnitude.ugt(INFINITE).select(quiet, number);
        c.ret((result | sign).convert(ConvertOp::Truncate, Type::I16));
    })
}

/// `double from(uint16_t bits)`.
fn widening(module: &mut Module, format: Format) -> FuncRef {
    let sig = FuncSig { params: vec![half_param()], ret: Some(AbiParam::new(Type::F64)) };
    module.local_once(&format!("__tvm_ffi_codegen_from_{}", format.name), sig, |c| {
        let Format { significand, bias, .. } = format;
        let bits = c.param(0).zext();
        let sign = (bits >> 15) << 63;
        let magnitude = bits & 0x7fff;
        let moved = magnitude << (WIDE - significand);
        let normal = moved + ((WIDE_BIAS - bias) << WIDE);

        // infinity or NaN
        let largest = moved | INFINITE;
        let number = magnitude.uge(format.infinite()).select(largest, normal);

        // subnormal: a multiple of the smallest one
        let min = c.value(|b| b.f64(Format::power(1 - bias - significand)));
        let multiple = magnitude.convert(ConvertOp::SIntToFloat, Type::F64).binary(BinaryOp::FMul, min);
        let multiple = multiple.convert(ConvertOp::Bitcast, Type::I64);
        let result = magnitude.ult(1_i64 << significand).select(multiple, number);
        c.ret((result | sign).convert(ConvertOp::Bitcast, Type::F64));
    })
}
