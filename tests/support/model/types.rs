//! All types except tensors: which values they accept, and which words the kernel receives.

use tvm_ffi_codegen::runtime::unstable::type_table::key_to_index;
use tvm_ffi_codegen::{DLDataType, Dim, ParamType, ScalarType};

use super::seen::{self, brief};
use super::{At, Checked, Model, Stop};
use crate::support::args::type_index;
use crate::support::kernels::Noted;
use crate::support::layout::{is_int, says_given};
use crate::support::value::{Thing, Value};
use crate::support::{half, show};

/// A remark after the expected type in messages.
const NOT_CONVERTED: &str = " (elements are not converted)";
/// The max number of entries of a shape.
const MOST_ENTRIES: usize = 64;

impl<'a> Model<'a> {
    /// A type error; `remark` follows the expected type.
    pub(super) fn wrong_type<T>(&self, ty: &ParamType, at: &At, remark: &str, got: &str) -> Checked<T> {
        let name = match ty {
            ParamType::Tensor(_) => "Tensor".to_owned(),
            ParamType::Tuple(_) => "Tuple".to_owned(),
            ParamType::Record { name, .. } => format!("Record(\"{name}\")"),
            ParamType::Array(_) => "Array".to_owned(),
            ParamType::List(_) => "List".to_owned(),
            ParamType::Map(..) => "Map".to_owned(),
            ParamType::Dict(..) => "Dict".to_owned(),
            ParamType::Shape(_) => "Shape".to_owned(),
            other => other.to_string(),
        };
        let none = if at.optional { " or None" } else { "" };
        let what = format!("type of {} on argument #{}", at.path, at.argument);
        self.refuse("TypeError", &what, &format!("{name}{none}{remark}"), got)
    }

    fn other_type<T>(&self, ty: &ParamType, at: &At, value: &Value) -> Checked<T> {
        let named = if let ParamType::Optional(inner) = ty { inner } else { ty };
        if matches!(named, ParamType::Object(key) if key_to_index(key).is_none()) {
            return self.wrong_type(ty, at, " (not a registered type)", &seen::shown_type(value));
        }
        self.wrong_type(ty, at, "", &seen::shown_type(value))
    }

    pub(super) fn null<T>(&self, ty: &ParamType, at: &At) -> Checked<T> {
        self.wrong_type(ty, at, "", "NULL")
    }

    /// A value that is accepted only after a conversion.
    fn converted(&self, ty: &ParamType, at: &At, value: &Value) -> Checked {
        if at.element { self.wrong_type(ty, at, NOT_CONVERTED, &seen::shown_type(value)) } else { Ok(()) }
    }

    fn wrong_value<T>(&self, at: &At, expected: &str, got: &str) -> Checked<T> {
        self.refuse("ValueError", &format!("value of {} on argument #{}", at.path, at.argument), expected, got)
    }

    fn wrong_length<T>(&self, kind: &'static str, at: &At, expected: &str, got: usize) -> Checked<T> {
        let what = format!("length of {} on argument #{}", at.path, at.argument);
        self.refuse(kind, &what, expected, &got.to_string())
    }

    /// Checks a value of any type, at any depth.
    pub(super) fn value(&mut self, ty: &'a ParamType, value: &Value, at: &At) -> Checked {
        match ty {
            ParamType::Scalar(scalar) => {
                let (word, _) = self.scalar(ty, *scalar, value, at)?;
                if is_int(ty) && !at.element {
                    self.integer_symbol(at, word as i64)?;
                }
                self.give_word(at, word);
                Ok(())
            }
            ParamType::Tensor(tensor) => self.tensor(ty, tensor, value, at),
            ParamType::Str => self.characters(ty, [8, 11, 65], seen::str_text(value), value, at),
            ParamType::Bytes => self.characters(ty, [9, 12, 66], seen::bytes_text(value), value, at),
            ParamType::DType => self.dtype(ty, value, at),
            ParamType::Device => match (seen::index(value), seen::plain(value)) {
                (6, Some((_, payload))) => {
                    self.give_word(at, payload);
                    Ok(())
                }
                _ => self.other_type(ty, at, value),
            },
            ParamType::Shape(dims) => self.shape(ty, dims.as_deref(), value, at),
            ParamType::Any if seen::is_wild(value) => Err(Stop::TrustBroken),
            ParamType::Any => {
                self.give(at, [Some(Noted::Text(brief(value)))]);
                Ok(())
            }
            ParamType::None if seen::index(value) == 0 => Ok(()),
            ParamType::None => self.other_type(ty, at, value),
            ParamType::Int(wanted) => match self.number(ty, [1, 2], value, at)? {
                got if got == *wanted => Ok(()),
                got => self.wrong_value(at, &wanted.to_string(), &got.to_string()),
            },
            ParamType::Bool(wanted) => match self.number(ty, [2, 1], value, at)? != 0 {
                got if got == *wanted => Ok(()),
                got => self.wrong_value(at, truth(*wanted), truth(got)),
            },
            ParamType::Stream => match seen::plain(value) {
                Some((0, _)) => {
                    self.give_word(at, 0);
                    Ok(())
                }
                Some((1 | 4, payload)) => {
                    self.give_word(at, payload);
                    Ok(())
                }
                _ => self.other_type(ty, at, value),
            },
            ParamType::Function => self.object(ty, &|index| index == 68, value, at),
            ParamType::Module => self.object(ty, &|index| index == 73, value, at),
            ParamType::Object(key) => match key_to_index(key) {
                // a NULL pointer has no header that could show a derived type, so its type index must be the exact one
                Some(wanted) if seen::is_null(value) => self.object(ty, &|index| index == wanted, value, at),
                Some(wanted) => self.object(ty, &|index| is_derived(index, wanted), value, at),
                None => self.other_type(ty, at, value),
            },
            ParamType::Optional(inner) => self.optional(inner, value, at),
            ParamType::Tuple(items) => self.tuple(ty, items, value, at),
            ParamType::Record { fields, .. } => self.record(ty, fields, value, at),
            ParamType::Array(_) | ParamType::List(_) | ParamType::Map(..) | ParamType::Dict(..) => {
                self.container(ty, value, at)
            }
            // not a type of arguments, or unknown
            _ => Err(Stop::TrustBroken),
        }
    }

