//! Names and sizes of element types: `float32x4` to [`DLDataType`] and back. Prints and parses the same names as
//! upstream's `dtype.cc`, aliases included, and `complex64`, which upstream has no name for. Custom types
//! (`custom[...]`) are errors here: only the C functions know the global functions that name them.
#![allow(non_upper_case_globals)]

use std::fmt;
use std::str::FromStr;

use crate::abi::*;

/// An unknown name of an element type, or an element type without a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DTypeParseError {
    /// No such type.
    #[error("unknown dtype `{0}`")]
    Unknown(String),
    /// Unknown type with eight bits.
    #[error("unknown float8 type `{0}`")]
    UnknownFloat8(String),
    /// Unknown type with six bits.
    #[error("unknown float6 type `{0}`")]
    UnknownFloat6(String),
    /// Unknown type with four bits.
    #[error("unknown float4 type `{0}`")]
    UnknownFloat4(String),
    /// A number that doesn't fit in 32 bits.
    #[error("Integer value in dtype string '{0}' is out of range for uint32_t")]
    NumberOutOfRange(String),
    /// More than 255 bits.
    #[error("Bits value {bits} is out of range for uint8_t in dtype '{dtype}'")]
    BitsOutOfRange {
        /// The number of bits.
        bits: u32,
        /// The whole text.
        dtype: String,
    },
    /// `x` without a positive number.
    #[error("Invalid lanes specification in dtype '{0}'. Lanes must be a positive integer.")]
    InvalidLanes(String),
    /// More than 65535 lanes.
    #[error("Lanes value {lanes} is out of range for uint16_t in dtype '{dtype}'")]
    LanesOutOfRange {
        /// The number of lanes.
        lanes: u32,
        /// The whole text.
        dtype: String,
    },
    /// A custom type.
    #[error("custom dtype `{0}` is not supported")]
    Custom(String),
    /// A type code without a name.
    #[error("DLDataType contains unknown type_code={0}")]
    UnknownCode(u8),
}

