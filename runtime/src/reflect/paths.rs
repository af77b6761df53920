//! Access paths: the steps from a value to one inside it. This file has their types, fields and string forms; C++ code
//! makes the objects.
//! Header section: upstream's `reflection/access_path.h`.

use super::accessors::Stored;
use super::builtin::{ANY, Builtin, INT, define, stored};
use super::field;
use crate::abi::*;
use crate::any::{Any, AnyView};
use crate::error::{Result, value_error};
use crate::function::Function;
use crate::heap::ObjectRef;
use crate::string::{Str, raw_str_from_bytes};
use crate::type_table::{Definition, FieldDef, fields};

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
        define::<Path>("ffi.Object", true)
            .kind(kTVMFFISEqHashKindConstTreeNode)
            .field(plain::<Option<ObjectRef>>("parent", parent, 24, TypeIndex::ANY))
            .field(plain::<Option<ObjectRef>>("step", step, 32, TypeIndex::ANY))
            .field(plain::<i32>("depth", INT, 40, TypeIndex::INT))
            .attribute("__ffi_repr__", Function::built_in(|args| text(args, write_path))),
    ]
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

fn value_of(object: &ObjectRef, name: &str) -> Result<Any> {
    let fields = fields(object.type_index())?;
    let missing = || value_error(&format!("`{}` has no field `{name}`", object.type_key()));
    let info = fields.into_iter().find(|info| field::name(info) == name.as_bytes()).ok_or_else(missing)?;
    // SAFETY: the field is one of the object's type.
    unsafe { field::get(info, object) }
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
    let mut steps = Vec::new();
    let mut place = Some(path.clone());
    while let Some(path) = place {
        steps.extend(value_of(&path, "step")?.cast::<Option<ObjectRef>>()?);
        place = value_of(&path, "parent")?.cast()?;
    }
    out.extend_from_slice(b"<root>");
    for step in steps.iter().rev() {
        out.extend_from_slice(print.call((step,))?.cast::<Str>()?.as_bytes());
    }
    Ok(())
}
