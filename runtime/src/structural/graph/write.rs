//! Values to graphs.

use std::collections::HashSet;
use std::rc::Rc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustc_hash::FxHashMap;

use super::enums::Index;
use super::member::{Member, Place, name_of_dtype};
use crate::abi::*;
use crate::any::Any;
use crate::container::{Array, Dict, List, Map};
use crate::error::{Error, Result, runtime_error, type_error, value_error};
use crate::function::Function;
use crate::heap::ObjectRef;
use crate::reflect::children::{MAX_DEPTH, entries, object_of, too_deep};
use crate::reflect::field;
use crate::shape::Shape;
use crate::string::Bytes;
use crate::type_info::key_of;
use crate::type_table::{attr_value, metadata};

/// The graph of a value as JSON's values, with `metadata` unless that is None.
///
/// # Errors
/// `ValueError` for a value that contains itself; `TypeError` for an object of a type without a way to make objects;
/// `RuntimeError` for a pointer; any error of a getter or of a type's `__data_to_json__`.
pub(in crate::structural) fn to_json(value: &Any, metadata: &Any) -> Result<Any> {
    let mut writer =
        Writer { nodes: Vec::new(), known: Dict::new(), open: HashSet::new(), types: FxHashMap::default() };
    let root = writer.write(value)?;
    let mut graph = vec![("root_index", Any::from(root)), ("nodes", Array::from(writer.nodes).into())];
    if !metadata.is_none() {
        graph.push(("metadata", metadata.clone()));
    }
    Ok(object(graph))
}