    fn optional(&mut self, inner: &'a ParamType, value: &Value, at: &At) -> Checked {
        let given = seen::index(value) != 0;
        if says_given(inner) {
            self.give_word(at, given.into());
        }
        if given {
            return self.value(inner, value, &At { optional: true, ..at.clone() });
        }
        if !at.element {
            self.zeros(inner);
        }
        Ok(())
    }

    /// The integer in an int or bool; a value of the second type index needs a conversion.
    fn number(&self, ty: &ParamType, [own, other]: [i32; 2], value: &Value, at: &At) -> Checked<i64> {
        let Some((index, payload)) = seen::plain(value) else { return self.other_type(ty, at, value) };
        if index == other {
            self.converted(ty, at, value)?;
        } else if index != own {
            return self.other_type(ty, at, value);
        }
        Ok(payload as i64)
    }

    /// The word that a kernel receives, and the type index and payload of the same value as a result.
    pub(super) fn scalar(
        &self,
        whole: &ParamType,
        ty: ScalarType,
        value: &Value,
        at: &At,
    ) -> Checked<(u64, (i32, u64))> {
        use ScalarType::*;
        let (index, payload) = seen::plain(value).unwrap_or((-1, 0));
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
        let (own, others): (i32, &[i32]) = match ty {
            Bool => (2, &[1]),
            Handle => (4, &[0]),
            Float16 | BFloat16 | Float32 | Float64 => (3, &[1, 2]),
            _ => (1, &[2]),
        };
        if others.contains(&index) {
            self.converted(whole, at, value)?;
        } else if index != own {
            return self.other_type(whole, at, value);
        }
        Ok(match ty {
            Bool => (u64::from(payload != 0), (2, u64::from(payload != 0))),
            Handle if index == 0 => (0, (4, 0)),
            Handle => (payload, (4, payload)),
            Float64 if index == 3 => (payload, (3, payload)),
            Float64 => ((integer as f64).to_bits(), (3, (integer as f64).to_bits())),
            Float32 => {
                let v = if index == 3 { f64::from_bits(payload) as f32 } else { integer as f32 };
                (v.to_bits().into(), (3, f64::from(v).to_bits()))
            }
            Float16 | BFloat16 => {
                let v = if index == 3 { f64::from_bits(payload) } else { integer as f64 };
                let bits = half::nearest(ty, v);
                (bits.into(), (3, half::value(ty, bits).to_bits()))
            }
            _ if (limits.0..=limits.1).contains(&integer) => (payload, (1, payload)),
            _ => {
                let expected = format!("{ty} ({} to {})", limits.0, limits.1);
                return self.wrong_value(at, &expected, &integer.to_string());
            }
        })
    }

    /// Checks a str or bytes.
    fn characters(&mut self, ty: &ParamType, indices: [i32; 3], text: Option<&str>, value: &Value, at: &At) -> Checked {
        if let Some(text) = text {
            let kind = if *ty == ParamType::Str { "str" } else { "bytes" };
            let noted = Noted::Text(show::text(kind, text.as_bytes()));
            self.give(at, [Some(noted), Some(Noted::Word(text.len() as u64))]);
            return Ok(());
        }
        match indices.contains(&seen::index(value)) {
            true if seen::is_null(value) => self.null(ty, at),
            true => Err(Stop::TrustBroken),
            false => self.other_type(ty, at, value),
        }
    }