macro_rules! dtypes {
    ($($(#[$doc:meta])* $name:ident = ($code:expr, $bits:literal);)*) => {
        impl DLDataType {
            $($(#[$doc])* pub const $name: DLDataType = DLDataType::new($code, $bits, 1);)*
        }
    };
}

dtypes! {
    /// Signed, 8 bits.
    INT8 = (kDLInt, 8);
    /// Signed, 16 bits.
    INT16 = (kDLInt, 16);
    /// Signed, 32 bits.
    INT32 = (kDLInt, 32);
    /// Signed, 64 bits.
    INT64 = (kDLInt, 64);
    /// Unsigned, 8 bits.
    UINT8 = (kDLUInt, 8);
    /// Unsigned, 16 bits.
    UINT16 = (kDLUInt, 16);
    /// Unsigned, 32 bits.
    UINT32 = (kDLUInt, 32);
    /// Unsigned, 64 bits.
    UINT64 = (kDLUInt, 64);
    /// IEEE half precision.
    FLOAT16 = (kDLFloat, 16);
    /// IEEE single precision.
    FLOAT32 = (kDLFloat, 32);
    /// IEEE double precision.
    FLOAT64 = (kDLFloat, 64);
    /// bfloat16.
    BFLOAT16 = (kDLBfloat, 16);
    /// Boolean, one byte.
    BOOL = (kDLBool, 8);
    /// Two `float32`: the real and the imaginary part.
    COMPLEX64 = (kDLComplex, 64);
    /// Two `float64`: the real and the imaginary part.
    COMPLEX128 = (kDLComplex, 128);
    /// Opaque handle, 64 bits.
    HANDLE = (kDLOpaqueHandle, 64);
    /// FP8 E3M4.
    FLOAT8_E3M4 = (kDLFloat8_e3m4, 8);
    /// FP8 E4M3.
    FLOAT8_E4M3 = (kDLFloat8_e4m3, 8);
    /// FP8 E4M3 B11 FNUZ.
    FLOAT8_E4M3B11FNUZ = (kDLFloat8_e4m3b11fnuz, 8);
    /// FP8 E4M3 FN.
    FLOAT8_E4M3FN = (kDLFloat8_e4m3fn, 8);
    /// FP8 E4M3 FNUZ.
    FLOAT8_E4M3FNUZ = (kDLFloat8_e4m3fnuz, 8);
    /// FP8 E5M2.
    FLOAT8_E5M2 = (kDLFloat8_e5m2, 8);
    /// FP8 E5M2 FNUZ.
    FLOAT8_E5M2FNUZ = (kDLFloat8_e5m2fnuz, 8);
    /// FP8 E8M0 FNU.
    FLOAT8_E8M0FNU = (kDLFloat8_e8m0fnu, 8);
    /// FP6 E2M3 FN.
    FLOAT6_E2M3FN = (kDLFloat6_e2m3fn, 6);
    /// FP6 E3M2 FN.
    FLOAT6_E3M2FN = (kDLFloat6_e3m2fn, 6);
    /// FP4 E2M1 FN.
    FLOAT4_E2M1FN = (kDLFloat4_e2m1fn, 4);
}

impl DLDataType {
    /// The type `void`: a handle of zero bits and lanes.
    pub const VOID: DLDataType = DLDataType::new(kDLOpaqueHandle, 0, 0);

    /// A type from its code, bits per lane and lanes.
    #[inline]
    pub const fn new(code: u8, bits: u8, lanes: u16) -> Self {
        Self { code, bits, lanes }
    }

    /// The same type with another number of lanes.
    #[inline]
    #[must_use]
    pub const fn with_lanes(self, lanes: u16) -> Self {
        Self { lanes, ..self }
    }

    /// Bits of one element: bits per lane times lanes.
    #[inline]
    pub const fn bits_per_element(self) -> usize {
        self.bits as usize * self.lanes as usize
    }

    /// Bytes of one element, rounded up; arrays of types below a byte are packed closer.
    #[inline]
    pub const fn itemsize(self) -> usize {
        self.bits_per_element().div_ceil(8)
    }

    /// The name as upstream prints it.
    ///
    /// # Errors
    /// [`DTypeParseError::UnknownCode`] or [`DTypeParseError::Custom`] if upstream throws.
    pub fn name(self) -> Result<String, DTypeParseError> {
        if self == Self::BOOL {
            return Ok("bool".to_owned());
        }
        if self == Self::VOID {
            return Ok(String::new());
        }
        if self.code >= kDLExtCustomBegin {
            return Err(DTypeParseError::Custom(format!("custom[{}]", self.code)));
        }
        let base = Self::code_name(self.code).ok_or(DTypeParseError::UnknownCode(self.code))?;
        Ok(self.name_with(base))
    }

    /// The name that begins with the name of the type's code.
    pub(crate) fn name_with(self, base: &str) -> String {
        let mut name = base.to_owned();
        if self.code == kDLOpaqueHandle {
            return name;
        }
        if self.code < kDLFloat8_e3m4 && (self.code != kDLBool || self.bits != 8) {
            name.push_str(&self.bits.to_string());
        }
        let lanes = i32::from(self.lanes.cast_signed());
        if lanes > 1 {
            name.push_str(&format!("x{lanes}"));
        } else if lanes < -1 {
            name.push_str(&format!("xvscalex{}", -lanes));
        }
        name
    }

    /// Reads a name that upstream knows. Complex types have none.
    ///
    /// # Errors
    /// Those of [`FromStr`], for the same reasons.
    pub fn from_upstream_name(text: &str) -> Result<Self, DTypeParseError> {
        let dtype: Self = text.parse()?;
        if dtype.code == kDLComplex { Err(DTypeParseError::Unknown(text.to_owned())) } else { Ok(dtype) }
    }

    /// Upstream's name of a type code, with which the names of its types begin. `None` if upstream has no name for it.
    pub const fn code_name(code: u8) -> Option<&'static str> {
        Some(match code {
            kDLInt => "int",
            kDLUInt => "uint",
            kDLFloat => "float",
            kDLOpaqueHandle => "handle",
            kDLBfloat => "bfloat",
            kDLBool => "bool",
            kDLFloat8_e3m4 => "float8_e3m4",
            kDLFloat8_e4m3 => "float8_e4m3",
            kDLFloat8_e4m3b11fnuz => "float8_e4m3b11fnuz",
            kDLFloat8_e4m3fn => "float8_e4m3fn",
            kDLFloat8_e4m3fnuz => "float8_e4m3fnuz",
            kDLFloat8_e5m2 => "float8_e5m2",
            kDLFloat8_e5m2fnuz => "float8_e5m2fnuz",
            kDLFloat8_e8m0fnu => "float8_e8m0fnu",
            kDLFloat6_e2m3fn => "float6_e2m3fn",
            kDLFloat6_e3m2fn => "float6_e3m2fn",
            kDLFloat4_e2m1fn => "float4_e2m1fn",
            _ => return None,
        })
    }
}

impl fmt::Display for DLDataType {
    /// Prints upstream's name, or that of a complex type, such as `complex64`. Any other type prints as its three
    /// fields.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Ok(name) => f.pad(&name),
            Err(_) if self.code == kDLComplex => f.pad(&self.name_with("complex")),
            Err(_) => write!(f, "dtype(code={}, bits={}, lanes={})", self.code, self.bits, self.lanes),
        }
    }
}

/// FP8 variants. If one name begins with another, the longer one comes first.
const FLOAT8: &[(&str, u8)] = &[
    ("e4m3b11fnuz", kDLFloat8_e4m3b11fnuz),
    ("e4m3fnuz", kDLFloat8_e4m3fnuz),
    ("e4m3fn", kDLFloat8_e4m3fn),
    ("e5m2fnuz", kDLFloat8_e5m2fnuz),
    ("e8m0fnu", kDLFloat8_e8m0fnu),
    ("e3m4", kDLFloat8_e3m4),
    ("e4m3", kDLFloat8_e4m3),
    ("e5m2", kDLFloat8_e5m2),
];
const FLOAT6: &[(&str, u8)] = &[("e2m3fn", kDLFloat6_e2m3fn), ("e3m2fn", kDLFloat6_e3m2fn)];
const FLOAT4: &[(&str, u8)] = &[("e2m1fn", kDLFloat4_e2m1fn)];

impl FromStr for DLDataType {
    type Err = DTypeParseError;

    /// Reads a type name. The empty text and `void` are [`DLDataType::VOID`].
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() || text == "void" {
            return Ok(Self::VOID);
        }
        let strip = |prefixes: &[&str]| prefixes.iter().find_map(|p| text.strip_prefix(p));
        if let Some(rest) = strip(&["fp8_", "f8_", "float8_"]) {
            return parse_variant(text, rest, FLOAT8, 8)?
                .ok_or_else(|| DTypeParseError::UnknownFloat8(text.to_owned()));
        }
        if let Some(rest) = strip(&["fp6_", "f6_", "float6_"]) {
            return parse_variant(text, rest, FLOAT6, 6)?
                .ok_or_else(|| DTypeParseError::UnknownFloat6(text.to_owned()));
        }
        if let Some(rest) = strip(&["fp4_", "f4_", "float4_"]) {
            return parse_variant(text, rest, FLOAT4, 4)?
                .ok_or_else(|| DTypeParseError::UnknownFloat4(text.to_owned()));
        }
        // Long names may omit the number of bits; short ones may not.
        const NAMES: &[(&str, u8, u8, bool)] = &[
            ("int", kDLInt, 32, false),
            ("uint", kDLUInt, 32, false),
            ("bool", kDLBool, 8, false),
            ("float", kDLFloat, 32, false),
            ("handle", kDLOpaqueHandle, 64, false),
            ("bfloat", kDLBfloat, 16, false),
            ("i", kDLInt, 32, true),
            ("u", kDLUInt, 32, true),
            ("f", kDLFloat, 32, true),
            ("bf", kDLBfloat, 16, true),
            ("complex", kDLComplex, 64, true),
        ];
        for &(name, code, default_bits, needs_digit) in NAMES {
            let Some(rest) = text.strip_prefix(name) else {
                continue;
            };
            if needs_digit && !rest.starts_with(|c: char| c.is_ascii_digit()) {
                continue;
            }
            return with_code(text, rest, code, default_bits);
        }
        if text.starts_with("custom") {
            return Err(DTypeParseError::Custom(text.to_owned()));
        }
        Err(DTypeParseError::Unknown(text.to_owned()))
    }
}

