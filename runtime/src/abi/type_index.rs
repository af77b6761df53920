//! Type indices (`TVMFFITypeIndex`): the tag of every value and every object. Below 64: values on the stack. 64 to 127:
//! objects with a fixed index. From 128: dynamic. The type keys are upstream's `StaticTypeKey` (object.h).

/// A type index as found in `TVMFFIAny::type_index` and `TVMFFIObject::type_index`.
#[repr(transparent)]
#[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct TypeIndex(pub i32);

macro_rules! type_indices {
    ($($(#[$doc:meta])* $name:ident = $value:literal $(=> $key:literal)?;)*) => {
        impl TypeIndex {
            $($(#[$doc])* pub const $name: TypeIndex = TypeIndex($value);)*

            /// Every static index that has a type key, with the key.
            pub const STATIC_KEYS: &'static [(TypeIndex, &'static str)] =
                &[$($((TypeIndex($value), $key),)?)*];

            /// Upstream's type key of a static index; `None` for gaps and dynamic types.
            pub const fn static_type_key(self) -> Option<&'static str> {
                match self.0 {
                    $($($value => Some($key),)?)*
                    _ => None,
                }
            }
        }
    };
}

type_indices! {
    /// Root of all types; appears in annotations, never in a value.
    ANY = -1 => "Any";
    /// None.
    NONE = 0 => "None";
    /// 64-bit signed integer.
    INT = 1 => "int";
    /// Boolean, held as an integer 0 or 1.
    BOOL = 2 => "bool";
    /// Double-precision number.
    FLOAT = 3 => "float";
    /// Pointer without a type.
    OPAQUE_PTR = 4 => "void*";
    /// `DLDataType`.
    DATA_TYPE = 5 => "DataType";
    /// `DLDevice`.
    DEVICE = 6 => "Device";
    /// `DLTensor*` that is not owned.
    DL_TENSOR_PTR = 7 => "DLTensor*";
    /// NUL-terminated string that is not owned; never in an owned value.
    RAW_STR = 8 => "const char*";
    /// `TVMFFIByteArray*` that is not owned; never in an owned value.
    BYTE_ARRAY_PTR = 9 => "TVMFFIByteArray*";
    /// Pointer to an object pointer whose reference the callee may take.
    OBJECT_RVALUE_REF = 10 => "ObjectRValueRef";
    /// String of at most seven bytes, held in the value.
    SMALL_STR = 11 => "ffi.SmallStr";
    /// Bytes, at most seven, held in the value.
    SMALL_BYTES = 12 => "ffi.SmallBytes";
    /// Marker of structural mutation: unchanged.
    UNCHANGED = 13 => "ffi.Unchanged";
    /// First index of an object: the value owns a reference or borrows one.
    STATIC_OBJECT_BEGIN = 64;
    /// Object, the root of the object types.
    OBJECT = 64 => "ffi.Object";
    /// String object.
    STR = 65 => "ffi.String";
    /// Bytes object.
    BYTES = 66 => "ffi.Bytes";
    /// Error object.
    ERROR = 67 => "ffi.Error";
    /// Function object.
    FUNCTION = 68 => "ffi.Function";
    /// Shape object.
    SHAPE = 69 => "ffi.Shape";
    /// Tensor object.
    TENSOR = 70 => "ffi.Tensor";
    /// Array object.
    ARRAY = 71 => "ffi.Array";
    /// Map object.
    MAP = 72 => "ffi.Map";
    /// Module object.
    MODULE = 73 => "ffi.Module";
    /// Opaque Python object.
    OPAQUE_PY_OBJECT = 74 => "ffi.OpaquePyObject";
    /// List object.
    LIST = 75 => "ffi.List";
    /// Dict object.
    DICT = 76 => "ffi.Dict";
    /// Structural visit interrupt.
    VISIT_INTERRUPT = 77 => "ffi.VisitInterrupt";
    /// Integer of any width.
    BIG_INT = 78 => "ffi.BigInt";
    /// First index that is assigned at run time.
    DYN_OBJECT_BEGIN = 128;
}

impl TypeIndex {
    /// True if values of this index hold a pointer to a reference-counted object.
    #[inline]
    pub const fn is_object(self) -> bool {
        self.0 >= Self::STATIC_OBJECT_BEGIN.0
    }
}

#[cfg(test)]
mod tests {
    use super::TypeIndex;

    #[test]
    fn keys_are_upstreams() {
        assert_eq!(TypeIndex::NONE.static_type_key(), Some("None"));
        assert_eq!(TypeIndex::SMALL_STR.static_type_key(), Some("ffi.SmallStr"));
        assert_eq!(TypeIndex::OBJECT.static_type_key(), Some("ffi.Object"));
        assert_eq!(TypeIndex(14).static_type_key(), None);
        assert_eq!(TypeIndex(128).static_type_key(), None);
    }

    #[test]
    fn object_boundary() {
        assert!(!TypeIndex(63).is_object());
        assert!(TypeIndex(64).is_object());
    }
}
