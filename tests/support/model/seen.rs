//! The observable parts of a value: its type and its content.

use tvm_ffi_codegen::ParamType;
use tvm_ffi_codegen::runtime::abi::{DLDataType, DLDevice, TypeIndex};
use tvm_ffi_codegen::spec::DefaultValue;

use crate::support::args::{Form, type_index, type_of_fields};
use crate::support::names::type_name;
use crate::support::show;
use crate::support::value::{TensorSpec, Value};

/// The default as an argument.
pub fn default_value(ty: &ParamType, default: &DefaultValue) -> Value {
    let bytes =
        matches!(ty, ParamType::Bytes) || matches!(ty, ParamType::Optional(inner) if **inner == ParamType::Bytes);
    match default {
        DefaultValue::Str(text) if bytes => Value::Bytes(text.clone()),
        DefaultValue::None => Value::NONE,
        DefaultValue::Bool(value) => Value::bool(*value),
        DefaultValue::Int(value) => Value::int(*value),
        DefaultValue::Float(value) => Value::Float(*value),
        DefaultValue::Str(text) => Value::Str(text.clone()),
        DefaultValue::DType(dtype) => Value::DType(*dtype),
        DefaultValue::Device(device) => Value::Device(*device),
        other => unreachable!("the model knows no {other:?}"),
    }
}

/// The type index; the one of `ffi.Tensor` unless the form is specified.
pub fn index(value: &Value) -> i32 {
    let index = match value {
        Value::Raw(index, _) => return *index,
        Value::Float(_) => TypeIndex::FLOAT,
        Value::DType(_) => TypeIndex::DATA_TYPE,
        Value::Device(_) => TypeIndex::DEVICE,
        Value::Str(text) if text.len() < 8 => TypeIndex::SMALL_STR,
        Value::Str(_) => TypeIndex::STR,
        Value::RawStr(_) => TypeIndex::RAW_STR,
        Value::Bytes(bytes) if bytes.len() < 8 => TypeIndex::SMALL_BYTES,
        Value::Bytes(_) => TypeIndex::BYTES,
        Value::ByteArray(_) => TypeIndex::BYTE_ARRAY_PTR,
        Value::Function => TypeIndex::FUNCTION,
        Value::Module => TypeIndex::MODULE,
        Value::Shape(_) => TypeIndex::SHAPE,
        Value::Error => TypeIndex::ERROR,
        Value::Object(thing) => type_index(*thing),
        Value::Fields(fields) => type_of_fields(fields.iter().map(|(name, _)| name.as_str())),
        Value::Tensor(TensorSpec { form: Some(Form::DlTensor), .. }) => TypeIndex::DL_TENSOR_PTR,
        Value::Tensor(_) => TypeIndex::TENSOR,
        Value::Array(_) => TypeIndex::ARRAY,
        Value::List(_) => TypeIndex::LIST,
        Value::Map(_) => TypeIndex::MAP,
        Value::Dict(_) => TypeIndex::DICT,
        Value::Reference(_) => TypeIndex::OBJECT_RVALUE_REF,
    };
    index.0
}

/// The name of the value's type in messages.
pub fn shown_type(value: &Value) -> String {
    match value {
        // only objects have a registered type
        Value::Raw(index @ 128.., _) => format!("type index {index}"),
        _ => type_name(index(value)),
    }
}

/// Whether the type index means that the payload is a pointer.
const fn is_pointer(index: i32) -> bool {
    matches!(index, 7..=10 | 64..)
}

/// Whether the value is a NULL pointer to an object, a string or a tensor.
pub fn is_null(value: &Value) -> bool {
    match value {
        Value::Raw(index, payload) => is_pointer(*index) && *payload == 0,
        Value::Tensor(spec) => spec.null,
        _ => false,
    }
}

/// Whether the value is a pointer to unknown memory.
pub fn is_wild(value: &Value) -> bool {
    matches!(value, Value::Raw(index, payload) if is_pointer(*index) && *payload != 0)
}

/// The type index and payload of a value that isn't a pointer.
pub fn plain(value: &Value) -> Option<(i32, u64)> {
    Some(match value {
        Value::Raw(index, payload) => (*index, *payload),
        Value::Float(v) => (3, v.to_bits()),
        Value::DType(DLDataType { code, bits, lanes }) => {
            (5, u64::from(*code) | u64::from(*bits) << 8 | u64::from(*lanes) << 16)
        }
        Value::Device(DLDevice { device_type, device_id }) => {
            (6, u64::from(device_type.0 as u32) | u64::from(*device_id as u32) << 32)
        }
        _ => return None,
    })
}

/// The text of a str. A `Raw` one is a small string of length 0.
pub fn str_text(value: &Value) -> Option<&str> {
    match value {
        Value::Str(text) | Value::RawStr(text) => Some(text),
        Value::Raw(11, _) => Some(""),
        _ => None,
    }
}

/// The content of bytes.
pub fn bytes_text(value: &Value) -> Option<&str> {
    match value {
        Value::Bytes(bytes) | Value::ByteArray(bytes) => Some(bytes),
        Value::Raw(12, _) => Some(""),
        _ => None,
    }
}

/// The value in the form of `show::brief`.
pub fn brief(value: &Value) -> String {
    if let Some(text) = str_text(value) {
        return show::text("str", text.as_bytes());
    }
    if let Some(bytes) = bytes_text(value) {
        return show::text("bytes", bytes.as_bytes());
    }
    let pair = |(key, value): &(Value, Value)| (brief(key), brief(value));
    match value {
        Value::Shape(extents) => show::shape(extents),
        Value::Array(items) => sequence("Array", items),
        Value::List(items) => sequence("List", items),
        Value::Map(entries) => show::mapping("Map", entries.iter().map(pair)),
        Value::Dict(entries) => show::mapping("Dict", entries.iter().map(pair)),
        Value::Tensor(spec) if spec.null => "NULL Tensor".to_owned(),
        _ => {
            let plain = plain(value).and_then(|(index, payload)| show::plain(index, payload));
            plain.unwrap_or_else(|| shown_type(value))
        }
    }
}

pub fn sequence(kind: &str, items: &[Value]) -> String {
    show::sequence(kind, &items.iter().map(brief).collect::<Vec<_>>())
}
