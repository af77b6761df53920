//! The global functions through which C and Python load and use modules.
//! No header section: upstream registers them in `extra/module.cc` and `extra/library_module_*.cc`.

use std::collections::HashMap;
use std::mem::ManuallyDrop;
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};

use super::object::Module;
use super::{library, load};
use crate::any::{Any, AnyView, text};
use crate::container::Array;
use crate::error::{Result, type_error, type_mismatch};
use crate::registry::{Globals, LOAD_FROM_FILE};

/// The global functions of modules.
pub(crate) fn globals(globals: &mut Globals) {
    globals.fixed(LOAD_FROM_FILE, |[path]| Ok(load::load_from_file(Path::new(text(path)?))?.into()));
    globals.fixed("ffi.Module.load_from_file.so", |[path, _format]| Ok(library::open(text(path)?)?.into()));
    globals.packed("ffi.SystemLib", |args| {
        let text = |value: &AnyView<'_>| {
            let mismatch = |_| type_error(&format!("Cannot convert from type `{}` to `str`", value.type_key()));
            value.cast::<String>().map_err(mismatch)
        };
        let prefix = args.first().map(text).transpose()?;
        Ok(Module::system_lib(&prefix.unwrap_or_default())?.into())
    });
    functions(globals);
    globals.fixed("ffi.ModuleGetPropertyMask", |[module]| Ok(module.cast::<Module>()?.property_mask().0.into()));
    globals.fixed("ffi.ModuleInspectSource", |[module, format]| {
        Ok(module.cast::<Module>()?.inspect_source(&format.cast::<String>()?)?.into())
    });
    globals.fixed("ffi.ModuleGetKind", |[module]| Ok(module.cast::<Module>()?.kind().into()));
    globals.fixed("ffi.ModuleGetWriteFormats", |[module]| {
        Ok(module.cast::<Module>()?.write_formats().into_iter().collect::<Array>().into())
    });
    globals.fixed("ffi.ModuleWriteToFile", |[module, file_name, format]| {
        let (file_name, format): (String, String) = (file_name.cast()?, format.cast()?);
        module.cast::<Module>()?.write_to_file(&file_name, &format).map(Any::from)
    });
    globals.fixed("ffi.ModuleImportModule", |[module, other]| {
        module.cast::<Module>()?.import_module(&other.cast()?).map(Any::from)
    });
    globals.fixed("ffi.ModuleClearImports", |[module]| {
        module.cast::<Module>()?.clear_imports();
        Ok(Any::none())
    });
    globals.fixed("ffi.ModuleGlobalsAdd", |[module]| {
        let module: Module = module.cast()?;
        let old = kept().lock().unwrap_or_else(PoisonError::into_inner).insert(module.address(), module);
        // Dropped without the lock: a destructor may use the table.
        drop(old);
        Ok(Any::none())
    });
    globals.fixed("ffi.ModuleGlobalsRemove", |[module]| {
        let address = module.cast::<Module>()?.address();
        let old = kept().lock().unwrap_or_else(PoisonError::into_inner).remove(&address);
        drop(old);
        Ok(Any::none())
    });
}

/// The global functions that look up a module's function by its name.
fn functions(globals: &mut Globals) {
    globals.fixed("ffi.ModuleGetFunction", |[module, name, query_imports]| {
        let function = borrowed(module)?.get_function_from(text(name)?, query_imports.cast()?)?;
        Ok(function.map_or(Any::none(), Any::from))
    });
    globals.fixed("ffi.ModuleImplementsFunction", |[module, name, query_imports]| {
        Ok(borrowed(module)?.implements_function(text(name)?, query_imports.cast()?)?.into())
    });
    globals.fixed("ffi.ModuleGetFunctionMetadata", |[module, name, query_imports]| {
        let metadata = borrowed(module)?.function_metadata(text(name)?, query_imports.cast()?)?;
        Ok(metadata.map_or(Any::none(), Any::from))
    });
    globals.fixed("ffi.ModuleGetFunctionDoc", |[module, name, query_imports]| {
        let doc = borrowed(module)?.function_doc(text(name)?, query_imports.cast()?)?;
        Ok(doc.map_or(Any::none(), Any::from))
    });
}

/// Borrows the module in an argument; the argument keeps it alive.
fn borrowed(module: &AnyView<'_>) -> Result<ManuallyDrop<Module>> {
    module.borrow().ok_or_else(|| type_mismatch("ffi.Module", module.inner_type_index()))
}

/// Modules that stay until they are removed. They aren't dropped at exit, since other code may still use their
/// libraries then.
fn kept() -> &'static Mutex<HashMap<usize, Module>> {
    static KEPT: OnceLock<Mutex<HashMap<usize, Module>>> = OnceLock::new();
    KEPT.get_or_init(Mutex::default)
}
