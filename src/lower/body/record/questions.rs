//! Records questions and narrowing.

use super::trees::{index, input, integer, part, text, type_name, word};
use super::{Recorder, at, named, tree};
use crate::host::Word;
use crate::host::tree::{Expr as Tree, ExprKind};
use crate::lower::body::args::Args;
use crate::lower::body::dtype_device::{DTypeValue, DeviceValue};
use crate::lower::body::narrow::TensorFact;
use crate::lower::body::tensor::TensorRef;
use crate::spec::{CompareOp, Device, ParamType};
use tvm_ffi_runtime::abi::DLDeviceType;

/// The comparison `left == right`.
fn same(left: Tree, right: Tree) -> ExprKind {
    ExprKind::Compare(left, at(CompareOp::Eq), right)
}

impl Recorder {
    /// A dtype as an argument of a call.
    pub(super) fn dtype_arg(&self, dtype: DTypeValue<'_>) -> Tree {
        match dtype {
            DTypeValue::Stated(dtype) => tree(word(Word::DType, [type_name(dtype)])),
            dtype => self.dtype(dtype),
        }
    }

    /// A device as an argument of a call.
    pub(super) fn device_arg(&self, device: DeviceValue<'_>) -> Tree {
        match device {
            DeviceValue::Stated(device) => tree(word(Word::Device, [text(&device.to_string())])),
            device => self.device(device),
        }
    }

    /// A dtype: its name, or the value that has it.
    pub(super) fn dtype(&self, dtype: DTypeValue<'_>) -> Tree {
        match dtype {
            DTypeValue::Stated(dtype) => type_name(dtype),
            DTypeValue::Of(tensor) => part(self.tensor(tensor), "dtype"),
            DTypeValue::Bits(bits) => self.expr(bits),
        }
    }

    fn device(&self, device: DeviceValue<'_>) -> Tree {
        match device {
            DeviceValue::Stated(device) => text(&device.to_string()),
            DeviceValue::Of(tensor) => part(self.tensor(tensor), "device"),
            DeviceValue::Bits(bits) => self.expr(bits),
        }
    }

    pub(in crate::lower::body) fn same_dtype(&self, left: DTypeValue<'_>, right: DTypeValue<'_>) -> ExprKind {
        same(self.dtype_arg(left), self.dtype(right))
    }

    pub(in crate::lower::body) fn same_device(&self, left: DeviceValue<'_>, right: DeviceValue<'_>) -> ExprKind {
        same(self.device_arg(left), self.device(right))
    }

    pub(in crate::lower::body) fn is_device_kind(&self, device: DeviceValue<'_>, kind: DLDeviceType) -> ExprKind {
        same(part(self.device_arg(device), "kind"), text(&Device::of(kind).to_string()))
    }

    pub(in crate::lower::body) fn device_id(&self, device: DeviceValue<'_>) -> ExprKind {
        *part(self.device_arg(device), "id").kind
    }

    pub(in crate::lower::body) fn device_capability(&self, device: DeviceValue<'_>) -> ExprKind {
        *part(self.device_arg(device), "capability").kind
    }

    pub(in crate::lower::body) fn ndim(&self, tensor: TensorRef<'_>) -> ExprKind {
        *part(self.tensor(tensor), "ndim").kind
    }

    pub(in crate::lower::body) fn is_contiguous(&self, tensor: TensorRef<'_>) -> ExprKind {
        word(Word::IsContiguous, [self.tensor(tensor)])
    }

    pub(in crate::lower::body) fn is_aligned(&self, tensor: TensorRef<'_>, bytes: u32) -> ExprKind {
        word(Word::IsAligned, [self.tensor(tensor), integer(bytes)])
    }

    /// A stride that the code reads from the tensor's descriptor.
    pub(in crate::lower::body) fn stride(&self, tensor: TensorRef<'_>, d: usize) -> ExprKind {
        *index(part(self.tensor(tensor), "strides"), d).kind
    }

    /// The address of the first element, which the code reads from the tensor's descriptor.
    pub(in crate::lower::body) fn loaded_data(&self, tensor: TensorRef<'_>) -> ExprKind {
        *part(self.tensor(tensor), "data").kind
    }

    pub(in crate::lower::body) fn is_object(&self, value: Tree, type_key: &str) -> ExprKind {
        word(Word::IsObject, [value, text(type_key)])
    }

    /// A tensor about which more is known than before.
    pub(in crate::lower::body) fn assumed(&self, narrowed: TensorRef<'_>, of: TensorRef<'_>, fact: TensorFact) {
        let stated = match fact {
            TensorFact::DType(dtype) => input("dtype", type_name(dtype)),
            TensorFact::Rank(rank) => input("ndim", integer(rank as u64)),
            TensorFact::Contiguous => input("contiguous", tree(ExprKind::Bool(true))),
            TensorFact::Aligned(bytes) => input("align", integer(bytes)),
            TensorFact::DeviceKind(kind) => input("device", text(&Device::of(kind).to_string())),
        };
        let ExprKind::Word(name, mut inputs) = word(Word::Assume, [self.tensor(of)]) else { return };
        inputs.push(stated);
        let id = self.let_(ExprKind::Word(name, inputs));
        if let Some(known) = narrowed.known {
            self.know_tensor(known.vars, named(id));
        }
    }

    /// Whether a value of type `Any` is of a kind.
    pub(in crate::lower::body) fn is_value_kind(&self, value: Tree, kind: &str) -> ExprKind {
        ExprKind::Is(value, at(kind.to_owned()))
    }

    /// The value of a parameter or of a result as a type. The owner of the value remains the owner.
    pub(in crate::lower::body) fn cast_any(&self, value: Tree, args: &Args, ty: ParamType) {
        let id = self.let_(ExprKind::As(value, Box::new(ty)));
        self.know_result(args, id);
    }
}
