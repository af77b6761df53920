//! Graphs to values.

use std::rc::Rc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustc_hash::FxHashMap;

use super::enums::Index;
use super::member::{Member, Place, dtype_of_name};
use crate::abi::*;
use crate::any::{Any, TryFromAny};
use crate::container::{Array, Dict, List, Map};
use crate::error::{Error, Result, check_failed, kind, type_error, value_error};
use crate::function::Function;
use crate::heap::ObjectRef;
use crate::reflect::accessors::convert;
use crate::reflect::children::{MAX_DEPTH, too_deep};
use crate::reflect::create::empty_object;
use crate::reflect::field;
use crate::shape::Shape;
use crate::string::{Bytes, Str};
use crate::type_table::{attr_value, required_index};

/// The value of a graph, from JSON's values.
///
/// # Errors
/// `ValueError` for anything but a graph: a missing part, a number without a node, a node that contains itself;
/// `TypeError` for data of another type than its node's, or without a field; `InternalError` for an unknown type; any
/// error of a setter or of a type's `__data_from_json__`.
pub(in crate::structural) fn from_json(graph: &Any) -> Result<Any> {
    let Ok(graph) = graph.cast::<Map>() else { return Err(malformed(", expected an object")) };
    let root = part::<i64>(&graph, "root_index")?.ok_or_else(|| malformed(", expected `root_index` integer field"))?;
    let nodes = part::<Array>(&graph, "nodes")?.ok_or_else(|| malformed(", expected `nodes` array field"))?;
    let mut reader = Reader {
        read: vec![Node::Unread; nodes.len()],
        nodes,
        indices: FxHashMap::default(),
        types: FxHashMap::default(),
    };
    reader.read(root)
}

/// A part of a graph; `None` if it is missing or of another type.
fn part<T: TryFromAny>(graph: &Map, name: &str) -> Result<Option<T>> {
    Ok(graph.get(name)?.and_then(|value| value.cast().ok()))
}

#[cold]
fn malformed(what: &str) -> Error {
    value_error(&format!("Invalid JSON Object Graph{what}"))
}

/// A member of a node.
fn member(node: &Map, name: &str) -> Result<Any> {
    node.get(name)?.cloned().ok_or_else(|| Error::new(kind::KEY_ERROR, "key is not in Map"))
}

struct Reader {
    nodes: Array,
    read: Vec<Node>,
    /// The types by their keys.
    indices: FxHashMap<Box<[u8]>, TypeIndex>,
    types: FxHashMap<i32, Rc<Type>>,
}

#[derive(Clone)]
enum Node {
    Unread,
    /// Values inside it are being read.
    Open,
    Read(Any),
}

/// Cached information about a type of objects.
struct Type {
    index: Option<Index>,
    /// The type's own function in place of its fields.
    hook: Option<Function>,
    fields: Vec<Member>,
}

impl Type {
    fn new(index: TypeIndex) -> Result<Self> {
        Ok(Self {
            index: Index::of(index),
            hook: attr_value(index, b"__data_from_json__").map(|hook| hook.cast()).transpose()?,
            fields: Member::all(index)?,
        })
    }
}

/// A node that is being read.
struct Open {
    number: usize,
    making: Making,
}

enum Making {
    /// A container of the type `index`, from the values of the nodes `numbers`.
    Container { index: TypeIndex, numbers: Array, values: Vec<Any> },
    /// An object, whose first `next` fields are set.
    Object { object: ObjectRef, ty: Rc<Type>, data: Map, next: usize },
}

impl Making {
    /// The number of the node that is needed next.
    fn next(&mut self) -> Result<Option<i64>> {
        let (object, ty, data, next) = match self {
            Self::Container { numbers, values, .. } => {
                return numbers.as_slice().get(values.len()).map(int).transpose();
            }
            Self::Object { object, ty, data, next } => (object, ty, data, next),
        };
        while let Some(member) = ty.fields.get(*next) {
            let Some(value) = data.get(&member.name)? else {
                default(member.info, object)?;
                *next += 1;
                continue;
            };
            let value = match member.place {
                Place::Node => return int(value).map(Some),
                Place::DataType => dtype_of_name(value)?,
                Place::Inline => member.inline(value)?,
            };
            // SAFETY: the field is one of the object's type, and no other code has the object.
            unsafe { field::set(member.info, object, value.as_view())? };
            *next += 1;
        }
        Ok(None)
    }

