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
        f.write_str(self.word())
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

/// The number of bytes of a struct whose scalars any C ABI looks at: four doubles.
const SEEN: usize = 32;

/// The layout of a C struct, as far as the C ABIs of all targets need it: size, alignment, and the scalars of structs
/// of up to 32 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct StructLayout {
    size: u32,
    align: u32,
    /// The scalar that begins at each byte. Empty for a larger struct.
    scalars: [Option<Type>; SEEN],
}

impl StructLayout {
    /// The alignment of the bytes of a struct by value: the maximum of structs, which Windows requires of all copies.
    pub const ADDRESS_ALIGN: u32 = 16;

    /// A struct with a size and an alignment in bytes and with scalars, each with its offset: those of nested structs,
    /// and each byte of an array of bytes. Bytes that C adds for alignment are not scalars.
    ///
    /// Returns `None` for scalars that are outside of the struct, overlap, or aren't aligned to their size; for a size
    /// of 0 or one that isn't a multiple of the alignment; for an alignment that isn't a power of two up to 16.
    pub fn new(size: u32, align: u32, scalars: impl IntoIterator<Item = (u32, Type)>) -> Option<Self> {
        if size == 0 || !align.is_power_of_two() || align > Self::ADDRESS_ALIGN || !size.is_multiple_of(align) {
            return None;
        }
        let mut all: Vec<(u32, Type)> = scalars.into_iter().collect();
        all.sort_by_key(|(offset, _)| *offset);
        let mut layout = StructLayout { size, align, scalars: [None; SEEN] };
        let mut end = 0;
        for (offset, ty) in all {
            if ty == Type::Bool || offset < end || !offset.is_multiple_of(ty.bytes()) {
                return None;
            }
            end = offset.checked_add(ty.bytes()).filter(|end| *end <= size)?;
            if size as usize <= SEEN {
                layout.scalars[offset as usize] = Some(ty);
            }
        }
        Some(layout)
    }

    /// The size in bytes.
    pub const fn size(&self) -> u32 {
        self.size
    }

    /// The alignment in bytes.
    pub const fn align(&self) -> u32 {
        self.align
    }

    /// The scalars with their offsets, in order; none for a struct of more than 32 bytes.
    pub fn scalars(&self) -> impl Iterator<Item = (u32, Type)> + Clone + '_ {
        (0u32..).zip(&self.scalars).filter_map(|(offset, ty)| ty.map(|ty| (offset, ty)))
    }
}

impl fmt::Display for StructLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "struct(size={}, align={}", self.size, self.align)?;
        self.scalars().try_for_each(|(offset, ty)| write!(f, ", {offset}: {ty}"))?;
        f.write_str(")")
    }
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
    /// A `Ptr` that is a struct by value in C: the address of its bytes, a multiple of
    /// [`StructLayout::ADDRESS_ALIGN`]. Bytes up to the next multiple of 8 are readable, and the call may change all of
    /// them. Only parameters of imports and of indirect calls are structs. The backend passes them as the target's C
    /// ABI does.
    pub by_value: Option<StructLayout>,
}

impl AbiParam {
    /// A parameter without extension.
    pub const fn new(ty: Type) -> Self {
        AbiParam { ty, ext: Extension::None, aggregate: false, by_value: None }
    }

    /// A sign-extended integer.
    pub const fn signed(ty: Type) -> Self {
        AbiParam { ext: Extension::Signed, ..Self::new(ty) }
    }

    /// A C struct of the integer's size.
    pub const fn aggregate(ty: Type) -> Self {
        AbiParam { aggregate: true, ..Self::new(ty) }
    }

    /// A struct by value, given by the address of its bytes.
    pub const fn by_value(layout: StructLayout) -> Self {
        AbiParam { by_value: Some(layout), ..Self::new(Type::Ptr) }
    }

    /// A zero-extended integer.
    pub const fn unsigned(ty: Type) -> Self {
        AbiParam { ext: Extension::Unsigned, ..Self::new(ty) }
    }
}

impl fmt::Display for AbiParam {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.ty)?;
        if self.aggregate {
            f.write_str(" struct")?;
        }
        if let Some(layout) = &self.by_value {
            write!(f, " {layout}")?;
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn signatures_show_structs() {
        let layout = StructLayout::new(16, 8, [(0, Type::F64), (8, Type::I32)]).unwrap();
        let sig = FuncSig { params: vec![AbiParam::by_value(layout), AbiParam::signed(Type::I8)], ret: None };
        assert_eq!(sig.to_string(), "(ptr struct(size=16, align=8, 0: f64, 8: i32), i8 sext)");
    }

    #[test]
    fn layouts_are_checked() {
        let new = |size, align, scalars: &[(u32, Type)]| StructLayout::new(size, align, scalars.iter().copied());
        let layout = new(16, 8, &[(8, Type::F64), (0, Type::I32)]).unwrap();
        assert_eq!(layout.to_string(), "struct(size=16, align=8, 0: i32, 8: f64)");
        assert_eq!(new(40, 8, &[(32, Type::F64)]).unwrap().to_string(), "struct(size=40, align=8)");
        assert!(new(1, 1, &[]).is_some());
        for wrong in [
            new(0, 1, &[]),
            new(12, 8, &[]),
            new(12, 3, &[]),
            new(32, 32, &[]),
            new(8, 8, &[(4, Type::I64)]),
            new(8, 8, &[(2, Type::I32)]),
            new(8, 8, &[(0, Type::I64), (4, Type::I32)]),
            new(8, 8, &[(0, Type::Bool)]),
            new(8, 8, &[(u32::MAX, Type::I8)]),
        ] {
            assert_eq!(wrong, None);
        }
    }
}
