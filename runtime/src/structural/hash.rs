//! Structural hashes, `ffi.StructuralHash`. Values that are structurally equal have the same hash. A hash without
//! variables that are defined nowhere is the same in every process, and upstream's.
//! Deep values don't cause recursion, except through the function `__s_hash__` of a type.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::content::{Use, elements, text};
use super::equal::Options;
use super::facts::{Kind, Types};
use super::region;
use super::shared::Shared;
use crate::abi::*;
use crate::any::Any;
use crate::big_int;
use crate::container::{Array, List};
use crate::error::Result;
use crate::function::Function;
use crate::heap::ObjectRef;
use crate::reflect::children::{MAX_DEPTH, entries, too_deep};
use crate::reflect::field;
use crate::registry::with_args;
use crate::shape::Shape;
use crate::stable_hash::{bytes, combine};
use crate::tensor::Tensor;
use crate::type_table::key_hash;

/// The structural hash of a value.
///
/// # Errors
/// As [`equal`](super::equal::equal).
pub(super) fn hash(value: &Any, options: Options) -> Result<u64> {
    if let Some(hash) = at_once(value) {
        return Ok(hash);
    }
    let Options { map_free_vars, skip_tensor_content } = options;
    let state = State { region: region::of_root(map_free_vars), skip_tensor_content, ..State::default() };
    let hashing = Arc::new(Hashing(Shared::new(state)));
    hashing.0.with(|state| state.run(&hashing, value))
}

struct Hashing(Shared<State>);

#[derive(Default)]
struct State {
    region: i32,
    skip_tensor_content: bool,
    /// The variables defined so far.
    variables: u64,
    /// The graph's nodes met so far.
    nodes: u64,
    /// Finished hashes by object address. The entries keep the objects alive, so addresses aren't reused.
    done: FxHashMap<usize, (ObjectRef, u64)>,
    types: Types,
}

/// A value whose inner values are being hashed.
struct Open {
    hash: u64,
    rest: Rest,
}

enum Rest {
    Array { array: Array, next: usize },
    List(std::vec::IntoIter<Any>),
    Entries(std::vec::IntoIter<Entry>),
    Fields(Fields),
}

/// An entry of a map: the hash of its key, and its value unless another key has that hash.
struct Entry(u64, Option<Any>);

struct Fields {
    object: ObjectRef,
    /// The place of the type's facts.
    ty: usize,
    next: usize,
    /// The region of the object.
    outer: i32,
}

/// A value's hash, or a frame for the values inside it, with the first of these if it is at hand.
enum Start {
    Known(u64),
    Open(Open, Option<Any>),
}

/// An object's hash, or the value of its next field.
enum Inside {
    Done(u64),
    Hash(Any),
}

impl Hashing {
    /// The function that a type's `__s_hash__` gets: it adds an inner value to a hash, in a definition region or in the
    /// current one.
    fn inner(self: &Arc<Self>) -> Function {
        let hashing = Arc::clone(self);
        with_args("(AnyView, int, int) -> int", move |[value, start, region]| {
            let (value, start) = (value.to_owned()?, start.cast::<i64>()?.cast_unsigned());
            let kind: i64 = region.cast()?;
            hashing.0.with(|state| {
                let outer = state.region;
                state.region = region::asked(outer, kind)?;
                let outcome = state.run(&hashing, &value);
                state.region = outer;
                Ok(combine(start, outcome?).cast_signed().into())
            })
        })
    }
}

impl State {
    /// Hashes a value, and all values inside it.
    fn run(&mut self, hashing: &Arc<Hashing>, value: &Any) -> Result<u64> {
        let mut stack: Vec<Open> = Vec::new();
        let mut next = self.start(hashing, value)?;
        loop {
            let ended = match next {
                Start::Known(hash) => Some(hash),
                Start::Open(..) if stack.len() >= MAX_DEPTH => return Err(too_deep("StructuralHash")),
                Start::Open(frame, None) => {
                    stack.push(frame);
                    None
                }
                Start::Open(frame, Some(value)) => {
                    stack.push(frame);
                    match self.start(hashing, &value)? {
                        Start::Known(hash) => Some(hash),
                        open @ Start::Open(..) => {
                            next = open;
                            continue;
                        }
                    }
                }
            };
            let Some(frame) = stack.last_mut() else { return Ok(ended.unwrap_or_default()) };
            next = self.step(hashing, frame, ended)?;
            if let Start::Known(_) = next {
                stack.pop();
            }
        }
    }

