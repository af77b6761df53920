//! What a walk needs to know of a type, looked up once for each type and walk.

#![allow(non_upper_case_globals)]

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::region::Region;
use crate::abi::*;
use crate::any::Any;
use crate::error::{Result, type_error};
use crate::function::Function;
use crate::heap::ObjectRef;
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

/// A field that takes part.
pub(super) struct Field {
    pub(super) info: &'static TVMFFIFieldInfo,
    /// The definition region that its value enters.
    pub(super) region: Option<Region>,
}

// SAFETY: the table never frees or changes a registered field, and all threads read it.
unsafe impl Send for Field {}
// SAFETY: as above.
unsafe impl Sync for Field {}

/// What a walk needs to know of a type.
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
        let mut known = fields(index)?;
        known.retain(|info| !field::has(info, kTVMFFIFieldFlagBitMaskSEqHashIgnore));
        Ok(Self {
            kind,
            key_hash: key_hash(index)?,
            fields: known.into_iter().map(|info| Field { info, region: Region::of_field(info) }).collect(),
            hook: attr_value(index, hook).map(|hook| hook.cast()).transpose()?,
        })
    }

    /// The value of the field at `place`; `None` after the last.
    ///
    /// # Errors
    /// Any error of the getter.
    ///
    /// # Safety
    /// The object must be of this type.
    pub(super) unsafe fn value(&self, object: &ObjectRef, place: usize) -> Result<Option<(Any, &Field)>> {
        let Some(field) = self.fields.get(place) else { return Ok(None) };
        // SAFETY: the field is one of the object's type.
        Ok(Some((unsafe { field::get(field.info, object) }?, field)))
    }
}

/// The facts of the types that a walk has met.
#[derive(Default)]
pub(super) struct Types(FxHashMap<i32, Arc<Facts>>);

impl Types {
    /// The facts of a type, whose own function is the attribute `hook`.
    ///
    /// # Errors
    /// As [`Facts::new`].
    pub(super) fn of(&mut self, index: TypeIndex, hook: &[u8]) -> Result<Arc<Facts>> {
        if let Some(facts) = self.0.get(&index.0) {
            return Ok(Arc::clone(facts));
        }
        let facts = Arc::new(Facts::new(index, hook)?);
        self.0.insert(index.0, Arc::clone(&facts));
        Ok(facts)
    }
}
