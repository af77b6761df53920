//! Structural equality, `ffi.StructuralEqual` and `ffi.GetFirstStructuralMismatch`: containers by their contents,
//! objects by the fields of their type or its function `__s_equal__`, variables by what they are bound to.
//! Deep values don't cause recursion, except through such functions.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::content::{Use, elements, text};
use super::facts::{Kind, Types};
use super::paths::{self, StepKind};
use super::region;
use super::shared::Shared;
use crate::abi::*;
use crate::any::Any;
use crate::big_int;
use crate::container::{Array, Dict, List, Map};
use crate::error::Result;
use crate::function::Function;
use crate::heap::ObjectRef;
use crate::reflect::children::{MAX_DEPTH, entries, too_deep};
use crate::reflect::field;
use crate::registry::with_args;
use crate::shape::Shape;
use crate::string::{Str, raw_str_from_bytes};
use crate::tensor::Tensor;

/// The options of a comparison or hash.
#[derive(Copy, Clone)]
pub(super) struct Options {
    /// Two variables that are defined nowhere may stand for each other.
    pub(super) map_free_vars: bool,
    pub(super) skip_tensor_content: bool,
}

/// True if two values are structurally equal.
///
/// # Errors
/// `TypeError` for objects of a type without a kind of structural equality; `InternalError` for tensors whose elements
/// can't be read; any error of a getter or of a type's own function.
pub(super) fn equal(one: &Any, other: &Any, options: Options) -> Result<bool> {
    if let Some(outcome) = at_once(one, other) {
        return Ok(outcome);
    }
    Arc::new(Comparison(Shared::new(State::new(options)))).compare(one, other)
}

/// The paths to the first difference, in each value; `None` for equal values.
///
/// # Errors
/// As [`equal`].
pub(super) fn first_mismatch(one: &Any, other: &Any, options: Options) -> Result<Option<[ObjectRef; 2]>> {
    let state = State { mismatch: Some([Vec::new(), Vec::new()]), ..State::new(options) };
    let comparison = Arc::new(Comparison(Shared::new(state)));
    if comparison.compare(one, other)? {
        return Ok(None);
    }
    let [one, other] = comparison.0.with(|state| Ok(state.mismatch.take().unwrap_or_default()))?;
    let path = |steps: Vec<ObjectRef>| {
        steps.into_iter().rev().try_fold(paths::root()?, |path, step| paths::extend(&path, step))
    };
    Ok(Some([path(one)?, path(other)?]))
}

struct Comparison(Shared<State>);

#[derive(Default)]
struct State {
    region: i32,
    skip_tensor_content: bool,
    /// The steps to the difference in each value, from the innermost on, if they are asked for.
    mismatch: Option<[Vec<ObjectRef>; 2]>,
    /// Maps each bound object of the first value to its counterpart in the second, and the reverse, by address. The
    /// pairs keep both objects alive, so addresses aren't reused.
    bound: [FxHashMap<usize, [ObjectRef; 2]>; 2],
    types: Types,
}

/// Two values whose inner values are being compared.
enum Open {
    Elements { both: [Elements; 2], next: usize },
    Entries(Entries),
    Fields(Fields),
}

/// Two maps or dicts.
struct Entries {
    maps: [Mapping; 2],
    /// The first one's entries that are not compared yet.
    rest: std::vec::IntoIter<(Any, Any)>,
    /// The keys of the values that are being compared.
    last: Option<[Any; 2]>,
}

/// Two objects of one type.
struct Fields {
    objects: [ObjectRef; 2],
    /// The place of the type's facts.
    ty: usize,
    next: usize,
    /// The region of the objects.
    outer: i32,
}

enum Elements {
    Array(Array),
    List(Vec<Any>),
}

impl Elements {
    fn of(value: &Any) -> Result<Self> {
        Ok(match value.type_index() {
            TypeIndex::LIST => Self::List(value.cast::<List>()?.to_vec()),
            _ => Self::Array(value.cast()?),
        })
    }

