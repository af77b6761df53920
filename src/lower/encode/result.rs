//! Writes what a program says beyond parameters: constraints, sizes of a result, defaults; and of a result that a kernel writes.

use super::{Encoder, calling, expected};
use crate::lower::abi::fields::{dtype_word, pair};
use crate::lower::constants::Messages;
use crate::lower::devices::SharedId;
use crate::lower::protocol::{Aspect, ResultKind, constraint, default, result};
use crate::spec::{CompareOp, Constraint, DefaultValue, ParamType, ScalarType, Signature};
use tvm_ffi_runtime::abi::{TVMFFIByteArray, TypeIndex};

impl Encoder<'_, '_> {
    pub(super) fn constraints(&mut self, constraints: &[Constraint]) -> u32 {
        let mut all = Vec::new();
        if !constraints.is_empty() {
            self.uses(Aspect::Constraint);
        }
        for c in constraints {
            let expr = self.expr(&c.to_string(), &c.left, &[&c.left, &c.right], false);
            let accepts = match c.op {
                CompareOp::Lt => 1,
                CompareOp::Eq => 2,
                CompareOp::Le => 3,
                CompareOp::Gt => 4,
                CompareOp::Ne => 5,
                CompareOp::Ge => 6,
            };
            let words = [expr, self.code(&c.right), accepts];
            debug_assert_eq!(words.len() as i32, constraint::SIZE);
            all.extend(words);
        }
        self.texts.words(&all)
    }

    /// The sizes of a returned tensor: how many, and where.
    pub(super) fn result(&mut self, signature: &Signature) -> (u32, u32) {
        let Some(ParamType::Tensor(tensor)) = signature.ret() else { return (0, 0) };
        let dims = tensor.shape.dims().unwrap_or_default();
        if !dims.is_empty() {
            self.uses(Aspect::ResultDim);
        }
        // the wrapper may read the note of a device
        if self.devices.place(&tensor.device).1 == SharedId::OfSlot {
            self.uses(Aspect::SameDevice);
        }
        let words: Vec<u32> = dims.iter().map(|dim| self.expr(&dim.to_string(), dim, &[dim], false)).collect();
        (words.len() as u32, self.texts.words(&words))
    }

    /// The offset of defaults, or 0 where there are none.
    pub(super) fn defaults(&mut self, signature: &Signature) -> u32 {
        let order = self.texts.endianness();
        let mut all = Vec::new();
        for param in signature.passed() {
            let Some(value) = &param.default else { continue };
            self.uses(Aspect::Default);
            let (index, payload) = match value {
                DefaultValue::None => (TypeIndex::NONE, 0),
                DefaultValue::Bool(value) => (TypeIndex::BOOL, u64::from(*value)),
                DefaultValue::Int(value) => (TypeIndex::INT, *value as u64),
                DefaultValue::Float(value) => (TypeIndex::FLOAT, value.to_bits()),
                DefaultValue::Str(text) => {
                    let bytes = matches!(&param.ty, ParamType::Bytes)
                        || matches!(&param.ty, ParamType::Optional(inner) if **inner == ParamType::Bytes);
                    self.uses(if bytes { Aspect::DefaultBytes } else { Aspect::DefaultStr });
                    let index = if bytes { TypeIndex::BYTE_ARRAY_PTR } else { TypeIndex::RAW_STR };
                    (index, u64::from(self.texts.text(text)) | (text.len() as u64) << 32)
                }
                DefaultValue::DType(dtype) => (TypeIndex::DATA_TYPE, pair(order, dtype_word(order, *dtype), 0) as u64),
                DefaultValue::Device(device) => {
                    let (kind, id) = (device.device_type.0 as u32, device.device_id as u32);
                    (TypeIndex::DEVICE, pair(order, kind, id) as u64)
                }
            };
            let words = [index.0 as u32, payload as u32, (payload >> 32) as u32];
            debug_assert_eq!(words.len() as i32, default::SIZE);
            all.extend(words);
            if index == TypeIndex::BYTE_ARRAY_PTR {
                self.memory[super::STRINGS] += size_of::<TVMFFIByteArray>();
            }
        }
        if all.is_empty() { 0 } else { self.texts.words(&all) }
    }
}

/// Writes what a kernel that writes its result has to write; gives the offset.
pub(in crate::lower) fn encode_result(texts: &mut Messages, signature: &Signature, ty: &ParamType) -> u32 {
    use ParamType as P;
    let one_of = |index: TypeIndex, other: TypeIndex| (ResultKind::OneOf, index, other, "");
    let one = |index: TypeIndex| one_of(index, index);
    let (kind, index, other, key) = match ty {
        P::Scalar(ScalarType::Bool) | P::Bool(_) => one(TypeIndex::BOOL),
        P::Scalar(ScalarType::Handle) => one(TypeIndex::OPAQUE_PTR),
        P::Scalar(ty) if ty.is_float() => one(TypeIndex::FLOAT),
        P::Scalar(_) | P::Int(_) => one(TypeIndex::INT),
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
        // the others are no results
        P::Any | P::Optional(_) | P::EnvStream => (ResultKind::Any, TypeIndex::NONE, TypeIndex::NONE, ""),
    };
    if kind == ResultKind::Key {
        texts.features.add(Aspect::ResultKey);
    }
    let words = [
        kind as u32,
        texts.text(&expected(ty)),
        texts.text(&calling(signature)),
        index.0 as u32,
        other.0 as u32,
        texts.text(key),
        key.len() as u32,
    ];
    debug_assert_eq!(words.len() as i32, result::SIZE);
    texts.words(&words)
}
