//! Attaches the C++ part, and gives it what no global function does.

use std::ffi::c_void;

use super::super::library::context_symbols;
use super::super::object::Module;
use super::attached;
use crate::any::{Any, AnyView};
use crate::container::Map;
use crate::error::Result;
use crate::function::Function;
use crate::registry::with_args;

/// Attaches the C++ part. From now on modules that are made have a C++ object's layout.
///
/// `vtable` is the pointer to a vtable that such objects begin with. `methods` has a function for each virtual method
/// of `ModuleObj`. The result has functions for the C++ part: the base class's own `import_module` and
/// `clear_imports`, and what has no global function (`save_to_bytes`, `context_symbols`).
///
/// # Errors
/// If a method is missing, or if there is a C++ part already.
///
/// # Safety
/// The vtable must stay valid for the whole process. It must be that of a class that adds no field to upstream's
/// `ModuleObj`, and never reads the fields after `imports_`. Each method must take a module first, and call the virtual
/// method of its name. From now on every object of type `ffi.Module` must be this crate's or a C++ `ModuleObj`.
pub unsafe fn attach(vtable: *const c_void, methods: &Map) -> Result<Map> {
    // SAFETY: promised by the caller.
    unsafe { attached::set(vtable, methods)? };
    Map::try_from_entries([
        service("import_module", "(ffi.Module, ffi.Module) -> void", |[module, other]| {
            module.cast::<Module>()?.add_import(&other.cast()?).map(Any::from)
        }),
        service("clear_imports", "(ffi.Module) -> void", |[module]| {
            module.cast::<Module>()?.remove_imports();
            Ok(Any::none())
        }),
        service("save_to_bytes", "(ffi.Module) -> Optional<bytes>", |[module]| {
            Ok(module.cast::<Module>()?.save_to_bytes()?.map_or(Any::none(), Any::from))
        }),
        service("context_symbols", "(ffi.Function) -> void", |[callback]| {
            let callback: Function = callback.cast()?;
            for (name, value) in context_symbols() {
                // SAFETY: the C++ part passes the value on to code that knows what the symbol points at.
                callback.call((name, unsafe { Any::from_opaque_ptr(value) }))?;
            }
            Ok(Any::none())
        }),
    ])
}

fn service<const N: usize>(
    name: &'static str,
    signature: &'static str,
    body: fn(&[AnyView<'_>; N]) -> Result<Any>,
) -> (&'static str, Function) {
    (name, with_args(signature, body))
}
