//! Deep copies, `ffi.DeepCopy`: containers and objects with fields are each copied once, and cycles stay cycles.
//! Deep values don't cause recursion.

use std::collections::{HashMap, HashSet};

use super::children::{Inside, Kind, MAX_DEPTH, entries, inside, object_of, too_deep};
use super::{field, types};
use crate::abi::*;
use crate::any::Any;
use crate::container::{Array, Dict, List, Map};
use crate::error::{Result, check_failed, runtime_error};
use crate::function::Function;
use crate::heap::ObjectRef;
use crate::type_table;

/// A copy of a value that shares no mutable state with it.
///
/// # Errors
/// `InternalError` for an object of a type without the attribute `__ffi_shallow_copy__`; any error of a getter, setter
/// or attribute.
pub(super) fn deep_copy(value: &Any) -> Result<Any> {
    let mut copier = Copier::default();
    let copy = match copier.at_once(value) {
        Some(copy) => copy,
        None => copier.run(value)?,
    };
    if copier.has_stand_ins {
        copier.replace_stand_ins()?;
    }
    Ok(copy)
}

#[derive(Default)]
struct Copier {
    /// Originals with their copies, by the originals' addresses.
    copies: HashMap<usize, (Any, Any)>,
    /// Addresses of the arrays and maps that are being copied. Their copies are made after those of their contents.
    open: HashSet<usize>,
    /// True if any copy refers to an original, because that original's copy didn't exist yet.
    has_stand_ins: bool,
}

/// An object that is being copied, one inner value at a time.
struct OpenObject {
    original: Any,
    object: ObjectRef,
    /// The object's copy; None for an array or a map.
    copy: Any,
    inside: Inside,
    next: usize,
    /// Copies of the contents of an array or a map so far, or of a dict's current key.
    made: Vec<Any>,
}

impl Copier {
    fn run(&mut self, value: &Any) -> Result<Any> {
        let mut stack = vec![self.open(value)?];
        let mut finished: Option<Any> = None;
        while let Some(frame) = stack.last_mut() {
            if let Some(copy) = finished.take() {
                feed(frame, copy)?;
            }
            let Some(child) = frame.inside.values.get(frame.next).cloned() else {
                finished = Some(self.close(frame)?);
                stack.pop();
                continue;
            };
            frame.next += 1;
            match self.at_once(&child) {
                Some(copy) => feed(frame, copy)?,
                None if stack.len() >= MAX_DEPTH => return Err(too_deep("ObjectGraphDFS")),
                None => stack.push(self.open(&child)?),
            }
        }
        Ok(finished.unwrap_or_default())
    }

    /// The copy of a value if it needs no frame: the value itself, or the copy that was already made.
    fn at_once(&mut self, value: &Any) -> Option<Any> {
        let Some(object) = object_of(value) else { return Some(value.clone()) };
        if let Some((_, copy)) = self.copies.get(&address(&object)) {
            return Some(copy.clone());
        }
        if self.open.contains(&address(&object)) {
            self.has_stand_ins = true;
            return Some(value.clone());
        }
        let index = object.type_index();
        let never_changes = matches!(index, TypeIndex::STR | TypeIndex::BYTES | TypeIndex::SHAPE | TypeIndex::BIG_INT)
            || types::is_enum(&object);
        never_changes.then(|| value.clone())
    }

    fn open(&mut self, value: &Any) -> Result<OpenObject> {
        let object = object_of(value).ok_or_else(|| runtime_error("no object to copy"))?;
        let inside = inside(value, 0)?;
        let copy = match object.type_index() {
            TypeIndex::ARRAY | TypeIndex::MAP => {
                self.open.insert(address(&object));
                Any::none()
            }
            TypeIndex::LIST => <List>::default().into(),
            TypeIndex::DICT => <Dict>::default().into(),
            _ => shallow_copy(&object)?,
        };
        if !copy.is_none() {
            self.copies.insert(address(&object), (value.clone(), copy.clone()));
        }
        Ok(OpenObject { original: value.clone(), object, copy, inside, next: 0, made: Vec::new() })
    }

