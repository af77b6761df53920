//! Comparison of any two values, `ffi.RecursiveEq`, `Lt`, `Le`, `Gt` and `Ge`: containers by their contents, objects by
//! their fields. A type may define its own with the attributes `__ffi_eq__` and `__ffi_compare__`.
//! Deep values don't cause recursion, except through attributes that compare inner values.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::children::{Kind, MAX_DEPTH, inside, object_of, too_deep};
use crate::abi::*;
use crate::any::Any;
use crate::big_int::BigInt;
use crate::container::{Dict, Map};
use crate::error::{Error, Result, type_error, value_error};
use crate::function::Function;
use crate::heap::ObjectRef;
use crate::registry::with_args;
use crate::shape::Shape;
use crate::string::bytes_of;
use crate::type_table::attr_value;

/// True if two values are equal.
///
/// # Errors
/// Any error of a getter or attribute.
pub(super) fn equal(one: &Any, other: &Any) -> Result<bool> {
    Ok(Arc::new(Comparer { only_equality: true, open: Mutex::default() }).compare(one, other)? == Ordering::Equal)
}

/// The order of two values.
///
/// # Errors
/// `TypeError` for values without an order: those of different types that aren't numbers, and maps that differ;
/// `ValueError` for a cycle; any error of a getter or attribute.
pub(super) fn order(one: &Any, other: &Any) -> Result<Ordering> {
    Arc::new(Comparer { only_equality: false, open: Mutex::default() }).compare(one, other)
}

struct Comparer {
    /// If set, any difference is reported as `Greater`, and values without an order are unequal instead of an error.
    only_equality: bool,
    /// Pairs of objects that are being compared.
    open: Mutex<HashSet<(usize, usize)>>,
}

/// Two objects that are being compared.
struct OpenPair {
    pair: (usize, usize),
    /// Keeps the objects alive, so the addresses in `pair` aren't reused.
    _kept: [ObjectRef; 2],
    is_mapping: bool,
    /// The order if all children are equal.
    rest: Ordering,
    children: std::vec::IntoIter<(Any, Any)>,
}

/// Looks up the value of a key.
type Find = Box<dyn Fn(&Any) -> Result<Option<Any>>>;

/// The order of two values if it is known directly, or a frame to determine it.
enum Start {
    Known(Ordering),
    Open(OpenPair),
}

#[cold]
fn unordered_maps() -> Error {
    type_error("Cannot order Map/Dict values")
}

