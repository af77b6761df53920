//! A signature as data: the descriptors that the [binder](crate::lower::binder) reads on the slow path.
//!
//! Descriptors are in the module's constant pool, aligned to words; equal ones are stored once. A descriptor refers to
//! another one, or to a string, by its offset in the pool. A [`SignatureDescriptor`] is followed by a
//! [`ParamDescriptor`] for each parameter that is passed.

use super::layout::{Descriptor, Encode, POOL_ALIGN, descriptors};
use bitflags::bitflags;
use target_lexicon::Endianness;
use tvm_ffi_runtime::abi::DLDataType;

descriptors! {
    /// A 64-bit number as two words, because the pool aligns only to words. The lower half is first on every target.
    SplitI64 {
        low: u32,
        high: u32,
    }

    /// A string that generated code passes on with its length in bytes.
    SizedText {
        text: u32,
        len: u32,
    }

    /// A signature, followed by the [`ParamDescriptor`]s. A signature with defaults, constraints or a returned tensor
    /// has a [`SignatureExtension`] before it.
    SignatureDescriptor {
        /// Number of parameters that are passed.
        params: u16,
        /// The number of arguments that a call can't omit.
        min: u16,
        /// Number of variables.
        vars: u16,
        /// The max number of deferred dimensions.
        deferred: u16,
        /// Number of device slots.
        devices: u8,
        /// Size of a [`Binding`](super::state::Binding) in bytes, including the steps of its path.
        binding_size: u8,
        /// [`Demands`].
        demands: u8,
        /// Nonzero if there is a [`SignatureExtension`].
        has_extension: u8,
        /// The string `` when calling: `...`, expected ``, or the template of a long signature
        /// ([`Directive::Calling`](super::Directive::Calling)). For values that aren't arguments, a string that says
        /// where they are instead.
        calling: u32,
        /// The accepted number of arguments, as a string. 0 for values that aren't arguments: their number always
        /// equals the number of types.
        arity: u32,
    }

    /// The parts that few signatures have. It ends where the [`SignatureDescriptor`] starts.
    SignatureExtension {
        /// The first [`DefaultDescriptor`]: one for each parameter from number `least` on. 0 without defaults.
        defaults: u32,
        /// Number of [`ConstraintDescriptor`]s, then the offset of the first.
        constraints: u32,
        first_constraint: u32,
        /// Number of dimensions of returned tensors, then the offset of the first [`ResultDimDescriptor`].
        result_dims: u32,
        first_result_dim: u32,
    }

    /// A parameter, an item of a tuple, or the elements of a container.
    ParamDescriptor {
        /// The parameter's name. It is empty for elements, because their path consists of steps into the container.
        name: u32,
        /// The descriptor of the type. Parameters can share one.
        ty: u32,
    }

    /// The header of all type descriptors, and the whole descriptor of a type without further fields.
    TypeDescriptor {
        /// [`TypeKind`].
        kind: u8,
        unused: [u8; 3],
        /// The expected type, as a string.
        expected: u32,
    }

    /// A scalar. It is followed by an [`IntRange`] if the integer is narrow or a variable, then by a [`VarDim`] if it
    /// is a variable.
    ScalarDescriptor {
        kind: u8,
        /// 64 minus its width in bits.
        unused_bits: u8,
        /// Nonzero for an integer that is a variable.
        has_var: u8,
        unused: [u8; 1],
        expected: u32,
    }

    /// The range of a narrow integer.
    IntRange {
        /// The type and its range as a string; 0 for an integer of 64 bits.
        range: u32,
    }

    /// An integer that the signature fixes (`Int(3)`).
    ConstantDescriptor {
        kind: u8,
        unused: [u8; 3],
        expected: u32,
        value: SplitI64,
    }

    /// An `ffi.Shape`, followed by a dimension for each entry.
    ShapeDescriptor {
        kind: u8,
        /// The number of entries, or -1 for any.
        rank: i8,
        unused: [u8; 2],
        expected: u32,
    }

    /// An object. If the type index is -1, the [`SizedText`] of the type key follows.
    ObjectDescriptor {
        kind: u8,
        /// The type index, or -1 if only the type key is known.
        type_index: i8,
        unused: [u8; 2],
        expected: u32,
    }

    /// An optional value.
    OptionalDescriptor {
        kind: u8,
        unused: [u8; 3],
        expected: u32,
        inner: ParamDescriptor,
    }

    /// A tuple, followed by a [`ParamDescriptor`] for each item.
    TupleDescriptor {
        kind: u8,
        unused: [u8; 3],
        expected: u32,
        count: u32,
    }

    /// A record, followed by a [`ParamDescriptor`] for each field, then by the [`SizedText`] of each field's name.
    RecordDescriptor {
        kind: u8,
        unused: [u8; 3],
        expected: u32,
        count: u32,
        /// The names of the fields, as a string.
        names: u32,
    }

    /// An Array or List.
    SequenceDescriptor {
        kind: u8,
        /// Nonzero if a List is accepted for an Array.
        or_list: u8,
        type_index: u8,
        unused: [u8; 1],
        expected: u32,
        elements: ParamDescriptor,
    }

    /// A Map or Dict.
    MapDescriptor {
        kind: u8,
        type_index: u8,
        unused: [u8; 2],
        expected: u32,
        /// Names of the runtime's global functions that return the size and create an iterator.
        size_function: SizedText,
        iter_function: SizedText,
        keys: ParamDescriptor,
        values: ParamDescriptor,
    }

    /// A tensor, followed by a dimension for each size, then one for each stated stride.
    TensorDescriptor {
        kind: u8,
        /// [`TensorFlags`].
        flags: u8,
        /// The number of dimensions, or -1 for any.
        rank: i8,
        /// The kind of device, or -1 for any.
        device_type: i8,
        expected: u32,
        dtype: DLDataType,
        dtype_text: u32,
        /// One bit for each other type code that is accepted.
        dtype_codes: u32,
        /// The device's id, [`ANY_ID`], or [`ANY_ID`] - 1 - slot. The last one means the id of the first tensor in that
        /// device slot.
        device_id: i32,
        device_text: u32,
        align: u32,
    }

    /// The header of a size or stride. All of them have this size.
    DimDescriptor {
        /// [`DimKind`].
        kind: u32,
        own: [u8; 8],
    }

    /// A size or stride that is a number.
    ConstantDim {
        kind: u32,
        value: SplitI64,
    }

    /// A size or stride that is a variable.
    VarDim {
        kind: u32,
        /// The variable's number.
        var: u32,
        name: u32,
    }

    /// A size or stride that is an expression.
    ExprDim {
        kind: u32,
        /// The [`ExprDescriptor`].
        expr: u32,
        unused: [u8; 4],
    }

    /// An expression, followed by a [`TermDescriptor`] for each variable in it.
    ExprDescriptor {
        text: u32,
        /// The code that computes it.
        code: u32,
        /// Number of variables.
        terms: u32,
    }

    /// A variable in an expression.
    TermDescriptor {
        var: u32,
        name: u32,
        /// The code that computes the variable from the expression's value; 0 if the expression can't be solved for it.
        solve: u32,
    }

    /// A constraint.
    ConstraintDescriptor {
        /// An [`ExprDescriptor`] with the string and the variables of both sides, and the code of the left side.
        expr: u32,
        /// The code of the right side.
        right: u32,
        /// [`Orderings`].
        accepts: u32,
    }

    /// A size of a returned tensor.
    ResultDimDescriptor {
        /// The [`ExprDescriptor`].
        expr: u32,
        /// The path of the tensor, a string. It is unique to the tensor.
        tensor: u32,
        /// The number of the dimension.
        number: u32,
    }

    /// A default: the `TVMFFIAny` that replaces an omitted argument.
    DefaultDescriptor {
        type_index: u32,
        /// The payload; for a string its offset and its length.
        payload: SplitI64,
    }

    /// The value that a kernel writes as its result. `take_result` of [`crate::lower::binder`] reads the descriptor.
    ResultDescriptor {
        /// [`ResultKind`].
        kind: u32,
        /// The expected type, as a string.
        expected: u32,
        /// The string `` when calling: `...`, expected ``.
        calling: u32,
        /// The type indices that the result may have.
        index: i32,
        other_index: i32,
        key: SizedText,
    }
}