    fn close(&mut self, frame: &mut OpenObject) -> Result<Any> {
        let made = std::mem::take(&mut frame.made);
        let copy: Any = match frame.object.type_index() {
            TypeIndex::ARRAY => Array::from(made).into(),
            TypeIndex::MAP => {
                let pairs = made.as_chunks::<2>().0.iter().cloned();
                Map::try_from_entries(pairs.map(|[key, value]| (key, value)))?.into()
            }
            _ => return Ok(frame.copy.clone()),
        };
        self.open.remove(&address(&frame.object));
        self.copies.insert(address(&frame.object), (frame.original.clone(), copy.clone()));
        Ok(copy)
    }

    /// The copy to use instead of `value`, if `value` is an original.
    fn replacement(&self, value: &Any) -> Option<Any> {
        let (_, copy) = self.copies.get(&address(&object_of(value)?))?;
        Some(copy.clone())
    }

    /// Replaces originals inside copies with their copies.
    fn replace_stand_ins(&self) -> Result<()> {
        for (_, copy) in self.copies.values() {
            match copy.type_index() {
                TypeIndex::LIST => {
                    let list: List = copy.cast()?;
                    for (place, value) in list.to_vec().iter().enumerate() {
                        if let Some(new) = self.replacement(value) {
                            list.set(place, new)?;
                        }
                    }
                }
                TypeIndex::DICT => self.replace_in_dict(copy)?,
                index if index >= TypeIndex::DYN_OBJECT_BEGIN => self.replace_in_fields(copy)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn replace_in_dict(&self, copy: &Any) -> Result<()> {
        let dict: Dict = copy.cast()?;
        for (key, value) in entries(copy)? {
            let (new_key, new_value) = (self.replacement(&key), self.replacement(&value));
            if new_key.is_some() || new_value.is_some() {
                dict.remove(&key)?;
                dict.insert(new_key.unwrap_or(key), new_value.unwrap_or(value))?;
            }
        }
        Ok(())
    }

    fn replace_in_fields(&self, copy: &Any) -> Result<()> {
        let Some(object) = object_of(copy) else { return Ok(()) };
        for info in type_table::fields(object.type_index())? {
            // SAFETY: the field is one of the object's type. The copy is new, and no other code has it.
            unsafe {
                let value = field::get(info, &object)?;
                match self.replacement(&value) {
                    Some(new) if !same(&new, &value) => field::set(info, &object, new.as_view())?,
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

/// Stores the copy of the frame's next inner value.
fn feed(frame: &mut OpenObject, copy: Any) -> Result<()> {
    match (&frame.inside.kind, frame.object.type_index()) {
        (_, TypeIndex::LIST) => frame.copy.cast::<List>()?.push(copy),
        (_, TypeIndex::DICT) => match frame.made.pop() {
            None => frame.made.push(copy),
            Some(key) => drop(frame.copy.cast::<Dict>()?.insert(key, copy)?),
        },
        (Kind::Fields(fields), _) => {
            let place = frame.next - 1;
            if !same(&frame.inside.values[place], &copy) {
                let object = object_of(&frame.copy).ok_or_else(|| runtime_error("no object to set a field of"))?;
                // SAFETY: the field is one of the object's type. The copy is new, and no other code has it.
                unsafe { field::set(fields[place], &object, copy.as_view())? };
            }
        }
        _ => frame.made.push(copy),
    }
    Ok(())
}

fn shallow_copy(object: &ObjectRef) -> Result<Any> {
    match type_table::attr_value(object.type_index(), b"__ffi_shallow_copy__") {
        Some(copy) => copy.cast::<Function>()?.call((object,)),
        None => Err(check_failed(
            "copy_fn.has_value()",
            &format!("Cannot deep copy object of type \"{}\" because it is not copy-constructible", object.type_key()),
        )),
    }
}

/// True if two values have the same bits.
fn same(one: &Any, other: &Any) -> bool {
    let (one, other) = (one.as_raw(), other.as_raw());
    (one.type_index, one.zero_padding, one.bits()) == (other.type_index, other.zero_padding, other.bits())
}

fn address(object: &ObjectRef) -> usize {
    object.as_ptr().addr()
}
