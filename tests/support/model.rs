//! What a wrapper has to do with a call, from `docs/contract.md` alone: an oracle that shares nothing with `src/lower`.
//!
//! Executors that run the same lowered IR agree even where the lowering is wrong; this model would not.

use std::collections::{HashMap, HashSet};

use tvm_ffi_codegen::runtime::abi::{DLDataType, DLDevice, DLDeviceType};
use tvm_ffi_codegen::spec::Layout;
use tvm_ffi_codegen::{Dim, Param, ParamType, ScalarType, Signature, TensorType};

use super::args::Form;
use super::value::{Call, Data, Strides, TensorSpec, Value};

/// The kind and text of an error.
pub type Refusal = (String, String);

/// What a wrapper does with a call.
#[derive(Clone, PartialEq, Debug)]
pub enum Prediction {
    Refused(Refusal),
    Accepted(Accepted),
}

/// What a native kernel receives, and the scalars.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Accepted {
    /// As `Outcome::received` tells it; `None` where the contract leaves it open.
    pub words: Vec<Option<u64>>,
    /// The first scalar parameter as a result: type index, payload.
    pub first_scalar: Option<(i32, u64)>,
}

/// What happens to a call whose open tensors have this form; `None` where it breaks what is taken on trust.
pub fn predict(signature: &Signature, call: &Call, form: Form) -> Option<Prediction> {
    let mut model =
        Model { signature, form, symbols: HashMap::new(), devices: HashMap::new(), stated: stated(signature) };
    match model.call(call) {
        Ok(accepted) => Some(Prediction::Accepted(accepted)),
        Err(Stop::Refused(kind, text)) => Some(Prediction::Refused((kind.to_owned(), text))),
        Err(Stop::TrustBroken) => None,
    }
}

enum Stop {
    Refused(&'static str, String),
    TrustBroken,
}

/// Whether a value is the result that is predicted; a NaN is any other NaN.
pub fn same_result(predicted: (i32, u64), (index, padding, payload): (i32, u32, u64)) -> bool {
    let both_nan = f64::from_bits(predicted.1).is_nan() && f64::from_bits(payload).is_nan();
    index == predicted.0 && padding == 0 && (payload == predicted.1 || (index == 3 && both_nan))
}

struct Model<'a> {
    signature: &'a Signature,
    form: Form,
    /// Values, with the paths that bound them.
    symbols: HashMap<&'a str, (i64, String)>,
    /// Of each kind of device: the id that tensors without a stated one share, with the path that bound it.
    devices: HashMap<DLDeviceType, (i32, String)>,
    /// Of each kind of device: the ids that tensors state.
    stated: HashMap<DLDeviceType, HashSet<i32>>,
}

fn stated(signature: &Signature) -> HashMap<DLDeviceType, HashSet<i32>> {
    let mut all: HashMap<_, HashSet<i32>> = HashMap::new();
    for param in signature.params() {
        if let ParamType::Tensor(TensorType { device, .. }) = &param.ty {
            all.entry(device.device_type).or_default().extend(device.id);
        }
    }
    all
}

impl<'a> Model<'a> {
    fn refuse<T>(&self, kind: &'static str, what: &str, expected: &str, got: &str) -> Result<T, Stop> {
        let signature = self.signature;
        let text = format!("Mismatched {what} when calling: `{signature}`, expected {expected}, got {got}");
        Err(Stop::Refused(kind, text))
    }

    fn call(&mut self, call: &Call) -> Result<Accepted, Stop> {
        let params = self.signature.params();
        let count = call.num_args.unwrap_or(call.args.len() as i32);
        if count != params.len() as i32 {
            return self.refuse("TypeError", "number of arguments", &params.len().to_string(), &count.to_string());
        }
        if call.null_array && !params.is_empty() {
            return self.refuse("TypeError", "argument array", "a non-NULL pointer", "NULL");
        }
        let mut accepted = Accepted::default();
        for (number, (param, (_, value))) in params.iter().zip(&call.args).enumerate() {
            match &param.ty {
                ParamType::Scalar(ty) => {
                    let (word, result) = self.scalar(number, param, *ty, value)?;
                    accepted.words.push(Some(word));
                    accepted.first_scalar.get_or_insert(result);
                }
                ParamType::Tensor(ty) => accepted.words.extend(self.tensor(number, param, ty, value)?),
            }
        }
        for name in self.signature.symbols() {
            accepted.words.push(self.symbols.get(name).map(|(value, _)| *value as u64));
        }
        Ok(accepted)
    }

