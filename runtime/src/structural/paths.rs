//! Access paths: the steps from a value to one inside it. A path has its parent path and its last step, so paths that
//! begin alike share their beginning. C++ code makes and reads such objects in place.
//! Header section: upstream's `reflection/access_path.h`.

use crate::abi::*;
use crate::any::{Any, AnyView};
use crate::container::Array;
use crate::equality::Key;
use crate::error::{Result, value_error};
use crate::function::Function;
use crate::heap::ObjectRef;
use crate::reflect::accessors::Stored;
use crate::reflect::builtin::{ANY, Builtin, INT, create, define, object_of, stored};
use crate::reflect::field;
use crate::registry::{built_in, metadata_of};
use crate::string::{Str, raw_str_from_bytes};
use crate::type_table::{Definition, FieldDef};

struct Step;

impl Builtin for Step {
    const KEY: &'static str = "ffi.reflection.AccessStep";
    const SIZE: usize = 48;
}

struct Path;

impl Builtin for Path {
    const KEY: &'static str = "ffi.reflection.AccessPath";
    const SIZE: usize = 48;
}

/// The kind of a step, with the numbers of upstream's `AccessKind`.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum StepKind {
    Attr = 0,
    ArrayItem = 1,
    MapItem = 2,
    AttrMissing = 3,
    ArrayItemMissing = 4,
    MapItemMissing = 5,
}

/// A step to the field, element or entry `key`.
///
/// # Errors
/// `RuntimeError` if the type is gone from the table.
pub(super) fn step(kind: StepKind, key: impl Into<Any>) -> Result<ObjectRef> {
    create::<Step>(vec![("kind", (kind as i32).into()), ("key", key.into())])
}

/// The path without steps.
///
/// # Errors
/// As [`step`].
pub(super) fn root() -> Result<ObjectRef> {
    create::<Path>(Vec::new())
}

/// A path with one more step.
///
/// # Errors
/// As [`step`].
pub(super) fn extend(path: &ObjectRef, step: ObjectRef) -> Result<ObjectRef> {
    let depth = depth(path)?.saturating_add(1);
    create::<Path>(vec![("parent", path.clone().into()), ("step", step.into()), ("depth", depth.into())])
}

fn plain<S: Stored>(name: &'static str, schema: &'static str, offset: usize, index: TypeIndex) -> TVMFFIFieldInfo {
    let field: FieldDef = stored::<S>(name, "", schema, offset, index);
    field.info()
}

/// The types of access paths.
pub(super) fn types() -> Vec<Definition> {
    let parent = r#"{"type_schema":"{\"type\":\"Optional\",\"args\":[{\"type\":\"ffi.Object\"}]}"}"#;
    let step = r#"{"type_schema":"{\"type\":\"Optional\",\"args\":[{\"type\":\"ffi.reflection.AccessStep\"}]}"}"#;
    vec![
        define::<Step>("ffi.Object", true)
            .kind(kTVMFFISEqHashKindConstTreeNode)
            .field(plain::<i32>("kind", INT, 24, TypeIndex::INT))
            .field(plain::<Any>("key", ANY, 32, TypeIndex::ANY))
            .attribute("__ffi_repr__", Function::built_in(|args| text(args, write_step))),
        methods(
            define::<Path>("ffi.Object", true)
                .kind(kTVMFFISEqHashKindConstTreeNode)
                .field(plain::<Option<ObjectRef>>("parent", parent, 24, TypeIndex::ANY))
                .field(plain::<Option<ObjectRef>>("step", step, 32, TypeIndex::ANY))
                .field(plain::<i32>("depth", INT, 40, TypeIndex::INT))
                .attribute("__ffi_repr__", Function::built_in(|args| text(args, write_path))),
        ),
    ]
}

