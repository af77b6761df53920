//! The inputs of a kernel in a correct call, according to the tables in `docs/reference/contract.md`, C11: its C
//! parameters, and the words that `notes.h` records for them.

use tvm_ffi_codegen::lower::Convention;
use tvm_ffi_codegen::runtime::abi::{DLDataType, DLDevice, DLDeviceType, DLTensor, TVMFFIAny};
use tvm_ffi_codegen::spec::DType;
use tvm_ffi_codegen::{Dim, ParamType, ScalarType, Signature, TensorType};

use crate::support::layout::{Gives, gives, is_opaque, is_open, says_given};
use crate::support::model::seen::{self, default_value};
use crate::support::states::state_of;
use crate::support::streams::stream_of;
use crate::support::value::{Data, Strides, TensorSpec, Value};

/// C parameters that are recorded together.
pub struct Noted {
    pub types: Vec<&'static str>,
    /// The function that records them.
    pub by: &'static str,
    pub words: Vec<u64>,
}

/// The values of a call.
pub struct Passed<'a> {
    pub values: &'a [Value],
    /// The same values in the packed array.
    pub raw: &'a [TVMFFIAny],
    /// The tensor that the wrapper has returned.
    pub result: Option<&'a DLTensor>,
}

/// All parameters of a kernel except `TVMFFIAny* result`.
pub fn received(signature: &Signature, convention: Convention, passed: &Passed<'_>) -> Vec<Noted> {
    let mut table = Table { signature, convention, noted: Vec::new(), symbols: Vec::new(), stream: None };
    let defaults = signature.params().iter().filter(|param| param.is_passed());
    let defaults =
        defaults.skip(passed.values.len()).filter_map(|param| Some(default_value(&param.ty, param.default.as_ref()?)));
    let values: Vec<Value> = passed.values.iter().cloned().chain(defaults).collect();
    if convention == Convention::Packed {
        let raw = passed.raw.iter().map(|raw| [raw.type_index as u64, raw.zero_padding.into(), raw.bits()]);
        let filled_in = values.iter().skip(passed.raw.len()).map(plain_any);
        let words = [values.len() as u64].into_iter().chain(raw.chain(filled_in).flatten()).collect();
        table.note(&["void*", "const TVMFFIAny*", "int32_t"], "packed", words);
        return table.noted;
    }
    let mut streams = Vec::new();
    let mut next = 0;
    for param in signature.params() {
        if let ParamType::EnvState(name) = &param.ty {
            let state = state_of(name, &signature.to_string());
            table.word("void*", state.unwrap_or_else(|(_, message)| panic!("{message}")));
            continue;
        }
        if param.ty == ParamType::EnvStream {
            streams.push(table.noted.len());
            table.word("void*", 0);
            continue;
        }
        if param.ty == ParamType::Stream {
            let (index, payload) = seen::plain(&values[next]).unwrap();
            streams.extend((index == 0).then_some(table.noted.len()));
            table.word("void*", payload);
            next += 1;
            continue;
        }
        table.param(&param.ty, Some(&values[next]), passed.raw.get(next));
        next += 1;
    }
    for place in streams {
        table.noted[place].words = vec![table.stream.map_or(0, stream_of)];
    }
    if let Some(ParamType::Tensor(tensor)) = signature.ret() {
        // before the call there is no result, and only the types matter
        table.tensor(tensor, passed.result.map(seen_result).as_ref());
    }
    if convention == Convention::Flat {
        for (_, value) in std::mem::take(&mut table.symbols) {
            table.word("int64_t", value as u64);
        }
    }
    table.noted
}

/// The C type of a value that a kernel returns.
pub fn returned(signature: &Signature) -> Option<&'static str> {
    match (gives(signature), signature.ret()) {
        (Gives::Value, Some(ParamType::Scalar(ty))) => Some(scalar(*ty)),
        (Gives::Value, Some(ParamType::DType)) => Some("DLDataType"),
        (Gives::Value, _) => Some("DLDevice"),
        _ => None,
    }
}

