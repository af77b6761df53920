//! Finds the errors of arguments, given the signature.

use super::parts::{ExtentOf, stride_of, tensor_of};
use super::shape::{self, bytes, c_type};
use crate::lower::convention::c_type::CType;
use crate::lower::convention::param::{KernelParam, ParamPart, ParamSource};
use crate::lower::convention::{Convention, KernelReturn, params};
use crate::lower::device_api::Api;
use crate::lower::problem::{ArgProblem, TensorMapProblem};
use crate::spec::{
    Dim, Interleave, KernelArg, Layout, ParamType, ScalarKind, ScalarType, Signature, TensorMap, TensorType,
};
use tvm_ffi_runtime::abi::{DLDataType, kDLBfloat, kDLFloat, kDLInt, kDLUInt};

/// The receiver of the arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::lower) enum Receiver {
    /// A kernel on a device, which can't access the host's memory.
    Device,
    /// A function that is called for each block, on the CPU.
    Blocks,
    /// A C function that is called once.
    Call,
}

/// Collects the errors of arguments and of related expressions.
pub(in crate::lower) struct Check<'a, P> {
    pub signature: &'a Signature,
    receiver: Receiver,
    pub problems: Vec<P>,
}

impl<'a, P: From<ArgProblem> + PartialEq> Check<'a, P> {
    pub(in crate::lower) fn new(signature: &'a Signature, receiver: Receiver) -> Self {
        Check { signature, receiver, problems: Vec::new() }
    }