    fn as_slice(&self) -> &[Any] {
        match self {
            Self::Array(array) => array.as_slice(),
            Self::List(values) => values,
        }
    }
}

enum Mapping {
    Map(Map),
    Dict(Dict),
}

impl Mapping {
    fn of(value: &Any) -> Result<Self> {
        Ok(match value.type_index() {
            TypeIndex::DICT => Self::Dict(value.cast()?),
            _ => Self::Map(value.cast()?),
        })
    }

    fn len(&self) -> usize {
        match self {
            Self::Map(map) => map.len(),
            Self::Dict(dict) => dict.len(),
        }
    }

    fn keys(&self) -> Vec<Any> {
        match self {
            Self::Map(map) => map.keys().cloned().collect(),
            Self::Dict(dict) => dict.into_iter().map(|(key, _)| key).collect(),
        }
    }

    fn get(&self, key: &Any) -> Result<Option<Any>> {
        match self {
            Self::Map(map) => Ok(map.get(key)?.cloned()),
            Self::Dict(dict) => dict.get(key),
        }
    }
}

/// The outcome for two values, or a frame for the values inside them, with the first two of these if they are at hand.
enum Start {
    Known(bool),
    Open(Open, Option<[Any; 2]>),
}

/// The outcome for two objects, or the values of their next field.
enum Inside {
    Done(bool),
    Compare([Any; 2]),
}

impl Comparison {
    fn compare(self: &Arc<Self>, one: &Any, other: &Any) -> Result<bool> {
        self.0.with(|state| state.run(self, one, other))
    }

    /// The function that a type's `__s_equal__` gets: it compares two inner values, in a definition region or in the
    /// current one, and takes the name of the field that they come from.
    fn inner(self: &Arc<Self>) -> Function {
        let comparison = Arc::clone(self);
        with_args("(AnyView, AnyView, int, AnyView) -> bool", move |[one, other, region, field]| {
            let (one, other) = (one.to_owned()?, other.to_owned()?);
            let kind: i64 = region.cast()?;
            comparison.0.with(|state| {
                let outer = state.region;
                state.region = region::asked(outer, kind)?;
                let outcome = state.run(&comparison, &one, &other);
                state.region = outer;
                let is_equal = outcome?;
                if !is_equal && state.mismatch.is_some() {
                    let name: Str = field.cast()?;
                    state.differ(|| [(StepKind::Attr, name.clone().into()), (StepKind::Attr, name.into())])?;
                }
                Ok(is_equal.into())
            })
        })
    }
}

impl State {
    fn new(options: Options) -> Self {
        let Options { map_free_vars, skip_tensor_content } = options;
        Self { region: region::of_root(map_free_vars), skip_tensor_content, ..Self::default() }
    }

    /// Notes where two values differ, if it is asked for.
    fn differ(&mut self, steps: impl FnOnce() -> [(StepKind, Any); 2]) -> Result<()> {
        if let Some(paths) = &mut self.mismatch {
            for (path, (kind, key)) in paths.iter_mut().zip(steps()) {
                path.push(paths::step(kind, key)?);
            }
        }
        Ok(())
    }

    /// Compares two values, and all values inside them.
    fn run(&mut self, comparison: &Arc<Comparison>, one: &Any, other: &Any) -> Result<bool> {
        let mut stack = Vec::new();
        let mut next = self.start(comparison, one, other)?;
        loop {
            let ended = match next {
                Start::Known(outcome) => Some(outcome),
                Start::Open(..) if stack.len() >= MAX_DEPTH => return Err(too_deep("StructuralEqual")),
                Start::Open(frame, None) => {
                    stack.push(frame);
                    None
                }
                Start::Open(frame, Some([one, other])) => {
                    stack.push(frame);
                    match self.start(comparison, &one, &other)? {
                        Start::Known(outcome) => Some(outcome),
                        open @ Start::Open(..) => {
                            next = open;
                            continue;
                        }
                    }
                }
            };
            let Some(frame) = stack.last_mut() else { return Ok(ended.unwrap_or(true)) };
            next = self.step(comparison, frame, ended)?;
            if let Start::Known(_) = next {
                stack.pop();
            }
        }
    }