/// The name in the brackets of a custom type `custom[name]8x4`, and the bits and lanes after them.
pub(crate) fn custom_parts(text: &str) -> Option<(&str, &str)> {
    text.strip_prefix("custom[")?.split_once(']')
}

/// The type of a code, whose bits and lanes follow its name.
pub(crate) fn with_code(text: &str, rest: &str, code: u8, default_bits: u8) -> Result<DLDataType, DTypeParseError> {
    let (bits, rest) = parse_digits(rest)?;
    let bits = u8::try_from(bits).map_err(|_| DTypeParseError::BitsOutOfRange { bits, dtype: text.to_owned() })?;
    let bits = if bits == 0 { default_bits } else { bits };
    Ok(DLDataType::new(code, bits, parse_lanes(text, rest, true)?))
}

fn parse_variant(
    text: &str,
    rest: &str,
    variants: &[(&str, u8)],
    bits: u8,
) -> Result<Option<DLDataType>, DTypeParseError> {
    for &(name, code) in variants {
        let Some(tail) = rest.strip_prefix(name) else {
            continue;
        };
        // PyTorch writes `float4_e2m1fn_x2`. Only this type allows an underscore before the lanes.
        let (tail, underscore) = match tail.strip_prefix('_') {
            Some(tail) if bits == 4 => (tail, true),
            _ => (tail, false),
        };
        if underscore || tail.is_empty() || tail.starts_with('x') {
            let lanes = parse_lanes(text, tail, false)?;
            return Ok(Some(DLDataType::new(code, bits, lanes)));
        }
    }
    Ok(None)
}

