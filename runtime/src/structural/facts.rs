//! Cached type information: a comparison or hash looks up each type once.

#![allow(non_upper_case_globals)]

use rustc_hash::FxHashMap;

use super::region;
use crate::abi::*;
use crate::error::{Result, type_error};
use crate::function::Function;
use crate::reflect::field;
use crate::type_info::key_of;
use crate::type_table::{attr_value, fields, key_hash, metadata};

/// How an object of a type takes part in structural equality.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Tree,
    FreeVar,
    /// A shared node of a graph.
    Dag,
    ConstTree,
    /// An object that equals only itself.
    Unique,
}

impl Field {
    /// The region of its value in an object whose fields are in `current`.
    pub(super) fn region_in(&self, current: i32) -> i32 {
        self.region.map_or(current, |kind| region::enter(current, kind))
    }
}

impl Kind {
    /// The region of the fields of an object in a region.
    pub(super) fn region_of_fields(self, outer: i32) -> i32 {
        if self == Self::FreeVar { region::inside(outer, kTVMFFISEqHashKindFreeVar) } else { outer }
    }
}

/// A field that takes part.
pub(super) struct Field {
    pub(super) info: &'static TVMFFIFieldInfo,
    /// The definition region that its value enters.
    pub(super) region: Option<i32>,
}

// SAFETY: the table never frees or changes a registered field, and all threads read it.
unsafe impl Send for Field {}
// SAFETY: as above.
unsafe impl Sync for Field {}

/// Information about a type.
pub(super) struct Facts {
    pub(super) kind: Kind,
    pub(super) key_hash: u64,
    pub(super) fields: Vec<Field>,
    /// The type's own function in place of its fields.
    pub(super) hook: Option<Function>,
}

impl Facts {
    /// # Errors
    /// `TypeError` for a type without a kind of structural equality; `InternalError` for an unknown type.
    fn new(index: TypeIndex, hook: &[u8]) -> Result<Self> {
        let unsupported = |what: &str| {
            let key = key_of(index);
            type_error(&format!("{what} is not set for type `{key}`, so StructuralHash is not supported for this type"))
        };
        let metadata = metadata(index)?.ok_or_else(|| unsupported("Type metadata"))?;
        let kind = match metadata.structural_eq_hash_kind {
            kTVMFFISEqHashKindTreeNode => Kind::Tree,
            kTVMFFISEqHashKindFreeVar => Kind::FreeVar,
            kTVMFFISEqHashKindDAGNode => Kind::Dag,
            kTVMFFISEqHashKindConstTreeNode => Kind::ConstTree,
            kTVMFFISEqHashKindUniqueInstance => Kind::Unique,
            _ => return Err(unsupported("_type_s_eq_hash_kind")),
        };
        let known = structural_fields(index)?;
        Ok(Self {
            kind,
            key_hash: key_hash(index)?,
            fields: known.into_iter().map(|info| Field { info, region: region::of_field(info) }).collect(),
            hook: attr_value(index, hook).map(|hook| hook.cast()).transpose()?,
        })
    }
}

/// The fields of a type that count for its structure.
///
/// # Errors
/// `InternalError` for an unknown type.
pub(super) fn structural_fields(index: TypeIndex) -> Result<Vec<&'static TVMFFIFieldInfo>> {
    let mut fields = fields(index)?;
    fields.retain(|info| !field::has(info, kTVMFFIFieldFlagBitMaskSEqHashIgnore));
    Ok(fields)
}

/// The facts of the types that a walk has met.
#[derive(Default)]
pub(super) struct Types {
    places: FxHashMap<i32, usize>,
    facts: Vec<Facts>,
    /// The type that was asked for last, and its place.
    last: Option<(i32, usize)>,
}

impl Types {
    /// The place of a type's facts. `hook` is the attribute that is the type's own function.
    ///
    /// # Errors
    /// As [`Facts::new`].
    #[inline]
    pub(super) fn place(&mut self, index: TypeIndex, hook: &[u8]) -> Result<usize> {
        match self.last {
            Some((last, place)) if last == index.0 => Ok(place),
            _ => self.find(index, hook),
        }
    }

    fn find(&mut self, index: TypeIndex, hook: &[u8]) -> Result<usize> {
        let place = match self.places.get(&index.0) {
            Some(&place) => place,
            None => {
                self.facts.push(Facts::new(index, hook)?);
                let place = self.facts.len() - 1;
                self.places.insert(index.0, place);
                place
            }
        };
        self.last = Some((index.0, place));
        Ok(place)
    }

    /// The facts at a place.
    #[inline]
    pub(super) fn at(&self, place: usize) -> &Facts {
        &self.facts[place]
    }
}
