//! A library's JSON description of a function, for binding generators and for people who inspect a library.

use serde_json::{Map, Value, json};

use super::launch_description::LaunchDescription;
use crate::spec::{Access, DefaultValue, Device, Param, ParamType, ScalarKind, Signature};

/// The metadata of a function, as `__tvm_ffi__metadata_<name>` (tvm/ffi/extra/module.h) returns it: a JSON object.
///
/// - `type_schema`: a string, [`type_schema`]. Upstream's readers know this key.
/// - `signature`: the printed signature, which this library can parse.
/// - `parameters`: an entry for each parameter in order, except `EnvStream` and `EnvState`. It has `name`; `type` as
///   printed in the signature; `default` if there is one; `keyword_only`, true, if Python callers may only pass it by
///   name; and `access` if the signature states the use of any tensor. `access` is the function's
///   [use](crate::spec::Access) of the parameter's tensors: `in`, `out` or `inout`.
///
/// The metadata of a function that launches kernels has one more key, in a library and in an engine's module:
///
/// - `launches`: an entry for each [launch](LaunchDescription). It has `launch`, the printed launch; `api`; and
///   `images`, with `kind`, `size` in bytes, `targets` and `entry`. `entry` describes the kernel and is null if the
///   image doesn't: `name`, `parameters` (each with `offset` and `size`), `static_shared` in bytes, `registers`,
///   `required_block`, `is_tile`, `max_threads` and `cluster`.
///
/// A default is JSON's null, bool, number or string. A dtype, a device, and a number that JSON can't represent (`nan`,
/// `inf`) are strings.
pub fn metadata(signature: &Signature) -> String {
    metadata_with(signature, &[])
}

/// Like [`metadata`], with the launches of the function.
pub(crate) fn metadata_with(signature: &Signature, launches: &[LaunchDescription]) -> String {
    let parameters: Vec<Value> = parameters(signature).collect();
    let mut metadata = json!({
        "type_schema": type_schema(signature),
        "signature": signature.to_string(),
        "parameters": parameters,
    });
    if !launches.is_empty() {
        metadata["launches"] = launches.iter().map(LaunchDescription::to_json).collect();
    }
    metadata.to_string()
}

/// The types of a function as upstream's C++ templates write them (`TypeSchema()` in tvm/ffi/function_detail.h and
/// type_traits.h) and `tvm_ffi.core.TypeSchema.from_json_str` reads them. A record is a type of its name, with one more
/// key: `fields`, each with `name` and `type`.
///
/// ```
/// use tvm_ffi_codegen::{Signature, lower::type_schema};
///
/// let signature: Signature = "f(x: int32, s: Optional[str]) -> float64".parse()?;
/// assert_eq!(
///     type_schema(&signature),
///     r#"{"named_args":{"params":[{"type":"int"},{"args":[{"type":"ffi.String"}],"type":"Optional"}],"return":[{"type":"float"}]},"type":"ffi.Function"}"#
/// );
/// # Ok::<(), tvm_ffi_codegen::ParseError>(())
/// ```
pub fn type_schema(signature: &Signature) -> String {
    let params: Vec<Value> = signature.passed().map(|param| schema(&param.ty, Position::Passed)).collect();
    let result = schema(signature.ret().unwrap_or(&ParamType::None), Position::Owned);
    json!({ "type": "ffi.Function", "named_args": { "return": [result], "params": params } }).to_string()
}

fn parameters(signature: &Signature) -> impl Iterator<Item = Value> {
    let states_access = signature.params().iter().any(|param| param.ty.access().is_some_and(Access::writes));
    let keyword_only = signature.keyword_only().len();
    let positional = signature.params().len() - keyword_only;
    let passed = signature.params().iter().enumerate().filter(|(_, param)| param.is_passed());
    passed.map(move |(number, param)| parameter(param, number >= positional, states_access))
}

fn parameter(param: &Param, keyword_only: bool, states_access: bool) -> Value {
    let mut entry = Map::new();
    entry.insert("name".to_owned(), json!(param.name));
    entry.insert("type".to_owned(), json!(param.ty.to_string()));
    if let Some(default) = &param.default {
        entry.insert("default".to_owned(), default_value(default));
    }
    if keyword_only {
        entry.insert("keyword_only".to_owned(), json!(true));
    }
    if let Some(access) = param.ty.access().filter(|_| states_access) {
        entry.insert("access".to_owned(), json!(access.name()));
    }
    entry.into()
}

