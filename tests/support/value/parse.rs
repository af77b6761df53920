//! The text form of calls in fixtures.

use tvm_ffi_codegen::runtime::abi::DLDevice;
use tvm_ffi_codegen::{DLDataType, DLDeviceType};

use super::{Call, Data, Number, Strides, TensorSpec, Thing, Value};
use crate::support::args::Form;

/// The parts between commas outside brackets and quotes.
fn split(text: &str) -> Result<Vec<&str>, String> {
    split_at(text, ',')
}

fn split_at(text: &str, separator: char) -> Result<Vec<&str>, String> {
    let (mut depth, mut quoted, mut start) = (0i32, false, 0);
    let mut parts = Vec::new();
    for (i, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            _ if quoted => {}
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            c if c == separator && depth == 0 => {
                parts.push(text[start..i].trim());
                start = i + 1;
            }
            _ => {}
        }
    }
    if depth != 0 || quoted {
        return Err(format!("brackets or quotes don't match in `{text}`"));
    }
    let last = text[start..].trim();
    if !last.is_empty() || !parts.is_empty() {
        parts.push(last);
    }
    Ok(parts)
}

/// `name=rest`, if the name is a plain word.
fn keyword(part: &str) -> (Option<&str>, &str) {
    match part.split_once('=') {
        Some((name, rest)) if name.trim().chars().all(|c| c.is_ascii_alphanumeric() || c == '_') => {
            (Some(name.trim()), rest.trim())
        }
        _ => (None, part),
    }
}

pub fn parse_call(text: &str) -> Result<Call, String> {
    let mut call = Call::default();
    for part in split(text)? {
        match keyword(part) {
            (Some("args"), "null") => call.null_array = true,
            (Some("num_args"), n) => call.num_args = Some(int(n)? as i32),
            (label, value) => call.args.push((label.map(str::to_owned), parse_value(value)?)),
        }
    }
    Ok(call)
}

fn int(text: &str) -> Result<i128, String> {
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
    let value = match digits.strip_prefix("0x") {
        Some(hex) => i128::from_str_radix(hex, 16),
        None => digits.parse(),
    };
    value.map(|v| sign * v).map_err(|_| format!("`{text}` is no integer"))
}

fn number(text: &str) -> Result<Number, String> {
    match text {
        "true" => Ok(Number::Int(1)),
        "false" => Ok(Number::Int(0)),
        _ => int(text)
            .map(Number::Int)
            .or_else(|_| text.parse().map(Number::Float).map_err(|_| format!("`{text}` is no number"))),
    }
}

fn quoted(text: &str) -> Result<String, String> {
    let inside = text.strip_prefix('"').and_then(|t| t.strip_suffix('"'));
    inside.map(str::to_owned).ok_or_else(|| format!("`{text}` is no text in quotes"))
}

fn list<T>(text: &str, item: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
    let inside = text.strip_prefix('[').and_then(|t| t.strip_suffix(']'));
    let inside = inside.ok_or_else(|| format!("`{text}` is no list"))?;
    split(inside)?.into_iter().map(item).collect()
}

/// `{key: value, ...}`
fn entries(text: &str) -> Result<Vec<(Value, Value)>, String> {
    let inside = text.strip_prefix('{').and_then(|t| t.strip_suffix('}'));
    let inside = inside.ok_or_else(|| format!("`{text}` is no `{{key: value, ...}}`"))?;
    let entry = |part: &str| match split_at(part, ':')?[..] {
        [key, value] => Ok((parse_value(key)?, parse_value(value)?)),
        _ => Err(format!("`{part}` is no `key: value`")),
    };
    split(inside)?.into_iter().map(entry).collect()
}

/// `{name: value, ...}`
fn fields(text: &str) -> Result<Vec<(String, Value)>, String> {
    let inside = text.strip_prefix('{').and_then(|t| t.strip_suffix('}'));
    let inside = inside.ok_or_else(|| format!("`{text}` is no `{{name: value, ...}}`"))?;
    let field = |part: &str| match split_at(part, ':')?[..] {
        [name, value] => Ok((name.trim().to_owned(), parse_value(value)?)),
        _ => Err(format!("`{part}` is no `name: value`")),
    };
    split(inside)?.into_iter().map(field).collect()
}

fn device(text: &str) -> Result<DLDevice, String> {
    let text = text.trim_matches('"');
    if let Some((kind, id)) = text.split_once(':')
        && let Ok(kind) = kind.parse()
    {
        return Ok(DLDevice::new(DLDeviceType(kind), int(id)? as i32));
    }
    text.parse().map_err(|e| format!("`{text}`: {e}"))
}