/// Leading decimal digits as a number (zero if there are none), and the rest.
fn parse_digits(text: &str) -> Result<(u32, &str), DTypeParseError> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    if digits.is_empty() {
        return Ok((0, rest));
    }
    match digits.parse() {
        Ok(value) => Ok((value, rest)),
        Err(_) => Err(DTypeParseError::NumberOutOfRange(digits.to_owned())),
    }
}

/// The lanes at the end of a name: nothing, `x4`, or `xvscalex4` if scalable vectors are allowed.
fn parse_lanes(text: &str, rest: &str, scalable: bool) -> Result<u16, DTypeParseError> {
    let (rest, negative) = match rest.strip_prefix("xvscale") {
        Some(tail) if scalable => (tail, true),
        _ => (rest, false),
    };
    let Some(digits) = rest.strip_prefix('x') else {
        if rest.is_empty() {
            return Ok(1);
        }
        return Err(DTypeParseError::Unknown(text.to_owned()));
    };
    let (lanes, tail) = parse_digits(digits)?;
    if lanes == 0 {
        return Err(DTypeParseError::InvalidLanes(text.to_owned()));
    }
    let lanes = u16::try_from(lanes).map_err(|_| DTypeParseError::LanesOutOfRange { lanes, dtype: text.to_owned() })?;
    if !tail.is_empty() {
        return Err(DTypeParseError::Unknown(text.to_owned()));
    }
    Ok(if negative { lanes.wrapping_neg() } else { lanes })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn parse(text: &str) -> DLDataType {
        text.parse().unwrap()
    }

    #[test]
    fn names_round_trip() {
        for name in [
            "int8",
            "int64",
            "uint16",
            "float32",
            "float16",
            "bfloat16",
            "bool",
            "handle",
            "float8_e4m3fn",
            "float8_e4m3b11fnuz",
            "float6_e2m3fn",
            "float4_e2m1fn",
            "float4_e2m1fnx2",
            "complex64",
            "complex128x2",
            "float32x4",
            "int8xvscalex4",
            "boolx4",
            "",
        ] {
            assert_eq!(parse(name).to_string(), name);
        }
    }

    #[test]
    fn aliases_and_defaults() {
        assert_eq!(parse("i8"), DLDataType::INT8);
        assert_eq!(parse("u32"), DLDataType::UINT32);
        assert_eq!(parse("f16"), DLDataType::FLOAT16);
        assert_eq!(parse("bf16"), DLDataType::BFLOAT16);
        assert_eq!(parse("float"), DLDataType::FLOAT32);
        assert_eq!(parse("int"), DLDataType::INT32);
        assert_eq!(parse("bfloat"), DLDataType::BFLOAT16);
        assert_eq!(parse("fp8_e4m3"), DLDataType::FLOAT8_E4M3);
        assert_eq!(parse("f8_e5m2"), DLDataType::FLOAT8_E5M2);
        assert_eq!(parse("float4_e2m1fn_x2"), DLDataType::FLOAT4_E2M1FN.with_lanes(2));
        assert_eq!(parse("void"), DLDataType::VOID);
        assert_eq!(parse("bool"), DLDataType::BOOL);
    }

    #[test]
    fn errors_are_typed() {
        let error = |text: &str| text.parse::<DLDataType>().unwrap_err();
        assert_eq!(error("nope"), DTypeParseError::Unknown("nope".into()));
        assert_eq!(error("int8y"), DTypeParseError::Unknown("int8y".into()));
        assert_eq!(error("f"), DTypeParseError::Unknown("f".into()));
        assert!(matches!(error("int256"), DTypeParseError::BitsOutOfRange { .. }));
        assert!(matches!(error("int8x0"), DTypeParseError::InvalidLanes(_)));
        assert!(matches!(error("int8x"), DTypeParseError::InvalidLanes(_)));
        assert!(matches!(error("int8x65536"), DTypeParseError::LanesOutOfRange { .. }));
        assert!(matches!(error("int99999999999"), DTypeParseError::NumberOutOfRange(_)));
        assert!(matches!(error("float8_e9"), DTypeParseError::UnknownFloat8(_)));
        assert!(matches!(error("float8_e4m3_x2"), DTypeParseError::UnknownFloat8(_)));
        assert!(matches!(error("custom[x]"), DTypeParseError::Custom(_)));
        assert_eq!(error("complex"), DTypeParseError::Unknown("complex".into()));
        assert_eq!(DLDataType::COMPLEX64.name(), Err(DTypeParseError::UnknownCode(kDLComplex)));
        assert_eq!(DLDataType::from_upstream_name("complex64"), Err(DTypeParseError::Unknown("complex64".into())));
    }

    #[test]
    fn sizes_round_up_to_bytes() {
        assert_eq!(DLDataType::FLOAT4_E2M1FN.bits_per_element(), 4);
        assert_eq!(DLDataType::FLOAT4_E2M1FN.itemsize(), 1);
        assert_eq!(DLDataType::FLOAT6_E2M3FN.with_lanes(4).itemsize(), 3);
        assert_eq!(DLDataType::FLOAT32.with_lanes(4).itemsize(), 16);
    }
}
