//! The macro that makes typed handles from `repr(transparent)` wrappers of `ObjectRef`.

/// Implements [`AsObject`] and the conversions for a `repr(transparent)` wrapper of `ObjectRef`.
///
/// If the header leaves the layout open, a third argument identifies this crate's objects. For a container, give the
/// marker of its element types after the name. The implementation is then for the handle whose elements have any type.
macro_rules! object_wrapper {
    ($name:ident $([$marker:expr])?, $index:expr $(, $has_layout:path)?) => {
        // SAFETY: the wrapper is repr(transparent) over ObjectRef. Objects of this type index have the header's layout,
        // or one that `has_layout` checks. The methods read nothing else.
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