    pub(in crate::lower) fn problem(&mut self, problem: impl Into<P>) {
        let problem = problem.into();
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    /// Whether a parameter is in memory that the kernel can't access.
    fn is_out_of_reach(&self, param: &KernelParam) -> bool {
        self.receiver == Receiver::Device && is_host_memory(self.signature, param)
    }

    /// Checks that all names of an expression have values.
    pub(in crate::lower) fn vars(&mut self, what: &str, dim: &Dim) {
        dim.for_each_var(&mut |name| {
            let var = self.signature.dim_vars().contains(&name);
            let scalar = self.signature.type_at(name).and_then(ParamType::as_scalar);
            let integer = scalar.is_some_and(ScalarType::is_int);
            if !var && !integer && ExtentOf::named(name, self.signature).is_none() {
                let (what, name) = (what.to_owned(), name.to_owned());
                self.problem(ArgProblem::UnknownName { what, value: dim.clone(), name });
            }
        });
    }

    /// The sizes in bytes of the passed arguments; those of convention `flat` if none are stated. `None` if one has an
    /// error.
    pub(in crate::lower) fn sizes(&mut self, args: Option<&[KernelArg]>) -> Option<Vec<u32>> {
        let flat = params::params(self.signature, Convention::Flat, KernelReturn::Status);
        let Some(args) = args else {
            if let Some(param) = flat.iter().find(|param| self.is_out_of_reach(param)) {
                self.problem(ArgProblem::HostMemory { param: param.clone() });
            }
            return Some(flat.iter().map(|param| param.c_type.abi().ty.bytes()).collect());
        };
        let sizes: Vec<_> = args.iter().map(|arg| self.size(&flat, arg, false)).collect();
        sizes.into_iter().collect()
    }

    /// The size of an argument in bytes, `inside` a struct or not; `None` after an error.
    fn size(&mut self, flat: &[KernelParam], arg: &KernelArg, inside: bool) -> Option<u32> {
        self.arg(flat, arg, inside).then(|| bytes(arg, flat))
    }

    /// Checks that an argument can be passed.
    fn arg(&mut self, flat: &[KernelParam], arg: &KernelArg, inside: bool) -> bool {
        match arg {
            KernelArg::Param(name) => self.named(flat, name),
            KernelArg::Cast(name, ty) => self.named(flat, name) && self.cast(name, *ty),
            KernelArg::Int(dim, ty) => {
                self.vars(&format!("{ty}({dim})"), dim);
                self.integer_type(*ty)
            }
            KernelArg::Float(_, ty) => {
                if !ty.is_float() {
                    self.problem(ArgProblem::FloatType { ty: *ty });
                }
                ty.is_float()
            }
            KernelArg::Stride(name, number, ty) => {
                let Some(tensor) = self.tensor(name) else { return false };
                if stride_of(tensor, *number).is_none() {
                    self.problem(ArgProblem::UnknownStride { tensor: name.clone(), number: *number });
                    return false;
                }
                self.integer_type(*ty)
            }
            KernelArg::DeviceId(name) => self.tensor(name).is_some(),
            KernelArg::Null => true,
            KernelArg::Struct { size, align, fields } => {
                let before = self.problems.len();
                self.of_struct(flat, (*size, *align), fields)
                    && (inside || self.problems.len() > before || self.by_value(flat, arg))
            }
            KernelArg::Scratch { bytes, align } => {
                self.vars("scratch", bytes);
                if !align.is_power_of_two() || *align > 256 {
                    self.problem(ArgProblem::ScratchAlign { align: *align });
                }
                self.of_launches("scratch memory")
            }
            KernelArg::TensorMap(_) if inside => {
                self.problem(ArgProblem::TensorMapInStruct);
                false
            }
            KernelArg::TensorMap(map) => {
                self.tensor_map(map);
                self.of_launches("a tensor map")
            }
        }
    }

    /// Checks that an argument that only launches support is passed to a launched kernel.
    fn of_launches(&mut self, what: &'static str) -> bool {
        if self.receiver == Receiver::Call {
            self.problem(ArgProblem::OnlyInLaunches { what });
        }
        self.receiver != Receiver::Call
    }

    /// Checks that a scalar parameter can be converted to another type.
    fn cast(&mut self, name: &str, ty: ScalarType) -> bool {
        let Some(of) = self.signature.type_at(name) else { return false };
        let fits = of.as_scalar().is_some_and(|from| match (from.kind(), ty.kind()) {
            (ScalarKind::Handle, _) | (_, ScalarKind::Handle) => false,
            (ScalarKind::Half(_) | ScalarKind::Float32 | ScalarKind::Float64, _) => ty.is_float(),
            (ScalarKind::Signed | ScalarKind::Unsigned | ScalarKind::Bool, _) => true,
        });
        if !fits {
            self.problem(ArgProblem::Cast { name: name.to_owned(), ty });
        }
        fits
    }

    fn of_struct(&mut self, flat: &[KernelParam], (size, align): (u32, u32), fields: &[(u32, KernelArg)]) -> bool {
        if !align.is_power_of_two() || align > 16 || size == 0 || size > 4096 || size % align != 0 {
            self.problem(ArgProblem::StructLayout { size, align });
            return false;
        }
        let mut covered: Vec<(u32, u32)> = Vec::new();
        for (offset, field) in fields {
            let Some(bytes) = self.size(flat, field, true) else { return false };
            let end = offset.saturating_add(bytes);
            if end > size
                || offset % shape::align(field, flat) != 0
                || covered.iter().any(|(from, to)| *offset < *to && *from < end)
            {
                self.problem(ArgProblem::StructField { size, offset: *offset, bytes });
            }
            covered.push((*offset, end));
        }
        true
    }

    /// Checks that a call can pass a struct by value: that C has such a struct.
    fn by_value(&mut self, flat: &[KernelParam], arg: &KernelArg) -> bool {
        let known = self.receiver != Receiver::Call || !matches!(c_type(arg, flat), CType::Pointer(_));
        if !known {
            self.problem(ArgProblem::PackedStruct { arg: arg.to_string() });
        }
        known
    }

    /// Checks that a name is a parameter of the signature that the kernel receives as one value.
    fn named(&mut self, flat: &[KernelParam], name: &str) -> bool {
        let found = flat.iter().find(|param| param.is_value_of(name)).filter(|param| !self.is_out_of_reach(param));
        if found.is_none() {
            self.problem(ArgProblem::UnknownParam { name: name.to_owned() });
        }
        found.is_some()
    }

    fn tensor(&mut self, name: &str) -> Option<&'a TensorType> {
        let found = tensor_of(self.signature, name);
        if found.is_none() {
            self.problem(ArgProblem::UnknownTensor { name: name.to_owned() });
        }
        found
    }