    fn wrong_type<T>(&self, number: usize, param: &Param, expected: &str, got: &str) -> Result<T, Stop> {
        self.refuse("TypeError", &format!("type of {} on argument #{number}", param.name), expected, got)
    }

    /// The word that a kernel receives, and what it is as a result.
    fn scalar(&self, number: usize, param: &Param, ty: ScalarType, value: &Value) -> Result<(u64, (i32, u64)), Stop> {
        use ScalarType::*;
        let (index, payload) = match value {
            Value::Raw(index, payload) => (*index, *payload),
            Value::Float(v) => (3, v.to_bits()),
            _ => (-1, 0),
        };
        let integer = payload as i64;
        let limits = match ty {
            Int8 => (-128, 127),
            Int16 => (-32768, 32767),
            Int32 => (-2_147_483_648, 2_147_483_647),
            UInt8 => (0, 255),
            UInt16 => (0, 65535),
            UInt32 => (0, 4_294_967_295),
            _ => (i64::MIN, i64::MAX),
        };
        match (ty, index) {
            (Bool, 1 | 2) => Ok((u64::from(payload != 0), (2, u64::from(payload != 0)))),
            (Handle, 4) => Ok((payload, (4, payload))),
            (Handle, 0) => Ok((0, (4, 0))),
            (Float64, 1 | 2) => Ok(((integer as f64).to_bits(), (3, (integer as f64).to_bits()))),
            (Float64, 3) => Ok((payload, (3, payload))),
            (Float32, 1..=3) => {
                let v = if index == 3 { f64::from_bits(payload) as f32 } else { integer as f32 };
                Ok((v.to_bits().into(), (3, f64::from(v).to_bits())))
            }
            (Bool | Handle | Float32 | Float64, _) => self.wrong_type(number, param, ty.name(), &type_name(value)),
            (_, 1 | 2) if limits.0 <= integer && integer <= limits.1 => Ok((payload, (1, payload))),
            (_, 1 | 2) => {
                let what = format!("value of {} on argument #{number}", param.name);
                let expected = format!("{} ({} to {})", ty.name(), limits.0, limits.1);
                self.refuse("ValueError", &what, &expected, &integer.to_string())
            }
            _ => self.wrong_type(number, param, ty.name(), &type_name(value)),
        }
    }

    fn tensor(
        &mut self,
        number: usize,
        param: &'a Param,
        ty: &'a TensorType,
        value: &Value,
    ) -> Result<Vec<Option<u64>>, Stop> {
        let null = "a NULL pointer to one";
        let spec = match value {
            Value::Tensor(spec) if spec.null => return self.wrong_type(number, param, "Tensor", null),
            Value::Tensor(spec) => spec,
            Value::Raw(7 | 70, 0) => return self.wrong_type(number, param, "Tensor", null),
            Value::Raw(7 | 70, _) => return Err(Stop::TrustBroken),
            _ => return self.wrong_type(number, param, "Tensor", &type_name(value)),
        };
        let checked = Checked { number, name: &param.name };
        let (rank, ndim) = (ty.shape.len(), spec.ndim.unwrap_or(spec.shape.len() as i32));
        if ndim != rank as i32 {
            return checked.refuse(self, "ndim", &rank.to_string(), &ndim.to_string());
        }
        let strides_end = if let Strides::Given(strides) = &spec.strides { strides.len() } else { rank };
        if spec.shape.len() < rank || strides_end < rank {
            return Err(Stop::TrustBroken);
        }
        if spec.dtype != ty.dtype {
            return checked.refuse(self, "dtype", &dtype_name(ty.dtype), &dtype_name(spec.dtype));
        }
        self.device(&checked, ty, spec.device)?;
        if spec.null_shape && rank > 0 {
            return checked.refuse(self, "shape", &format!("a non-NULL pointer for ndim {rank}"), "NULL");
        }
        for (d, (dim, &size)) in ty.shape.iter().zip(&spec.shape).enumerate() {
            self.size(&checked, format!("shape[{d}]"), dim, size)?;
        }
        let shape = &spec.shape[..rank];
        let mut behind = vec![1i64; rank + 1];
        for d in (0..rank).rev() {
            behind[d] = match behind[d + 1].checked_mul(shape[d]) {
                Some(product) => product,
                None => return checked.refuse(self, "shape", "sizes whose product fits in 64 bits", "an overflow"),
            };
        }
        let elements = behind[0];
        let form = spec.form.unwrap_or(self.form);
        let given = match &spec.strides {
            Strides::Given(strides) => Some(&strides[..rank]),
            Strides::Default if form == Form::Object => Some(&behind[1..]),
            Strides::Default | Strides::Null => None,
        };
        for d in 0..rank {
            let compared = elements != 0 && shape[d] != 1;
            let (path, actual) = (format!("strides[{d}]"), given.map_or(behind[d + 1], |strides| strides[d]));
            match &ty.layout {
                Layout::Contiguous if compared && actual != behind[d + 1] => {
                    let expected = format!("{} (contiguous)", behind[d + 1]);
                    return checked.refuse(self, &path, &expected, &actual.to_string());
                }
                Layout::Contiguous => {}
                Layout::Strides(strides) => self.stride(&checked, path, &strides[d], actual, compared)?,
            }
        }
        self.address(&checked, ty, spec, elements)
    }

