//! Structural hashes, `ffi.StructuralHash`. Values that are structurally equal have the same hash. A hash without
//! variables that are defined nowhere is the same in every process, and upstream's.
//! Deep values don't cause recursion, except through the function `__s_hash__` of a type.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::content::{Use, elements, text};
use super::equal::Options;
use super::facts::{Facts, Kind, Types};
use super::region::Region;
use super::shared::Shared;
use crate::abi::*;
use crate::any::Any;
use crate::big_int;
use crate::container::{Array, List};
use crate::error::Result;
use crate::function::Function;
use crate::heap::ObjectRef;
use crate::reflect::children::{MAX_DEPTH, entries, object_of, too_deep};
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
    let Options { map_free_vars, skip_tensor_content } = options;
    let state = State { region: Region::of_root(map_free_vars), skip_tensor_content, ..State::default() };
    let hashing = Arc::new(Hashing(Shared::new(state)));
    hashing.0.with(|state| state.run(&hashing, value))
}

struct Hashing(Shared<State>);

#[derive(Default)]
struct State {
    region: Region,
    skip_tensor_content: bool,
    /// The variables defined so far.
    variables: u64,
    /// The graph's nodes met so far.
    nodes: u64,
    /// The hashes of objects by their addresses. The objects stay alive, so that addresses aren't reused.
    done: FxHashMap<usize, (ObjectRef, u64)>,
    types: Types,
}

/// A value that is being hashed.
struct Open {
    hash: u64,
    next: usize,
    inside: Inside,
}

enum Inside {
    Array(Array),
    List(Vec<Any>),
    Entries(std::vec::IntoIter<Entry>),
    Fields(Fields),
}

/// An entry of a map: the hash of its key, and its value unless another key has that hash.
struct Entry(u64, Option<Any>);

struct Fields {
    object: ObjectRef,
    facts: Arc<Facts>,
    /// The region of the fields.
    region: Region,
    /// The region of the object.
    outer: Region,
}

/// A value's hash, or its inner values, which decide it.
enum Start {
    Known(u64),
    Open(Open),
}

