//! Encodes the parts of a signature other than its parameters: constraints, sizes of a returned tensor, defaults, and
//! the result that a kernel writes.

use super::encoder::{Encoder, STRINGS};
use super::texts::{Subject, expected, shown};
use crate::lower::abi::fields::{dtype_word, pair};
use crate::lower::abi::scalar_index;
use crate::lower::constants::ConstantPool;
use crate::lower::protocol::{
    ConstraintDescriptor, DefaultDescriptor, Orderings, ResultDescriptor, ResultDimDescriptor, ResultKind, SizedText,
    SplitI64,
};
use crate::spec::{CompareOp, Constraint, DefaultValue, ParamType, Signature};
use tvm_ffi_runtime::abi::{TVMFFIByteArray, TypeIndex};

impl Encoder<'_, '_> {
    /// The offset of the constraints.
    pub(super) fn constraints(&mut self, constraints: &[Constraint]) -> Result<u32, String> {
        let mut bytes = Vec::new();
        for c in constraints {
            let expr = self.expr(&c.to_string(), &c.left, &[&c.left, &c.right], false)?;
            let accepts = match c.op {
                CompareOp::Lt => Orderings::LESS,
                CompareOp::Eq => Orderings::EQUAL,
                CompareOp::Le => Orderings::LESS | Orderings::EQUAL,
                CompareOp::Gt => Orderings::GREATER,
                CompareOp::Ne => Orderings::LESS | Orderings::GREATER,
                CompareOp::Ge => Orderings::EQUAL | Orderings::GREATER,
            };
            let descriptor = ConstraintDescriptor { expr, right: self.code(&c.right)?, accepts: accepts.bits() };
            bytes.extend(self.pool.encoded(&descriptor));
        }
        Ok(self.pool.descriptor(&bytes))
    }

    /// The sizes of returned tensors: their number, and the offset of the first.
    pub(super) fn result_dims(&mut self, signature: &Signature) -> Result<(u32, u32), String> {
        let (mut bytes, mut count) = (Vec::new(), 0);
        for (number, tensor) in signature.returned_tensors().into_iter().enumerate() {
            let tensor_path = self.pool.text(&signature.returned_path(number));
            for (number, dim) in (0..).zip(tensor.shape.dims().unwrap_or_default()) {
                let expr = self.expr(&dim.to_string(), dim, &[dim], false)?;
                bytes.extend(self.pool.encoded(&ResultDimDescriptor { expr, tensor: tensor_path, number }));
                count += 1;
            }
        }
        Ok(if count == 0 { (0, 0) } else { (count, self.pool.descriptor(&bytes)) })
    }

    /// The offset of the defaults, or 0 if there are none.
    pub(super) fn defaults(&mut self, signature: &Signature) -> u32 {
        let order = self.pool.order();
        let mut bytes = Vec::new();
        for param in signature.passed() {
            let Some(value) = &param.default else { continue };
            let (index, payload) = match value {
                DefaultValue::None => (TypeIndex::NONE, 0),
                DefaultValue::Bool(value) => (TypeIndex::BOOL, i64::from(*value)),
                DefaultValue::Int(value) => (TypeIndex::INT, *value),
                DefaultValue::Float(value) => (TypeIndex::FLOAT, value.to_bits() as i64),
                DefaultValue::Str(text) => {
                    let is_bytes = matches!(&param.ty, ParamType::Bytes)
                        || matches!(&param.ty, ParamType::Optional(inner) if **inner == ParamType::Bytes);
                    let index = if is_bytes { TypeIndex::BYTE_ARRAY_PTR } else { TypeIndex::RAW_STR };
                    (index, i64::from(self.pool.text(text)) | (text.len() as i64) << 32)
                }
                DefaultValue::DType(dtype) => (TypeIndex::DATA_TYPE, pair(order, dtype_word(order, *dtype), 0)),
                DefaultValue::Device(device) => {
                    let (kind, id) = (device.device_type.0 as u32, device.device_id as u32);
                    (TypeIndex::DEVICE, pair(order, kind, id))
                }
            };
            let descriptor = DefaultDescriptor { type_index: index.0 as u32, payload: SplitI64::new(payload) };
            bytes.extend(self.pool.encoded(&descriptor));
            if index == TypeIndex::BYTE_ARRAY_PTR {
                self.memory[STRINGS] += size_of::<TVMFFIByteArray>();
            }
        }
        if bytes.is_empty() { 0 } else { self.pool.descriptor(&bytes) }
    }
}

/// The offset of the descriptor of the result that a kernel writes.
///
/// # Errors
/// The message names a failed look-up that should never fail.
pub(super) fn result(pool: &mut ConstantPool, signature: &Signature, ty: &ParamType) -> Result<u32, String> {
    use ParamType as P;
    let one_of = |index: TypeIndex, other: TypeIndex| (ResultKind::OneOf, index, other, "");
    let one = |index: TypeIndex| one_of(index, index);
    let (kind, index, other, key) = match ty {
        P::Scalar(ty) => one(scalar_index(*ty)),
        P::Bool(_) => one(TypeIndex::BOOL),
        P::Int(_) => one(TypeIndex::INT),
        P::Str => one_of(TypeIndex::STR, TypeIndex::SMALL_STR),
        P::Bytes => one_of(TypeIndex::BYTES, TypeIndex::SMALL_BYTES),
        P::DType => one(TypeIndex::DATA_TYPE),
        P::Device => one(TypeIndex::DEVICE),
        P::Tensor(_) => one(TypeIndex::TENSOR),
        P::Shape(_) => one(TypeIndex::SHAPE),
        P::Function => one(TypeIndex::FUNCTION),
        P::Module => one(TypeIndex::MODULE),
        P::Tuple(_) | P::Array(_) => one(TypeIndex::ARRAY),
        P::List(_) => one(TypeIndex::LIST),
        P::Map(..) => one(TypeIndex::MAP),
        P::Dict(..) => one(TypeIndex::DICT),
        P::None => one(TypeIndex::NONE),
        P::Object(key) => (ResultKind::Key, TypeIndex::NONE, TypeIndex::NONE, key.as_str()),
        // the other types can't be results
        P::Any | P::Record { .. } | P::Optional(_) | P::EnvStream | P::Stream | P::EnvState(_) => {
            (ResultKind::Any, TypeIndex::NONE, TypeIndex::NONE, "")
        }
    };
    let descriptor = ResultDescriptor {
        kind: kind as u32,
        expected: pool.text(&expected(ty)),
        calling: pool.text(&format!(" when calling: `{}`, expected ", shown(signature, Subject::Result))),
        index: index.0,
        other_index: other.0,
        key: SizedText { text: pool.text(key), len: key.len() as u32 },
    };
    pool.result(&descriptor)
}