    fn start(&mut self, comparison: &Arc<Comparison>, one: &Any, other: &Any) -> Result<Start> {
        if let Some(outcome) = at_once(one, other) {
            return Ok(Start::Known(outcome));
        }
        match one.type_index() {
            TypeIndex::ARRAY | TypeIndex::LIST => {
                let both = [Elements::of(one)?, Elements::of(other)?];
                match both[0].as_slice().len() == both[1].as_slice().len() || self.mismatch.is_some() {
                    true => Ok(Start::Open(Open::Elements { both, next: 0 }, None)),
                    false => Ok(Start::Known(false)),
                }
            }
            TypeIndex::MAP | TypeIndex::DICT => {
                let maps = [Mapping::of(one)?, Mapping::of(other)?];
                if maps[0].len() != maps[1].len() && self.mismatch.is_none() {
                    return Ok(Start::Known(false));
                }
                let entries = Entries { rest: entries(one)?.into_iter(), maps, last: None };
                Ok(Start::Open(Open::Entries(entries), None))
            }
            TypeIndex::SHAPE => {
                let (one, other): (Shape, Shape) = (one.cast()?, other.cast()?);
                Ok(Start::Known(one.as_slice() == other.as_slice()))
            }
            TypeIndex::TENSOR => self.tensors(&one.cast()?, &other.cast()?).map(Start::Known),
            _ => match (one.as_view().borrowed_object(), other.as_view().borrowed_object()) {
                (Some(one), Some(other)) => self.objects(comparison, [&one, &other]),
                (one, other) => Ok(Start::Known(one.is_none() && other.is_none())),
            },
        }
    }

    fn tensors(&self, one: &Tensor, other: &Tensor) -> Result<bool> {
        if std::ptr::eq(one.as_dl_tensor(), other.as_dl_tensor()) {
            return Ok(true);
        }
        if one.shape() != other.shape() || one.dtype() != other.dtype() {
            return Ok(false);
        }
        Ok(self.skip_tensor_content || elements(one, "lhs", Use::Compare)? == elements(other, "rhs", Use::Compare)?)
    }

    /// Starts to compare two objects of the same type. Those whose fields need no look inside get no frame.
    fn objects(&mut self, comparison: &Arc<Comparison>, objects: [&ObjectRef; 2]) -> Result<Start> {
        let [one, other] = objects;
        let ty = self.types.place(one.type_index(), b"__s_equal__")?;
        let facts = self.types.at(ty);
        match facts.kind {
            Kind::Unique => return Ok(Start::Known(one.ptr_eq(other))),
            Kind::ConstTree if one.ptr_eq(other) => return Ok(Start::Known(true)),
            Kind::Dag | Kind::FreeVar => {
                if let Some([_, bound]) = self.bound[0].get(&address(one)) {
                    return Ok(Start::Known(bound.ptr_eq(other)));
                }
                if self.bound[1].contains_key(&address(other)) {
                    return Ok(Start::Known(false));
                }
            }
            Kind::Tree | Kind::ConstTree => {}
        }
        let (kind, outer) = (facts.kind, self.region);
        if let Some(hook) = facts.hook.clone() {
            self.region = kind.region_of_fields(outer);
            let outcome = comparison.0.lend(self, || hook.call((one, other, &comparison.inner()))?.cast::<bool>());
            self.region = outer;
            return Ok(Start::Known(outcome? && self.bind(kind, objects)));
        }
        let mut next = 0;
        Ok(match self.next_fields(ty, objects, outer, &mut next, None)? {
            Inside::Done(outcome) => Start::Known(outcome),
            Inside::Compare(inside) => {
                let objects = objects.map(ObjectRef::clone);
                Start::Open(Open::Fields(Fields { objects, ty, next, outer }), Some(inside))
            }
        })
    }

