//! Types of the IR: those of values, parameters and memory accesses.
//!
//! A pointer is a separate type, never an integer, so backends can keep provenance (LLVM) or fold addresses
//! (Cranelift). `Bool` exists only for values: it is neither loaded nor stored.

use std::fmt;

/// The type of an SSA value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Type {
    /// A truth value; the result of comparisons. Not a memory type.
    Bool,
    /// An 8-bit integer without a sign; operations define how they interpret it.
    I8,
    /// A 16-bit integer.
    I16,
    /// A 32-bit integer.
    I32,
    /// A 64-bit integer.
    I64,
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary64.
    F64,
    /// A 64-bit pointer.
    Ptr,
}

impl Type {
    /// Size in memory, in bytes; 1 for `Bool`, although it can't be stored.
    pub const fn bytes(self) -> u32 {
        match self {
            Type::Bool | Type::I8 => 1,
            Type::I16 => 2,
            Type::I32 | Type::F32 => 4,
            Type::I64 | Type::F64 | Type::Ptr => 8,
        }
    }

    /// Width in bits; 1 for `Bool`.
    pub const fn bits(self) -> u32 {
        match self {
            Type::Bool => 1,
            other => other.bytes() * 8,
        }
    }

    /// Whether the type is `I8`, `I16`, `I32` or `I64`.
    pub const fn is_int(self) -> bool {
        matches!(self, Type::I8 | Type::I16 | Type::I32 | Type::I64)
    }

    /// Whether the type is `F32` or `F64`.
    pub const fn is_float(self) -> bool {
        matches!(self, Type::F32 | Type::F64)
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Type::Bool => "bool",
            Type::I8 => "i8",
            Type::I16 => "i16",
            Type::I32 => "i32",
            Type::I64 => "i64",
            Type::F32 => "f32",
            Type::F64 => "f64",
            Type::Ptr => "ptr",
        })
    }
}

/// The extension of a narrow integer to its register at a call: C callees rely on it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Extension {
    /// The upper bits are unspecified, or there are none.
    #[default]
    None,
    /// Sign-extended: C's `int8_t`, `int16_t`, `int32_t`.
    Signed,
    /// Zero-extended: C's `uint8_t`, `uint16_t`, `uint32_t`, `bool`.
    Unsigned,
}

/// One parameter or result of a [`FuncSig`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AbiParam {
    /// The value's type; never `Bool`.
    pub ty: Type,
    /// The extension of a narrow integer.
    pub ext: Extension,
    /// An `I32` or `I64` that is a struct of this size in C: it holds the bits that a load of the struct would return.
    /// A parameter is passed as the integer, as on every supported target. A result is returned as the target's C ABI
    /// returns structs.
    pub aggregate: bool,
}

impl AbiParam {
    /// A parameter without extension.
    pub const fn new(ty: Type) -> Self {
        AbiParam { ty, ext: Extension::None, aggregate: false }
    }

    /// A sign-extended integer.
    pub const fn signed(ty: Type) -> Self {
        AbiParam { ty, ext: Extension::Signed, aggregate: false }
    }

    /// A C struct of the integer's size.
    pub const fn aggregate(ty: Type) -> Self {
        AbiParam { ty, ext: Extension::None, aggregate: true }
    }

    /// A zero-extended integer.
    pub const fn unsigned(ty: Type) -> Self {
        AbiParam { ty, ext: Extension::Unsigned, aggregate: false }
    }
}

impl fmt::Display for AbiParam {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.ty)?;
        if self.aggregate {
            f.write_str(" struct")?;
        }
        match self.ext {
            Extension::None => Ok(()),
            Extension::Signed => f.write_str(" sext"),
            Extension::Unsigned => f.write_str(" zext"),
        }
    }
}

/// Facts about a pointer parameter at the function's call; they hold until it returns. By default nothing is known.
///
/// The interpreter traps if a fact doesn't hold, except for `noalias` and `readonly`, which it can't check.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PointerFacts {
    /// It isn't null.
    pub nonnull: bool,
    /// Memory that the function accesses through the pointer is accessed in no other way, if it is written at all.
    pub noalias: bool,
    /// Nothing is written through it.
    pub readonly: bool,
    /// The number of bytes at the pointer that can be read at any time; 0 if unknown.
    pub dereferenceable: u32,
    /// The address is a multiple of this power of two.
    pub align: u32,
}

impl PointerFacts {
    /// Nothing is known.
    pub const NONE: PointerFacts =
        PointerFacts { nonnull: false, noalias: false, readonly: false, dereferenceable: 0, align: 1 };
}

impl Default for PointerFacts {
    fn default() -> Self {
        Self::NONE
    }
}

impl fmt::Display for PointerFacts {
    /// Prints each fact after a space.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (holds, name) in [(self.nonnull, "nonnull"), (self.noalias, "noalias"), (self.readonly, "readonly")] {
            if holds {
                write!(f, " {name}")?;
            }
        }
        if self.dereferenceable > 0 {
            write!(f, " dereferenceable {}", self.dereferenceable)?;
        }
        if self.align != 1 { write!(f, " align {}", self.align) } else { Ok(()) }
    }
}

/// The signature of a function, in the target's C calling convention.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct FuncSig {
    /// Parameters, in order.
    pub params: Vec<AbiParam>,
    /// The result, if the function returns one.
    pub ret: Option<AbiParam>,
}

impl FuncSig {
    /// A signature from parameter types and a result, all without extension.
    pub fn new(params: impl IntoIterator<Item = Type>, ret: Option<Type>) -> Self {
        FuncSig { params: params.into_iter().map(AbiParam::new).collect(), ret: ret.map(AbiParam::new) }
    }

    /// The signature of a C function whose `I32` are all `int32_t`.
    pub fn c(params: impl IntoIterator<Item = Type>, ret: Option<Type>) -> Self {
        let param = |ty| if ty == Type::I32 { AbiParam::signed(ty) } else { AbiParam::new(ty) };
        FuncSig { params: params.into_iter().map(param).collect(), ret: ret.map(param) }
    }
}

impl fmt::Display for FuncSig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        for (i, p) in self.params.iter().enumerate() {
            let sep = if i == 0 { "" } else { ", " };
            write!(f, "{sep}{p}")?;
        }
        f.write_str(")")?;
        match &self.ret {
            Some(r) => write!(f, " -> {r}"),
            None => Ok(()),
        }
    }
}
