//! A signature as data: the descriptors that the [binder](crate::lower::binder) reads on the slow path.
//!
//! Descriptors are in the module's constant pool, aligned to words; equal ones are stored once. A descriptor refers to another, or to a
//! text, by its offset in the pool. A [`SignatureDescriptor`] is followed by a [`ParamDescriptor`] for each parameter that is passed.

use super::layout::{Descriptor, Encode, POOL_ALIGN, descriptors};
use bitflags::bitflags;
use target_lexicon::Endianness;
use tvm_ffi_runtime::abi::DLDataType;

descriptors! {
    /// A 64-bit number: in two words, since the pool aligns to words. The lower half is first for every target.
    SplitI64 {
        low: u32,
        high: u32,
    }

    /// A text that generated code hands on with its length in bytes.
    SizedText {
        text: u32,
        len: u32,
    }

    /// A signature; behind it are the [`ParamDescriptor`]s. A signature with defaults, constraints or a returned tensor has a
    /// [`SignatureExtension`] before it.
    SignatureDescriptor {
        /// Number of parameters that are passed.
        params: u16,
        /// How many of the arguments a call can't leave out.
        least: u16,
        /// Number of symbols.
        symbols: u16,
        /// How many dimensions may be deferred.
        deferred: u16,
        /// Number of device slots.
        devices: u8,
        /// Bytes of a [`Binding`](super::state::Binding) with the steps of its path.
        binding_size: u8,
        /// Not 0 where the caller's own arguments are passed on.
        forward_args: u8,
        /// Not 0 where there is a [`SignatureExtension`].
        has_extension: u8,
        /// The text `` when calling: `...`, expected ``, or the template of a long signature ([`Directive::Calling`](super::Directive::Calling)); of values that aren't arguments the text that says in its place where they are.
        calling: u32,
        /// How many arguments there may be, as text. 0 for values that aren't arguments, which are always as many as there are types.
        arity: u32,
    }

    /// The parts that few signatures have. It ends where the [`SignatureDescriptor`] begins.
    SignatureExtension {
        /// The first [`DefaultDescriptor`]: one for each parameter from number `least` on. 0 where there is none.
        defaults: u32,
        /// Number of [`ConstraintDescriptor`]s, and the first.
        constraints: u32,
        first_constraint: u32,
        /// Number of dimensions of returned tensors, and the first [`ResultDimDescriptor`].
        result_dims: u32,
        first_result_dim: u32,
    }

    /// A parameter, an item of a tuple, or the elements of a container.
    ParamDescriptor {
        /// The parameter's name; of elements the text is empty, as their path is the steps into the container.
        name: u32,
        /// The descriptor of the type, which other parameters may share.
        ty: u32,
    }

    /// The beginning that the descriptors of all types have; the whole descriptor of a type that has nothing of its own.
    TypeDescriptor {
        /// [`TypeKind`].
        kind: u8,
        unused: [u8; 3],
        /// The expected type, as text.
        expected: u32,
    }

    /// A scalar. Behind it are an [`IntRange`], if the integer is narrow or a symbol, and a [`SymbolDim`], if it is a symbol.
    ScalarDescriptor {
        kind: u8,
        /// 64 less its width in bits.
        unused_bits: u8,
        /// Not 0 for an integer that is a symbol.
        has_symbol: u8,
        unused: [u8; 1],
        expected: u32,
    }

    /// The range of a narrow integer.
    IntRange {
        /// The type and its range as text; 0 for an integer of 64 bits.
        range: u32,
    }

    /// A constant integer.
    ConstantDescriptor {
        kind: u8,
        unused: [u8; 3],
        expected: u32,
        value: SplitI64,
    }

    /// An `ffi.Shape`; behind it is a dimension for each entry.
    ShapeDescriptor {
        kind: u8,
        /// The number of entries, or -1 for any.
        rank: i8,
        unused: [u8; 2],
        expected: u32,
    }

    /// An object; behind it is the [`SizedText`] of the type key where the type index is -1.
    ObjectDescriptor {
        kind: u8,
        /// The type index, or -1 where only the type key is known.
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

    /// A tuple; behind it is a [`ParamDescriptor`] for each item.
    TupleDescriptor {
        kind: u8,
        unused: [u8; 3],
        expected: u32,
        count: u32,
    }

    /// An Array or List.
    SequenceDescriptor {
        kind: u8,
        /// Not 0 where a List will do for an Array.
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
        /// Names of the runtime's global functions that tell the size and make an iterator.
        size_function: SizedText,
        iter_function: SizedText,
        keys: ParamDescriptor,
        values: ParamDescriptor,
    }

    /// A tensor; behind it is a dimension for each size, then one for each stated stride.
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
        /// A bit for each other code that will do.
        dtype_codes: u32,
        /// The device's id, [`ANY_ID`], or, less than that by the slot's number and 1, the id of the first tensor in the same device
        /// slot.
        device_id: i32,
        device_text: u32,
        align: u32,
    }

    /// The beginning of a size or stride, and the size of all of them.
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

    /// A size or stride that is a symbol.
    SymbolDim {
        kind: u32,
        /// The symbol's number.
        symbol: u32,
        name: u32,
    }

    /// A size or stride that is an expression.
    ExprDim {
        kind: u32,
        /// The [`ExprDescriptor`].
        expr: u32,
        unused: [u8; 4],
    }

    /// An expression; behind it is a [`TermDescriptor`] for each symbol in it.
    ExprDescriptor {
        text: u32,
        /// The code that computes it.
        code: u32,
        /// Number of symbols.
        terms: u32,
    }

    /// A symbol in an expression.
    TermDescriptor {
        symbol: u32,
        name: u32,
        /// The code that computes the symbol from the expression's value; 0 where the expression can't be solved for it.
        solve: u32,
    }

    /// A constraint.
    ConstraintDescriptor {
        /// An [`ExprDescriptor`] with the text and the symbols of both sides, and the code of the left side.
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
        /// The path of the tensor, a text. No other tensor has the same.
        tensor: u32,
        /// The number of the dimension.
        number: u32,
    }

    /// A default: the `TVMFFIAny` that stands for an argument that was left out.
    DefaultDescriptor {
        type_index: u32,
        /// The payload; of a text its offset and its length.
        payload: SplitI64,
    }

    /// The value that a kernel writes as its result: [`crate::lower::binder`]'s `take_result` reads it.
    ResultDescriptor {
        /// [`ResultKind`].
        kind: u32,
        /// The expected type, as text.
        expected: u32,
        /// The text `` when calling: `...`, expected ``.
        calling: u32,
        /// The type indices that the result may have.
        index: i32,
        other_index: i32,
        key: SizedText,
    }
}