    /// Binds two objects to each other if their kind asks for it. False for variables that can't be bound here.
    fn bind(&mut self, kind: Kind, [one, other]: [&ObjectRef; 2]) -> bool {
        match kind {
            Kind::FreeVar if !one.ptr_eq(other) && self.region == kTVMFFIDefRegionKindNone => return false,
            Kind::FreeVar | Kind::Dag => {}
            Kind::Tree | Kind::ConstTree | Kind::Unique => return true,
        }
        self.bound[0].insert(address(one), [one.clone(), other.clone()]);
        self.bound[1].insert(address(other), [other.clone(), one.clone()]);
        true
    }

    /// The key in the other value that corresponds to a key of the value `side`.
    fn key_in_other(&self, side: usize, key: &Any) -> Any {
        match key.as_view().borrowed_object().and_then(|object| self.bound[side].get(&address(&object))) {
            Some([_, bound]) => bound.clone().into(),
            None => key.clone(),
        }
    }

    /// Goes on with a frame, whose last inner values had the outcome `ended`: its own outcome, or the next frame.
    fn step(&mut self, comparison: &Arc<Comparison>, frame: &mut Open, ended: Option<bool>) -> Result<Start> {
        match frame {
            Open::Elements { both, next } => self.next_elements(comparison, both, next, ended),
            Open::Entries(entries) => self.next_entries(comparison, entries, ended),
            Open::Fields(Fields { objects: [one, other], ty, next, outer }) => {
                let mut ended = ended;
                loop {
                    match self.next_fields(*ty, [one, other], *outer, next, ended)? {
                        Inside::Done(outcome) => return Ok(Start::Known(outcome)),
                        Inside::Compare([first, second]) => match self.start(comparison, &first, &second)? {
                            Start::Known(outcome) => ended = Some(outcome),
                            open @ Start::Open(..) => return Ok(open),
                        },
                    }
                }
            }
        }
    }

    fn next_elements(
        &mut self,
        comparison: &Arc<Comparison>,
        both: &[Elements; 2],
        next: &mut usize,
        mut ended: Option<bool>,
    ) -> Result<Start> {
        let [one, other] = [both[0].as_slice(), both[1].as_slice()];
        loop {
            if ended == Some(false) {
                let index: Any = (*next - 1).into();
                self.differ(|| [(StepKind::ArrayItem, index.clone()), (StepKind::ArrayItem, index)])?;
                return Ok(Start::Known(false));
            }
            let (Some(first), Some(second)) = (one.get(*next), other.get(*next)) else { break };
            *next += 1;
            match self.start(comparison, first, second)? {
                Start::Known(outcome) => ended = Some(outcome),
                open @ Start::Open(..) => return Ok(open),
            }
        }
        if one.len() == other.len() {
            return Ok(Start::Known(true));
        }
        let index: Any = one.len().min(other.len()).into();
        let (there, missing) = ((StepKind::ArrayItem, index.clone()), (StepKind::ArrayItemMissing, index));
        self.differ(|| if one.len() > other.len() { [there, missing] } else { [missing, there] })?;
        Ok(Start::Known(false))
    }

