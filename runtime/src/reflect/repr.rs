//! Readable string forms of any value, `ffi.ReprPrint`. A type may define its own with the attribute `__ffi_repr__`.
//! Deep values don't cause recursion, except through attributes that request the string of an inner value.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::children::{Inside, Kind, MAX_DEPTH, inside, object_of, too_deep};
use super::text::{general, quoted, quoted_bytes};
use super::{field, types};
use crate::abi::*;
use crate::any::Any;
use crate::big_int::BigInt;
use crate::dtype;
use crate::error::{Result, value_error};
use crate::function::Function;
use crate::heap::ObjectRef;
use crate::object::{kwargs, missing};
use crate::registry::with_args;
use crate::shape::Shape;
use crate::string::{Bytes, Str};
use crate::tensor::Tensor;
use crate::type_table;

/// The string form of a value.
///
/// # Errors
/// Any error of a getter or attribute.
pub(super) fn repr(value: &Any) -> Result<String> {
    let with_addresses = std::env::var_os("TVM_FFI_REPR_WITH_ADDR").is_some_and(|set| set == OsStr::new("1"));
    Arc::new(Printer { with_addresses, seen: Mutex::default() }).print(value)
}

struct Printer {
    with_addresses: bool,
    seen: Mutex<Seen>,
}

/// Objects by their address. They live as long as the printer, so their addresses aren't reused.
#[derive(Default)]
struct Seen {
    open: HashSet<usize>,
    done: HashMap<usize, String>,
    kept: Vec<ObjectRef>,
}

/// An object that is being written.
struct OpenObject {
    object: ObjectRef,
    inside: Inside,
    next: usize,
    texts: Vec<String>,
}

impl Printer {
    /// Locks the state. No user code may run while the lock is held.
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn print(self: &Arc<Self>, value: &Any) -> Result<String> {
        if let Some(text) = self.at_once(value)? {
            return Ok(text);
        }
        let mut stack = vec![self.open(value)?];
        let mut finished: Option<String> = None;
        while let Some(frame) = stack.last_mut() {
            frame.texts.extend(finished.take());
            let Some(child) = frame.inside.values.get(frame.next).cloned() else {
                let text = self.close(frame);
                stack.pop();
                finished = Some(text);
                continue;
            };
            frame.next += 1;
            match self.at_once(&child)? {
                Some(text) => frame.texts.push(text),
                None if stack.len() >= MAX_DEPTH => return Err(too_deep("ObjectGraphDFS")),
                None => stack.push(self.open(&child)?),
            }
        }
        Ok(finished.unwrap_or_default())
    }

    fn open(&self, value: &Any) -> Result<OpenObject> {
        let object = object_of(value).ok_or_else(|| value_error("a value without an object has no frame"))?;
        self.seen().open.insert(address(&object));
        Ok(OpenObject { inside: inside(value, kTVMFFIFieldFlagBitMaskReprOff)?, object, next: 0, texts: Vec::new() })
    }

    fn close(&self, frame: &OpenObject) -> String {
        let index = frame.object.type_index();
        let texts = &frame.texts;
        let text = match &frame.inside.kind {
            Kind::Sequence if index == TypeIndex::ARRAY && texts.len() == 1 => format!("({},)", texts[0]),
            Kind::Sequence if index == TypeIndex::ARRAY => format!("({})", texts.join(", ")),
            Kind::Sequence => format!("[{}]", texts.join(", ")),
            Kind::Mapping => {
                let entries: Vec<String> =
                    texts.as_chunks::<2>().0.iter().map(|[key, value]| format!("{key}: {value}")).collect();
                format!("{{{}}}", entries.join(", "))
            }
            Kind::Fields(fields) => {
                let name = self.with_address(frame.object.type_key(), &frame.object);
                let mut names = HashSet::new();
                let shown = fields.iter().zip(texts).filter(|(info, _)| names.insert(field::name(info)));
                let shown: Vec<String> = shown
                    .map(|(info, text)| format!("{}={text}", String::from_utf8_lossy(field::name(info))))
                    .collect();
                if fields.is_empty() { name } else { format!("{name}({})", shown.join(", ")) }
            }
        };
        let text = match frame.inside.kind {
            Kind::Fields(_) => text,
            Kind::Sequence | Kind::Mapping => self.with_address(text, &frame.object),
        };
        self.done(&frame.object, text)
    }

    /// Finishes an object. Caches its string only if the object may occur again: caching all nested strings would take
    /// memory quadratic in the depth.
    fn done(&self, object: &ObjectRef, text: String) -> String {
        // References from the containing object, from that object's frame, and from the object's own frame.
        const KNOWN_REFERENCES: u32 = 3;
        let mut seen = self.seen();
        seen.open.remove(&address(object));
        if object.strong_count() > KNOWN_REFERENCES {
            seen.done.insert(address(object), text.clone());
            seen.kept.push(object.clone());
        }
        text
    }

