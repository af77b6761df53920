//! The C type of each argument. It determines prototypes, sizes and offsets.

use crate::lower::convention::c_type::CType;
use crate::lower::convention::param::KernelParam;
use crate::spec::{KernelArg, ScalarType};

/// The C type of an argument. A tensor map and a large struct are passed by address, as a `void*`. `flat` are the
/// parameters of convention `flat`.
pub(in crate::lower) fn c_type(arg: &KernelArg, flat: &[KernelParam]) -> CType {
    match arg {
        KernelArg::Param(name) => {
            flat.iter().find(|param| param.is_value_of(name)).map_or(CType::Pointer("void"), |param| param.c_type)
        }
        KernelArg::Cast(_, ty) | KernelArg::Int(_, ty) | KernelArg::Float(_, ty) | KernelArg::Stride(_, _, ty) => {
            CType::Scalar(*ty)
        }
        KernelArg::Struct { size: size @ (4 | 8), .. } => CType::Struct(*size),
        KernelArg::DeviceId(_) => CType::Scalar(ScalarType::Int32),
        KernelArg::Null | KernelArg::Scratch { .. } | KernelArg::TensorMap(_) | KernelArg::Struct { .. } => {
            CType::Pointer("void")
        }
    }
}

/// The size of an argument in a block of parameters, in bytes.
pub(super) fn bytes(arg: &KernelArg, flat: &[KernelParam]) -> u32 {
    match arg {
        KernelArg::Struct { size, .. } => *size,
        KernelArg::TensorMap(_) => TENSOR_MAP_BYTES,
        _ => c_type(arg, flat).abi().ty.bytes(),
    }
}

/// The size of a `CUtensorMap` in bytes.
const TENSOR_MAP_BYTES: u32 = 128;