    fn device(&mut self, checked: &Checked<'_>, ty: &TensorType, got: DLDevice) -> Result<(), Stop> {
        let kind = ty.device.device_type;
        // the id that the signature determines
        let only = |ids: &HashSet<i32>| if ids.len() == 1 { ids.iter().next().copied() } else { None };
        let known = ty.device.id.or_else(|| self.stated.get(&kind).and_then(only));
        if got.device_type != kind || known.is_some_and(|id| id != got.device_id) {
            let id = known.map(|id| format!(":{id}")).unwrap_or_default();
            return checked.refuse(self, "device", &format!("{}{id}", kind_name(kind)), &device_name(got));
        }
        if known.is_some() {
            return Ok(());
        }
        match self.devices.get(&kind) {
            Some((id, from)) if *id != got.device_id => {
                let expected = format!("{}:{id} (from {from})", kind_name(kind));
                checked.refuse(self, "device", &expected, &device_name(got))
            }
            Some(_) => Ok(()),
            None => {
                self.devices.insert(kind, (got.device_id, format!("{}.device", checked.name)));
                Ok(())
            }
        }
    }

    fn size(&mut self, checked: &Checked<'_>, path: String, dim: &'a Dim, got: i64) -> Result<(), Stop> {
        let expected = match dim {
            Dim::Const(size) if *size == got => return Ok(()),
            Dim::Const(size) => size.to_string(),
            Dim::Symbol(name) => match self.symbols.get(&name[..]) {
                // never negative, whatever a stride has bound
                _ if got < 0 => "a size of at least 0".to_owned(),
                Some((value, from)) if *value != got => format!("{value} ({name}, from {from})"),
                Some(_) => return Ok(()),
                None => {
                    self.symbols.insert(name, (got, format!("{}.{path}", checked.name)));
                    return Ok(());
                }
            },
        };
        checked.refuse(self, &path, &expected, &got.to_string())
    }

    fn stride(
        &mut self,
        checked: &Checked<'_>,
        path: String,
        dim: &'a Dim,
        got: i64,
        compared: bool,
    ) -> Result<(), Stop> {
        let expected = match dim {
            Dim::Const(stride) if *stride != got => stride.to_string(),
            Dim::Const(_) => return Ok(()),
            Dim::Symbol(name) => match self.symbols.get(&name[..]) {
                Some((value, from)) if *value != got => format!("{value} ({name}, from {from})"),
                Some(_) => return Ok(()),
                None => {
                    self.symbols.insert(name, (got, format!("{}.{path}", checked.name)));
                    return Ok(());
                }
            },
        };
        if compared { checked.refuse(self, &path, &expected, &got.to_string()) } else { Ok(()) }
    }

    fn address(
        &self,
        checked: &Checked<'_>,
        ty: &TensorType,
        spec: &TensorSpec,
        elements: i64,
    ) -> Result<Vec<Option<u64>>, Stop> {
        // memory of a test is aligned to 256, before the shift; what is received is told from after it
        let (data, told) = match spec.data {
            Data::Address(address) => (address, address),
            _ => (1 << 32 | spec.shift as u64, 0),
        };
        if data == 0 && elements != 0 {
            return checked.refuse(self, "data", &format!("a non-NULL pointer to {elements} elements"), "NULL");
        }
        let lane = u32::from(ty.dtype.bits).div_ceil(8).next_power_of_two();
        let align = u64::from(ty.align.unwrap_or(lane));
        let opaque = is_opaque(ty.device.device_type);
        let (aligned, what) = match opaque {
            true => (spec.byte_offset, "byte_offset"),
            false => (data.wrapping_add(spec.byte_offset), "data + byte_offset"),
        };
        let off = aligned % align;
        if off != 0 && elements != 0 {
            let expected = format!("{what} to be a multiple of {align}");
            return checked.refuse(self, "data", &expected, &format!("one that is off by {off}"));
        }
        // where nothing may be read, another address may stand for a bad one
        let open = elements == 0 && (data == 0 || off != 0);
        let sum = told.wrapping_add(spec.byte_offset);
        Ok(match (opaque, open) {
            (true, true) => vec![None, None],
            (true, false) => vec![Some(told), Some(spec.byte_offset)],
            (false, true) => vec![None],
            (false, false) => vec![Some(sum)],
        })
    }
}