    fn dtype(&mut self, ty: &ParamType, value: &Value, at: &At) -> Checked {
        let dtype = match seen::index(value) {
            5 => seen::plain(value).map_or(0, |(_, payload)| payload & 0xffff_ffff),
            8 | 11 | 65 => {
                self.converted(ty, at, value)?;
                let Some(text) = seen::str_text(value) else {
                    return if seen::is_null(value) { self.null(ty, at) } else { Err(Stop::TrustBroken) };
                };
                let Ok(DLDataType { code, bits, lanes }) = DLDataType::from_upstream_name(text) else {
                    return self.wrong_value(at, "the name of a dtype", &format!("\"{}\"", cut(text)));
                };
                u64::from(code) | u64::from(bits) << 8 | u64::from(lanes) << 16
            }
            _ => return self.other_type(ty, at, value),
        };
        self.give_word(at, dtype);
        Ok(())
    }

    fn shape(&mut self, ty: &ParamType, dims: Option<&'a [Dim]>, value: &Value, at: &At) -> Checked {
        let entries = match value {
            Value::Shape(extents) => extents.clone(),
            Value::Array(items) | Value::List(items) => {
                self.converted(ty, at, value)?;
                self.length(dims, items.len(), at)?;
                self.entries(items, at)?
            }
            _ => match seen::index(value) {
                69 if seen::is_null(value) => return self.null(ty, at),
                71 | 75 if seen::is_null(value) => {
                    self.converted(ty, at, value)?;
                    return self.null(ty, at);
                }
                69 | 71 | 75 => return Err(Stop::TrustBroken),
                _ => return self.other_type(ty, at, value),
            },
        };
        self.length(dims, entries.len(), at)?;
        if let Some(dims) = dims {
            for (i, (dim, entry)) in dims.iter().zip(&entries).enumerate() {
                self.size(at, &format!("[{i}]"), dim, *entry)?;
            }
        }
        let size = Noted::Word(entries.len() as u64);
        self.give(at, [Some(Noted::Text(show::shape(&entries))), Some(size)]);
        Ok(())
    }

    /// Checks the length of a shape, if it is specified.
    fn length(&self, dims: Option<&[Dim]>, got: usize, at: &At) -> Checked {
        match dims {
            Some(dims) if dims.len() != got => self.wrong_length("ValueError", at, &dims.len().to_string(), got),
            _ => Ok(()),
        }
    }

    /// The integers of an Array or List that is passed as a shape.
    fn entries(&self, items: &[Value], at: &At) -> Checked<Vec<i64>> {
        if items.len() > MOST_ENTRIES {
            return self.wrong_length("ValueError", at, &format!("at most {MOST_ENTRIES}"), items.len());
        }
        let entry = |(i, item): (usize, &Value)| match item {
            Value::Raw(1 | 2, payload) => Ok(*payload as i64),
            other => {
                let what = format!("type of {} on argument #{}", at.item(i).path, at.argument);
                self.refuse("TypeError", &what, "int", &seen::shown_type(other))
            }
        };
        items.iter().enumerate().map(entry).collect()
    }

    fn object(&mut self, ty: &ParamType, accepts: &dyn Fn(i32) -> bool, value: &Value, at: &At) -> Checked {
        match seen::index(value) {
            index if index < 64 || !accepts(index) => self.other_type(ty, at, value),
            _ if seen::is_null(value) => self.null(ty, at),
            _ if seen::is_wild(value) => Err(Stop::TrustBroken),
            _ => {
                self.give(at, [Some(Noted::Text(brief(value)))]);
                Ok(())
            }
        }
    }

    fn tuple(&mut self, ty: &ParamType, items: &'a [ParamType], value: &Value, at: &At) -> Checked {
        let values = match value {
            Value::Array(values) | Value::List(values) => values,
            _ => return self.no_container(ty, &[71, 75], value, at),
        };
        if values.len() != items.len() {
            return self.wrong_length("TypeError", at, &items.len().to_string(), values.len());
        }
        for (i, (item, value)) in items.iter().zip(values).enumerate() {
            self.value(item, value, &at.item(i))?;
        }
        Ok(())
    }

