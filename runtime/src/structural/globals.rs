//! The global functions of structures.

use super::equal::{Options, equal, first_mismatch};
use super::graph::{from_json, to_json};
use super::hash::hash;
use super::key;
use crate::any::{Any, AnyView};
use crate::container::Array;
use crate::error::Result;
use crate::reflect::json::{parse, stringify};
use crate::registry::Globals;

/// The global functions of structures.
pub(crate) fn globals(globals: &mut Globals) {
    globals.fixed("ffi.StructuralEqual", |[one, other, map_free_vars, skip_tensor_content]| {
        equal(&one.to_owned()?, &other.to_owned()?, options(map_free_vars, skip_tensor_content)?).map(Any::from)
    });
    globals.fixed("ffi.GetFirstStructuralMismatch", |[one, other, map_free_vars, skip_tensor_content]| {
        let options = options(map_free_vars, skip_tensor_content)?;
        let paths = first_mismatch(&one.to_owned()?, &other.to_owned()?, options)?;
        Ok(paths.map_or_else(Any::none, |paths| paths.into_iter().collect::<Array>().into()))
    });
    globals.fixed("ffi.StructuralHash", |[value, map_free_vars, skip_tensor_content]| {
        let hash = hash(&value.to_owned()?, options(map_free_vars, skip_tensor_content)?)?;
        Ok(hash.cast_signed().into())
    });
    globals.fixed("ffi.StructuralKey", |[value]| key::new(value.to_owned()?).map(Any::from));
    globals.fixed("ffi.StructuralKeyEqual", |[one, other]| key::keys_equal(one, other).map(Any::from));
    globals.fixed("ffi.ToJSONGraph", |[value, metadata]| to_json(&value.to_owned()?, &metadata.to_owned()?));
    globals.fixed("ffi.ToJSONGraphString", |[value, metadata]| {
        stringify(&to_json(&value.to_owned()?, &metadata.to_owned()?)?, 0)
    });
    globals.fixed("ffi.FromJSONGraph", |[graph]| from_json(&graph.to_owned()?));
    globals.fixed("ffi.FromJSONGraphString", |[text]| from_json(&parse(text)?));
}

fn options(map_free_vars: &AnyView<'_>, skip_tensor_content: &AnyView<'_>) -> Result<Options> {
    Ok(Options { map_free_vars: map_free_vars.cast()?, skip_tensor_content: skip_tensor_content.cast()? })
}