fn dtype(text: &str) -> Result<DLDataType, String> {
    if let Some(fields) = text.strip_prefix("raw(").and_then(|t| t.strip_suffix(')')) {
        let [code, bits, lanes] = split(fields)?[..] else { return Err(format!("`{text}`: three numbers")) };
        return Ok(DLDataType { code: int(code)? as u8, bits: int(bits)? as u8, lanes: int(lanes)? as u16 });
    }
    text.parse().map_err(|e| format!("`{text}`: {e}"))
}

fn parse_value(text: &str) -> Result<Value, String> {
    let called = text.strip_suffix(')').and_then(|t| t.split_once('('));
    let Some((name, inside)) = called else {
        return match text {
            "none" => Ok(Value::Raw(0, 0)),
            "true" => Ok(Value::Raw(2, 1)),
            "false" => Ok(Value::Raw(2, 0)),
            "function" => Ok(Value::Function),
            "module" => Ok(Value::Module),
            "error" => Ok(Value::Error),
            "object" => Ok(Value::Object(Thing::Base)),
            _ => match number(text)? {
                Number::Int(v) => Ok(Value::int(v as i64)),
                Number::Float(v) => Ok(Value::Float(v)),
            },
        };
    };
    let inside = inside.trim();
    match name {
        "int" => Ok(Value::int(int(inside)? as i64)),
        "float" => match number(inside)? {
            Number::Int(v) => Ok(Value::Float(v as f64)),
            Number::Float(v) => Ok(Value::Float(v)),
        },
        "ptr" => Ok(Value::Raw(4, int(inside)? as u64)),
        "raw" => match split(inside)?[..] {
            [index, payload] => Ok(Value::Raw(int(index)? as i32, int(payload)? as u64)),
            _ => Err(format!("`{text}`: a type index and a payload")),
        },
        "dtype" => dtype(inside).map(Value::DType),
        "device" => device(inside).map(Value::Device),
        "str" => quoted(inside).map(Value::Str),
        "raw_str" => quoted(inside).map(Value::RawStr),
        "bytes" => quoted(inside).map(Value::Bytes),
        "byte_array" => quoted(inside).map(Value::ByteArray),
        "shape" => list(inside, |v| int(v).map(|v| v as i64)).map(Value::Shape),
        "tensor" => parse_tensor(inside).map(Value::Tensor),
        "object" if inside == "sub" => Ok(Value::Object(Thing::Sub)),
        "fields" => fields(inside).map(Value::Fields),
        "array" => list(inside, parse_value).map(Value::Array),
        "list" => list(inside, parse_value).map(Value::List),
        "map" => entries(inside).map(Value::Map),
        "dict" => entries(inside).map(Value::Dict),
        "rvalue" if inside == "null" => Ok(Value::Reference(None)),
        "rvalue" => parse_value(inside).map(|object| Value::Reference(Some(Box::new(object)))),
        _ => Err(format!("`{name}` is no kind of argument")),
    }
}

fn parse_tensor(text: &str) -> Result<TensorSpec, String> {
    let parts = split(text)?;
    let [dtype_text, shape, options @ ..] = &parts[..] else {
        return Err(format!("`tensor({text})` needs a dtype and a shape"));
    };
    let mut tensor = TensorSpec::new(dtype(dtype_text)?, list(shape, |v| int(v).map(|v| v as i64))?);
    for option in options {
        match keyword(option) {
            (Some("ndim"), n) => tensor.ndim = Some(int(n)? as i32),
            (Some("shape"), "null") => tensor.null_shape = true,
            (Some("strides"), "null") => tensor.strides = Strides::Null,
            (Some("strides"), given) => tensor.strides = Strides::Given(list(given, |v| int(v).map(|v| v as i64))?),
            (Some("data"), "null") => tensor.data = Data::Address(0),
            (Some("data"), values) if values.starts_with('[') => tensor.data = Data::Values(list(values, number)?),
            (Some("data"), address) => tensor.data = Data::Address(int(address)? as u64),
            (Some("shift"), n) => tensor.shift = int(n)? as usize,
            (Some("byte_offset"), n) => tensor.byte_offset = int(n)? as u64,
            (Some("device"), name) => tensor.device = device(name)?,
            (Some("as"), "dltensor") => tensor.form = Some(Form::DlTensor),
            (Some("as"), "object") => tensor.form = Some(Form::Object),
            (Some("ptr"), "null") => tensor.null = true,
            _ => return Err(format!("`{option}` is no option of a tensor")),
        }
    }
    Ok(tensor)
}