fn scalar(ty: ScalarType) -> &'static str {
    match ty {
        ScalarType::Int8 => "int8_t",
        ScalarType::Int16 => "int16_t",
        ScalarType::Int32 => "int32_t",
        ScalarType::Int64 => "int64_t",
        ScalarType::UInt8 | ScalarType::Bool => "uint8_t",
        ScalarType::UInt16 | ScalarType::Float16 | ScalarType::BFloat16 => "uint16_t",
        ScalarType::UInt32 => "uint32_t",
        ScalarType::UInt64 => "uint64_t",
        ScalarType::Float32 => "float",
        ScalarType::Float64 => "double",
        ScalarType::Handle => "void*",
        other => unreachable!("the test knows no {other}"),
    }
}

/// The C type of a pointer to the tensor's elements.
fn pointer(tensor: &TensorType) -> &'static str {
    let DType::Exact(dtype) = tensor.dtype else { return "void*" };
    match dtype.to_string().as_str() {
        "int8" => "int8_t*",
        "int16" => "int16_t*",
        "int32" => "int32_t*",
        "int64" => "int64_t*",
        "uint8" | "bool" => "uint8_t*",
        "uint16" | "float16" | "bfloat16" => "uint16_t*",
        "uint32" => "uint32_t*",
        "uint64" => "uint64_t*",
        "float32" | "complex64" => "float*",
        "float64" | "complex128" => "double*",
        name if name.starts_with("float8_") && dtype.lanes == 1 => "uint8_t*",
        _ => "void*",
    }
}

/// A tensor that was passed.
struct Seen {
    data: u64,
    byte_offset: u64,
    device: DLDevice,
    dtype: DLDataType,
    shape: Vec<i64>,
    strides: Vec<i64>,
}

fn compact(shape: &[i64]) -> Vec<i64> {
    (0..shape.len()).map(|d| shape[d + 1..].iter().product()).collect()
}

fn seen(spec: &TensorSpec) -> Seen {
    let Data::Address(data) = spec.data else { panic!("{spec:?}: the address has to be known") };
    let strides = match &spec.strides {
        Strides::Given(strides) => strides.clone(),
        Strides::Default | Strides::Null => compact(&spec.shape),
    };
    let TensorSpec { byte_offset, device, dtype, ref shape, .. } = *spec;
    Seen { data, byte_offset, device, dtype, shape: shape.clone(), strides }
}

fn seen_result(tensor: &DLTensor) -> Seen {
    // SAFETY: the tensor was allocated with that many sizes.
    let shape: Vec<i64> = (0..tensor.ndim as usize).map(|d| unsafe { tensor.shape.add(d).read() }).collect();
    let strides = compact(&shape);
    let data = tensor.data.expose_provenance() as u64;
    Seen { data, byte_offset: tensor.byte_offset, device: tensor.device, dtype: tensor.dtype, shape, strides }
}

fn dtype_word(dtype: DLDataType) -> u64 {
    u64::from(dtype.code) | u64::from(dtype.bits) << 8 | u64::from(dtype.lanes) << 16
}

fn device_words(device: DLDevice) -> [u64; 2] {
    [device.device_type.0 as u64, device.device_id as u64]
}

/// A value that needs no memory of its own, as a `TVMFFIAny`.
fn plain_any(value: &Value) -> [u64; 3] {
    match value {
        Value::Raw(index, payload) => [*index as u64, 0, *payload],
        Value::Float(value) => [3, 0, value.to_bits()],
        other => panic!("{other:?}: not a plain value"),
    }
}

fn items(value: &Value) -> &[Value] {
    match value {
        Value::Array(items) | Value::List(items) => items,
        other => panic!("{other:?}: not a sequence"),
    }
}

struct Table<'a> {
    signature: &'a Signature,
    convention: Convention,
    noted: Vec<Noted>,
    /// The symbols that aren't parameters, in order; 0 as long as the values with the symbol are None.
    symbols: Vec<(String, i64)>,
    /// The device of the first tensor that may be on a device other than the CPU.
    stream: Option<DLDevice>,
}