/// An object of JSON.
fn object(entries: impl IntoIterator<Item = (&'static str, Any)>) -> Any {
    entries.into_iter().collect::<Map>().into()
}

struct Writer {
    nodes: Vec<Any>,
    /// The numbers of nodes, by their values.
    known: Dict,
    /// The addresses of what is being written. Frames keep it alive.
    open: HashSet<usize>,
    types: FxHashMap<i32, Rc<Type>>,
}

/// Cached information about a type of objects.
struct Type {
    key: Any,
    index: Option<Index>,
    /// The type's own function in place of its fields.
    hook: Option<Function>,
    /// The type's key, if the runtime can't create its objects.
    not_made: Option<String>,
    fields: Vec<Member>,
}

impl Type {
    fn new(index: TypeIndex) -> Result<Self> {
        let key = key_of(index);
        let is_made = metadata(index)?.is_some_and(|metadata| metadata.creator.is_some())
            || attr_value(index, b"__ffi_new__").is_some();
        Ok(Self {
            index: Index::of(index),
            hook: attr_value(index, b"__data_to_json__").map(|hook| hook.cast()).transpose()?,
            fields: Member::all(index)?,
            key: key.as_str().into(),
            not_made: (!is_made).then_some(key),
        })
    }
}

/// A value that is being written.
struct Open {
    value: Any,
    key: Any,
    data: Data,
}

enum Data {
    /// The values of a container, and the numbers of the nodes of those that are written.
    Numbers { rest: std::vec::IntoIter<Any>, numbers: Vec<Any> },
    /// An object, and the data of those fields that are written.
    Fields { object: ObjectRef, ty: Rc<Type>, written: Vec<Any> },
}

impl Data {
    /// The next value that is a node of its own.
    fn next(&mut self) -> Result<Option<Any>> {
        let (object, ty, written) = match self {
            Self::Numbers { rest, .. } => return Ok(rest.next()),
            Self::Fields { object, ty, written } => (object, ty, written),
        };
        while let Some(member) = ty.fields.get(written.len()) {
            // SAFETY: the field is one of the object's type.
            let value = unsafe { field::get(member.info, object) }?;
            match member.place {
                Place::Node => return Ok(Some(value)),
                Place::DataType => written.push(name_of_dtype(&value)?),
                Place::Inline => written.push(member.inline(&value)?),
            }
        }
        Ok(None)
    }

    /// Takes the number of the node of the value that was next.
    fn push(&mut self, number: i64) {
        match self {
            Self::Numbers { numbers: written, .. } | Self::Fields { written, .. } => written.push(number.into()),
        }
    }

    fn end(self) -> Result<Any> {
        Ok(match self {
            Self::Numbers { numbers, .. } => Array::from(numbers).into(),
            Self::Fields { ty, written, .. } => {
                let names = ty.fields.iter().map(|member| member.name.clone());
                Map::try_from_entries(names.zip(written))?.into()
            }
        })
    }
}

impl Writer {
    /// Writes a value and all inside it, and returns the number of its node.
    fn write(&mut self, value: &Any) -> Result<i64> {
        let mut stack = Vec::new();
        let mut ended = self.begin(value, &mut stack)?;
        while let Some(frame) = stack.last_mut() {
            if let Some(number) = ended.take() {
                frame.data.push(number);
            }
            ended = match frame.data.next()? {
                Some(value) => self.begin(&value, &mut stack)?,
                None => stack.pop().map(|frame| self.end(frame)).transpose()?,
            };
        }
        ended.ok_or_else(|| runtime_error("the value has no node"))
    }

    /// The number of a value's node, unless values inside it are written first.
    fn begin(&mut self, value: &Any, stack: &mut Vec<Open>) -> Result<Option<i64>> {
        if let Some(number) = self.known.get(value)? {
            return number.cast().map(Some);
        }
        let index = value.type_index();
        let data: Any = match index {
            TypeIndex::NONE => return self.add(value, [("type", "None".into())]).map(Some),
            TypeIndex::BOOL | TypeIndex::INT | TypeIndex::FLOAT => value.clone(),
            TypeIndex::DATA_TYPE => name_of_dtype(value)?,
            TypeIndex::DEVICE => {
                let device: DLDevice = value.cast()?;
                [device.device_type.0, device.device_id].into_iter().collect::<Array>().into()
            }
            TypeIndex::SMALL_STR | TypeIndex::STR => return self.leaf(value, "ffi.String".into(), value.clone()),
            TypeIndex::SMALL_BYTES | TypeIndex::BYTES => {
                let text = STANDARD.encode(value.cast::<Bytes>()?.as_bytes());
                return self.leaf(value, "ffi.Bytes".into(), text.as_str().into());
            }
            TypeIndex::SHAPE => value.cast::<Shape>()?.as_slice().iter().copied().collect::<Array>().into(),
            TypeIndex::ARRAY => return self.open(value, value.cast::<Array>()?.to_vec(), stack),
            TypeIndex::LIST => return self.open(value, value.cast::<List>()?.to_vec(), stack),
            TypeIndex::MAP | TypeIndex::DICT => {
                let inside = entries(value)?.into_iter().flat_map(|(key, value)| [key, value]).collect();
                return self.open(value, inside, stack);
            }
            index if index.is_object() => return self.begin_object(value, stack),
            _ => return Err(runtime_error(&format!("Cannot serialize type `{}`", value.type_key()))),
        };
        self.leaf(value, key_of(index).as_str().into(), data)
    }

    fn begin_object(&mut self, value: &Any, stack: &mut Vec<Open>) -> Result<Option<i64>> {
        let object = object_of(value).ok_or_else(|| runtime_error("Cannot serialize a missing object"))?;
        let ty = self.type_of(object.type_index())?;
        if let Some(index) = ty.index {
            return self.leaf(value, ty.key.clone(), index.of_member(&object)?);
        }
        if let Some(hook) = &ty.hook {
            return self.leaf(value, ty.key.clone(), hook.call((value,))?);
        }
        if let Some(key) = &ty.not_made {
            return Err(type_error(&format!(
                "Type `{key}` does not support ToJSONGraph (no native creator or __ffi_new__ type attr)"
            )));
        }
        let written = Vec::with_capacity(ty.fields.len());
        self.push(value, ty.key.clone(), Data::Fields { object, ty, written }, stack)
    }

    fn type_of(&mut self, index: TypeIndex) -> Result<Rc<Type>> {
        if let Some(ty) = self.types.get(&index.0) {
            return Ok(Rc::clone(ty));
        }
        let ty = Rc::new(Type::new(index)?);
        self.types.insert(index.0, Rc::clone(&ty));
        Ok(ty)
    }

    fn open(&mut self, value: &Any, inside: Vec<Any>, stack: &mut Vec<Open>) -> Result<Option<i64>> {
        let numbers = Vec::with_capacity(inside.len());
        let key = key_of(value.type_index()).as_str().into();
        self.push(value, key, Data::Numbers { rest: inside.into_iter(), numbers }, stack)
    }

    fn push(&mut self, value: &Any, key: Any, data: Data, stack: &mut Vec<Open>) -> Result<Option<i64>> {
        // Arrays and maps don't change, so a value that contains itself does so through something that does.
        if !matches!(value.type_index(), TypeIndex::ARRAY | TypeIndex::MAP) && !self.open.insert(address(value)) {
            return Err(contains_itself(value, stack));
        }
        if stack.len() >= MAX_DEPTH {
            return Err(too_deep("ToJSONGraph"));
        }
        stack.push(Open { value: value.clone(), key, data });
        Ok(None)
    }

    fn end(&mut self, frame: Open) -> Result<i64> {
        self.open.remove(&address(&frame.value));
        self.add(&frame.value, [("type", frame.key), ("data", frame.data.end()?)])
    }

    fn leaf(&mut self, value: &Any, key: Any, data: Any) -> Result<Option<i64>> {
        self.add(value, [("type", key), ("data", data)]).map(Some)
    }

    /// Adds the node of a value.
    fn add(&mut self, value: &Any, node: impl IntoIterator<Item = (&'static str, Any)>) -> Result<i64> {
        let number = self.nodes.len() as i64;
        self.nodes.push(object(node));
        self.known.insert(value.clone(), number)?;
        Ok(number)
    }
}

/// The error of a value that stands in the stack already. It names the list or dict through which upstream would
/// notice, if there is one.
fn contains_itself(value: &Any, stack: &[Open]) -> Error {
    let first = stack.iter().rposition(|frame| address(&frame.value) == address(value)).unwrap_or_default();
    let on_the_way = stack.iter().skip(first).map(|frame| frame.value.type_index());
    let kind = match on_the_way.into_iter().find(|&index| index == TypeIndex::LIST || index == TypeIndex::DICT) {
        Some(TypeIndex::LIST) => "a List".to_owned(),
        Some(_) => "a Dict".to_owned(),
        None => format!("an object of type `{}`", value.type_key()),
    };
    value_error(&format!("Cycle detected during serialization: {kind} contains itself"))
}

fn address(value: &Any) -> usize {
    value.as_raw().ptr().addr()
}
