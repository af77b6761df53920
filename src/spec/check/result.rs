//! Checks results.

use super::super::error::Problem;
use super::super::param::ParamType;
use super::super::path::{Part, Step, Way};
use super::super::tensor::{DType, Device, Layout, TensorType};
use super::{Checker, Nesting};
use tvm_ffi_runtime::abi::DLDataType;

impl<'a> Checker<'a> {
    pub(super) fn result(&mut self) {
        let at = Way::to(Part::Result);
        let Some(ty) = &self.signature.ret else { return };
        match ty {
            ParamType::Tensor(tensor) => self.returned_tensor(at, tensor),
            ParamType::Tuple(items) if !items.is_empty() && items.iter().all(|item| item.as_tensor().is_some()) => {
                for (number, tensor) in items.iter().filter_map(ParamType::as_tensor).enumerate() {
                    self.returned_tensor(at.then(Step::Item(number)), tensor);
                }
            }
            ParamType::Scalar(_)
            | ParamType::Str
            | ParamType::Bytes
            | ParamType::DType
            | ParamType::Device
            | ParamType::Any
            | ParamType::Function
            | ParamType::Module
            | ParamType::Shape(None)
            | ParamType::Object(_) => self.param_type(at, ty, Nesting::default()),
            ParamType::Array(_) | ParamType::List(_) | ParamType::Map(..) | ParamType::Dict(..)
                if ty.inner().iter().all(|inner| **inner == ParamType::Any) => {}
            _ => {
                let problem = format!(
                    "{ty} can't be returned: expected a scalar, str, bytes, dtype, device, Any, Function, Module, \
                     Shape, Object, a container of Any, Tensor, or a Tuple of Tensors"
                );
                self.error(at, problem);
            }
        }
    }

    /// Checks a tensor that the wrapper allocates. Everything about it has to be known.
    fn returned_tensor(&mut self, at: Way<'_>, tensor: &'a TensorType) {
        let plain = TensorType {
            dtype: DLDataType::FLOAT32.into(),
            device: Device::CPU,
            layout: Layout::Contiguous,
            ..tensor.clone()
        };
        self.tensor(at, &plain);
        if tensor.shape.rank().is_none() {
            self.error(at.then(Step::Shape), "expected sizes, as the tensor is allocated before the kernel runs");
        }
        match &tensor.dtype {
            DType::Exact(dtype) => self.dtype(at, *dtype),
            DType::Any => self.error(at.then(Step::DType), "expected a dtype, or the name of a dtype parameter"),
            // the text form would be parsed as a dtype, not as a parameter's name
            DType::Param(name) if name == "any" || name.parse::<DLDataType>().is_ok() => {
                let expected = "the name of a dtype parameter that is no dtype itself";
                self.error(at.then(Step::DType), Problem::mismatch(expected, format_args!("`{name}`")));
            }
            DType::Param(name) => self.refers(at.then(Step::DType), name, &ParamType::DType),
        }
        match &tensor.device {
            Device::Kind(kind, id) => self.device(at, *kind, *id),
            Device::Any => self.error(at.then(Step::Device), "expected a device, or the name of a device parameter"),
            Device::Param(name) if name == "any" => {
                let problem = "expected the name of a device parameter that isn't `any`, which is any device";
                self.error(at.then(Step::Device), problem);
            }
            Device::Param(name) => self.refers(at.then(Step::Device), name, &ParamType::Device),
        }
        if tensor.layout != Layout::Contiguous {
            self.error(at.then(Step::Strides), "expected none: what is allocated is contiguous");
        }
        if tensor.align.is_some() || tensor.noalias {
            self.error(at, "expected neither `align` nor `noalias`: the allocator decides");
        }
        if tensor.access.writes() {
            self.error(at.then(Step::Access), "expected none: the function writes all of its result");
        }
    }

    fn refers(&mut self, at: Way<'_>, name: &str, ty: &ParamType) {
        if self.params.get(name).is_none_or(|param| param.ty != *ty) {
            let expected = format_args!("a {ty}, or the name of a {ty} parameter");
            self.error(at, Problem::mismatch(expected, format_args!("`{name}`")));
        }
    }
}