/// Adds a method of paths. `signature` begins with the type's key and the method's name.
fn method<const N: usize>(
    path: Definition,
    signature: &'static str,
    body: fn(&[AnyView<'_>; N]) -> Result<Any>,
) -> Definition {
    let name = signature.split('(').next().and_then(|full| full.rsplit('.').next()).unwrap_or(signature);
    let flags = if N == 0 { kTVMFFIFieldFlagBitMaskIsStaticMethod } else { 0 };
    path.method(name, "", metadata_of(signature), flags, built_in(signature, body).into())
}

fn methods(path: Definition) -> Definition {
    let path =
        method(path, "ffi.reflection.AccessPath._root() -> ffi.reflection.AccessPath", |[]| root().map(Any::from));
    let path = method(
        path,
        "ffi.reflection.AccessPath._extend(ffi.reflection.AccessPath, ffi.reflection.AccessStep) -> \
         ffi.reflection.AccessPath",
        |[path, step]| extend(&object_of::<Path>(path)?, object_of::<Step>(step)?).map(Any::from),
    );
    let path = method(
        path,
        "ffi.reflection.AccessPath._attr(ffi.reflection.AccessPath, str) -> ffi.reflection.AccessPath",
        |[path, name]| with_step(path, StepKind::Attr, name.cast::<Str>()?),
    );
    let path = method(
        path,
        "ffi.reflection.AccessPath._array_item(ffi.reflection.AccessPath, int) -> ffi.reflection.AccessPath",
        |[path, index]| with_step(path, StepKind::ArrayItem, index.cast::<i64>()?),
    );
    let path = method(
        path,
        "ffi.reflection.AccessPath._map_item(ffi.reflection.AccessPath, Any) -> ffi.reflection.AccessPath",
        |[path, key]| with_step(path, StepKind::MapItem, key.to_owned()?),
    );
    let path = method(
        path,
        "ffi.reflection.AccessPath._attr_missing(ffi.reflection.AccessPath, str) -> ffi.reflection.AccessPath",
        |[path, name]| with_step(path, StepKind::AttrMissing, name.cast::<Str>()?),
    );
    let path = method(
        path,
        "ffi.reflection.AccessPath._array_item_missing(ffi.reflection.AccessPath, int) -> ffi.reflection.AccessPath",
        |[path, index]| with_step(path, StepKind::ArrayItemMissing, index.cast::<i64>()?),
    );
    let path = method(
        path,
        "ffi.reflection.AccessPath._map_item_missing(ffi.reflection.AccessPath, Any) -> ffi.reflection.AccessPath",
        |[path, key]| with_step(path, StepKind::MapItemMissing, key.to_owned()?),
    );
    let path = method(
        path,
        "ffi.reflection.AccessPath._is_prefix_of(ffi.reflection.AccessPath, ffi.reflection.AccessPath) -> bool",
        |[path, other]| is_prefix_of(&object_of::<Path>(path)?, object_of::<Path>(other)?).map(Any::from),
    );
    let path = method(
        path,
        "ffi.reflection.AccessPath._to_steps(ffi.reflection.AccessPath) -> Array<ffi.reflection.AccessStep>",
        |[path]| Ok(steps(&object_of::<Path>(path)?)?.into_iter().collect::<Array>().into()),
    );
    method(
        path,
        "ffi.reflection.AccessPath._path_equal(ffi.reflection.AccessPath, ffi.reflection.AccessPath) -> bool",
        |[path, other]| equal(object_of::<Path>(path)?, object_of::<Path>(other)?).map(Any::from),
    )
}

fn with_step(path: &AnyView<'_>, kind: StepKind, key: impl Into<Any>) -> Result<Any> {
    extend(&object_of::<Path>(path)?, step(kind, key)?).map(Any::from)
}

/// The value of a field of a path or step.
fn value_of(object: &ObjectRef, name: &str) -> Result<Any> {
    let missing = || value_error(&format!("`{}` has no field `{name}`", object.type_key()));
    field::named(object, name.as_bytes())?.ok_or_else(missing)
}

fn depth(path: &ObjectRef) -> Result<i32> {
    value_of(path, "depth")?.cast()
}

/// The path before the last step, and that step; `None` for the root.
fn last(path: &ObjectRef) -> Result<Option<(ObjectRef, ObjectRef)>> {
    let Some(parent) = value_of(path, "parent")?.cast::<Option<ObjectRef>>()? else { return Ok(None) };
    Ok(Some((parent, value_of(path, "step")?.cast()?)))
}

/// The steps of a path, from its root.
fn steps(path: &ObjectRef) -> Result<Vec<ObjectRef>> {
    let mut steps = Vec::new();
    let mut place = path.clone();
    while let Some((parent, step)) = last(&place)? {
        steps.push(step);
        place = parent;
    }
    steps.reverse();
    Ok(steps)
}

fn equal(mut one: ObjectRef, mut other: ObjectRef) -> Result<bool> {
    if depth(&one)? != depth(&other)? {
        return Ok(false);
    }
    while !one.ptr_eq(&other) {
        match (last(&one)?, last(&other)?) {
            (None, None) => return Ok(true),
            (Some((parent, step)), Some((other_parent, other_step))) if same_step(&step, &other_step)? => {
                (one, other) = (parent, other_parent);
            }
            _ => return Ok(false),
        }
    }
    Ok(true)
}

fn same_step(one: &ObjectRef, other: &ObjectRef) -> Result<bool> {
    let kind = |step| value_of(step, "kind")?.cast::<i64>();
    Ok(kind(one)? == kind(other)? && Key::from(&value_of(one, "key")?).equals(&value_of(other, "key")?)?)
}

fn is_prefix_of(path: &ObjectRef, mut other: ObjectRef) -> Result<bool> {
    let wanted = depth(path)?;
    while depth(&other)? > wanted {
        let Some((parent, _)) = last(&other)? else { return Ok(false) };
        other = parent;
    }
    equal(path.clone(), other)
}

/// Writes the string form of an object, given a function that returns the string form of any value.
type Write = fn(&ObjectRef, &Function, &mut Vec<u8>) -> Result<()>;

/// The attribute `__ffi_repr__`. Its arguments are an object, and a function that returns the string form of any value.
fn text(args: &[AnyView<'_>], write: Write) -> Result<Any> {
    let [object, print] = args else {
        return Err(value_error("a text is made of an object and a function"));
    };
    let mut out = Vec::new();
    write(&object.cast()?, &print.cast()?, &mut out)?;
    // SAFETY: the value is a new one.
    Ok(unsafe { Any::from_raw(raw_str_from_bytes(&out)) })
}

fn write_step(step: &ObjectRef, print: &Function, out: &mut Vec<u8>) -> Result<()> {
    let (kind, key): (i64, Any) = (value_of(step, "kind")?.cast()?, value_of(step, "key")?);
    let printed = || print.call((&key,))?.cast::<Str>();
    let (before, text, after) = match kind {
        0 => (".", key.cast::<Str>()?, ""),
        1 => ("[", Str::new(&key.cast::<i64>()?.to_string()), "]"),
        2 => ("[", printed()?, "]"),
        3 | 5 => ("[<missing:", printed()?, ">]"),
        4 => ("[<missing:", Str::new(&key.cast::<i64>()?.to_string()), ">]"),
        _ => return Err(value_error(&format!("no such kind of step: {kind}"))),
    };
    [before.as_bytes(), text.as_bytes(), after.as_bytes()].iter().for_each(|part| out.extend_from_slice(part));
    Ok(())
}

fn write_path(path: &ObjectRef, print: &Function, out: &mut Vec<u8>) -> Result<()> {
    out.extend_from_slice(b"<root>");
    for step in steps(path)? {
        out.extend_from_slice(print.call((&step,))?.cast::<Str>()?.as_bytes());
    }
    Ok(())
}
