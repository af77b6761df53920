//! The global functions with which C and Python create, read and change containers.
//! Each function accepts containers of exactly its own type. Upstream's functions that change a list or dict also
//! accept an array or map, and then change a copy that the caller never sees.
//! No header section: upstream registers them in `container.cc`.

use std::collections::HashMap;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};

use super::array::Array;
use super::dict::Dict;
use super::list::List;
use super::map::{Map, try_new_of_results};
use super::table::{KeyValue, Position};
use crate::abi::*;
use crate::any::{Any, AnyView};
use crate::error::{Error, Result, index_error, kind, range_error, type_mismatch};
use crate::function::Function;
use crate::heap::AsObject;
use crate::object::missing;
use crate::registry::{Globals, with_args};
use crate::tensor::Tensor;

/// The global functions of all containers.
pub(crate) fn globals(globals: &mut Globals) {
    arrays(globals);
    lists(globals);
    maps(globals);
    dicts(globals);
    globals.fixed("ffi.GetInvalidObject", |[]| Ok(missing().into()));
    globals.fixed("ffi.ContainerFindFirstNonCPUDevice", |[value]| {
        Ok(first_device(value.to_owned()?)?.unwrap_or(DLDevice { device_type: DLDeviceType::CPU, device_id: 0 }).into())
    });
}

fn arrays(globals: &mut Globals) {
    globals
        .packed("ffi.Array", |args| Ok(Array::try_from_values(args.len(), args.iter().map(AnyView::to_owned))?.into()));
    globals.fixed("ffi.ArrayGetItem", |[array, i]| {
        let (array, i) = (exact::<Array>(array)?, i.cast()?);
        index(i).and_then(|index| array.get(index)).cloned().ok_or_else(|| index_error(i, array.len()))
    });
    globals.fixed("ffi.ArraySize", |[array]| Ok(exact::<Array>(array)?.len().into()));
    globals
        .fixed("ffi.ArrayContains", |[array, value]| Ok(exact::<Array>(array)?.contains(&value.to_owned()?)?.into()));
}

fn lists(globals: &mut Globals) {
    globals
        .packed("ffi.List", |args| Ok(List::try_from_values(args.len(), args.iter().map(AnyView::to_owned))?.into()));
    globals.fixed("ffi.ListGetItem", |[list, i]| {
        let (list, i) = (exact::<List>(list)?, i.cast()?);
        index(i).and_then(|index| list.get(index)).ok_or_else(|| index_error(i, list.len()))
    });
    globals.fixed("ffi.ListSetItem", |[list, i, value]| {
        let list = exact::<List>(list)?;
        list.set(index_in(&list, i.cast()?)?, value.to_owned()?).map(Any::from)
    });
    globals.fixed("ffi.ListSize", |[list]| Ok(exact::<List>(list)?.len().into()));
    globals.fixed("ffi.ListContains", |[list, value]| Ok(exact::<List>(list)?.contains(&value.to_owned()?)?.into()));
    globals.fixed("ffi.ListAppend", |[list, value]| {
        exact::<List>(list)?.push(value.to_owned()?);
        Ok(Any::none())
    });
    globals.fixed("ffi.ListInsert", |[list, i, value]| {
        let list = exact::<List>(list)?;
        list.insert(index_in(&list, i.cast()?)?, value.to_owned()?).map(Any::from)
    });
    globals.fixed("ffi.ListPop", |[list, i]| {
        let list = exact::<List>(list)?;
        list.remove(index_in(&list, i.cast()?)?)
    });
    globals.fixed("ffi.ListErase", |[list, i]| {
        let list = exact::<List>(list)?;
        list.remove(index_in(&list, i.cast()?)?).map(|_| Any::none())
    });
    globals.fixed("ffi.ListEraseRange", |[list, start, stop]| {
        replace_slice(&*exact::<List>(list)?, start.cast()?, stop.cast()?, Vec::new())
    });
    globals.fixed("ffi.ListReplaceSlice", |[list, start, stop, values]| {
        // Copied first, because the values may be the list's own.
        let values = values.cast::<List>()?.to_vec();
        replace_slice(&*exact::<List>(list)?, start.cast()?, stop.cast()?, values)
    });
    globals.fixed("ffi.ListReverse", |[list]| {
        exact::<List>(list)?.reverse();
        Ok(Any::none())
    });
    globals.fixed("ffi.ListClear", |[list]| {
        exact::<List>(list)?.clear();
        Ok(Any::none())
    });
    globals.fixed("ffi.ListReserve", |[list, capacity]| {
        // Upstream also accepts a negative capacity.
        let capacity = index(capacity.cast()?).unwrap_or(0);
        exact::<List>(list)?.reserve(capacity).map(Any::from)
    });
}