    /// Takes the value of the node that was needed.
    fn take(&mut self, value: Any) -> Result<()> {
        match self {
            Self::Container { values, .. } => values.push(value),
            Self::Object { object, ty, next, .. } => {
                if let Some(member) = ty.fields.get(*next) {
                    // SAFETY: as in `next`.
                    unsafe { field::set(member.info, object, value.as_view())? };
                }
                *next += 1;
            }
        }
        Ok(())
    }

    fn end(self) -> Result<Any> {
        let (index, values) = match self {
            Self::Object { object, .. } => return Ok(object.into()),
            Self::Container { index, values, .. } => (index, values),
        };
        let entries = |values: Vec<Any>| {
            let mut values = values.into_iter();
            std::iter::from_fn(move || Some((values.next()?, values.next()?)))
        };
        Ok(match index {
            TypeIndex::LIST => List::from(values).into(),
            TypeIndex::MAP => Map::try_from_entries(entries(values))?.into(),
            TypeIndex::DICT => Dict::try_from_entries(entries(values))?.into(),
            _ => Array::from(values).into(),
        })
    }
}

/// Sets a field that the data leaves out.
fn default(info: &TVMFFIFieldInfo, object: &ObjectRef) -> Result<()> {
    if field::has(info, kTVMFFIFieldFlagBitMaskHasDefault) {
        // SAFETY: the field is one of the object's type, and no other code has the object.
        return unsafe { field::set_default(info, object) };
    }
    let name = String::from_utf8_lossy(field::name(info));
    Err(type_error(&format!("Required field `{name}` not set in type `{}`", object.type_key())))
}

/// The value of a node, or what makes it from the values of others.
enum Start {
    Read(Any),
    Open(Making),
}

impl Reader {
    fn read(&mut self, root: i64) -> Result<Any> {
        let mut stack: Vec<Open> = Vec::new();
        let mut wanted = Some(root);
        loop {
            let value = match wanted.take() {
                Some(number) => self.begin(number, &mut stack)?,
                None => match stack.pop() {
                    Some(frame) => Some(self.end(frame)?),
                    None => return Err(malformed(": no root")),
                },
            };
            let Some(frame) = stack.last_mut() else {
                if let Some(value) = value {
                    return Ok(value);
                }
                continue;
            };
            if let Some(value) = value {
                frame.making.take(value)?;
            }
            wanted = frame.making.next()?;
        }
    }

    /// The value of a node, unless it is made of others, which are read first.
    fn begin(&mut self, number: i64, stack: &mut Vec<Open>) -> Result<Option<Any>> {
        let place = usize::try_from(number).ok().filter(|&place| place < self.read.len());
        let place = place.ok_or_else(|| malformed(&format!(": invalid node index {number}")))?;
        match &self.read[place] {
            Node::Read(value) => return Ok(Some(value.clone())),
            Node::Open => return Err(malformed(&format!(": node {number} contains itself"))),
            Node::Unread => {}
        }
        match self.start(&map(&self.nodes.as_slice()[place])?)? {
            Start::Read(value) => {
                self.read[place] = Node::Read(value.clone());
                Ok(Some(value))
            }
            Start::Open(_) if stack.len() >= MAX_DEPTH => Err(too_deep("FromJSONGraph")),
            Start::Open(making) => {
                self.read[place] = Node::Open;
                stack.push(Open { number: place, making });
                Ok(None)
            }
        }
    }

    fn end(&mut self, frame: Open) -> Result<Any> {
        let value = frame.making.end()?;
        self.read[frame.number] = Node::Read(value.clone());
        Ok(value)
    }

