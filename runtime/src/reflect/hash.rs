//! Hashes of any value, `ffi.RecursiveHash`. Values that are equal by `ffi.RecursiveEq` have the same hash, in every
//! process. A type may define its own with the attribute `__ffi_hash__`.
//! Deep values don't cause recursion, except through attributes that request the hash of an inner value.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::children::{Inside, Kind, MAX_DEPTH, inside, object_of, too_deep};
use crate::abi::*;
use crate::any::Any;
use crate::error::{Result, value_error};
use crate::function::Function;
use crate::heap::ObjectRef;
use crate::registry::with_args;
use crate::shape::Shape;
use crate::stable_hash::{bytes, combine};
use crate::string::bytes_of;
use crate::type_table::{attr_value, key_hash};

/// The hash of a value.
///
/// # Errors
/// `ValueError` for an object if its type defines a comparison but no hash; any error of a getter or attribute.
pub(super) fn hash(value: &Any) -> Result<u64> {
    Arc::new(Hasher::default()).hash(value)
}

#[derive(Default)]
struct Hasher(Mutex<Seen>);

/// Objects by their address. They live as long as the hasher, so their addresses aren't reused.
#[derive(Default)]
struct Seen {
    open: HashSet<usize>,
    done: HashMap<usize, u64>,
    kept: Vec<ObjectRef>,
}

/// An object that is being hashed.
struct OpenObject {
    object: ObjectRef,
    inside: Inside,
    next: usize,
    hash: u64,
    /// The hash of a map's key, if its value comes next.
    key: Option<u64>,
    entries: Vec<u64>,
}

impl Hasher {
    /// Locks the state. No user code may run while the lock is held.
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hash(self: &Arc<Self>, value: &Any) -> Result<u64> {
        if let Some(hash) = self.at_once(value)? {
            return Ok(hash);
        }
        let mut stack = vec![self.open(value)?];
        let mut finished = None;
        while let Some(frame) = stack.last_mut() {
            if let Some(hash) = finished.take() {
                feed(frame, hash);
            }
            let Some(child) = frame.inside.values.get(frame.next).cloned() else {
                frame.entries.sort_unstable();
                let hash = frame.entries.iter().fold(frame.hash, |hash, &entry| combine(hash, entry));
                self.done(&frame.object, hash);
                finished = Some(hash);
                stack.pop();
                continue;
            };
            frame.next += 1;
            match self.at_once(&child)? {
                Some(hash) => feed(frame, hash),
                None if stack.len() >= MAX_DEPTH => return Err(too_deep("ObjectGraphDFS")),
                None => stack.push(self.open(&child)?),
            }
        }
        Ok(finished.unwrap_or_default())
    }

    fn open(&self, value: &Any) -> Result<OpenObject> {
        let object = object_of(value).ok_or_else(|| value_error("a value without an object has no frame"))?;
        let inside = inside(value, kTVMFFIFieldFlagBitMaskHashOff | kTVMFFIFieldFlagBitMaskCompareOff)?;
        let key = key_hash(object.type_index())?;
        let hash = match inside.kind {
            Kind::Sequence => combine(key, inside.values.len() as u64),
            Kind::Mapping => combine(key, inside.values.len() as u64 / 2),
            Kind::Fields(_) => key,
        };
        self.seen().open.insert(address(&object));
        Ok(OpenObject { object, inside, next: 0, hash, key: None, entries: Vec::new() })
    }

    fn done(&self, object: &ObjectRef, hash: u64) {
        let mut seen = self.seen();
        seen.open.remove(&address(object));
        seen.done.insert(address(object), hash);
        seen.kept.push(object.clone());
    }

