//! The macro that makes a typed handle of a `repr(transparent)` wrapper of `ObjectRef`.

/// Implements [`AsObject`] and the conversions of a `repr(transparent)` wrapper of `ObjectRef`.
///
/// Where the header leaves the layout open, a third argument tells this crate's objects apart. The name of a container
/// is followed by the marker of its elements' types: the handle of elements of any type is meant.
macro_rules! object_wrapper {
    ($name:ident $([$marker:expr])?, $index:expr $(, $has_layout:path)?) => {
        // SAFETY: the wrapper is repr(transparent) over ObjectRef, and objects of this type index
        // have the layout that the header gives, or else one that `has_layout` looks at; the
        // methods read nothing else.
        unsafe impl $crate::heap::AsObject for $name {
            const TYPE_INDEX: $crate::abi::TypeIndex = $index;

            #[inline]
            fn as_object(&self) -> &$crate::heap::ObjectRef {
                &self.0
            }

            #[inline]
            fn into_object(self) -> $crate::heap::ObjectRef {
                self.0
            }

            $(fn has_layout(object: &$crate::heap::ObjectRef) -> bool {
                $has_layout(object)
            })?

            #[inline]
            unsafe fn from_object_unchecked(object: $crate::heap::ObjectRef) -> Self {
                Self(object $(, $marker)?)
            }
        }

        impl From<$name> for $crate::heap::ObjectRef {
            fn from(value: $name) -> Self {
                value.0
            }
        }

        impl TryFrom<$crate::heap::ObjectRef> for $name {
            type Error = $crate::error::Error;

            fn try_from(object: $crate::heap::ObjectRef) -> Result<Self, $crate::error::Error> {
                object.downcast().map_err(|object| {
                    $crate::error::type_mismatch($index.static_type_key().unwrap_or("ffi.Object"), object.type_index())
                })
            }
        }
    };
}
pub(crate) use object_wrapper;
