//! The checks after all parameters: constraints, and returned tensors.

use tvm_ffi_codegen::runtime::abi::{DLDataType, DLDevice, DLDeviceType};
use tvm_ffi_codegen::spec::{Constraint, DType, DeviceId};
use tvm_ffi_codegen::{Device, Dim, ParamType, TensorType};

use super::{Checked, Model, listed};
use crate::support::element;
use crate::support::names::{device_name, dtype_name};
use crate::support::show::MOST_ELEMENTS;

impl Model<'_> {
    pub(super) fn constraints(&self) -> Checked {
        self.signature.constraints().iter().try_for_each(|constraint| self.constraint(constraint))
    }

    fn constraint(&self, constraint: &Constraint) -> Checked {
        let Constraint { left, op, right, .. } = constraint;
        let both = left + right;
        let refuse = |got: &str| self.refuse("ValueError", "constraint", &constraint.to_string(), got);
        let unknown = self.unknown(&both);
        if !unknown.is_empty() {
            return refuse(&format!("no value of {}", listed(&unknown)));
        }
        if let (Some(left), Some(right)) = (self.eval(left), self.eval(right))
            && op.holds(left, right)
        {
            return Ok(());
        }
        let mut names = Vec::new();
        both.for_each_var(&mut |name| {
            if !names.contains(&name) {
                names.push(name);
            }
        });
        let value = |name: &str| self.symbols.get(name).map(|(value, from)| format!("{name} = {value} from {from}"));
        refuse(&names.into_iter().filter_map(value).collect::<Vec<_>>().join(", "))
    }

    /// The tensors that the wrapper allocates, in printed form, if the runtime can allocate them.
    pub(super) fn returned_tensors(&mut self) -> Checked<Option<String>> {
        let signature = self.signature;
        let is_tuple = matches!(signature.ret(), Some(ParamType::Tuple(_)));
        let mut shapes = Vec::new();
        for (i, ty) in signature.returned_tensors().into_iter().enumerate() {
            let path = if is_tuple { format!("result[{i}]") } else { "result".to_owned() };
            let mut shape = Vec::new();
            for (d, dim) in ty.shape.dims().unwrap_or_default().iter().enumerate() {
                shape.push(self.returned_size(&format!("{path}.shape[{d}]"), dim)?);
            }
            shapes.push((format!("{path}.shape"), ty, shape));
        }
        let product = |product: i64, size: &i64| product.checked_mul(*size);
        // the last one is checked first
        for (path, _, shape) in shapes.iter().rev() {
            if shape.iter().rev().try_fold(1i64, product).is_none() {
                return self.refuse("ValueError", path, "sizes whose product fits in 64 bits", "an overflow");
            }
        }
        let texts: Option<Vec<_>> = shapes.iter().map(|(_, ty, shape)| self.returned_tensor(ty, shape)).collect();
        let Some(texts) = texts.filter(|texts| !texts.is_empty()) else { return Ok(None) };
        Ok(Some(if is_tuple { format!("Array[{}]", texts.join(", ")) } else { texts.concat() }))
    }

    /// A tensor that the wrapper allocates, in printed form, if the runtime can allocate it.
    fn returned_tensor(&self, ty: &TensorType, shape: &[i64]) -> Option<String> {
        let device = match ty.device {
            Device::Kind(kind, DeviceId::Fixed(id)) => Some(DLDevice::new(kind, id)),
            Device::Kind(kind, DeviceId::Any) => Some(DLDevice::new(kind, 0)),
            // the contract doesn't specify an id that no other tensor shares
            Device::Kind(kind, DeviceId::Shared) => self.shared_id(kind).map(|id| DLDevice::new(kind, id)),
            // determined by another argument
            _ => None,
        };
        let (Some(device), DType::Exact(dtype)) = (device, &ty.dtype) else { return None };
        // the tests can allocate memory only on the CPU, and only a limited amount
        if device.device_type != DLDeviceType::CPU || shape.iter().product::<i64>() > MOST_ELEMENTS as i64 {
            return None;
        }
        let what = format!("Tensor({shape:?}, {}, {})", dtype_name(*dtype), device_name(device));
        Some(format!("{what}{}", zeros(*dtype, shape)))
    }

    fn returned_size(&self, what: &str, dim: &Dim) -> Checked<i64> {
        let unknown = self.unknown(dim);
        if !unknown.is_empty() {
            let got = format!("no value of {}", listed(&unknown));
            return self.refuse("ValueError", what, "a size of at least 0", &got);
        }
        let values = self.values(dim);
        match self.eval(dim) {
            Some(size) if size >= 0 => Ok(size),
            Some(size) => {
                let why = match dim {
                    Dim::Var(name) => self.symbols.get(&name[..]).map(|(_, from)| format!("{name}, from {from}")),
                    _ => Some(format!("{dim}, {values}")),
                };
                let got = format!("{size} ({})", why.unwrap_or_default());
                self.refuse("ValueError", what, "a size of at least 0", &got)
            }
            None => self.refuse("ValueError", what, &format!("{dim} in 64 bits ({values})"), "none"),
        }
    }
}

/// The elements of a new tensor in printed form.
fn zeros(dtype: DLDataType, shape: &[i64]) -> String {
    if !dtype.bits.is_multiple_of(8) {
        return String::new();
    }
    let zero = element::show(dtype, &vec![0; dtype.itemsize()]);
    let count = shape.iter().product::<i64>();
    format!(" = [{}]", vec![zero; count as usize].join(", "))
}