fn default_value(default: &DefaultValue) -> Value {
    match default {
        DefaultValue::None => Value::Null,
        DefaultValue::Bool(value) => json!(value),
        DefaultValue::Int(value) => json!(value),
        DefaultValue::Float(value) if value.is_finite() => json!(value),
        DefaultValue::Float(_) => json!(default.to_string()),
        DefaultValue::Str(text) => json!(text),
        DefaultValue::DType(dtype) => json!(dtype.to_string()),
        DefaultValue::Device(device) => json!(Device::numbered(device.device_type, device.device_id).to_string()),
    }
}

/// The position of a type.
#[derive(Clone, Copy)]
enum Position {
    /// An argument of the call: a tensor may be a `DLTensor*`, as for upstream's `TensorView`.
    Passed,
    /// A result, or the contents of a container. Both own their values.
    Owned,
}

fn schema(ty: &ParamType, position: Position) -> Value {
    let of = |name: &str, inner: &[&ParamType], position| {
        let args: Vec<Value> = inner.iter().map(|inner| schema(inner, position)).collect();
        json!({ "type": name, "args": args })
    };
    let name = match ty {
        ParamType::Record { name, fields } => {
            let field = |(name, ty): &(String, ParamType)| json!({ "name": name, "type": schema(ty, Position::Owned) });
            return json!({ "type": name, "fields": fields.iter().map(field).collect::<Vec<_>>() });
        }
        ParamType::Optional(inner) => return of("Optional", &[inner], position),
        ParamType::Tuple(_) => return of("Tuple", &ty.inner(), Position::Owned),
        ParamType::Array(_) => return of("ffi.Array", &ty.inner(), Position::Owned),
        ParamType::List(_) => return of("ffi.List", &ty.inner(), Position::Owned),
        ParamType::Map(..) => return of("ffi.Map", &ty.inner(), Position::Owned),
        ParamType::Dict(..) => return of("ffi.Dict", &ty.inner(), Position::Owned),
        ParamType::Scalar(ty) => match ty.kind() {
            ScalarKind::Signed | ScalarKind::Unsigned => "int",
            ScalarKind::Half(_) | ScalarKind::Float32 | ScalarKind::Float64 => "float",
            ScalarKind::Bool => "bool",
            ScalarKind::Handle => "void*",
        },
        ParamType::Bool(_) => "bool",
        ParamType::Int(_) => "int",
        ParamType::Tensor(_) => match position {
            Position::Passed => "DLTensor*",
            Position::Owned => "ffi.Tensor",
        },
        ParamType::Str => "ffi.String",
        ParamType::Bytes => "ffi.Bytes",
        ParamType::DType => "DataType",
        ParamType::Device => "Device",
        ParamType::Shape(_) => "ffi.Shape",
        // a number, a pointer, None, or an object that tvm_ffi makes one of
        ParamType::Any | ParamType::Stream => "Any",
        ParamType::Function => "ffi.Function",
        ParamType::Module => "ffi.Module",
        ParamType::Object(key) => key,
        ParamType::None | ParamType::EnvStream | ParamType::EnvState(_) => "None",
    };
    json!({ "type": name })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn every_type_has_a_schema() {
        let text = "f(a: uint8, b: float32, c: bool, d: handle, e: Tensor([z], float32), f: str, g: bytes, h: dtype, \
                    i: device, j: Shape, k: Any, l: None, m: Int(3), n: Bool(True), o: Function, p: Module, \
                    q: Object(\"my.Type\"), r: Optional[Tensor([...], float32)], s: Tuple[int8, Tensor([4], int8)], \
                    t: Array[str], u: List[Any], v: Map[str, int64], w: Dict[str, bool], \
                    y: Record(\"Config\", a: int64, x: Tensor([z], int8)))";
        let signature: Signature = text.parse().unwrap();
        let schema: Value = serde_json::from_str(&type_schema(&signature)).unwrap();
        assert_eq!(schema["named_args"]["return"], json!([{ "type": "None" }]));
        let plain = |name: &str| json!({ "type": name });
        let of = |name: &str, args: &[Value]| json!({ "type": name, "args": args });
        let expected = [
            plain("int"),
            plain("float"),
            plain("bool"),
            plain("void*"),
            plain("DLTensor*"),
            plain("ffi.String"),
            plain("ffi.Bytes"),
            plain("DataType"),
            plain("Device"),
            plain("ffi.Shape"),
            plain("Any"),
            plain("None"),
            plain("int"),
            plain("bool"),
            plain("ffi.Function"),
            plain("ffi.Module"),
            plain("my.Type"),
            of("Optional", &[plain("DLTensor*")]),
            of("Tuple", &[plain("int"), plain("ffi.Tensor")]),
            of("ffi.Array", &[plain("ffi.String")]),
            of("ffi.List", &[plain("Any")]),
            of("ffi.Map", &[plain("ffi.String"), plain("int")]),
            of("ffi.Dict", &[plain("ffi.String"), plain("bool")]),
            json!({
                "type": "Config",
                "fields": [{ "name": "a", "type": plain("int") }, { "name": "x", "type": plain("ffi.Tensor") }],
            }),
        ];
        assert_eq!(schema["named_args"]["params"], Value::from(expected.to_vec()));
    }

    #[test]
    fn metadata_has_the_use_of_tensors_and_keywords() {
        let text = "f(x: Tensor([n], int8), s: EnvState(\"my.state\"), y: Optional[Tensor([n], int8, inout=True)], *, \
            k: int64, z: Tuple[Tensor([n], int8, out=True), Tensor([n], int8, out=True)], w: Array[Tensor([], int8)])";
        let parameters = |text: &str| -> Value {
            let signature: Signature = text.parse().unwrap();
            let metadata: Value = serde_json::from_str(&metadata(&signature)).unwrap();
            metadata["parameters"].clone()
        };
        let of = |key: &str| -> Vec<Value> {
            parameters(text).as_array().unwrap().iter().map(|p| p.get(key).cloned().unwrap_or_default()).collect()
        };
        assert_eq!(json!(of("access")), json!(["in", "inout", null, "out", "in"]));
        assert_eq!(json!(of("keyword_only")), json!([null, null, true, true, true]));
        // without any marked tensor, nothing is known
        assert_eq!(parameters("f(x: Tensor([], int8))")[0].get("access"), None);
    }

    #[test]
    fn metadata_has_names_defaults_and_the_text() {
        let text = "f(x: Tensor([n], float32, device=\"cuda\"), s: EnvStream, \
                    t: EnvState(\"my.state\"), a: float64 = nan, b: int8 = -1, \
                    c: Optional[str] = None, d: str = \"q\\\\\", e: dtype = \"float32\", g: device = \"cuda:1\", \
                    h: bool = True, i: float32 = 0.5) -> Tensor([n], float32, device=\"cuda\")";
        let signature: Signature = text.parse().unwrap();
        let metadata: Value = serde_json::from_str(&metadata(&signature)).unwrap();
        assert_eq!(metadata["signature"].as_str().unwrap().parse(), Ok(signature.clone()));
        let schema: Value = serde_json::from_str(metadata["type_schema"].as_str().unwrap()).unwrap();
        assert_eq!(schema["named_args"]["return"], json!([{ "type": "ffi.Tensor" }]));
        assert_eq!(schema["named_args"]["params"].as_array().unwrap().len(), 9);
        let parameters = metadata["parameters"].as_array().unwrap();
        let names: Vec<&str> = parameters.iter().map(|p| p["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["x", "a", "b", "c", "d", "e", "g", "h", "i"]);
        assert_eq!(parameters[0]["type"], json!("Tensor([n], float32, device=\"cuda\")"));
        let defaults: Vec<Option<&Value>> = parameters.iter().map(|p| p.get("default")).collect();
        let expected = json!(["nan", -1, null, "q\\", "float32", "cuda:1", true, 0.5]);
        assert_eq!(defaults[0], None);
        assert_eq!(defaults[1..], expected.as_array().unwrap().iter().map(Some).collect::<Vec<_>>());
    }
}
