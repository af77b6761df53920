//! `float16` and `bfloat16` by definition: the value of each bit pattern, and the nearest value of a number. No
//! conversion instruction or library is used.

use tvm_ffi_codegen::ScalarType;

/// The number of stored bits of the significand, and the bias of the exponent.
fn format(ty: ScalarType) -> (i32, i32) {
    match ty {
        ScalarType::Float16 => (10, 15),
        _ => (7, 127),
    }
}

/// The value of a bit pattern.
pub fn value(ty: ScalarType, bits: u16) -> f64 {
    let (significand, bias) = format(ty);
    let stored = i32::from(bits) & ((1 << significand) - 1);
    let exponent = (i32::from(bits) & 0x7fff) >> significand;
    let magnitude = match (exponent, stored) {
        (0, _) => f64::from(stored) * 2f64.powi(1 - bias - significand),
        (exponent, 0) if exponent == 2 * bias + 1 => f64::INFINITY,
        (exponent, _) if exponent == 2 * bias + 1 => f64::NAN,
        _ => f64::from(stored + (1 << significand)) * 2f64.powi(exponent - bias - significand),
    };
    if bits >> 15 == 1 { -magnitude } else { magnitude }
}

/// The bits of the nearest value, with ties rounded to even. A NaN becomes the quiet NaN with its sign; the other bits
/// are lost.
pub fn nearest(ty: ScalarType, number: f64) -> u16 {
    let (significand, bias) = format(ty);
    let infinite = ((2 * bias + 1) << significand) as u16;
    let sign = if number.is_sign_negative() { 0x8000 } else { 0 };
    let number = number.abs();
    if number.is_nan() {
        return sign | infinite | 1 << (significand - 1);
    }
    // find the last value that isn't above the number; beyond the largest finite value, round as if there were one more
    let (mut low, mut high) = (0, infinite);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if value(ty, middle) <= number { low = middle } else { high = middle }
    }
    let next = if high == infinite { 2f64.powi(bias + 1) } else { value(ty, high) };
    let (down, up) = (number - value(ty, low), next - number);
    sign | if down < up || (down == up && low % 2 == 0) { low } else { high }
}
