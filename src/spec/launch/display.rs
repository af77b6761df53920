//! The text form of launches, written. The grammar is in `docs/signatures.md`; `text::launch` reads it.

use std::fmt::{self, Display, Formatter};

use super::{Interleave, L2Promotion, Launch, LaunchArg, LaunchedSignature, Swizzle, TensorMap};
use crate::spec::dim::Dim;

impl Display for LaunchedSignature {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} @ {}", self.signature, self.launch)
    }
}

impl Display for Launch {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("launch ")?;
        match is_name(&self.entry) {
            true => f.write_str(&self.entry)?,
            false => write!(f, "\"{}\"", self.entry)?,
        }
        for (name, extents) in [("grid", &self.grid), ("block", &self.block)] {
            if *extents != [Dim::Const(1)] {
                write!(f, " {name}={}", Extents(extents))?;
            }
        }
        for (name, extents) in [("cluster", &self.cluster), ("preferred_cluster", &self.preferred_cluster)] {
            if !extents.is_empty() {
                write!(f, " {name}={}", Extents(extents))?;
            }
        }
        if self.shared != Dim::Const(0) {
            write!(f, " shared={}", self.shared)?;
        }
        if let Some(args) = &self.args {
            write!(f, " args=[{}]", Listed(args))?;
        }
        if let Some(priority) = self.priority {
            write!(f, " priority={priority}")?;
        }
        let flags = [
            (self.flags.cooperative, "cooperative"),
            (self.flags.programmatic, "programmatic"),
            (self.flags.non_portable_cluster, "non_portable_cluster"),
        ];
        flags.into_iter().filter(|(is, _)| *is).try_for_each(|(_, name)| write!(f, " {name}"))
    }
}

/// Whether the entry is one name of the text form.
fn is_name(entry: &str) -> bool {
    let mut bytes = entry.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'$'))
}

/// One extent as it is, and several in parentheses.
struct Extents<'a>(&'a [Dim]);

impl Display for Extents<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            [one] => write!(f, "{one}"),
            all => write!(f, "({})", Listed(all)),
        }
    }
}

/// Parts with commas between.
struct Listed<'a, T>(&'a [T]);

impl<T: Display> Display for Listed<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut sep = "";
        self.0.iter().try_for_each(|part| write!(f, "{}{part}", std::mem::replace(&mut sep, ", ")))
    }
}

impl Display for LaunchArg {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            LaunchArg::Param(name) if name == "null" => write!(f, "param({name})"),
            LaunchArg::Param(name) => f.write_str(name),
            LaunchArg::Cast(name, ty) => write!(f, "cast({name}, {ty})"),
            LaunchArg::Int(dim, ty) => write!(f, "{ty}({dim})"),
            LaunchArg::Float(bits, ty) => match bits.value() {
                value if value.is_nan() => write!(f, "{ty}(nan)"),
                value => write!(f, "{ty}({value:?})"),
            },
            LaunchArg::Stride(name, number, ty) => write!(f, "{ty}({name}.strides[{number}])"),
            LaunchArg::DeviceId(name) => write!(f, "{name}.device_id"),
            LaunchArg::Null => f.write_str("null"),
            LaunchArg::Struct { size, align, fields } => {
                write!(f, "struct(size={size}, align={align}")?;
                fields.iter().try_for_each(|(offset, field)| write!(f, ", {offset}: {field}"))?;
                f.write_str(")")
            }
            LaunchArg::Scratch { bytes, align } => write!(f, "scratch({bytes}, align={align})"),
            LaunchArg::TensorMap(map) => map.fmt(f),
        }
    }
}

impl Display for TensorMap {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "tensor_map({}, box={}", self.tensor, Extents(&self.box_dims))?;
        match self.element_strides.as_slice() {
            [] => {}
            [one] => write!(f, ", element_strides={one}")?,
            all => write!(f, ", element_strides=({})", Listed(all))?,
        }
        let numbers = [
            ("interleave", self.interleave.bytes()),
            ("swizzle", self.swizzle.bytes()),
            ("l2_promotion", self.l2_promotion.bytes()),
        ];
        numbers
            .into_iter()
            .filter(|(_, bytes)| *bytes != 0)
            .try_for_each(|(name, bytes)| write!(f, ", {name}={bytes}"))?;
        f.write_str(if self.nan_fill { ", fill=nan)" } else { ")" })
    }
}

impl Interleave {
    /// All of them.
    pub const ALL: [Self; 3] = [Interleave::None, Interleave::Bytes16, Interleave::Bytes32];

    /// The bytes of an interleaved slice; 0 for none.
    pub const fn bytes(self) -> u32 {
        match self {
            Interleave::None => 0,
            Interleave::Bytes16 => 16,
            Interleave::Bytes32 => 32,
        }
    }
}

impl Swizzle {
    /// All of them.
    pub const ALL: [Self; 4] = [Swizzle::None, Swizzle::Bytes32, Swizzle::Bytes64, Swizzle::Bytes128];

    /// The bytes that are swizzled together; 0 for none.
    pub const fn bytes(self) -> u32 {
        match self {
            Swizzle::None => 0,
            Swizzle::Bytes32 => 32,
            Swizzle::Bytes64 => 64,
            Swizzle::Bytes128 => 128,
        }
    }
}

impl L2Promotion {
    /// All of them.
    pub const ALL: [Self; 4] = [L2Promotion::None, L2Promotion::Bytes64, L2Promotion::Bytes128, L2Promotion::Bytes256];

    /// The bytes that are fetched together; 0 for no promotion.
    pub const fn bytes(self) -> u32 {
        match self {
            L2Promotion::None => 0,
            L2Promotion::Bytes64 => 64,
            L2Promotion::Bytes128 => 128,
            L2Promotion::Bytes256 => 256,
        }
    }
}