fn maps(globals: &mut Globals) {
    globals.packed("ffi.Map", |args| Ok(try_new_of_results::<{ TypeIndex::MAP.0 }>(entries(args)?)?.into()));
    globals.fixed("ffi.MapSize", |[map]| Ok(exact::<Map>(map)?.len().into()));
    globals.fixed("ffi.MapGetItem", |[map, key]| exact::<Map>(map)?.get(key)?.cloned().ok_or_else(key_error));
    globals.fixed("ffi.MapCount", |[map, key]| Ok(i64::from(exact::<Map>(map)?.contains_key(key)?).into()));
    globals.fixed("ffi.MapForwardIterFunctor", |[map]| Ok(forward_iterator(exact::<Map>(map)?.clone()).into()));
    globals.fixed("ffi.MapGetItemOrMissing", |[map, key]| {
        Ok(exact::<Map>(map)?.get(key)?.cloned().unwrap_or_else(|| missing().into()))
    });
}

fn dicts(globals: &mut Globals) {
    globals.packed("ffi.Dict", |args| Ok(try_new_of_results::<{ TypeIndex::DICT.0 }>(entries(args)?)?.into()));
    globals.fixed("ffi.DictSize", |[dict]| Ok(exact::<Dict>(dict)?.len().into()));
    globals.fixed("ffi.DictGetItem", |[dict, key]| exact::<Dict>(dict)?.get(key)?.ok_or_else(key_error));
    globals.fixed("ffi.DictSetItem", |[dict, key, value]| {
        exact::<Dict>(dict)?.insert(key.to_owned()?, value.to_owned()?)?;
        Ok(Any::none())
    });
    globals.fixed("ffi.DictCount", |[dict, key]| Ok(i64::from(exact::<Dict>(dict)?.contains_key(key)?).into()));
    globals.fixed("ffi.DictErase", |[dict, key]| {
        exact::<Dict>(dict)?.remove(key)?;
        Ok(Any::none())
    });
    globals.fixed("ffi.DictClear", |[dict]| {
        exact::<Dict>(dict)?.clear();
        Ok(Any::none())
    });
    globals.fixed("ffi.DictForwardIterFunctor", |[dict]| Ok(forward_iterator(exact::<Dict>(dict)?.to_map()).into()));
    globals.fixed("ffi.DictGetItemOrMissing", |[dict, key]| {
        Ok(exact::<Dict>(dict)?.get(key)?.unwrap_or_else(|| missing().into()))
    });
}

/// A container in an argument, borrowed for the call.
struct Borrowed<'a, T>(ManuallyDrop<T>, PhantomData<&'a ()>);

impl<T> Deref for Borrowed<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// A container of exactly the type `T`. An r-value argument stays with its owner.
fn exact<'a, T: AsObject>(view: &'a AnyView<'_>) -> Result<Borrowed<'a, T>> {
    let mismatch = |index| type_mismatch(T::TYPE_INDEX.static_type_key().unwrap_or("ffi.Object"), index);
    let object = view.borrowed_object().filter(|object| T::is_object(object));
    let object = object.ok_or_else(|| mismatch(view.inner_type_index()))?;
    // SAFETY: the object is a `T`, and its reference still belongs to the argument.
    let container = unsafe { T::from_object_unchecked(ManuallyDrop::into_inner(object)) };
    Ok(Borrowed(ManuallyDrop::new(container), PhantomData))
}