impl Comparer {
    /// Locks the set of open pairs. No user code may run while the lock is held.
    fn open(&self) -> MutexGuard<'_, HashSet<(usize, usize)>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn compare(self: &Arc<Self>, one: &Any, other: &Any) -> Result<Ordering> {
        let mut stack = match self.start(one, other, 0)? {
            Start::Known(order) => return Ok(order),
            Start::Open(frame) => vec![frame],
        };
        let mut outcome = Ordering::Equal;
        while let Some(frame) = stack.last_mut() {
            let Some((one, other)) = frame.children.next() else {
                outcome = frame.rest;
                self.open().remove(&frame.pair);
                stack.pop();
                if outcome == Ordering::Equal {
                    continue;
                }
                break;
            };
            match self.start(&one, &other, stack.len())? {
                Start::Known(Ordering::Equal) => {}
                Start::Known(order) => {
                    outcome = order;
                    break;
                }
                Start::Open(frame) => stack.push(frame),
            }
        }
        let in_mapping = stack.iter().any(|frame| frame.is_mapping);
        stack.iter().for_each(|frame| _ = self.open().remove(&frame.pair));
        if in_mapping && !self.only_equality { Err(unordered_maps()) } else { Ok(outcome) }
    }

    /// `Greater` if only equality is compared; otherwise the error.
    fn differs(&self, error: impl FnOnce() -> Error) -> Result<Option<Ordering>> {
        if self.only_equality { Ok(Some(Ordering::Greater)) } else { Err(error()) }
    }

    fn start(self: &Arc<Self>, one: &Any, other: &Any, depth: usize) -> Result<Start> {
        if let Some(order) = self.at_once(one, other)? {
            return Ok(Start::Known(order));
        }
        if depth >= MAX_DEPTH {
            return Err(too_deep("RecursiveCompare"));
        }
        let (Some(first), Some(second)) = (object_of(one), object_of(other)) else {
            return Ok(Start::Known(Ordering::Equal));
        };
        let mapping = matches!(one.type_index(), TypeIndex::MAP | TypeIndex::DICT);
        let (children, rest) = match mapping {
            true => match self.values_by_key(one, other)? {
                Some(children) => (children, Ordering::Equal),
                None => return Ok(Start::Known(Ordering::Greater)),
            },
            false => pairs(one, other)?,
        };
        let pair = addresses(&first, &second);
        self.open().insert(pair);
        let children = children.into_iter();
        Ok(Start::Open(OpenPair { pair, _kept: [first, second], is_mapping: mapping, rest, children }))
    }

    /// Pairs up the values of two maps by key. If the keys differ, the result is `None` when only equality is compared,
    /// and otherwise an error.
    fn values_by_key(&self, one: &Any, other: &Any) -> Result<Option<Vec<(Any, Any)>>> {
        let entries = super::children::entries(one)?;
        let (len, find): (usize, Find) = match other.type_index() {
            TypeIndex::DICT => {
                let dict: Dict = other.cast()?;
                (dict.len(), Box::new(move |key| dict.get(key)))
            }
            _ => {
                let map: Map = other.cast()?;
                (map.len(), Box::new(move |key| Ok(map.get(key)?.cloned())))
            }
        };
        let mut values = Vec::with_capacity(entries.len());
        if entries.len() == len {
            for (key, value) in entries {
                match find(&key)? {
                    Some(found) => values.push((value, found)),
                    None => return self.differs(unordered_maps).map(|_| None),
                }
            }
            return Ok(Some(values));
        }
        self.differs(unordered_maps).map(|_| None)
    }

    /// The order of two values that need no frame.
    fn at_once(self: &Arc<Self>, one: &Any, other: &Any) -> Result<Option<Ordering>> {
        let (first, second) = (one.type_index(), other.type_index());
        match (first == TypeIndex::NONE, second == TypeIndex::NONE) {
            (true, true) => return Ok(Some(Ordering::Equal)),
            (true, false) => return Ok(Some(Ordering::Less)),
            (false, true) => return Ok(Some(Ordering::Greater)),
            (false, false) => {}
        }
        if let (Some((kind, one)), Some((other_kind, other))) = (content(one), content(other))
            && kind == other_kind
        {
            return Ok(Some(one.cmp(other)));
        }
        let (is_big, is_integer) = (|index| index == TypeIndex::BIG_INT, |index| index == TypeIndex::INT);
        let are_big = is_big(first) && is_big(second);
        let are_mixed = is_big(first) && is_integer(second) || is_integer(first) && is_big(second);
        // An integer that fits into an `i64` is never a big-integer object, so integers of different kinds are never
        // equal.
        if are_big || are_mixed && !self.only_equality {
            return Ok(Some(one.cast::<BigInt>()?.cmp(&other.cast()?)));
        }
        if first != second {
            let mismatch = || {
                type_error(&format!(
                    "Cannot compare values of different types: {} vs {}",
                    one.type_key(),
                    other.type_key()
                ))
            };
            return self.differs(mismatch);
        }
        if !first.is_object() {
            return self.plain(one, other);
        }
        let (Some(first), Some(second)) = (object_of(one), object_of(other)) else {
            return Ok(Some(object_of(one).is_some().cmp(&object_of(other).is_some())));
        };
        if first.ptr_eq(&second) {
            return Ok(Some(Ordering::Equal));
        }
        if one.type_index() == TypeIndex::SHAPE {
            return Ok(Some(one.cast::<Shape>()?.as_slice().cmp(other.cast::<Shape>()?.as_slice())));
        }
        if self.open().contains(&addresses(&first, &second)) {
            return match self.only_equality {
                true => Ok(Some(Ordering::Equal)),
                false => Err(value_error("RecursiveCompare: cyclic reference detected in ordering")),
            };
        }
        if one.type_index() >= TypeIndex::BIG_INT { self.by_hook(&first, &second) } else { Ok(None) }
    }

    /// The order of two values of the same type that aren't objects.
    fn plain(&self, one: &Any, other: &Any) -> Result<Option<Ordering>> {
        let order = match one.type_index() {
            TypeIndex::BOOL => one.cast::<bool>()?.cmp(&other.cast()?),
            TypeIndex::INT => one.cast::<i64>()?.cmp(&other.cast()?),
            TypeIndex::FLOAT => {
                let (one, other): (f64, f64) = (one.cast()?, other.cast()?);
                match one.partial_cmp(&other) {
                    Some(order) => order,
                    None if one.is_nan() && other.is_nan() && self.only_equality => Ordering::Equal,
                    None => return self.differs(|| type_error("Cannot order NaN values")),
                }
            }
            TypeIndex::DATA_TYPE => {
                let parts = |value: &Any| value.cast::<DLDataType>().map(|d| (d.code, d.bits, d.lanes));
                parts(one)?.cmp(&parts(other)?)
            }
            TypeIndex::DEVICE => {
                let parts = |value: &Any| value.cast::<DLDevice>().map(|d| (d.device_type.0, d.device_id));
                parts(one)?.cmp(&parts(other)?)
            }
            _ => {
                let bits = |value: &Any| (value.as_raw().zero_padding, value.as_raw().bits());
                if bits(one) != bits(other) {
                    return self.differs(|| type_error(&format!("Cannot order values of type {}", one.type_key())));
                }
                Ordering::Equal
            }
        };
        Ok(Some(order))
    }

    /// The order according to the type's own attributes.
    fn by_hook(self: &Arc<Self>, one: &ObjectRef, other: &ObjectRef) -> Result<Option<Ordering>> {
        let index = one.type_index();
        if self.only_equality
            && let Some(hook) = attr_value(index, b"__ffi_eq__")
        {
            let comparer = Arc::clone(self);
            let inner = with_args("(AnyView, AnyView) -> bool", move |[one, other]| {
                Ok((comparer.compare(&one.to_owned()?, &other.to_owned()?)? == Ordering::Equal).into())
            });
            let is_equal: bool = self.call_hook(&hook, one, other, &inner)?.cast()?;
            return Ok(Some(if is_equal { Ordering::Equal } else { Ordering::Greater }));
        }
        let Some(hook) = attr_value(index, b"__ffi_compare__") else {
            return Ok(None);
        };
        let comparer = Arc::clone(self);
        let inner = with_args("(AnyView, AnyView) -> int", move |[one, other]| {
            Ok((comparer.compare(&one.to_owned()?, &other.to_owned()?)? as i64).into())
        });
        let order: i32 = self.call_hook(&hook, one, other, &inner)?.cast()?;
        Ok(Some(order.cmp(&0)))
    }

    fn call_hook(&self, hook: &Any, one: &ObjectRef, other: &ObjectRef, inner: &Function) -> Result<Any> {
        let hook: Function = hook.cast()?;
        let pair = addresses(one, other);
        self.open().insert(pair);
        let outcome = hook.call((one, other, inner));
        self.open().remove(&pair);
        outcome
    }
}