impl Table<'_> {
    fn note(&mut self, types: &[&'static str], by: &'static str, words: Vec<u64>) {
        self.noted.push(Noted { types: types.to_vec(), by, words });
    }

    fn word(&mut self, c_type: &'static str, word: u64) {
        let by = match c_type {
            "float" => "single",
            "double" => "real",
            _ if c_type.ends_with('*') || c_type == "TVMFFIObjectHandle" => "address",
            _ => "word",
        };
        self.note(&[c_type], by, vec![word]);
    }

    /// An address with a number of entries. The words include the entries, each with one or more words.
    fn span(&mut self, c_type: &'static str, by: &'static str, content: Option<(usize, Vec<u64>)>) {
        let given = content.is_some();
        let (size, words) = content.unwrap_or_default();
        self.note(&[c_type, "size_t"], by, [given.into(), size as u64].into_iter().chain(words).collect());
    }

    /// A parameter, or a part of one; all zeros without a value.
    fn param(&mut self, ty: &ParamType, value: Option<&Value>, raw: Option<&TVMFFIAny>) {
        match ty {
            ParamType::Scalar(ty) => self.word(scalar(*ty), value.map_or(0, |value| scalar_word(*ty, value))),
            ParamType::Tensor(tensor) => {
                let spec = value.map(|value| match value {
                    Value::Tensor(spec) => seen(spec),
                    other => panic!("{other:?}: not a tensor"),
                });
                self.bind(tensor.shape.dims().unwrap_or_default(), spec.as_ref().map(|spec| &spec.shape[..]));
                self.bind(tensor.strides().unwrap_or_default(), spec.as_ref().map(|spec| &spec.strides[..]));
                if let Some(spec) = &spec
                    && tensor.device.kind() != Some(DLDeviceType::CPU)
                {
                    self.stream.get_or_insert(spec.device);
                }
                self.tensor(tensor, spec.as_ref());
            }
            ParamType::Str | ParamType::Bytes => {
                let text = value.map(|value| match value {
                    Value::Str(text) | Value::RawStr(text) | Value::Bytes(text) | Value::ByteArray(text) => text,
                    other => panic!("{other:?}: not a text"),
                });
                let content = text.map(|text| (text.len(), text.bytes().map(u64::from).collect()));
                self.span("const char*", "chars", content);
            }
            ParamType::DType => {
                let word = value.map_or(0, |value| match value {
                    Value::DType(dtype) => dtype_word(*dtype),
                    Value::Str(name) => dtype_word(name.parse().unwrap()),
                    other => panic!("{other:?}: not a dtype"),
                });
                self.note(&["DLDataType"], "dtype", vec![word]);
            }
            ParamType::Device => {
                let words = value.map_or([0; 2], |value| match value {
                    Value::Device(device) => device_words(*device),
                    other => panic!("{other:?}: not a device"),
                });
                self.note(&["DLDevice"], "device", words.into());
            }
            ParamType::Shape(dims) => {
                let extents: Option<Vec<i64>> = value.map(|value| match value {
                    Value::Shape(extents) => extents.clone(),
                    other => items(other).iter().map(|item| plain_any(item)[2] as i64).collect(),
                });
                self.bind(dims.as_deref().unwrap_or_default(), extents.as_deref());
                let content = extents.map(|all| (all.len(), all.iter().map(|extent| *extent as u64).collect()));
                self.span("const int64_t*", "numbers", content);
            }
            ParamType::Any => {
                let raw = raw.map(|raw| [raw.type_index as u64, raw.zero_padding.into(), raw.bits()]);
                let words = raw.or_else(|| value.map(plain_any)).unwrap_or_default();
                self.note(&["const TVMFFIAny*"], "any", words.into());
            }
            ParamType::None | ParamType::Int(_) | ParamType::Bool(_) => {}
            ParamType::Array(_) => {
                let content = value.map(items).map(|all| (all.len(), all.iter().flat_map(plain_any).collect()));
                self.span("const TVMFFIAny*", "values", content);
            }
            ParamType::Tuple(types) => {
                for (i, ty) in types.iter().enumerate() {
                    self.param(ty, value.map(|value| &items(value)[i]), None);
                }
            }
            ParamType::Record { fields, .. } => {
                for (i, (name, ty)) in fields.iter().enumerate() {
                    let field = value.map(|value| match value {
                        Value::Map(entries) => {
                            let named = |(key, _): &&(Value, Value)| matches!(key, Value::Str(key) if key == name);
                            &entries.iter().find(named).unwrap().1
                        }
                        other => &items(other)[i],
                    });
                    self.param(ty, field, None);
                }
            }
            ParamType::Optional(inner) => {
                let value = value.filter(|value| !matches!(value, Value::Raw(0, _)));
                if says_given(inner) {
                    self.word("uint8_t", value.is_some().into());
                }
                self.param(inner, value, raw);
            }
            // functions, modules, other objects, lists, maps, dicts
            _ => {
                let object = value.map(|_| raw.map(TVMFFIAny::bits));
                let object = object.map(|bits| bits.unwrap_or_else(|| panic!("{ty}: an object inside another value")));
                self.word("TVMFFIObjectHandle", object.unwrap_or(0));
            }
        }
    }

    /// The first value of a symbol binds it. The tests' calls are correct, so further values are equal.
    fn bind(&mut self, dims: &[Dim], got: Option<&[i64]>) {
        for (d, dim) in dims.iter().enumerate() {
            let Dim::Var(name) = dim else { continue };
            if self.signature.params().iter().any(|param| param.name == *name) {
                continue;
            }
            let value = got.map_or(0, |got| got[d]);
            match self.symbols.iter_mut().find(|(known, _)| known == name) {
                Some((_, known)) if *known == 0 => *known = value,
                Some(_) => {}
                None => self.symbols.push((name.clone(), value)),
            }
        }
    }

    fn tensor(&mut self, ty: &TensorType, seen: Option<&Seen>) {
        let opaque = ty.device.kind().is_some_and(is_opaque);
        let handle = seen.is_some_and(|seen| is_opaque(seen.device.device_type));
        let data = seen.map_or(0, |seen| seen.data + if handle { 0 } else { seen.byte_offset });
        let byte_offset = seen.filter(|_| handle).map_or(0, |seen| seen.byte_offset);
        // a stride that may have any value is replaced by the expected one
        let strides = seen.map(|seen| {
            let expected = compact(&seen.shape);
            let stated = |d: usize| match ty.strides().map(|strides| &strides[d]) {
                Some(Dim::Const(stride)) => *stride,
                Some(_) => seen.strides[d],
                None if matches!(ty.layout, tvm_ffi_codegen::Layout::Any) => seen.strides[d],
                None => expected[d],
            };
            (0..seen.shape.len()).map(stated).collect::<Vec<i64>>()
        });
        match self.convention {
            Convention::Flat if !is_open(ty) => {
                self.word(if opaque { "void*" } else { pointer(ty) }, data);
                if opaque {
                    self.word("uint64_t", byte_offset);
                }
            }
            Convention::MemRef => {
                let rank = ty.shape.rank().unwrap_or_default();
                self.word(pointer(ty), data);
                self.word(pointer(ty), data);
                self.word("int64_t", 0);
                let shape = seen.map_or_else(|| vec![0; rank], |seen| seen.shape.clone());
                for number in shape.into_iter().chain(strides.unwrap_or_else(|| vec![0; rank])) {
                    self.word("int64_t", number as u64);
                }
            }
            _ => {
                let words = seen.map_or_else(
                    || vec![0],
                    |seen| {
                        let dtype = if let DType::Exact(dtype) = ty.dtype { dtype } else { seen.dtype };
                        let rest = [dtype_word(dtype), seen.shape.len() as u64];
                        let numbers = seen.shape.iter().copied().chain(strides.unwrap_or_default());
                        [1, data, byte_offset]
                            .into_iter()
                            .chain(device_words(seen.device))
                            .chain(rest)
                            .chain(numbers.map(|number| number as u64))
                            .collect()
                    },
                );
                self.note(&["DLTensor*"], "tensor", words);
            }
        }
    }
}

fn scalar_word(ty: ScalarType, value: &Value) -> u64 {
    match (ty, value) {
        (ScalarType::Bool, Value::Raw(_, payload)) => u64::from(*payload != 0),
        (ScalarType::Float32, Value::Float(value)) => u64::from((*value as f32).to_bits()),
        (ScalarType::Float64, Value::Float(value)) => value.to_bits(),
        (ScalarType::Float32, Value::Raw(_, payload)) => u64::from((*payload as i64 as f32).to_bits()),
        (ScalarType::Float64, Value::Raw(_, payload)) => (*payload as i64 as f64).to_bits(),
        (_, Value::Raw(_, payload)) => *payload,
        (_, other) => panic!("{other:?}: not a {ty}"),
    }
}