/// Arguments that alternate between keys and values.
fn entries<'a>(args: &'a [AnyView<'_>]) -> Result<impl Iterator<Item = Result<(Any, Any)>> + 'a> {
    let (pairs, rest) = args.as_chunks::<2>();
    if !rest.is_empty() {
        let message = format!("Check failed: args.size() % 2 == 0 ({} vs. 0) : ", args.len() % 2);
        return Err(Error::new(kind::INTERNAL_ERROR, &message));
    }
    Ok(pairs.iter().map(|[key, value]| Ok((key.to_owned()?, value.to_owned()?))))
}

fn index(i: i64) -> Option<usize> {
    usize::try_from(i).ok()
}

fn index_in(list: &List, i: i64) -> Result<usize> {
    index(i).ok_or_else(|| index_error(i, list.len()))
}

fn replace_slice(list: &List, start: i64, stop: i64, values: Vec<Any>) -> Result<Any> {
    // As upstream, replacing nothing with nothing skips the bounds check.
    if start == stop && values.is_empty() {
        return Ok(Any::none());
    }
    let (from, to) = (start, stop);
    let (Some(start), Some(stop)) = (index(start), index(stop)) else {
        return Err(range_error(from, to, list.len()));
    };
    list.replace_range(start..stop, values).map(Any::from)
}

#[cold]
fn key_error() -> Error {
    Error::new(kind::KEY_ERROR, "key is not in Map")
}

/// Upstream's iterator, which starts at the first entry. Argument 0 returns the current key, 1 returns the current
/// value, and any other number advances and returns whether there is an entry.
fn forward_iterator(map: Map) -> Function {
    // SAFETY: the map is alive, and doesn't change.
    let first = unsafe { map.table().ends() }.map_or(NO_ENTRY, |(first, _)| first);
    let place = AtomicU64::new(first);
    with_args("(int) -> Any", move |[command]| {
        let command: i64 = command.cast()?;
        let current = place.load(Ordering::Relaxed);
        if current == NO_ENTRY {
            return if command == 0 || command == 1 {
                Err(index_error(map.len(), map.len()))
            } else {
                Ok(false.into())
            };
        }
        // SAFETY: as above; the place is that of an entry.
        let (KeyValue { key, value }, next) = unsafe { (map.table().entry(current), map.table().next(current)) };
        match command {
            0 => Ok(key.clone()),
            1 => Ok(value.clone()),
            _ => {
                place.store(next.unwrap_or(NO_ENTRY), Ordering::Relaxed);
                Ok(next.is_some().into())
            }
        }
    })
}

/// The place of an exhausted iterator.
const NO_ENTRY: Position = Position::MAX;

/// The device of the first tensor that is not on a CPU, at any nesting depth.
fn first_device(value: Any) -> Result<Option<DLDevice>> {
    // Containers already searched, to end cycles. They are kept alive so that their addresses are not reused.
    let mut seen = HashMap::new();
    let mut waiting = vec![value];
    while let Some(value) = waiting.pop() {
        let inside: Vec<Any> = match value.type_index() {
            TypeIndex::TENSOR => {
                let device = value.cast::<Tensor>()?.device();
                if device.device_type != DLDeviceType::CPU {
                    return Ok(Some(device));
                }
                continue;
            }
            TypeIndex::ARRAY | TypeIndex::LIST => value.cast::<Array>()?.to_vec(),
            TypeIndex::MAP | TypeIndex::DICT => value.cast::<Map>()?.values().cloned().collect(),
            _ => continue,
        };
        if seen.insert(value.as_raw().ptr().addr(), value).is_none() {
            waiting.extend(inside.into_iter().rev());
        }
    }
    Ok(None)
}
