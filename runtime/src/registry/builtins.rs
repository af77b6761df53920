//! The built-in global functions for strings, bytes, shapes, and the table of functions itself.
//! The functions for containers and modules are in `container` and `module`.
//! No header section: upstream registers them in `function.cc`, `object.cc`, `container.cc`.

use super::globals::{Globals, with_args};
use super::table::{metadata, names, remove};
use crate::abi::TypeIndex;
use crate::any::{Any, AnyView};
use crate::error::{Result, index_error, runtime_error, type_mismatch, value_error};
use crate::function::Function;
use crate::shape::Shape;
use crate::string::{Bytes, raw_str_from_bytes};

/// Adds the global functions for strings, bytes, shapes, and the table itself.
pub(crate) fn builtins(globals: &mut Globals) {
    globals.fixed("ffi.FunctionRemoveGlobal", |[global]| Ok(remove(name(global)?).into()));
    globals.fixed("ffi.FunctionListGlobalNamesFunctor", |[]| Ok(names_functor(names()).into()));
    globals.fixed("ffi.GetGlobalFuncMetadata", |[global]| {
        let global = name(global)?;
        match metadata(global) {
            Some(metadata) => Ok(metadata.into()),
            None => {
                let global = String::from_utf8_lossy(global);
                Err(runtime_error(&format!("Global Function is not found: {global}")))
            }
        }
    });
    globals.fixed("ffi.String", |[text]| {
        if text.str_bytes().is_none() {
            return Err(type_mismatch("ffi.String", text.type_index()));
        }
        text.to_owned()
    });
    globals.fixed("ffi.Bytes", |[bytes]| bytes.cast::<Bytes>().map(Any::from));
    globals.packed("ffi.Shape", make_shape);
}

/// A name as bytes. It need not be UTF-8.
fn name<'a>(view: &'a AnyView<'_>) -> Result<&'a [u8]> {
    view.str_bytes().ok_or_else(|| type_mismatch("ffi.String", view.type_index()))
}

/// Lists names without an array, as upstream: -1 returns the number of names, and an index returns its name.
fn names_functor(names: Vec<Vec<u8>>) -> Function {
    with_args("(int) -> Any", move |[index]| {
        let index: i64 = index.cast()?;
        if index < 0 {
            return Ok(names.len().into());
        }
        match names.get(index as usize) {
            // SAFETY: the value is a new one.
            Some(name) => Ok(unsafe { Any::from_raw(raw_str_from_bytes(name)) }),
            None => Err(index_error(index, names.len())),
        }
    })
}

fn make_shape(args: &[AnyView<'_>]) -> Result<Any> {
    if args.iter().any(|arg| !matches!(arg.type_index(), TypeIndex::INT | TypeIndex::BOOL)) {
        return Err(value_error("Expect shape to take list of int arguments"));
    }
    // Each argument is an integer, so none falls back to zero.
    Ok(Shape::of(args.iter().map(|arg| arg.cast().unwrap_or_default())).into())
}
