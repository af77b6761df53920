//! Which dtypes are accepted instead of others.

use std::fmt;
use std::ops::BitOr;
use std::str::FromStr;

use crate::names::UnknownName;
use tvm_ffi_runtime::abi::{DLDataType, kDLBool, kDLInt, kDLUInt};

/// The dtypes that a tensor may have instead of the stated one. The kernel sees the stated one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct DTypePolicy(u8);

impl DTypePolicy {
    /// Only the stated dtype.
    pub const EXACT: DTypePolicy = DTypePolicy(0);
    /// Integers of the same width, signed or not: `int8` for `uint8`.
    pub const SIGN: DTypePolicy = DTypePolicy(1);
    /// `uint8` for `bool`, and `bool` for `uint8`.
    pub const BOOL: DTypePolicy = DTypePolicy(2);
    /// 8-bit floats of one family: those whose name begins with `float8_e4m3`, and those with `float8_e5m2`.
    pub const FP8: DTypePolicy = DTypePolicy(4);
    /// Any dtype with the same number of bits and lanes: `uint8` for `float8_e4m3fn`.
    pub const STORAGE: DTypePolicy = DTypePolicy(8);

    /// The policies and their names in the text form.
    pub const NAMES: &'static [(DTypePolicy, &'static str)] =
        &[(Self::SIGN, "sign"), (Self::BOOL, "bool"), (Self::FP8, "fp8"), (Self::STORAGE, "storage")];

    /// Whether the policy allows everything that `other` does.
    pub const fn contains(self, other: DTypePolicy) -> bool {
        self.0 & other.0 == other.0
    }

    /// The codes, except its own, of the dtypes that are accepted for `stated`; they have the same bits and lanes.
    /// `None` for any code.
    pub fn codes(self, stated: DLDataType) -> Option<Vec<u8>> {
        if self.contains(Self::STORAGE) {
            return None;
        }
        let byte = stated.bits == 8;
        // float8_e4m3, _e4m3b11fnuz, _e4m3fn, _e4m3fnuz; float8_e5m2, _e5m2fnuz (dlpack.h)
        let groups: [(DTypePolicy, bool, &[u8]); 4] = [
            (Self::SIGN, true, &[kDLInt, kDLUInt]),
            (Self::BOOL, byte, &[kDLUInt, kDLBool]),
            (Self::FP8, byte, &[8, 9, 10, 11]),
            (Self::FP8, byte, &[12, 13]),
        ];
        let mut codes = Vec::new();
        for (policy, fits, group) in groups {
            if self.contains(policy) && fits && group.contains(&stated.code) {
                codes.extend(group.iter().filter(|code| **code != stated.code));
            }
        }
        Some(codes)
    }
}

impl BitOr for DTypePolicy {
    type Output = DTypePolicy;

    fn bitor(self, other: DTypePolicy) -> DTypePolicy {
        DTypePolicy(self.0 | other.0)
    }
}

impl fmt::Display for DTypePolicy {
    /// Writes `exact`, or names joined with `+`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = Self::NAMES.iter().filter(|(p, _)| self.contains(*p)).map(|(_, name)| *name).collect();
        f.write_str(if names.is_empty() { "exact" } else { "" })?;
        f.write_str(&names.join("+"))
    }
}

impl FromStr for DTypePolicy {
    type Err = UnknownName;

    /// Parses `exact`, or names joined with `+`.
    fn from_str(text: &str) -> Result<Self, UnknownName> {
        let named = |name: &str| Self::NAMES.iter().find(|(_, n)| *n == name).map(|(policy, _)| *policy);
        let all = match text {
            "exact" => Some(Self::EXACT),
            _ => text.split('+').try_fold(Self::EXACT, |all, name| Some(all | named(name)?)),
        };
        all.ok_or_else(|| {
            let names: Vec<&str> = Self::NAMES.iter().map(|(_, name)| *name).collect();
            let expected = format!("exact, or some of {} joined by `+`", names.join(", "));
            UnknownName { text: text.to_owned(), expected }
        })
    }
}
