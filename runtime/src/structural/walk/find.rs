//! The paths to the place of an error: `ffi.VisitErrorContext.FindAccessPaths`.
//! Rules: upstream's `VisitErrorAccessPathFinder`.

use super::super::paths::{StepKind, extend, root, step};
use crate::abi::*;
use crate::any::Any;
use crate::container::{Array, List};
use crate::error::Result;
use crate::heap::ObjectRef;
use crate::reflect::children::{MAX_DEPTH, entries, object_of, too_deep};
use crate::reflect::field;
use crate::string::raw_str_from_bytes;
use crate::type_table::{fields, metadata};

/// The paths from an object to the innermost object of a pattern, which has the objects on the way from there.
/// With `with_prefixes`, also the paths that follow only the outer part of the pattern, where they end.
///
/// # Errors
/// Any error of a getter; `ValueError` for values that are nested too deeply, such as a list that contains itself.
pub(super) fn paths(start: Option<ObjectRef>, pattern: &List, with_prefixes: bool) -> Result<Array> {
    let mut records: Vec<ObjectRef> = Vec::new();
    for object in pattern.to_vec().iter().filter_map(object_of) {
        if records.last().is_none_or(|last| !last.ptr_eq(&object)) {
            records.push(object);
        }
    }
    let mut finder =
        Finder { records, matched: 0, with_prefixes, steps: Vec::new(), known: Vec::new(), found: Vec::new() };
    if let Some(start) = start {
        finder.run(start)?;
    }
    Ok(finder.found.into_iter().collect())
}

struct Finder {
    /// The pattern, without repetitions.
    records: Vec<ObjectRef>,
    /// Number of records that the current place has passed, from the outermost one on.
    matched: usize,
    with_prefixes: bool,
    /// The steps to the current place.
    steps: Vec<Step>,
    /// The paths of the first steps, as far as they were needed.
    known: Vec<ObjectRef>,
    found: Vec<ObjectRef>,
}

enum Step {
    Field(&'static TVMFFIFieldInfo),
    Element(usize),
    Entry(Any),
}

/// A value whose inner values are being searched.
struct Level {
    inside: std::vec::IntoIter<(Step, Any)>,
    /// The object, if the value is one with fields. Its fields are read one by one.
    object: Option<ObjectRef>,
    is_match: bool,
    /// Number of paths when the level was opened.
    found_before: usize,
}

impl Finder {
    fn run(&mut self, start: ObjectRef) -> Result<()> {
        let mut stack: Vec<Level> = self.enter_object(start)?.into_iter().collect();
        while let Some(level) = stack.last_mut() {
            let Some((step, value)) = level.inside.next() else {
                if let Some(level) = stack.pop() {
                    self.leave(&level)?;
                }
                if !stack.is_empty() {
                    self.step_back();
                }
                continue;
            };
            let value = match (&step, &level.object) {
                // SAFETY: the field is one of the object's type.
                (Step::Field(info), Some(object)) => unsafe { field::get(info, object)? },
                _ => value,
            };
            self.steps.push(step);
            match self.enter(&value)? {
                None => self.step_back(),
                Some(_) if stack.len() >= MAX_DEPTH => return Err(too_deep("FindAccessPaths")),
                Some(level) => stack.push(level),
            }
        }
        Ok(())
    }

    fn step_back(&mut self) {
        self.steps.pop();
        self.known.truncate(self.steps.len());
    }

    /// Opens the value at the current place, if it has inner values to search.
    fn enter(&mut self, value: &Any) -> Result<Option<Level>> {
        let elements = |values: Vec<Any>| values.into_iter().enumerate().map(|(i, value)| (Step::Element(i), value));
        let inside: Vec<(Step, Any)> = match value.type_index() {
            TypeIndex::ARRAY => elements(value.cast::<Array>()?.to_vec()).collect(),
            TypeIndex::LIST => elements(value.cast::<List>()?.to_vec()).collect(),
            TypeIndex::MAP | TypeIndex::DICT => {
                let keyed = entries(value)?.into_iter().filter(|(key, _)| !key.is_none());
                keyed.map(|(key, value)| (Step::Entry(key), value)).collect()
            }
            _ => {
                return match object_of(value) {
                    Some(object) => self.enter_object(object),
                    None => Ok(None),
                };
            }
        };
        Ok(Some(Level { inside: inside.into_iter(), object: None, is_match: false, found_before: 0 }))
    }

    /// Opens an object with fields, unless the pattern ends there.
    fn enter_object(&mut self, object: ObjectRef) -> Result<Option<Level>> {
        let index = object.type_index();
        if metadata(index)?.is_none() {
            return Ok(None);
        }
        let outermost_first = self.records.iter().rev();
        let is_match = outermost_first.clone().nth(self.matched).is_some_and(|record| record.ptr_eq(&object));
        if is_match && self.matched + 1 == self.records.len() {
            self.add()?;
            return Ok(None);
        }
        self.matched += usize::from(is_match);
        let inside: Vec<(Step, Any)> =
            fields(index)?.into_iter().map(|info| (Step::Field(info), Any::none())).collect();
        let found_before = self.found.len();
        Ok(Some(Level { inside: inside.into_iter(), object: Some(object), is_match, found_before }))
    }

    /// Leaves a level. The path to an object with a part of the pattern is a result if nothing inside is one.
    fn leave(&mut self, level: &Level) -> Result<()> {
        let is_prefix = self.with_prefixes
            && level.object.is_some()
            && (1..self.records.len()).contains(&self.matched)
            && self.found.len() == level.found_before;
        if is_prefix && !self.steps.is_empty() {
            self.add()?;
        }
        self.matched -= usize::from(level.is_match);
        Ok(())
    }

    /// Adds the path to the current place to the results. Paths that begin alike share their beginning.
    fn add(&mut self) -> Result<()> {
        for place in self.known.len()..self.steps.len() {
            let parent = match place.checked_sub(1) {
                Some(last) => self.known[last].clone(),
                None => root()?,
            };
            let step = match &self.steps[place] {
                Step::Field(info) => {
                    // SAFETY: the value is a new one.
                    let name = unsafe { Any::from_raw(raw_str_from_bytes(field::name(info))) };
                    step(StepKind::Attr, name)
                }
                Step::Element(index) => step(StepKind::ArrayItem, *index as i64),
                Step::Entry(key) => step(StepKind::MapItem, key.clone()),
            };
            self.known.push(extend(&parent, step?)?);
        }
        let path = match self.known.last() {
            Some(path) => path.clone(),
            None => root()?,
        };
        self.found.push(path);
        Ok(())
    }
}
