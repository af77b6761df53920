//! The C type of each argument, and the definitions of structs in C. They determine prototypes, sizes and offsets.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::ir::{StructLayout, Type};
use crate::lower::convention::c_type::{CStruct, CType};
use crate::lower::convention::param::KernelParam;
use crate::spec::{KernelArg, ScalarType};

/// The macro that states an alignment in a header, in C and in C++.
pub(in crate::lower) const ALIGNAS: &str = "TVM_FFI_CODEGEN_ALIGNAS";

/// The C type of a parameter of the signature, by its name.
pub(super) type Named<'n> = &'n dyn Fn(&str) -> Option<CType>;

/// The C type of an argument. A tensor map is passed by address, as a `void*`. `flat` are the parameters of convention
/// `flat`.
pub(in crate::lower) fn c_type(arg: &KernelArg, flat: &[KernelParam]) -> CType {
    type_of(arg, &|name| named(name, flat))
}

fn named(name: &str, flat: &[KernelParam]) -> Option<CType> {
    flat.iter().find(|param| param.is_value_of(name)).map(|param| param.c_type)
}

/// As [`c_type`], for parameters that `named` finds.
pub(super) fn type_of(arg: &KernelArg, named: Named<'_>) -> CType {
    match arg {
        KernelArg::Param(name) => named(name).unwrap_or(CType::Pointer("void")),
        KernelArg::Cast(_, ty) | KernelArg::Int(_, ty) | KernelArg::Float(_, ty) | KernelArg::Stride(_, _, ty) => {
            CType::Scalar(*ty)
        }
        KernelArg::DeviceId(_) => CType::Scalar(ScalarType::Int32),
        KernelArg::Null | KernelArg::Scratch { .. } | KernelArg::TensorMap(_) => CType::Pointer("void"),
        KernelArg::Struct { size: size @ (4 | 8), fields, .. } if !has_float(fields, named) => CType::Struct(*size),
        // a struct that C can't have is an error before its type is used
        KernelArg::Struct { size, align, fields } => {
            definition((*size, *align), fields, named).map_or(CType::Pointer("void"), |(ty, _)| CType::StructOf(ty))
        }
    }
}

/// Whether a struct has a floating-point field. Targets pass such structs differently.
fn has_float(fields: &[(u32, KernelArg)], named: Named<'_>) -> bool {
    fields.iter().any(|(_, field)| match field {
        KernelArg::Struct { fields, .. } => has_float(fields, named),
        field => matches!(type_of(field, named), CType::Scalar(ty) if ty.is_float() && !ty.is_half()),
    })
}

/// The size of an argument in a block of parameters, in bytes.
pub(super) fn bytes(arg: &KernelArg, flat: &[KernelParam]) -> u32 {
    match arg {
        KernelArg::Struct { size, .. } => *size,
        KernelArg::TensorMap(_) => TENSOR_MAP_BYTES,
        _ => c_type(arg, flat).abi().ty.bytes(),
    }
}

/// The alignment of a field in C.
pub(super) fn align(field: &KernelArg, flat: &[KernelParam]) -> u32 {
    align_of(field, &|name| named(name, flat))
}

fn align_of(field: &KernelArg, named: Named<'_>) -> u32 {
    match (field, type_of(field, named)) {
        (KernelArg::Struct { align, .. }, _) => *align,
        (_, CType::DType) => 2,
        (_, CType::Device) => 4,
        (_, ty) => ty.abi().ty.bytes(),
    }
}

/// The size of a `CUtensorMap` in bytes.
const TENSOR_MAP_BYTES: u32 = 128;

/// The definitions of the structs among arguments, by the names of their types: `{ float at0; double at8; }`.
pub(in crate::lower) fn definitions(args: &[KernelArg], flat: &[KernelParam]) -> BTreeMap<String, String> {
    let structs = args.iter().filter_map(|arg| match (c_type(arg, flat), arg) {
        (CType::StructOf(ty), KernelArg::Struct { size, align, fields }) => {
            let (_, text) = definition((*size, *align), fields, &|name| named(name, flat))?;
            Some((ty.to_string(), text))
        }
        _ => None,
    });
    structs.collect()
}

/// The type of a struct, and its definition in C. `None` for a struct that C can't have: one that is packed, or has
/// overlapping fields.
fn definition(whole: (u32, u32), fields: &[(u32, KernelArg)], named: Named<'_>) -> Option<(CStruct, String)> {
    let mut members = Members { named, scalars: Vec::new(), text: String::new() };
    members.of_struct(0, whole, fields)?;
    let layout = StructLayout::new(whole.0, whole.1, members.scalars)?;
    Some((CStruct::new(layout, &members.text), members.text))
}

/// The members of a struct under construction.
struct Members<'n> {
    named: Named<'n>,
    scalars: Vec<(u32, Type)>,
    text: String,
}

impl Members<'_> {
    /// Adds a struct at an offset. Where C's alignment would leave another gap than the fields' offsets do, the gap
    /// becomes an array of bytes.
    fn of_struct(&mut self, base: u32, (size, align): (u32, u32), fields: &[(u32, KernelArg)]) -> Option<()> {
        let mut fields: Vec<_> =
            fields.iter().map(|(offset, field)| (*offset, field, align_of(field, self.named))).collect();
        fields.sort_by_key(|(offset, ..)| *offset);
        let natural = fields.iter().map(|(.., align)| *align).max().unwrap_or(1);
        if natural > align {
            return None;
        }
        self.text.push_str("{ ");
        if natural < align {
            // as a part of the first member
            let _ = write!(self.text, "{ALIGNAS}({align}) ");
        }
        let mut end = 0_u32;
        for (offset, field, align) in fields {
            if offset > size {
                return None;
            }
            if end.next_multiple_of(align) != offset {
                self.gap(base, end, offset)?;
            }
            end = offset + self.member(base, offset, field)?;
        }
        if end.next_multiple_of(align) != size {
            self.gap(base, end, size)?;
        }
        self.text.push('}');
        Some(())
    }

    fn gap(&mut self, base: u32, from: u32, to: u32) -> Option<()> {
        let bytes = to.checked_sub(from).filter(|bytes| *bytes > 0)?;
        self.scalars.extend((from..to).map(|at| (base + at, Type::I8)));
        let _ = write!(self.text, "uint8_t gap{from}[{bytes}]; ");
        Some(())
    }

    /// Adds a field; returns its size.
    fn member(&mut self, base: u32, offset: u32, field: &KernelArg) -> Option<u32> {
        let at = base + offset;
        if let KernelArg::Struct { size, align, fields } = field {
            self.text.push_str("struct ");
            self.of_struct(at, (*size, *align), fields)?;
            let _ = write!(self.text, " at{offset}; ");
            return Some(*size);
        }
        let ty = type_of(field, self.named);
        let whole = ty.abi().ty;
        match ty {
            CType::DType => self.scalars.extend([(at, Type::I8), (at + 1, Type::I8), (at + 2, Type::I16)]),
            CType::Device => self.scalars.extend([(at, Type::I32), (at + 4, Type::I32)]),
            _ => self.scalars.push((at, whole)),
        }
        let _ = write!(self.text, "{ty} at{offset}; ");
        Some(whole.bytes())
    }
}