    fn with_address(&self, text: String, object: &ObjectRef) -> String {
        if self.with_addresses { format!("{text}@{:#x}", address(object)) } else { text }
    }

    /// The string form of a value that needs no frame.
    fn at_once(self: &Arc<Self>, value: &Any) -> Result<Option<String>> {
        let text = match value.type_index() {
            TypeIndex::NONE => "None".to_owned(),
            TypeIndex::BOOL => if value.cast()? { "True" } else { "False" }.to_owned(),
            TypeIndex::INT => value.cast::<i64>()?.to_string(),
            TypeIndex::FLOAT => general(value.cast()?, 6),
            TypeIndex::DATA_TYPE => dtype_text(value.cast()?)?,
            TypeIndex::DEVICE => device_text(value.cast()?),
            TypeIndex::SMALL_STR | TypeIndex::STR => quoted(value.as_view().str_bytes().unwrap_or_default()),
            TypeIndex::SMALL_BYTES | TypeIndex::BYTES => quoted_bytes(value.cast::<Bytes>()?.as_bytes()),
            index if !index.is_object() => value.type_key(),
            _ => match object_of(value) {
                Some(object) => return self.object_at_once(value, &object),
                None => "None".to_owned(),
            },
        };
        Ok(Some(text))
    }

    fn object_at_once(self: &Arc<Self>, value: &Any, object: &ObjectRef) -> Result<Option<String>> {
        let seen = self.seen();
        if let Some(text) = seen.done.get(&address(object)) {
            return Ok(Some(text.clone()));
        }
        if seen.open.contains(&address(object)) {
            return Ok(Some(self.with_address("...".to_owned(), object)));
        }
        drop(seen);
        if object.ptr_eq(&missing()) {
            return Ok(Some("<MISSING>".to_owned()));
        }
        if object.ptr_eq(&kwargs()) {
            return Ok(Some("<KWARGS>".to_owned()));
        }
        match object.type_index() {
            TypeIndex::TENSOR => {
                let tensor: Tensor = value.cast()?;
                let shape: Vec<String> = tensor.shape().iter().map(i64::to_string).collect();
                let text =
                    format!("{}[{}]@{}", dtype_text(tensor.dtype())?, shape.join(", "), device_text(tensor.device()));
                return Ok(Some(self.with_address(text, object)));
            }
            TypeIndex::BIG_INT => return Ok(Some(value.cast::<BigInt>()?.to_string())),
            TypeIndex::SHAPE => {
                let extents: Vec<String> = value.cast::<Shape>()?.as_slice().iter().map(i64::to_string).collect();
                return Ok(Some(format!("Shape({})", extents.join(", "))));
            }
            _ => {}
        }
        if let Some(hook) = type_table::attr_value(object.type_index(), b"__ffi_repr__") {
            return self.by_hook(&hook.cast()?, object).map(Some);
        }
        if let Some(name) = types::enum_name(object) {
            let text = format!("{}.{}", object.type_key(), String::from_utf8_lossy(name.as_bytes()));
            return Ok(Some(self.done(object, self.with_address(text, object))));
        }
        Ok(None)
    }

    /// The string that the type's own attribute returns. The attribute may request the strings of other values.
    fn by_hook(self: &Arc<Self>, hook: &Function, object: &ObjectRef) -> Result<String> {
        self.seen().open.insert(address(object));
        let printer = Arc::clone(self);
        let print = with_args("(AnyView) -> str", move |[value]| {
            let text = printer.print(&value.to_owned()?)?;
            Ok(Any::from(text.as_str()))
        });
        let text = hook.call((object, &print))?.cast::<Str>()?;
        let text = String::from_utf8_lossy(text.as_bytes()).into_owned();
        let is_container =
            matches!(object.type_index(), TypeIndex::ARRAY | TypeIndex::LIST | TypeIndex::MAP | TypeIndex::DICT);
        let text = if is_container { self.with_address(text, object) } else { text };
        Ok(self.done(object, text))
    }
}

fn address(object: &ObjectRef) -> usize {
    object.as_ptr().addr()
}

fn dtype_text(dtype: DLDataType) -> Result<String> {
    dtype.name().map_err(|error: dtype::DTypeParseError| value_error(&error.to_string()))
}

fn device_text(device: DLDevice) -> String {
    format!("{}:{}", device.device_type.name().unwrap_or("unknown"), device.device_id)
}
