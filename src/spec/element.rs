//! The names of element types, shared by scalars and tensors. They are upstream's dtype names, including short forms
//! such as `f32`, but excluding names without a bit width. Upstream's `float` has 32 bits while Python's has 64.

use std::str::FromStr;

use tvm_ffi_runtime::abi::DLDataType;

use super::scalar::ScalarType;
use crate::names::{self, UnknownName};

/// Names without a bit width, and the names that may be meant.
const WITHOUT_BITS: [(&str, [&str; 2]); 4] = [
    ("int", ["int32", "int64"]),
    ("uint", ["uint32", "uint64"]),
    ("float", ["float32", "float64"]),
    ("bfloat", ["bfloat16", "float16"]),
];

/// The dtype with this name.
///
/// # Errors
/// A description of why there is none.
pub(crate) fn dtype(name: &str) -> Result<DLDataType, String> {
    match without_bits(name) {
        Some(_) => Err(format!("`{name}` states no number of bits")),
        None => name.parse().map_err(|error: tvm_ffi_runtime::dtype::DTypeParseError| error.to_string()),
    }
}

/// The scalar type with this name.
pub(super) fn scalar(name: &str) -> Option<ScalarType> {
    dtype(name).ok().and_then(ScalarType::named_as)
}

/// The possible meanings of a name without a bit width.
pub(super) fn without_bits(name: &str) -> Option<[&'static str; 2]> {
    // for a vector, the part before the lanes
    let name = name.split('x').next()?;
    WITHOUT_BITS.iter().find(|(known, _)| *known == name).map(|(_, meant)| *meant)
}

impl FromStr for ScalarType {
    type Err = UnknownName;

    /// Parses [`ScalarType::name`], or another name of the same dtype, such as `f32`.
    fn from_str(text: &str) -> Result<Self, UnknownName> {
        scalar(text).map_or_else(|| names::find(text, Self::ALL, Self::name), Ok)
    }
}