    fn start(&mut self, node: &Map) -> Result<Start> {
        let key = text(&member(node, "type")?)?;
        let index = match self.indices.get(key.as_bytes()) {
            Some(&index) => index,
            None => {
                let index = TypeIndex(required_index(key.as_bytes())?);
                self.indices.insert(key.as_bytes().into(), index);
                index
            }
        };
        let data = || member(node, "data");
        let read = |value: Any| Ok(Start::Read(value));
        match index {
            TypeIndex::NONE => read(Any::none()),
            TypeIndex::BOOL => read(convert::<bool>(data()?.as_view(), "bool")?.into()),
            TypeIndex::INT => read(int(&data()?)?.into()),
            TypeIndex::FLOAT => read(convert::<f64>(data()?.as_view(), "float")?.into()),
            TypeIndex::DATA_TYPE => read(dtype_of_name(&data()?)?),
            TypeIndex::DEVICE => read(device(&ints(&data()?)?)?.into()),
            TypeIndex::STR => read(text(&data()?)?.into()),
            TypeIndex::BYTES => read(bytes(&text(&data()?)?)?.into()),
            TypeIndex::SHAPE => read(Shape::new(&ints(&data()?)?).into()),
            TypeIndex::ARRAY | TypeIndex::LIST | TypeIndex::MAP | TypeIndex::DICT => {
                let numbers = array(&data()?, "Array<Any>")?;
                let is_map = index == TypeIndex::MAP || index == TypeIndex::DICT;
                if is_map && !numbers.len().is_multiple_of(2) {
                    return Err(malformed(&format!(
                        ": Map/Dict data must contain an even number of [key, value] entries, got {}",
                        numbers.len()
                    )));
                }
                let values = Vec::with_capacity(numbers.len());
                Ok(Start::Open(Making::Container { index, numbers, values }))
            }
            _ => self.start_object(index, &data()?),
        }
    }

    fn start_object(&mut self, index: TypeIndex, data: &Any) -> Result<Start> {
        let ty = match self.types.get(&index.0) {
            Some(ty) => Rc::clone(ty),
            None => {
                let ty = Rc::new(Type::new(index)?);
                self.types.insert(index.0, Rc::clone(&ty));
                ty
            }
        };
        if let Some(kind) = ty.index {
            return kind.member(index, data).map(Start::Read);
        }
        if let Some(hook) = &ty.hook {
            return hook.call((data,)).map(Start::Read);
        }
        let object = empty_object(index)?;
        Ok(Start::Open(Making::Object { object, ty, data: map(data)?, next: 0 }))
    }
}

fn int(value: &Any) -> Result<i64> {
    convert(value.as_view(), "int")
}

fn text(value: &Any) -> Result<Str> {
    convert(value.as_view(), "str")
}

fn map(value: &Any) -> Result<Map> {
    convert(value.as_view(), "Map<Any, Any>")
}

fn array(value: &Any, name: &str) -> Result<Array> {
    convert(value.as_view(), name)
}

/// The numbers of an array.
fn ints<T: TryFromAny>(value: &Any) -> Result<Vec<T>> {
    let values = array(value, "Array<int>")?;
    let other = |(i, value): (usize, &Any)| {
        let key = value.type_key();
        value
            .cast()
            .map_err(|_| type_error(&format!("Cannot convert from type `Array[index {i}: {key}]` to `Array<int>`")))
    };
    values.iter().enumerate().map(other).collect()
}

fn device(data: &[i32]) -> Result<DLDevice> {
    match *data {
        [device_type, device_id] => Ok(DLDevice { device_type: DLDeviceType(device_type), device_id }),
        _ => Err(malformed(&format!(
            ": Device data must be an array of [device_type, device_id], got {} element(s)",
            data.len()
        ))),
    }
}

fn bytes(text: &Str) -> Result<Bytes> {
    match STANDARD.decode(text.as_bytes()) {
        Ok(bytes) => Ok(Bytes::new(&bytes)),
        Err(_) => Err(check_failed("bytes.size % 4 == 0", "invalid base64 encoding")),
    }
}