    fn integer_type(&mut self, ty: ScalarType) -> bool {
        if !ty.is_int() {
            self.problem(ArgProblem::IntegerType { ty });
        }
        ty.is_int()
    }

    fn tensor_map(&mut self, map: &TensorMap) {
        let name = &map.tensor;
        let Some(tensor) = self.tensor(name) else { return };
        let of_tensor = || name.clone();
        let dtype = tensor.exact_dtype();
        let known = !matches!(tensor.layout, Layout::Any);
        let mut problems = Vec::new();
        match tensor.shape.rank() {
            Some(rank @ 1..=5) => {
                let (dims, count) = (map.box_dims.len(), map.element_strides.len());
                if dims != rank {
                    problems.push(TensorMapProblem::BoxRank { tensor: of_tensor(), dims, rank });
                }
                if count != 0 && count != rank {
                    problems.push(TensorMapProblem::ElementStrideCount { tensor: of_tensor(), count, rank });
                }
                if map.interleave != Interleave::None && rank < 3 {
                    problems.push(TensorMapProblem::Interleaved { tensor: of_tensor() });
                }
            }
            _ => problems.push(TensorMapProblem::Rank { tensor: of_tensor() }),
        }
        if dtype.and_then(data_type).is_none() {
            problems.push(TensorMapProblem::DType { tensor: of_tensor() });
        }
        if !known {
            problems.push(TensorMapProblem::Strides { tensor: of_tensor() });
        }
        if map.element_strides.iter().any(|step| !(1..=8).contains(step)) {
            problems.push(TensorMapProblem::ElementStrides);
        }
        for (number, size) in map.box_dims.iter().enumerate() {
            self.vars(&format!("box[{number}] of {name}"), size);
            if let Some(value) = size.eval(&|_| None).filter(|value| !(1..=256).contains(value)) {
                problems.push(TensorMapProblem::BoxExtent { number, value });
            }
        }
        problems.into_iter().for_each(|problem| self.problem(ArgProblem::TensorMap(problem)));
    }
}

/// The `CUtensorMapDataType` of elements; `None` if there is none.
pub(in crate::lower) fn data_type(dtype: DLDataType) -> Option<i64> {
    match (dtype.code, dtype.bits, dtype.lanes) {
        (code, 8, 1) if code == kDLUInt || code == kDLInt => Some(0),
        (code, 16, 1) if code == kDLUInt || code == kDLInt => Some(1),
        (code, 32, 1) if code == kDLUInt => Some(2),
        (code, 32, 1) if code == kDLInt => Some(3),
        (code, 64, 1) if code == kDLUInt => Some(4),
        (code, 64, 1) if code == kDLInt => Some(5),
        (code, 16, 1) if code == kDLFloat => Some(6),
        (code, 32, 1) if code == kDLFloat => Some(7),
        (code, 64, 1) if code == kDLFloat => Some(8),
        (code, 16, 1) if code == kDLBfloat => Some(9),
        // 8-bit floats are copied as bytes
        (_, 8, 1) => Some(0),
        _ => None,
    }
}

/// Whether a parameter of convention `flat` is host memory, which a device can't access.
fn is_host_memory(signature: &Signature, param: &KernelParam) -> bool {
    let ParamSource::Argument(path, part) = &param.source else { return false };
    let ty = match signature.type_at(path) {
        Some(ParamType::Optional(inner)) => inner,
        Some(ty) => ty,
        // a member of an optional value
        None => return matches!(part, ParamPart::Descriptor),
    };
    match ty {
        ParamType::Tensor(tensor) => tensor.device.kind().is_none_or(|kind| Api::of(kind).is_none()),
        ParamType::Scalar(_) | ParamType::Int(_) | ParamType::Bool(_) | ParamType::DType | ParamType::Device => false,
        ParamType::EnvStream | ParamType::Stream | ParamType::EnvState(_) => false,
        _ => true,
    }
}