/// Checks that a field is where the beginning has it.
macro_rules! begin_alike {
    ($first:ident, $field:ident: $($name:ident)*) => {$(
        const _: () = assert!(std::mem::offset_of!($name, $field) == std::mem::offset_of!($first, $field));
    )*};
}

begin_alike!(TypeDescriptor, kind: ScalarDescriptor ConstantDescriptor ShapeDescriptor ObjectDescriptor);
begin_alike!(TypeDescriptor, kind: OptionalDescriptor TupleDescriptor SequenceDescriptor MapDescriptor TensorDescriptor);
begin_alike!(TypeDescriptor, expected: ScalarDescriptor ConstantDescriptor ShapeDescriptor ObjectDescriptor);
begin_alike!(TypeDescriptor, expected: OptionalDescriptor TupleDescriptor SequenceDescriptor MapDescriptor TensorDescriptor);
begin_alike!(DimDescriptor, kind: ConstantDim SymbolDim ExprDim);
const _: () = assert!(ConstantDim::SIZE == DimDescriptor::SIZE);
const _: () = assert!(SymbolDim::SIZE == DimDescriptor::SIZE && ExprDim::SIZE == DimDescriptor::SIZE);

/// A tensor's device id where any will do.
pub(in crate::lower) const ANY_ID: i32 = -1;

impl SplitI64 {
    pub(in crate::lower) const fn new(value: i64) -> Self {
        SplitI64 { low: value as u32, high: (value >> 32) as u32 }
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
        /// Any strides will do.
        const ANY_STRIDES = 4;
        /// Any dtype will do.
        const ANY_DTYPE = 8;
        /// Any dtype of as many bits will do.
        const SAME_STORAGE = 16;
        /// The kernel gets the `DLTensor`, so that its `byte_offset` has to be 0.
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

/// Declares the kinds that a field of descriptors tells, numbered from 0.
macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident { $($(#[$kind_doc:meta])* $kind:ident,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u32)]
        pub(in crate::lower) enum $name {
            $($(#[$kind_doc])* $kind,)*
        }

        impl $name {
            /// All kinds, by their numbers.
            pub(in crate::lower) const ALL: &'static [Self] = &[$(Self::$kind),*];

            /// The kind that a descriptor tells.
            ///
            /// # Errors
            /// No kind has the number; the text says which number it is.
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
    }

    /// Kinds of dimensions.
    DimKind {
        Const,
        Symbol,
        Expr,
    }

    /// How the type of a result is told.
    ResultKind {
        /// Every type will do.
        Any,
        /// By two type indices.
        OneOf,
        /// By the type key.
        Key,
    }
}