    fn start(&mut self, hashing: &Arc<Hashing>, value: &Any) -> Result<Start> {
        if let Some(hash) = at_once(value) {
            return Ok(Start::Known(hash));
        }
        let index = value.type_index();
        let open = |hash, rest| Ok(Start::Open(Open { hash, rest }, None));
        let sized = |len: usize| Ok(combine(key_hash(index)?, len as u64));
        match index {
            TypeIndex::ARRAY => {
                let array: Array = value.cast()?;
                open(sized(array.len())?, Rest::Array { array, next: 0 })
            }
            TypeIndex::LIST => {
                let values = value.cast::<List>()?.to_vec();
                open(sized(values.len())?, Rest::List(values.into_iter()))
            }
            TypeIndex::MAP | TypeIndex::DICT => {
                let entries = entries(value)?;
                open(sized(entries.len())?, Rest::Entries(self.by_hash_of_key(entries).into_iter()))
            }
            TypeIndex::SHAPE => {
                let shape: Shape = value.cast()?;
                let start = sized(shape.as_slice().len())?;
                Ok(Start::Known(shape.as_slice().iter().fold(start, |hash, &extent| combine(hash, extent as u64))))
            }
            TypeIndex::TENSOR => {
                let tensor: Tensor = value.cast()?;
                self.tensor(&tensor, sized(tensor.ndim())?).map(Start::Known)
            }
            _ => match value.as_view().borrowed_object() {
                Some(object) => self.object(hashing, &object),
                None => Ok(Start::Known(combine(0, 0))),
            },
        }
    }

    /// The entries of a map in the order of their keys' hashes. A key without a hash that stands before the walk
    /// reaches it is left out, since its hash would depend on the order of entries.
    fn by_hash_of_key(&self, entries: Vec<(Any, Any)>) -> Vec<Entry> {
        let hash_of = |key: &Any| match key.as_view().borrowed_object() {
            Some(object) => hash_of_content(key).or_else(|| self.done.get(&address(&object)).map(|done| done.1)),
            None => hash_of_content(key),
        };
        let mut hashed: Vec<(u64, Any)> =
            entries.into_iter().filter_map(|(key, value)| Some((hash_of(&key)?, value))).collect();
        hashed.sort_by_key(|(hash, _)| *hash);
        let mut sorted: Vec<Entry> = Vec::with_capacity(hashed.len());
        for (hash, value) in hashed {
            match sorted.last_mut() {
                Some(Entry(last, first)) if *last == hash => *first = None,
                _ => sorted.push(Entry(hash, Some(value))),
            }
        }
        sorted
    }

    fn tensor(&self, tensor: &Tensor, start: u64) -> Result<u64> {
        let shaped = tensor.shape().iter().fold(start, |hash, &extent| combine(hash, extent as u64));
        let DLDataType { code, bits, lanes } = tensor.dtype();
        let typed = combine(shaped, u64::from(code) | u64::from(bits) << 8 | u64::from(lanes) << 16);
        match self.skip_tensor_content {
            true => Ok(typed),
            false => Ok(combine(typed, bytes(&elements(tensor, "tensor", Use::Hash)?))),
        }
    }

    /// Starts to hash an object. One whose fields need no look inside gets no frame.
    fn object(&mut self, hashing: &Arc<Hashing>, object: &ObjectRef) -> Result<Start> {
        if let Some((_, hash)) = self.done.get(&address(object)) {
            return Ok(Start::Known(*hash));
        }
        let ty = self.types.place(object.type_index(), b"__s_hash__")?;
        let facts = self.types.at(ty);
        let (kind, outer, mut hash) = (facts.kind, self.region, facts.key_hash);
        if let Some(hook) = facts.hook.clone() {
            self.region = kind.region_of_fields(outer);
            let start = hash.cast_signed();
            let outcome = hashing.0.lend(self, || hook.call((object, start, &hashing.inner()))?.cast::<i64>());
            self.region = outer;
            return Ok(Start::Known(self.finish(kind, object, outcome?.cast_unsigned())));
        }
        let mut next = 0;
        Ok(match self.next_field(ty, object, outer, &mut next, &mut hash)? {
            Inside::Done(hash) => Start::Known(hash),
            Inside::Hash(value) => {
                let rest = Rest::Fields(Fields { object: object.clone(), ty, next, outer });
                Start::Open(Open { hash, rest }, Some(value))
            }
        })
    }

