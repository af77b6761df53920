//! What programs and messages make use of, so that an object has only those parts of the shared routines.

use super::descriptor::Kind;
use super::template::Tag;

/// Something that a program or a message may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::lower) enum Feature {
    /// A record of this kind.
    Kind(Kind),
    /// A part of a message.
    Tag(Tag),
    /// Any other.
    Of(Aspect),
}

/// What the words of a program may say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(in crate::lower) enum Aspect {
    /// The key of a result's type has to be looked up.
    ResultKey,
    /// Defaults; texts among them; byte strings among them.
    Default,
    DefaultStr,
    DefaultBytes,
    Verbatim,
    Constraint,
    /// Sizes of a returned tensor.
    ResultDim,
    /// Elements of containers are checked.
    Elements,
    /// Dimensions that are numbers, symbols, expressions.
    Const,
    Symbol,
    Expr,
    /// Integers of fewer than 64 bits; integers that are symbols; floats of fewer bits.
    Narrow,
    IntSymbol,
    Float32,
    /// A shape's length is stated.
    ShapeRank,
    /// An object's type is known by its index; by its key alone.
    ObjectIndex,
    ObjectKey,
    /// Tensors: of a stated rank or of any; strides that are stated, any, or compact.
    Ranked,
    AnyRank,
    Strided,
    AnyStrides,
    Compact,
    /// A stated dtype, others that are taken for one, or any.
    DType,
    DTypeCodes,
    SameStorage,
    AnyDType,
    /// A stated kind of device, or any; a stated id, any, or that of another tensor.
    DeviceType,
    AnyDevice,
    DeviceId,
    AnyDeviceId,
    SameDevice,
    /// Data pointers that are handles.
    Opaque,
    /// `byte_offset` has to become 0.
    Fold,
}

impl From<Kind> for Feature {
    fn from(kind: Kind) -> Self {
        Feature::Kind(kind)
    }
}

impl From<Tag> for Feature {
    fn from(tag: Tag) -> Self {
        Feature::Tag(tag)
    }
}

impl From<Aspect> for Feature {
    fn from(aspect: Aspect) -> Self {
        Feature::Of(aspect)
    }
}

/// A set of features.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::lower) struct Features(u128);

impl Features {
    /// Every one: for routines that serve programs which nobody has seen yet.
    pub(in crate::lower) const ALL: Self = Features(u128::MAX);

    fn bit(feature: Feature) -> u128 {
        const _: () = assert!((Kind::Map as u32) < 32 && (Tag::TypeKey as u32) < 16 && (Aspect::Fold as u32) < 80);
        1 << match feature {
            Feature::Kind(kind) => kind as u32,
            Feature::Tag(tag) => 32 + tag as u32,
            Feature::Of(aspect) => 48 + aspect as u32,
        }
    }

    pub(in crate::lower) fn add(&mut self, feature: impl Into<Feature>) {
        self.0 |= Self::bit(feature.into());
    }

    pub(in crate::lower) fn has(self, feature: impl Into<Feature>) -> bool {
        self.0 & Self::bit(feature.into()) != 0
    }

    pub(in crate::lower) fn contains(self, others: Self) -> bool {
        others.0 & !self.0 == 0
    }

    pub(in crate::lower) fn union(self, others: Self) -> Self {
        Features(self.0 | others.0)
    }
}
