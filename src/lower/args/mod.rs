//! Arguments of kernels: the C parameters that a compiler states, in place of those of convention `flat`.
//!
//! [`shape`] defines their C types. [`check`] finds their errors, given the signature. [`argument`] computes the values
//! that a call passes. Native kernels are called with them ([`call`]), and launches pass them on.

mod argument;
mod call;
mod check;
mod expr;
mod parts;
mod shape;
mod values;

pub(super) use argument::{Laid, Stores};
pub(super) use call::{Arguments, Call, arguments, c_params, is_written, problems};
pub(super) use check::{Check, Receiver, data_type};
pub(super) use parts::{stride_of, tensor_of};
pub(super) use shape::{ALIGNAS, c_type, definitions};
pub(super) use values::{Inputs, Values};

use crate::spec::KernelArg;

/// The tensors with passed device numbers, including those in fields of structs.
pub(super) fn tensors_with_device_id(args: &[KernelArg]) -> Vec<&str> {
    let mut names = Vec::new();
    let mut pending: Vec<&KernelArg> = args.iter().rev().collect();
    while let Some(arg) = pending.pop() {
        match arg {
            KernelArg::DeviceId(name) => names.push(&**name),
            KernelArg::Struct { fields, .. } => pending.extend(fields.iter().rev().map(|(_, field)| field)),
            _ => {}
        }
    }
    names
}
