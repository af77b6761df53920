//! `float16` and `bfloat16` by their definition, without any conversion's code: the values of all bits, and the nearest
//! among them.

use tvm_ffi_codegen::ScalarType;

/// The bits of the significand that are stored, and the exponent's bias.
fn format(ty: ScalarType) -> (i32, i32) {
    match ty {
        ScalarType::Float16 => (10, 15),
        _ => (7, 127),
    }
}

/// The number that bits stand for.
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

/// The bits that a number is rounded to: to nearest, ties to even. Of a NaN they are those of the quiet one, without
/// the rest of its bits.
pub fn nearest(ty: ScalarType, number: f64) -> u16 {
    let (significand, bias) = format(ty);
    let infinite = ((2 * bias + 1) << significand) as u16;
    let sign = if number.is_sign_negative() { 0x8000 } else { 0 };
    let number = number.abs();
    if number.is_nan() {
        return sign | infinite | 1 << (significand - 1);
    }
    // the last that isn't above; what is beyond the largest is rounded as if there were a next one
    let (mut low, mut high) = (0, infinite);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if value(ty, middle) <= number { low = middle } else { high = middle }
    }
    let next = if high == infinite { 2f64.powi(bias + 1) } else { value(ty, high) };
    let (down, up) = (number - value(ty, low), next - number);
    sign | if down < up || (down == up && low % 2 == 0) { low } else { high }
}
