//! Problems of kernels' arguments, and of the expressions that they and launches are computed from.

use super::parts::{Mismatch, diagnostic_of, mismatch};
use crate::diagnostic::{Diagnose, Diagnostic};
use crate::lower::convention::param::KernelParam;
use crate::spec::{Dim, ScalarType};

/// The layouts of structs that can be passed.
const STRUCTS: &str = "a size of at most 4096 that is a multiple of an alignment of 1 to 16";

/// The alignments of scratch memory.
const SCRATCH: &str = "a power of two up to 256";

/// A problem of a kernel's arguments, given the signature.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArgProblem {
    /// A name in an expression has no value.
    #[error("has {what} = {value}, and `{name}` isn't a dimension variable or an integer parameter of the function")]
    UnknownName {
        /// The computed part: `grid[0]`, `shared_memory`, `int32(n)`.
        what: String,
        /// The expression.
        value: Dim,
        /// The name.
        name: String,
    },
    /// A device can't read a parameter that convention `flat` passes to its kernel.
    #[error("gets {param}, but this is in the memory of the host; state the kernel's args")]
    HostMemory {
        /// The parameter.
        param: KernelParam,
    },
    /// The type of a floating-point number isn't a floating-point type.
    #[error("has a floating-point number of type {ty}")]
    FloatType {
        /// The type.
        ty: ScalarType,
    },
    /// The type of an integer isn't an integer type.
    #[error("passes an integer as a {ty}")]
    IntegerType {
        /// The type.
        ty: ScalarType,
    },
    /// The signature doesn't state a stride.
    #[error("has {tensor}.strides[{number}], but the signature doesn't state it")]
    UnknownStride {
        /// The tensor's name.
        tensor: String,
        /// The dimension.
        number: usize,
    },
    /// Scratch memory has an unsupported alignment.
    #[error("has scratch memory aligned to {align}, expected {SCRATCH}")]
    ScratchAlign {
        /// The alignment in bytes.
        align: u32,
    },
    /// A tensor map has to be a parameter by itself.
    #[error("has a tensor map inside a struct, where it isn't aligned to 64 bytes")]
    TensorMapInStruct,
    /// Only launches pass such an argument.
    #[error("has {what} among its args, but only launches pass it")]
    OnlyInLaunches {
        /// The argument: `scratch memory` or `a tensor map`.
        what: &'static str,
    },
    /// A parameter can't be converted to the type.
    #[error("has {ty}({name}), but {name} can't be converted to {ty}")]
    Cast {
        /// The parameter.
        name: String,
        /// The type.
        ty: ScalarType,
    },
    /// A struct has an unsupported size or alignment.
    #[error("has a struct of {size} bytes, aligned to {align}; expected {STRUCTS}")]
    StructLayout {
        /// The size in bytes.
        size: u32,
        /// The alignment in bytes.
        align: u32,
    },
    /// A field of a struct isn't aligned, overlaps another, or is outside.
    #[error(
        "has a struct of {size} bytes whose field at {offset} takes {bytes}: fields are aligned, apart, and inside"
    )]
    StructField {
        /// The size of the struct in bytes.
        size: u32,
        /// The offset of the field in bytes.
        offset: u32,
        /// The size of the field in bytes.
        bytes: u32,
    },
    /// A call can't pass a packed struct by value.
    #[error("has {arg} among its args, with an alignment below that of a field; calls pass no packed structs")]
    PackedStruct {
        /// The argument, as text.
        arg: String,
    },
    /// An argument names something that can't be passed as one value.
    #[error("has {name} among its args, but this isn't a tensor or scalar parameter of the function")]
    UnknownParam {
        /// The name.
        name: String,
    },
    /// An argument that is part of a tensor names no tensor.
    #[error("has {name} among its args, but this isn't a tensor parameter of the function")]
    UnknownTensor {
        /// The name.
        name: String,
    },
    /// A tensor map can't be encoded.
    #[error("has a tensor map that {0}")]
    TensorMap(TensorMapProblem),
}

/// A problem of a tensor map, given the signature.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TensorMapProblem {
    /// The tensor has an unsupported rank, or any.
    #[error("is of {tensor}, but tensor maps have rank 1 to 5")]
    Rank {
        /// The tensor's name.
        tensor: String,
    },
    /// The box has another rank than the tensor.
    #[error("has a box of {dims} dimensions, and {tensor} has {rank}")]
    BoxRank {
        /// The tensor's name.
        tensor: String,
        /// The rank of the box.
        dims: usize,
        /// The tensor's rank.
        rank: usize,
    },
    /// The number of element strides isn't the tensor's rank.
    #[error("has {count} element strides, and {tensor} has {rank} dimensions")]
    ElementStrideCount {
        /// The tensor's name.
        tensor: String,
        /// The number of element strides.
        count: usize,
        /// The tensor's rank.
        rank: usize,
    },
    /// The map is interleaved, and the tensor has too few dimensions.
    #[error("is interleaved, and {tensor} has less than 3 dimensions")]
    Interleaved {
        /// The tensor's name.
        tensor: String,
    },
    /// Tensor maps don't have the tensor's dtype, or the signature doesn't state it.
    #[error("is of {tensor}, but tensor maps don't support its dtype")]
    DType {
        /// The tensor's name.
        tensor: String,
    },
    /// The tensor's strides aren't stated.
    #[error("is of {tensor}, but the signature doesn't state its strides")]
    Strides {
        /// The tensor's name.
        tensor: String,
    },
    /// An element stride is out of range.
    #[error("has element strides that are not 1 to 8")]
    ElementStrides,
    /// A constant extent of the box is out of range.
    #[error("has box[{number}] = {value}, expected 1 to 256")]
    BoxExtent {
        /// The dimension.
        number: usize,
        /// The extent.
        value: i64,
    },
}

impl ArgProblem {
    pub(super) fn mismatch(&self) -> Option<Mismatch> {
        match self {
            ArgProblem::ScratchAlign { align } => Some(mismatch(SCRATCH, align)),
            ArgProblem::StructLayout { size, align } => {
                Some(mismatch(STRUCTS, format_args!("{size} bytes, aligned to {align}")))
            }
            ArgProblem::TensorMap(problem) => match problem {
                TensorMapProblem::BoxRank { dims: found, rank, .. }
                | TensorMapProblem::ElementStrideCount { count: found, rank, .. } => Some(mismatch(rank, found)),
                TensorMapProblem::BoxExtent { value, .. } => Some(mismatch("1 to 256", value)),
                _ => None,
            },
            _ => None,
        }
    }
}

impl Diagnose for ArgProblem {
    fn diagnostic(&self) -> Diagnostic {
        diagnostic_of(self, self.mismatch())
    }
}