    /// The hash of an object, whose fields have the hash `fields`.
    fn finish(&mut self, kind: Kind, object: &ObjectRef, fields: u64) -> u64 {
        let address = address(object);
        let hash = match kind {
            Kind::FreeVar if self.region == kTVMFFIDefRegionKindNone => address as u64,
            Kind::FreeVar => combine(fields, next(&mut self.variables)),
            Kind::Dag => combine(fields, next(&mut self.nodes)),
            Kind::Tree | Kind::ConstTree | Kind::Unique => fields,
        };
        self.done.insert(address, (object.clone(), hash));
        hash
    }

    /// Goes on with a frame, whose last inner value had the hash `ended`: its own hash, or the next frame.
    fn step(&mut self, hashing: &Arc<Hashing>, frame: &mut Open, ended: Option<u64>) -> Result<Start> {
        let Open { hash, rest } = frame;
        if let Some(ended) = ended {
            *hash = combine(*hash, ended);
        }
        loop {
            let start = match rest {
                Rest::Array { array, next } => {
                    let Some(value) = array.as_slice().get(*next) else { break };
                    *next += 1;
                    self.start(hashing, value)?
                }
                Rest::List(values) => {
                    let Some(value) = values.next() else { break };
                    self.start(hashing, &value)?
                }
                Rest::Entries(entries) => {
                    let Some(Entry(key, value)) = entries.next() else { break };
                    *hash = combine(*hash, key);
                    let Some(value) = value else { continue };
                    self.start(hashing, &value)?
                }
                Rest::Fields(Fields { object, ty, next, outer }) => {
                    match self.next_field(*ty, object, *outer, next, hash)? {
                        Inside::Done(hash) => return Ok(Start::Known(hash)),
                        Inside::Hash(value) => self.start(hashing, &value)?,
                    }
                }
            };
            match start {
                Start::Known(inner) => *hash = combine(*hash, inner),
                open @ Start::Open(..) => return Ok(open),
            }
        }
        Ok(Start::Known(*hash))
    }

    /// Goes on with the fields of an object, up to the next that needs a look inside.
    fn next_field(
        &mut self,
        ty: usize,
        object: &ObjectRef,
        outer: i32,
        next: &mut usize,
        hash: &mut u64,
    ) -> Result<Inside> {
        let facts = self.types.at(ty);
        let kind = facts.kind;
        while let Some(field) = facts.fields.get(*next) {
            *next += 1;
            // SAFETY: the object is of the type of the facts.
            let value = unsafe { field::get(field.info, object)? };
            match at_once(&value) {
                Some(known) => *hash = combine(*hash, known),
                None => {
                    self.region = field.region_in(kind.region_of_fields(outer));
                    return Ok(Inside::Hash(value));
                }
            }
        }
        self.region = outer;
        Ok(Inside::Done(self.finish(kind, object, *hash)))
    }
}

/// The number of a variable or node, which counts those before it.
fn next(count: &mut u64) -> u64 {
    let number = *count;
    // upstream's counters have 32 bits
    *count = (number + 1) & u64::from(u32::MAX);
    number
}

/// The hash of a value that needs no look inside.
#[inline]
fn at_once(value: &Any) -> Option<u64> {
    if value.type_index() == TypeIndex::FLOAT && f64::from_bits(value.as_raw().bits()).is_nan() {
        return Some(combine(TypeIndex::FLOAT.0 as u64, f64::NAN.to_bits()));
    }
    hash_of_content(value)
}

/// As [`at_once`], but a number that isn't one has the hash of its bits.
fn hash_of_content(value: &Any) -> Option<u64> {
    let index = value.type_index();
    if index < TypeIndex::SMALL_STR {
        return Some(combine(index.0 as u64, value.as_raw().bits()));
    }
    Some(match index {
        TypeIndex::SMALL_STR => combine(TypeIndex::STR.0 as u64, bytes(text(value))),
        TypeIndex::STR | TypeIndex::BYTES => combine(index.0 as u64, bytes(text(value))),
        // SAFETY: the value is alive.
        TypeIndex::BIG_INT => combine(index.0 as u64, bytes(unsafe { big_int::content_of(value.as_raw()) })),
        index if index.is_object() => return None,
        index => combine(index.0 as u64, value.as_raw().bits()),
    })
}

fn address(object: &ObjectRef) -> usize {
    object.as_ptr().addr()
}