    fn record(&mut self, ty: &ParamType, fields: &'a [(String, ParamType)], value: &Value, at: &At) -> Checked {
        let wrong_keys = |got: &str| {
            let names: Vec<&str> = fields.iter().map(|(name, _)| name.as_str()).collect();
            let what = format!("keys of {} on argument #{}", at.path, at.argument);
            self.refuse("TypeError", &what, &names.join(", "), got)
        };
        let mut values = Vec::new();
        match value {
            Value::Array(all) | Value::List(all) if all.len() != fields.len() => {
                return self.wrong_length("TypeError", at, &fields.len().to_string(), all.len());
            }
            Value::Array(all) | Value::List(all) => values.extend(all),
            Value::Map(entries) | Value::Dict(entries) => {
                if entries.len() != fields.len() {
                    return wrong_keys(&format!("{} keys", entries.len()));
                }
                for (name, _) in fields {
                    match entries.iter().find(|(key, _)| seen::str_text(key) == Some(name)) {
                        Some((_, value)) => values.push(value),
                        None => return wrong_keys(&format!("no {name}")),
                    }
                }
            }
            Value::Fields(_) | Value::Object(_) => {
                let own = if let Value::Fields(own) = value { &own[..] } else { &[] };
                for (name, _) in fields {
                    // a field hides those of the same name that the type inherits
                    match own.iter().rfind(|(own, _)| own == name) {
                        Some((_, Value::Error)) => return Err(Stop::Refused("ValueError", "an argument".to_owned())),
                        Some((_, value)) => values.push(value),
                        None => {
                            let got = format!("{}, which has no field {name}", seen::shown_type(value));
                            return self.wrong_type(ty, at, "", &got);
                        }
                    }
                }
            }
            _ if seen::index(value) >= 128 => {
                return if seen::is_null(value) { self.null(ty, at) } else { Err(Stop::TrustBroken) };
            }
            _ => return self.no_container(ty, &[71, 72, 75, 76], value, at),
        }
        for ((name, ty), value) in fields.iter().zip(values) {
            self.value(ty, value, &at.field(name))?;
        }
        Ok(())
    }

    fn container(&mut self, ty: &'a ParamType, value: &Value, at: &At) -> Checked {
        match (ty, value) {
            (ParamType::Array(element), Value::Array(values) | Value::List(values)) => {
                self.elements(element, values, at)?;
                // the address of an empty array is unspecified
                let values = if values.is_empty() { None } else { Some(seen::sequence("Array", values).into()) };
                self.give(at, [values, Some(Noted::Word(value.inner().len() as u64))]);
                return Ok(());
            }
            (ParamType::List(element), Value::List(values)) => self.elements(element, values, at)?,
            (ParamType::Map(key, of), Value::Map(entries)) | (ParamType::Dict(key, of), Value::Dict(entries)) => {
                for (i, (k, v)) in entries.iter().enumerate() {
                    let step = format!(".keys()[{i}]");
                    self.value(key, k, &at.step(&step, &step).element())?;
                    self.value(of, v, &value_of_key(at, k))?;
                }
            }
            (ParamType::Array(_), _) => return self.no_container(ty, &[71, 75], value, at),
            (ParamType::List(_), _) => return self.no_container(ty, &[75], value, at),
            (ParamType::Map(..), _) => return self.no_container(ty, &[72], value, at),
            _ => return self.no_container(ty, &[76], value, at),
        }
        self.give(at, [Some(Noted::Text(brief(value)))]);
        Ok(())
    }

    fn elements(&mut self, element: &'a ParamType, values: &[Value], at: &At) -> Checked {
        let mut elements = values.iter().enumerate();
        elements.try_for_each(|(i, value)| self.value(element, value, &at.item(i).element()))
    }

    /// A value that isn't one of the accepted containers, or is malformed.
    fn no_container(&self, ty: &ParamType, wanted: &[i32], value: &Value, at: &At) -> Checked {
        match wanted.contains(&seen::index(value)) {
            true if seen::is_null(value) => self.null(ty, at),
            true => Err(Stop::TrustBroken),
            false => self.other_type(ty, at, value),
        }
    }
}

/// The location of a key's value.
fn value_of_key(at: &At, key: &Value) -> At {
    let (step, from) = match (seen::str_text(key), key) {
        (Some(text), _) => (format!("[\"{}\"]", cut(text)), "[...]".to_owned()),
        (None, Value::Raw(1, number)) => (format!("[{}]", *number as i64), format!("[{}]", *number as i64)),
        _ => ("[...]".to_owned(), "[...]".to_owned()),
    };
    at.step(&step, &from).element()
}

/// The first 159 bytes of a text, without a partial character at the end.
fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(159)]
}

fn truth(value: bool) -> &'static str {
    if value { "True" } else { "False" }
}

/// Whether a type is the other one or derives from it. Only the tests' own types derive from anything except
/// `ffi.Object`.
fn is_derived(index: i32, wanted: i32) -> bool {
    let sub = index == type_index(Thing::Sub).0 && wanted == type_index(Thing::Base).0;
    index == wanted || wanted == 64 || sub
}
