//! The capabilities that descriptors and message templates require of the runtime helpers. An object contains only
//! those parts of the helpers that it needs.

use super::descriptor::TypeKind;
use super::template::Directive;

/// A capability: the kind of a type, a directive of a template, or another feature.
pub(in crate::lower) trait CapabilityBit: Copy {
    /// Its number among all capabilities.
    fn bit(self) -> u32;
}

/// Declares capabilities, with the list of all of them.
macro_rules! capabilities {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// A capability that fields of descriptors require.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u32)]
        pub(in crate::lower) enum Capability {
            $($(#[$doc])* $name,)*
        }

        impl Capability {
            /// All of them, in the order of their numbers.
            pub(in crate::lower) const ALL: &'static [Self] = &[$(Self::$name),*];
        }
    };
}

capabilities! {
    /// The key of a result's type has to be looked up.
    ResultKey,
    /// Defaults; strings among them; byte strings among them.
    Default,
    DefaultStr,
    DefaultBytes,
    /// Pass on the caller's own arguments.
    ForwardArgs,
    Constraint,
    /// Sizes of a returned tensor.
    ResultDim,
    /// Elements of containers are checked.
    Elements,
    /// Dimensions that are numbers; variables; expressions.
    Const,
    Var,
    Expr,
    /// Integers of fewer than 64 bits; integers that are variables; floats of fewer bits.
    Narrow,
    IntVar,
    Float32,
    /// A shape's length is stated.
    ShapeRank,
    /// Objects with a known type index; with only a type key.
    ObjectIndex,
    ObjectKey,
    /// Tensors: of a stated rank; of any rank; with strides that are stated, arbitrary, or contiguous.
    Ranked,
    AnyRank,
    Strided,
    AnyStrides,
    Compact,
    /// Other dtypes accepted in place of a stated one; any dtype.
    DTypeCodes,
    SameStorage,
    AnyDType,
    /// A stated kind of device; any kind; a stated id; any id; the id of another tensor.
    DeviceType,
    AnyDevice,
    DeviceId,
    AnyDeviceId,
    SameDevice,
    /// Data pointers that are handles.
    Opaque,
    /// `byte_offset` has to become 0.
    Fold,
    /// Values that aren't arguments.
    Values,
    /// Report the subject of a failed check by its number, for the source location of the error.
    Places,
    /// Functions among the operations of expressions.
    DimFunction,
}

const FIRST_DIRECTIVE: u32 = TypeKind::ALL.len() as u32;
const FIRST_OTHER: u32 = FIRST_DIRECTIVE + Directive::ALL.len() as u32;
const _: () = assert!(FIRST_OTHER + (Capability::ALL.len() as u32) <= u128::BITS);

impl CapabilityBit for TypeKind {
    fn bit(self) -> u32 {
        self as u32
    }
}

impl CapabilityBit for Directive {
    fn bit(self) -> u32 {
        FIRST_DIRECTIVE + self as u32
    }
}

impl CapabilityBit for Capability {
    fn bit(self) -> u32 {
        FIRST_OTHER + self as u32
    }
}

/// The set of capabilities that wrappers need of the runtime helpers. Helpers compiled for a set also support every
/// subset.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Capabilities(u128);

impl Capabilities {
    /// All capabilities, for helpers that support wrappers still to come.
    pub const ALL: Self = Capabilities(u128::MAX);

    /// The set of one capability.
    pub(in crate::lower) fn of(capability: impl CapabilityBit) -> Self {
        Capabilities(1 << capability.bit())
    }

    pub(in crate::lower) fn add(&mut self, capability: impl CapabilityBit) {
        self.0 |= 1 << capability.bit();
    }

    /// Adds a capability if `asked` holds.
    pub(in crate::lower) fn add_if(&mut self, asked: bool, capability: impl CapabilityBit) {
        if asked {
            self.add(capability);
        }
    }

    pub(in crate::lower) fn add_all(&mut self, others: Self) {
        self.0 |= others.0;
    }

    /// Whether helpers with these capabilities support wrappers that need the others.
    pub fn covers(self, others: Self) -> bool {
        others.0 & !self.0 == 0
    }

    /// The set as a number, for names that encode it.
    #[cfg(feature = "_engine")]
    pub(in crate::lower) fn bits(self) -> u128 {
        self.0
    }

    /// The set of a [number](Self::bits).
    #[cfg(feature = "_engine")]
    pub(in crate::lower) fn from_bits(bits: u128) -> Self {
        Capabilities(bits)
    }

    /// The capabilities of both sets.
    #[must_use]
    pub fn union(self, others: Self) -> Self {
        Capabilities(self.0 | others.0)
    }

    pub(in crate::lower) fn has(self, capability: impl CapabilityBit) -> bool {
        self.0 & 1 << capability.bit() != 0
    }
}

impl std::fmt::Debug for Capabilities {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kinds = TypeKind::ALL.iter().filter(|kind| self.has(**kind));
        let directives = Directive::ALL.iter().filter(|directive| self.has(**directive));
        let others = Capability::ALL.iter().filter(|capability| self.has(**capability));
        f.debug_set().entries(kinds).entries(directives).entries(others).finish()
    }
}