/// A tensor argument that is looked at.
struct Checked<'a> {
    number: usize,
    name: &'a str,
}

impl Checked<'_> {
    fn refuse<T>(&self, model: &Model<'_>, path: &str, expected: &str, got: &str) -> Result<T, Stop> {
        model.refuse("ValueError", &format!("{}.{path} on argument #{}", self.name, self.number), expected, got)
    }
}

/// Devices whose `data` is no address.
fn is_opaque(kind: DLDeviceType) -> bool {
    // all but cpu, cuda, cuda_host, rocm, rocm_host, cuda_managed
    !matches!(kind.0, 1 | 2 | 3 | 10 | 11 | 13)
}

fn kind_name(kind: DLDeviceType) -> String {
    kind.name().map_or_else(|| format!("device type {}", kind.0), str::to_owned)
}

/// The first CPU has no number.
fn device_name(device: DLDevice) -> String {
    let kind = kind_name(device.device_type);
    if device == DLDevice::CPU { kind } else { format!("{kind}:{}", device.device_id) }
}

/// How an argument's type is shown.
fn type_name(value: &Value) -> String {
    let name = match value {
        Value::Raw(index, _) => match index {
            0 => "None",
            1 => "int",
            2 => "bool",
            3 => "float",
            4 => "handle",
            5 => "dtype",
            6 => "device",
            7 | 70 => "Tensor",
            8 | 11 | 65 => "str",
            9 | 12 | 66 => "bytes",
            10 => "rvalue reference",
            64 => "Object",
            67 => "Error",
            68 => "Function",
            69 => "Shape",
            71 => "Array",
            72 => "Map",
            73 => "Module",
            74 => "Python object",
            75 => "List",
            76 => "Dict",
            77 => "VisitInterrupt",
            78 => "int of more than 64 bits",
            _ => return format!("type index {index}"),
        },
        Value::Float(_) => "float",
        Value::DType(_) => "dtype",
        Value::Device(_) => "device",
        Value::Str(_) | Value::RawStr(_) => "str",
        Value::Bytes(_) | Value::ByteArray(_) => "bytes",
        Value::Function => "Function",
        Value::Module => "Module",
        Value::Shape(_) => "Shape",
        Value::Error => "Error",
        Value::Object => "test.Thing",
        Value::Tensor(_) => "Tensor",
    };
    name.to_owned()
}

/// The names of dtypes: those of NumPy and `ml_dtypes`, with the lanes behind; without a name, the numbers.
fn dtype_name(dtype: DLDataType) -> String {
    let DLDataType { code, bits, lanes } = dtype;
    let fixed = |name: &str, width: u8| if bits == width { name.to_owned() } else { format!("{name}{bits}") };
    let (name, comma) = match code {
        0 => (format!("int{bits}"), ""),
        1 => (format!("uint{bits}"), ""),
        2 => (format!("float{bits}"), ""),
        3 => ("handle".to_owned(), ""),
        4 => (format!("bfloat{bits}"), ""),
        5 => (format!("complex{bits}"), ""),
        6 => (fixed("bool", 8), ""),
        7..=17 => {
            let names = [
                "float8_e3m4",
                "float8_e4m3",
                "float8_e4m3b11fnuz",
                "float8_e4m3fn",
                "float8_e4m3fnuz",
                "float8_e5m2",
                "float8_e5m2fnuz",
                "float8_e8m0fnu",
                "float6_e2m3fn",
                "float6_e3m2fn",
                "float4_e2m1fn",
            ];
            (names[usize::from(code) - 7].to_owned(), "")
        }
        _ => (format!("code {code}, {bits} bits"), ", "),
    };
    match lanes.cast_signed() {
        1 => name,
        lanes @ 0.. => format!("{name}{comma}x{lanes}"),
        scalable => format!("{name}{comma}xvscalex{}", -i32::from(scalable)),
    }
}