    /// The hash of a value that needs no frame.
    fn at_once(self: &Arc<Self>, value: &Any) -> Result<Option<u64>> {
        let raw = value.as_raw();
        let tag = |index: TypeIndex| index.0 as u64;
        let hash = match value.type_index() {
            TypeIndex::NONE => combine(0, 0),
            TypeIndex::SMALL_STR | TypeIndex::STR => combine(tag(TypeIndex::STR), bytes(text(value))),
            TypeIndex::SMALL_BYTES | TypeIndex::BYTES => combine(tag(TypeIndex::BYTES), bytes(text(value))),
            index @ TypeIndex::BOOL => combine(tag(index), u64::from(raw.bits() != 0)),
            index @ TypeIndex::FLOAT => combine(tag(index), float_bits(f64::from_bits(raw.bits()))),
            index @ TypeIndex::DATA_TYPE => {
                let dtype: DLDataType = value.cast()?;
                let parts = [u64::from(dtype.code), u64::from(dtype.bits), u64::from(dtype.lanes)];
                parts.into_iter().fold(tag(index), combine)
            }
            index @ TypeIndex::DEVICE => {
                let device: DLDevice = value.cast()?;
                combine(combine(tag(index), device.device_type.0 as u64), device.device_id as u64)
            }
            index if !index.is_object() => combine(tag(index), raw.bits()),
            index => match object_of(value) {
                Some(object) => return self.object_at_once(value, &object, index),
                None => combine(0, 0),
            },
        };
        Ok(Some(hash))
    }

    fn object_at_once(self: &Arc<Self>, value: &Any, object: &ObjectRef, index: TypeIndex) -> Result<Option<u64>> {
        let seen = self.seen();
        if let Some(&hash) = seen.done.get(&address(object)) {
            return Ok(Some(hash));
        }
        let is_open = seen.open.contains(&address(object));
        drop(seen);
        if is_open {
            return key_hash(index).map(Some);
        }
        if index == TypeIndex::SHAPE {
            let shape: Shape = value.cast()?;
            let start = combine(key_hash(index)?, shape.as_slice().len() as u64);
            return Ok(Some(shape.as_slice().iter().fold(start, |hash, &extent| combine(hash, extent as u64))));
        }
        if let Some(hook) = attr_value(index, b"__ffi_hash__") {
            let hook: Function = hook.cast()?;
            self.seen().open.insert(address(object));
            let hasher = Arc::clone(self);
            let inner =
                with_args("(AnyView) -> int", move |[value]| Ok(hasher.hash(&value.to_owned()?)?.cast_signed().into()));
            let hash = hook.call((object, &inner))?.cast::<i64>()?.cast_unsigned();
            self.done(object, hash);
            return Ok(Some(hash));
        }
        let compares = |name: &[u8]| attr_value(index, name).is_some();
        if index >= TypeIndex::BIG_INT && (compares(b"__ffi_eq__") || compares(b"__ffi_compare__")) {
            return Err(value_error(&format!(
                "RecursiveHash: type '{}' defines __ffi_eq__ or __ffi_compare__ but not __ffi_hash__. Add a \
                 __ffi_hash__ hook to maintain the invariant RecursiveEq(a,b) => RecursiveHash(a)==RecursiveHash(b).",
                object.type_key()
            )));
        }
        Ok(None)
    }
}

/// The content of a string or of bytes.
fn text(value: &Any) -> &[u8] {
    // SAFETY: callers have checked the type index, and `value` keeps a heap object alive.
    unsafe { bytes_of(value.as_raw()) }.unwrap_or_default()
}

/// Adds the hash of the frame's next inner value.
fn feed(frame: &mut OpenObject, hash: u64) {
    match (&frame.inside.kind, frame.key.take()) {
        (Kind::Sequence, _) => frame.hash = combine(frame.hash, combine(hash, frame.next as u64 - 1)),
        (Kind::Fields(_), _) => frame.hash = combine(frame.hash, hash),
        (Kind::Mapping, None) => frame.key = Some(hash),
        (Kind::Mapping, Some(key)) => frame.entries.push(combine(key, hash)),
    }
}

/// The bits of a number. Numbers that compare equal have the same bits.
fn float_bits(value: f64) -> u64 {
    if value.is_nan() {
        return 0x7ff8_0000_0000_0000;
    }
    if value == 0.0 { 0 } else { value.to_bits() }
}

fn address(object: &ObjectRef) -> usize {
    object.as_ptr().addr()
}
