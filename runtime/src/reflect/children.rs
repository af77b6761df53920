//! The values inside a value: elements, keys and values, or fields.

use crate::abi::*;
use crate::any::Any;
use crate::container::{Array, Dict, List, Map};
use crate::error::{Error, Result, runtime_error, value_error};
use crate::heap::ObjectRef;
use crate::type_table;

use super::field;

/// The max depth of nested values.
pub(crate) const MAX_DEPTH: usize = 1 << 20;

#[cold]
pub(crate) fn too_deep(what: &str) -> Error {
    value_error(&format!("{what}: maximum stack depth ({MAX_DEPTH}) exceeded"))
}

/// The structure of an object's inner values.
pub(crate) enum Kind {
    Sequence,
    /// Alternating keys and values.
    Mapping,
    Fields(Vec<&'static TVMFFIFieldInfo>),
}

/// The values inside an object.
pub(crate) struct Inside {
    pub(crate) kind: Kind,
    pub(crate) values: Vec<Any>,
}

/// The object in a value; `None` if the value isn't an object, or is NULL.
pub(crate) fn object_of(value: &Any) -> Option<ObjectRef> {
    value.as_view().shared_object()
}

/// The keys and values of a mapping, as pairs.
pub(crate) fn entries(value: &Any) -> Result<Vec<(Any, Any)>> {
    if value.type_index() == TypeIndex::DICT {
        return Ok((&value.cast::<Dict>()?).into_iter().collect());
    }
    Ok((&value.cast::<Map>()?).into_iter().map(|(key, value)| (key.clone(), value.clone())).collect())
}

/// The values inside a value that holds an object. Leaves out fields with one of the flags in `skip`.
///
/// # Errors
/// Any error of a getter; `InternalError` for an object of an unknown type.
pub(crate) fn inside(value: &Any, skip: i64) -> Result<Inside> {
    let sequence = |values| Ok(Inside { kind: Kind::Sequence, values });
    match value.type_index() {
        TypeIndex::ARRAY => sequence(value.cast::<Array>()?.to_vec()),
        TypeIndex::LIST => sequence(value.cast::<List>()?.to_vec()),
        TypeIndex::MAP | TypeIndex::DICT => {
            let values = entries(value)?.into_iter().flat_map(|(key, value)| [key, value]).collect();
            Ok(Inside { kind: Kind::Mapping, values })
        }
        index => {
            let object = object_of(value).ok_or_else(|| runtime_error("no object to look into"))?;
            let mut fields = type_table::fields(index)?;
            fields.retain(|info| !field::has(info, skip));
            // SAFETY: the fields are those of the object's type.
            let values = fields.iter().map(|info| unsafe { field::get(info, &object) }).collect::<Result<_>>()?;
            Ok(Inside { kind: Kind::Fields(fields), values })
        }
    }
}