/// What a frame does next.
enum Next {
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
            let entered = Region::of_number(region.cast()?)?;
            hashing.0.with(|state| {
                let outer = state.region;
                state.region = outer.inside(entered);
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
        let mut stack = match self.start(hashing, value)? {
            Start::Known(hash) => return Ok(hash),
            Start::Open(frame) => vec![frame],
        };
        let mut ended = None;
        while let Some(frame) = stack.last_mut() {
            match self.step(frame, ended.take())? {
                Next::Done(hash) => {
                    ended = Some(hash);
                    stack.pop();
                }
                Next::Hash(value) => match self.start(hashing, &value)? {
                    Start::Known(hash) => ended = Some(hash),
                    Start::Open(_) if stack.len() >= MAX_DEPTH => return Err(too_deep("StructuralHash")),
                    Start::Open(frame) => stack.push(frame),
                },
            }
        }
        Ok(ended.unwrap_or_default())
    }

    fn start(&mut self, hashing: &Arc<Hashing>, value: &Any) -> Result<Start> {
        if let Some(hash) = at_once(value) {
            return Ok(Start::Known(hash));
        }
        let index = value.type_index();
        let open = |hash, inside| Ok(Start::Open(Open { hash, next: 0, inside }));
        let sized = |len: usize| Ok(combine(key_hash(index)?, len as u64));
        match index {
            TypeIndex::ARRAY => {
                let array: Array = value.cast()?;
                open(sized(array.len())?, Inside::Array(array))
            }
            TypeIndex::LIST => {
                let values = value.cast::<List>()?.to_vec();
                open(sized(values.len())?, Inside::List(values))
            }
            TypeIndex::MAP | TypeIndex::DICT => {
                let entries = entries(value)?;
                open(sized(entries.len())?, Inside::Entries(self.by_hash_of_key(entries).into_iter()))
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
            _ => match object_of(value) {
                Some(object) => self.object(hashing, object),
                None => Ok(Start::Known(combine(0, 0))),
            },
        }
    }

    /// The entries of a map in the order of their keys' hashes. A key without a hash that stands before the walk
    /// reaches it is left out, since its hash would depend on the order of entries.
    fn by_hash_of_key(&self, entries: Vec<(Any, Any)>) -> Vec<Entry> {
        let hash_of = |key: &Any| match object_of(key) {
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

    fn object(&mut self, hashing: &Arc<Hashing>, object: ObjectRef) -> Result<Start> {
        if let Some((_, hash)) = self.done.get(&address(&object)) {
            return Ok(Start::Known(*hash));
        }
        let facts = self.types.of(object.type_index(), b"__s_hash__")?;
        let outer = self.region;
        if facts.kind == Kind::FreeVar {
            self.region = outer.of_variable_fields();
        }
        let Some(hook) = &facts.hook else {
            let (hash, region) = (facts.key_hash, self.region);
            let inside = Inside::Fields(Fields { object, facts, region, outer });
            return Ok(Start::Open(Open { hash, next: 0, inside }));
        };
        let start = facts.key_hash.cast_signed();
        let outcome = hashing.0.lend(self, || hook.call((&object, start, &hashing.inner()))?.cast::<i64>());
        self.region = outer;
        Ok(Start::Known(self.finish(facts.kind, object, outcome?.cast_unsigned())))
    }

    /// The hash of an object, whose fields have the hash `fields`.
    fn finish(&mut self, kind: Kind, object: ObjectRef, fields: u64) -> u64 {
        let address = address(&object);
        let hash = match kind {
            Kind::FreeVar if self.region == Region::None => address as u64,
            Kind::FreeVar => combine(fields, next(&mut self.variables)),
            Kind::Dag => combine(fields, next(&mut self.nodes)),
            Kind::Tree | Kind::ConstTree | Kind::Unique => fields,
        };
        self.done.insert(address, (object, hash));
        hash
    }

    /// Goes on with a frame, whose last inner value had the hash `ended`.
    fn step(&mut self, frame: &mut Open, ended: Option<u64>) -> Result<Next> {
        if let Some(hash) = ended {
            frame.hash = combine(frame.hash, hash);
        }
        match &mut frame.inside {
            Inside::Array(array) => Ok(next_element(&mut frame.hash, array.as_slice(), &mut frame.next)),
            Inside::List(values) => Ok(next_element(&mut frame.hash, values, &mut frame.next)),
            Inside::Entries(rest) => {
                for Entry(key, value) in rest {
                    frame.hash = combine(frame.hash, key);
                    match value.as_ref().map(at_once) {
                        Some(Some(hash)) => frame.hash = combine(frame.hash, hash),
                        Some(None) => return Ok(value.map_or(Next::Done(frame.hash), Next::Hash)),
                        None => {}
                    }
                }
                Ok(Next::Done(frame.hash))
            }
            Inside::Fields(fields) => self.next_field(fields, &mut frame.hash, &mut frame.next),
        }
    }

    fn next_field(&mut self, fields: &Fields, hash: &mut u64, next: &mut usize) -> Result<Next> {
        let Fields { object, facts, region, outer } = fields;
        // SAFETY: the object is of the type of the facts.
        while let Some((value, field)) = unsafe { facts.value(object, *next)? } {
            *next += 1;
            match at_once(&value) {
                Some(known) => *hash = combine(*hash, known),
                None => {
                    self.region = region.inside(field.region);
                    return Ok(Next::Hash(value));
                }
            }
        }
        self.region = *outer;
        Ok(Next::Done(self.finish(facts.kind, object.clone(), *hash)))
    }
}

/// Adds elements to a hash, up to one that has inner values.
fn next_element(hash: &mut u64, values: &[Any], next: &mut usize) -> Next {
    while let Some(value) = values.get(*next) {
        *next += 1;
        match at_once(value) {
            Some(known) => *hash = combine(*hash, known),
            None => return Next::Hash(value.clone()),
        }
    }
    Next::Done(*hash)
}

/// The number of a variable or node, which counts those before it.
fn next(count: &mut u64) -> u64 {
    let number = *count;
    // upstream's counters have 32 bits
    *count = (number + 1) & u64::from(u32::MAX);
    number
}

/// The hash of a value that needs no look inside.
fn at_once(value: &Any) -> Option<u64> {
    if value.type_index() == TypeIndex::FLOAT && f64::from_bits(value.as_raw().bits()).is_nan() {
        return Some(combine(TypeIndex::FLOAT.0 as u64, f64::NAN.to_bits()));
    }
    hash_of_content(value)
}

/// As [`at_once`], but a number that isn't one has the hash of its bits.
fn hash_of_content(value: &Any) -> Option<u64> {
    let index = value.type_index();
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
