//! A signature's types, dimensions and constraints as JSON, for computing with them in another language.

use codegen::spec::{Constraint, DType, Device, DeviceId, Dim, Layout, ParamType, TensorShape, TensorType};
use codegen::{ParamType as Type, Signature};
use serde_json::{Value, json};

/// The parts of a signature that callers see: `parameters` with `name` and `type`, `result` as a type or null, and
/// `where`.
///
/// A type has a `kind`, its name in the text form in lower case, and these keys:
///
/// - `scalar`: `name`, such as `int32`
/// - `tensor`:
///   - `shape`: dimensions, or null for any rank
///   - `dtype`: its name, `any`, or `{"parameter": name}`
///   - `device`: `any`, `{"parameter": name}` or `{"kind", "id"}`; the id is a number, `any`, or null if it is shared
///   - `strides`: dimensions, `any`, or null for contiguous
/// - `shape`: `shape`, dimensions or null
/// - `int`, `bool`: `value`
/// - `object`: `key`
/// - `record`: `name`, `fields` with their names, and `of`, their types
/// - `optional`, `tuple`, `array`, `list`, `map`, `dict`: `of`, the types inside
///
/// A dimension is a number, a name, or an operation with its operands: `["//", "n", 2]`. A constraint is a comparison
/// with its two sides.
pub fn structure(signature: &Signature) -> Value {
    let parameters = signature.passed().map(|param| json!({ "name": param.name, "type": of_type(&param.ty) }));
    json!({
        "parameters": parameters.collect::<Vec<_>>(),
        "result": signature.ret().map(of_type),
        "where": signature.constraints().iter().map(constraint).collect::<Vec<_>>(),
    })
}

fn of_type(ty: &Type) -> Value {
    let kind = match ty {
        ParamType::Scalar(scalar) => return json!({ "kind": "scalar", "name": scalar.name() }),
        ParamType::Tensor(of) => return tensor(of),
        ParamType::Shape(sizes) => return json!({ "kind": "shape", "shape": sizes.as_deref().map(dims) }),
        ParamType::Int(value) => return json!({ "kind": "int", "value": value }),
        ParamType::Bool(value) => return json!({ "kind": "bool", "value": value }),
        ParamType::Object(key) => return json!({ "kind": "object", "key": key }),
        ParamType::Record { name, fields } => {
            let names: Vec<&String> = fields.iter().map(|(name, _)| name).collect();
            let of: Vec<Value> = fields.iter().map(|(_, ty)| of_type(ty)).collect();
            return json!({ "kind": "record", "name": name, "fields": names, "of": of });
        }
        ParamType::Optional(_) => "optional",
        ParamType::Tuple(_) => "tuple",
        ParamType::Array(_) => "array",
        ParamType::List(_) => "list",
        ParamType::Map(..) => "map",
        ParamType::Dict(..) => "dict",
        ParamType::Str => "str",
        ParamType::Bytes => "bytes",
        ParamType::DType => "dtype",
        ParamType::Device => "device",
        ParamType::Any => "any",
        ParamType::None => "none",
        ParamType::Function => "function",
        ParamType::Module => "module",
        ParamType::Stream => "stream",
        // types of later versions are written in their text form
        other => return json!({ "kind": "other", "text": other.to_string() }),
    };
    match &ty.inner()[..] {
        [] if kind != "tuple" => json!({ "kind": kind }),
        inner => json!({ "kind": kind, "of": inner.iter().map(|ty| of_type(ty)).collect::<Vec<_>>() }),
    }
}

fn tensor(tensor: &TensorType) -> Value {
    let parameter = |name: &str| json!({ "parameter": name });
    let shape = match &tensor.shape {
        TensorShape::Ranked(sizes) => dims(sizes),
        _ => Value::Null,
    };
    let dtype = match &tensor.dtype {
        DType::Param(name) => parameter(name),
        dtype => json!(dtype.to_string()),
    };
    let device = match &tensor.device {
        Device::Param(name) => parameter(name),
        Device::Kind(kind, id) => {
            let id = match id {
                DeviceId::Fixed(number) => json!(number),
                DeviceId::Shared => Value::Null,
                _ => json!("any"),
            };
            json!({ "kind": Device::of(*kind).to_string(), "id": id })
        }
        device => json!(device.to_string()),
    };
    let strides = match &tensor.layout {
        Layout::Strides(strides) => dims(strides),
        Layout::Contiguous => Value::Null,
        _ => json!("any"),
    };
    json!({ "kind": "tensor", "shape": shape, "dtype": dtype, "device": device, "strides": strides })
}

fn dims(dims: &[Dim]) -> Value {
    dims.iter().map(dim).collect()
}

fn dim(of: &Dim) -> Value {
    match of {
        Dim::Const(number) => json!(number),
        Dim::Var(name) => json!(name),
        Dim::Binary(op, x, y) => json!([op.sign(), dim(x), dim(y)]),
        // forms of later versions are written in their text form, which is never a dimension's name
        other => json!({ "text": other.to_string() }),
    }
}

fn constraint(of: &Constraint) -> Value {
    json!([of.op.to_string(), dim(&of.left), dim(&of.right)])
}
