//! The context of errors in walks: the objects on the way from the error to the root.
//! Header section: upstream's `extra/visit_error_context.h`.

use crate::abi::TypeIndex;
use crate::any::{Any, AnyView};
use crate::container::List;
use crate::error::{Error, Result, runtime_error};
use crate::heap::ObjectRef;
use crate::reflect::builtin::{Builtin, create, define, object_of, stored};
use crate::reflect::field;
use crate::type_table::{Definition, fields};

pub(super) struct Context;

impl Builtin for Context {
    const KEY: &'static str = "ffi.VisitErrorContext";
    const SIZE: usize = 40;

    fn initial() -> Vec<(&'static str, Any)> {
        vec![(PATTERN, <List>::default().into())]
    }
}

/// The field with the objects, from the innermost one on.
const PATTERN: &str = "reverse_visit_pattern";
/// The field with the context that the error had before.
const BEFORE: &str = "prev_error_context";

pub(super) fn definition() -> Definition {
    let objects = r#"{"type_schema":"{\"type\":\"ffi.List\",\"args\":[{\"type\":\"ffi.Object\"}]}"}"#;
    let optional = r#"{"type_schema":"{\"type\":\"Optional\",\"args\":[{\"type\":\"ffi.Object\"}]}"}"#;
    define::<Context>("ffi.Object", true)
        .field(stored::<Option<List>>(PATTERN, "", objects, 24, TypeIndex::LIST).info())
        .field(stored::<Option<ObjectRef>>(BEFORE, "", optional, 32, TypeIndex::ANY).info())
}

/// The objects in a context, from the innermost one on.
///
/// # Errors
/// `TypeError` for any other object.
pub(super) fn pattern(context: &AnyView<'_>) -> Result<List> {
    let context = object_of::<Context>(context)?;
    let info = fields(context.type_index())?.into_iter().find(|info| field::name(info) == PATTERN.as_bytes());
    let info = info.ok_or_else(|| runtime_error("a context without a pattern"))?;
    // SAFETY: the field is one of the object's type.
    unsafe { field::get(info, &context) }?.cast()
}

/// Adds a value to an error's context on the way out. Only objects have a place there.
pub(super) fn annotated(error: Error, node: &AnyView<'_>) -> Error {
    match node.shared_object() {
        Some(object) => with_objects(error, vec![object]),
        None => error,
    }
}

/// As [`annotated`], for many values, from the innermost one on.
#[cold]
pub(super) fn with_objects(mut error: Error, objects: Vec<ObjectRef>) -> Error {
    if objects.is_empty() {
        return error;
    }
    let before = error.extra_context();
    if let Some(Ok(pattern)) = before.clone().map(|context| pattern(&Any::from(context).as_view())) {
        pattern.extend(objects);
        return error;
    }
    let mut values = vec![(PATTERN, objects.into_iter().collect::<List>().into())];
    values.extend(before.map(|before| (BEFORE, before.into())));
    // A table that lost the type leaves the error unchanged.
    if let Ok(context) = create::<Context>(values) {
        error.attach_context(context);
    }
    error
}