/// Asserts that a field has the same offset as in the header.
macro_rules! begin_alike {
    ($first:ident, $field:ident: $($name:ident)*) => {$(
        const _: () = assert!(std::mem::offset_of!($name, $field) == std::mem::offset_of!($first, $field));
    )*};
}

begin_alike!(TypeDescriptor, kind: ScalarDescriptor ConstantDescriptor ShapeDescriptor ObjectDescriptor);
begin_alike!(TypeDescriptor, kind: RecordDescriptor);
begin_alike!(TypeDescriptor, expected: RecordDescriptor);
begin_alike!(TypeDescriptor, kind: OptionalDescriptor TupleDescriptor SequenceDescriptor MapDescriptor TensorDescriptor);
begin_alike!(TypeDescriptor, expected: ScalarDescriptor ConstantDescriptor ShapeDescriptor ObjectDescriptor);
begin_alike!(TypeDescriptor, expected: OptionalDescriptor TupleDescriptor SequenceDescriptor MapDescriptor TensorDescriptor);
begin_alike!(DimDescriptor, kind: ConstantDim VarDim ExprDim);
const _: () = assert!(ConstantDim::SIZE == DimDescriptor::SIZE);
const _: () = assert!(VarDim::SIZE == DimDescriptor::SIZE && ExprDim::SIZE == DimDescriptor::SIZE);