/// The inner values of two objects of the same type, in pairs, and the order of the objects if all pairs are equal.
fn pairs(one: &Any, other: &Any) -> Result<(Vec<(Any, Any)>, Ordering)> {
    let (first, second) =
        (inside(one, kTVMFFIFieldFlagBitMaskCompareOff)?, inside(other, kTVMFFIFieldFlagBitMaskCompareOff)?);
    let rest = match first.kind {
        Kind::Sequence => first.values.len().cmp(&second.values.len()),
        Kind::Mapping | Kind::Fields(_) => Ordering::Equal,
    };
    Ok((first.values.into_iter().zip(second.values).collect(), rest))
}

/// The content of a string or of bytes, with a type index that identifies which of the two it is.
fn content(value: &Any) -> Option<(TypeIndex, &[u8])> {
    let kind = match value.type_index() {
        TypeIndex::SMALL_STR | TypeIndex::STR => TypeIndex::STR,
        TypeIndex::SMALL_BYTES | TypeIndex::BYTES => TypeIndex::BYTES,
        _ => return None,
    };
    // SAFETY: the type index was checked, and `value` keeps a heap object alive.
    unsafe { bytes_of(value.as_raw()) }.map(|bytes| (kind, bytes))
}

fn addresses(one: &ObjectRef, other: &ObjectRef) -> (usize, usize) {
    (one.as_ptr().addr(), other.as_ptr().addr())
}