    fn next_entries(
        &mut self,
        comparison: &Arc<Comparison>,
        entries: &mut Entries,
        mut ended: Option<bool>,
    ) -> Result<Start> {
        loop {
            let keys = entries.last.take();
            if let (Some(false), Some([one, other])) = (ended, keys) {
                self.differ(|| [(StepKind::MapItem, one), (StepKind::MapItem, other)])?;
                return Ok(Start::Known(false));
            }
            let Some((key, value)) = entries.rest.next() else { break };
            let other_key = self.key_in_other(0, &key);
            let Some(found) = entries.maps[1].get(&other_key)? else {
                self.differ(|| [(StepKind::MapItem, key), (StepKind::MapItemMissing, other_key)])?;
                return Ok(Start::Known(false));
            };
            entries.last = Some([key, other_key]);
            match self.start(comparison, &value, &found)? {
                Start::Known(outcome) => ended = Some(outcome),
                open @ Start::Open(..) => return Ok(open),
            }
        }
        let [one, other] = &entries.maps;
        if one.len() == other.len() {
            return Ok(Start::Known(true));
        }
        for key in other.keys() {
            let own_key = self.key_in_other(1, &key);
            if one.get(&own_key)?.is_none() {
                self.differ(|| [(StepKind::MapItemMissing, own_key), (StepKind::MapItem, key)])?;
                break;
            }
        }
        Ok(Start::Known(false))
    }

    /// Goes on with the fields of two objects, up to the next that need a look inside.
    fn next_fields(
        &mut self,
        ty: usize,
        objects: [&ObjectRef; 2],
        outer: i32,
        next: &mut usize,
        ended: Option<bool>,
    ) -> Result<Inside> {
        let facts = self.types.at(ty);
        let (kind, mut differs) = (facts.kind, ended == Some(false));
        while !differs {
            let Some(field) = facts.fields.get(*next) else {
                self.region = outer;
                return Ok(Inside::Done(self.bind(kind, objects)));
            };
            *next += 1;
            // SAFETY: both objects are of the type of the facts.
            let (first, second) = unsafe { (field::get(field.info, objects[0])?, field::get(field.info, objects[1])?) };
            match at_once(&first, &second) {
                Some(is_equal) => differs = !is_equal,
                None => {
                    self.region = field.region_in(kind.region_of_fields(outer));
                    return Ok(Inside::Compare([first, second]));
                }
            }
        }
        self.region = outer;
        let name = facts.fields.get(*next - 1).map(|field| field::name(field.info)).unwrap_or_default();
        // SAFETY: the values are new ones.
        let key = || unsafe { Any::from_raw(raw_str_from_bytes(name)) };
        self.differ(|| [(StepKind::Attr, key()), (StepKind::Attr, key())])?;
        Ok(Inside::Done(false))
    }
}

/// The outcome for two values that need no look inside; `None` for containers, shapes, tensors and other objects.
#[inline]
fn at_once(one: &Any, other: &Any) -> Option<bool> {
    let (index, raw, other_raw) = (one.type_index(), one.as_raw(), other.as_raw());
    if index != other.type_index() {
        return Some(same_text(one, other));
    }
    match index {
        TypeIndex::FLOAT if f64::from_bits(raw.bits()).is_nan() => Some(f64::from_bits(other_raw.bits()).is_nan()),
        index if index < TypeIndex::OBJECT => {
            Some(raw.zero_padding == other_raw.zero_padding && raw.bits() == other_raw.bits())
        }
        TypeIndex::STR | TypeIndex::BYTES => Some(text(one) == text(other)),
        // SAFETY: the values are alive.
        TypeIndex::BIG_INT => Some(unsafe { big_int::content_of(raw) == big_int::content_of(other_raw) }),
        _ => None,
    }
}

/// True for a small string and the same string on the heap, and for bytes alike.
fn same_text(one: &Any, other: &Any) -> bool {
    let kind = |value: &Any| match value.type_index() {
        TypeIndex::SMALL_STR | TypeIndex::STR => Some(TypeIndex::STR),
        TypeIndex::SMALL_BYTES | TypeIndex::BYTES => Some(TypeIndex::BYTES),
        _ => None,
    };
    kind(one).is_some_and(|text| kind(other) == Some(text)) && text(one) == text(other)
}

fn address(object: &ObjectRef) -> usize {
    object.as_ptr().addr()
}