/// A tensor's device id if any device is accepted.
pub(in crate::lower) const ANY_ID: i32 = -1;

impl SplitI64 {
    pub(in crate::lower) const fn new(value: i64) -> Self {
        SplitI64 { low: value as u32, high: (value >> 32) as u32 }
    }
}

bitflags! {
    /// The demands of a signature on `bind`, besides its checks.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(in crate::lower) struct Demands: u8 {
        /// The caller's own arguments are passed on.
        const FORWARD_ARGS = 1;
        /// Values of records are owned by the call, so that the state begins later.
        const OWNED = 2;
    }
}

bitflags! {
    /// Properties of a tensor.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(in crate::lower) struct TensorFlags: u8 {
        /// The data pointer is a handle that no byte offset can be added to.
        const OPAQUE = 1;
        /// Strides are stated.
        const STRIDED = 2;
        /// Any strides are accepted.
        const ANY_STRIDES = 4;
        /// Any dtype is accepted.
        const ANY_DTYPE = 8;
        /// Any dtype with the same number of bits is accepted.
        const SAME_STORAGE = 16;
        /// The kernel receives the `DLTensor`, so its `byte_offset` has to be 0.
        const FOLD = 32;
    }
}

bitflags! {
    /// How the left side of a constraint may compare with the right side.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(in crate::lower) struct Orderings: u32 {
        const LESS = 1;
        const EQUAL = 2;
        const GREATER = 4;
    }
}

/// Declares the kinds that a field of descriptors encodes, numbered from 0.
macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident { $($(#[$kind_doc:meta])* $kind:ident,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u32)]
        pub(in crate::lower) enum $name {
            $($(#[$kind_doc])* $kind,)*
        }

        impl $name {
            /// All kinds, in the order of their numbers.
            pub(in crate::lower) const ALL: &'static [Self] = &[$(Self::$kind),*];

            /// The kind with a number.
            ///
            /// # Errors
            /// The number is unknown; the message has the number.
            pub(in crate::lower) fn of_number(number: u32) -> Result<Self, String> {
                let kind = Self::ALL.get(number as usize);
                kind.copied().ok_or_else(|| format!("the {} of number {number}", stringify!($name)))
            }
        }
    )*};
}

kinds! {
    /// Kinds of types.
    TypeKind {
        Signed,
        Unsigned,
        Float,
        Bool,
        Handle,
        Tensor,
        Str,
        Bytes,
        DType,
        Device,
        Shape,
        Any,
        None,
        Int,
        True,
        False,
        Object,
        Optional,
        Tuple,
        Sequence,
        Map,
        Stream,
        Record,
    }

    /// Kinds of dimensions.
    DimKind {
        Const,
        Var,
        Expr,
    }

    /// How the type of a result is stated.
    ResultKind {
        /// Any type is accepted.
        Any,
        /// By two type indices.
        OneOf,
        /// By the type key.
        Key,
    }
}
